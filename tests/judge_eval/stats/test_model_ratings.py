"""Boards of models: the same votes as games between the models that wrote the outputs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import bradley_terry
from judge_eval.stats.bradley_terry import UNKNOWN, as_votes, model_board
from tests.helpers import oracles

rows = st.lists(
    st.tuples(
        st.tuples(st.integers(-1, 3), st.integers(-1, 3)),
        st.lists(st.integers(0, 3), min_size=4, max_size=4),
    ),
    min_size=1,
    max_size=15,
)


def board_of(found, seed=1, n_models=4):
    models, votes = (np.array(column) for column in zip(*found, strict=True))
    return model_board(models, n_models, votes, np.random.default_rng(seed), resamples=50)


def votes_around(strengths, comparisons, seed):
    """Make pairs of models and one vote each; the better model wins more often."""
    rng = np.random.default_rng(seed)
    models = np.array([rng.choice(len(strengths), 2, replace=False) for _ in range(comparisons)])
    gap = np.diff(np.array(strengths)[models], axis=1)[:, 0]
    choice = np.where(rng.random(comparisons) < 1 / (1 + np.exp(gap)), 0, 1)
    choice[rng.random(comparisons) < 0.2] = 2
    choice[rng.random(comparisons) < 0.1] = 3
    return models, np.eye(4, dtype=int)[choice]


@given(rows)
def test_wins_are_those_of_the_single_votes(found):
    wins, both_bad, unpaired = np.zeros((4, 4)), 0, 0
    for (a, b), (for_a, for_b, ties, bad) in found:
        if a == b or UNKNOWN in (a, b):
            unpaired += for_a + for_b + ties + bad
            continue
        wins[a, b] += for_a + ties / 2
        wins[b, a] += for_b + ties / 2
        both_bad += bad
    board = board_of(found)
    assert board.wins == wins.tolist()
    assert (board.both_bad, board.unpaired) == (both_bad, unpaired)


@given(rows, st.randoms(use_true_random=False))
def test_order_and_sides_change_nothing(found, random):
    turned = [((b, a), [y, x, tie, bad]) for (a, b), (x, y, tie, bad) in found]
    assert board_of(random.sample(turned, len(turned))).ratings == board_of(found).ratings


def test_ratings_are_those_of_evalica():
    """A tie is half a win of each; the prior is half a win and half a loss against one more."""
    models, votes = votes_around([1.0, 0.5, 0.0, -1.0], 400, seed=2)
    winners = {
        0: oracles.evalica.Winner.X,
        1: oracles.evalica.Winner.Y,
        2: oracles.evalica.Winner.Draw,
    }
    games = [
        (f"m{a}", f"m{b}", winners[choice], 1.0)
        for (a, b), choice in zip(models, votes.argmax(axis=1), strict=True)
        if choice in winners
    ]
    games += [
        (f"m{n}", "virtual", winner, 0.5) for n in range(4) for winner in list(winners.values())[:2]
    ]
    xs, ys, results, weights = zip(*games, strict=True)
    fitted = oracles.evalica.bradley_terry(
        xs, ys, results, weights=list(weights), tolerance=1e-15, limit=100_000
    )
    points = 400 * np.log10([fitted.scores[f"m{n}"] for n in range(4)])
    board = model_board(models, 4, votes, np.random.default_rng(1))
    found = [rating.value for rating in board.ratings]
    assert found == pytest.approx(1000 + points - points.mean(), abs=1e-6)


def test_intervals_are_those_of_resampled_comparisons():
    models, votes = votes_around([0.8, 0.0, -0.8], 300, seed=3)
    board = model_board(models, 3, votes, np.random.default_rng(4), resamples=2000)
    rng = np.random.default_rng(5)
    resampled = []
    for _ in range(500):
        drawn = rng.integers(len(votes), size=len(votes))
        resampled.append(model_board(models[drawn], 3, votes[drawn], rng, resamples=1).wins)
    low, high = np.quantile(bradley_terry.fit(resampled), [0.025, 0.975], axis=0)
    # Both are drawn, so their bounds differ by some hundredths of the width.
    slack = 0.2 * (high - low).mean()
    assert [rating.low for rating in board.ratings] == pytest.approx(low, abs=slack)
    assert [rating.high for rating in board.ratings] == pytest.approx(high, abs=slack)
    assert board.ties == ["a", "b", "c"]


def test_a_judge_may_crown_another_model():
    models, votes = votes_around([1.5, 0.0, -1.5], 200, seed=6)
    contrary = np.array([1, 0, 2, 3, -1], dtype=np.int8)[votes.argmax(axis=1)]
    people = model_board(models, 3, votes, np.random.default_rng(1))
    judge = model_board(models, 3, as_votes(contrary), np.random.default_rng(1))
    assert [rating.rank for rating in people.ratings] == [1, 2, 3]
    assert [rating.rank for rating in judge.ratings] == [3, 2, 1]


def test_failed_verdicts_are_no_votes():
    assert as_votes(np.array([0, -1, -2, 3], dtype=np.int8)).tolist() == [
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 1],
    ]


def test_win_rates_are_missing_where_models_never_met():
    board = board_of([((0, 1), [3, 0, 2, 5])], n_models=3)
    assert board.win_rates == [[None, 0.8, None], [0.2, None, None], [None, None, None]]


def test_without_a_decided_vote_no_model_is_rated():
    board = board_of([((0, 1), [0, 0, 0, 2])])
    assert [rating.value for rating in board.ratings] == [None] * 4
    assert board.ties == [""] * 4
    assert (board.both_bad, board.unpaired) == (2, 0)


def test_a_model_that_is_not_counted_in_is_refused():
    with pytest.raises(ValueError, match="unknown"):
        board_of([((0, 4), [1, 0, 0, 0])])
