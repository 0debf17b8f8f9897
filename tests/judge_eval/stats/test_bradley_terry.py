"""Bradley-Terry against evalica, against a slow plain fit, and against what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats import bradley_terry
from judge_eval.stats.bradley_terry import NotConverged, fit
from tests.helpers import oracles

sizes = st.integers(1, 6)
wins_tables = sizes.flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 40), min_size=n, max_size=n), min_size=n, max_size=n)
).map(lambda rows: np.array(rows, dtype=float))


def with_virtual(wins):
    """Write the prior down as games: half a win and half a loss against one more player."""
    n = len(wins)
    table = np.zeros((n + 1, n + 1))
    table[:n, :n] = wins
    table[:n, n] = table[n, :n] = 0.5
    np.fill_diagonal(table, 0)
    return table


def on_elo_scale(strengths):
    points = [400 * math.log10(strength) for strength in strengths]
    return [1000 + point - sum(points) / len(points) for point in points]


def by_minorise_maximise(wins):
    """D. R. Hunter's algorithm of 2004, in plain loops."""
    table = with_virtual(wins).tolist()
    players = range(len(table))
    strengths = [1.0] * len(table)
    for _ in range(20_000):
        new = []
        for i in players:
            met = sum(
                (table[i][j] + table[j][i]) / (strengths[i] + strengths[j])
                for j in players
                if j != i
            )
            new.append(sum(table[i]) / met)
        scale = math.exp(sum(map(math.log, new)) / len(new))
        moved = max(abs(a / scale / b - 1) for a, b in zip(new, strengths, strict=True))
        strengths = [a / scale for a in new]
        if moved < 1e-14:
            break
    return on_elo_scale(strengths[:-1])


def by_evalica(wins):
    table = with_virtual(wins)
    found = [tuple(pair) for pair in np.argwhere(table)]
    fitted = oracles.evalica.bradley_terry(
        [f"{i:02}" for i, _ in found],
        [f"{j:02}" for _, j in found],
        [oracles.evalica.Winner.X] * len(found),
        weights=[table[i, j] for i, j in found],
        tolerance=1e-15,
        limit=100_000,
    )
    return on_elo_scale([fitted.scores[f"{n:02}"] for n in range(len(wins))])


@pytest.mark.parametrize("players, seed", [(2, 1), (3, 2), (6, 3), (20, 4)])
def test_ratings_are_those_of_evalica(players, seed):
    wins = np.random.default_rng(seed).integers(0, 50, (players, players)).astype(float)
    assert fit(wins) == pytest.approx(by_evalica(wins), abs=1e-6)


@pytest.mark.parametrize(
    "wins",
    [
        [[0, 3], [1, 0]],
        [[0, 9, 0], [0, 0, 2], [1, 0, 0]],
        [[0, 4, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0.5], [0, 0, 2.5, 0]],
        np.random.default_rng(5).integers(0, 30, (7, 7)),
    ],
)
def test_ratings_are_those_of_a_plain_fit_to_1e_8(wins):
    assert fit(wins) == pytest.approx(by_minorise_maximise(np.array(wins)), abs=1e-8)


def test_who_never_played_stands_with_the_virtual_opponent():
    assert fit([[0, 0], [0, 0]]).tolist() == [1000, 1000]
    assert fit([[0.0]]).tolist() == [1000]


@pytest.mark.parametrize("games", [1, 10**3, 10**6, 10**9])
def test_a_clean_sweep_of_any_length_has_a_finite_rating(games):
    ratings = fit([[0, games], [0, 0]])
    # Strengths are s and -s, where games p(-2 s) = p(s) - 1/2.
    strength = (ratings[0] - 1000) / bradley_terry.POINTS
    residual = games / (1 + math.exp(2 * strength)) - (1 / (1 + math.exp(-strength)) - 0.5)
    assert abs(residual) < 1e-9
    assert ratings.sum() == pytest.approx(2000)


@given(wins_tables)
def test_the_mean_is_1000(wins):
    assert fit(wins).mean() == pytest.approx(1000, abs=1e-9)


@given(wins_tables, st.randoms(use_true_random=False))
def test_the_order_of_players_does_not_matter(wins, random):
    order = random.sample(range(len(wins)), len(wins))
    assert fit(wins[np.ix_(order, order)]) == pytest.approx(fit(wins)[order], abs=1e-8)


@given(wins_tables)
def test_losses_are_wins_mirrored(wins):
    assert 2000 - fit(wins.T) == pytest.approx(fit(wins), abs=1e-8)


@given(wins_tables.filter(lambda wins: len(wins) > 1), st.data(), st.integers(1, 20))
def test_another_win_brings_the_winner_forward(wins, data, more):
    one, other = data.draw(st.permutations(range(len(wins))))[:2]
    before = fit(wins)
    wins[one, other] += more
    after = fit(wins)
    assert after[one] - after[other] > before[one] - before[other]
    assert after[one] > before[one]
    assert after[other] < before[other]


@given(wins_tables)
def test_a_player_on_top_of_all_counts_is_on_top(wins):
    """Who wins as many or more against each than anyone else does is not rated below anyone."""
    np.fill_diagonal(wins, 0)
    wins[0] = wins.max() + 1
    wins[1:, 0] = 0
    ratings = fit(wins)
    assert (ratings[0] >= ratings).all()


def test_many_tables_at_once_are_each_by_itself():
    wins = np.random.default_rng(6).integers(0, 9, (3, 5, 4, 4))
    together = fit(wins)
    assert together.shape == (3, 5, 4)
    for place in np.ndindex(3, 5):
        assert together[place] == pytest.approx(fit(wins[place]), abs=1e-9)


def test_tables_too_many_for_memory_are_fitted_in_parts(monkeypatch):
    wins = np.random.default_rng(7).integers(0, 9, (10, 4, 4))
    whole = fit(wins)
    monkeypatch.setattr(bradley_terry, "_NUMBERS_AT_ONCE", 50)
    assert fit(wins) == pytest.approx(whole, abs=1e-9)


def test_the_diagonal_is_not_read_and_the_argument_not_changed():
    wins = np.array([[7.0, 3.0], [1.0, 9.0]])
    assert fit(wins).tolist() == fit([[0, 3], [1, 0]]).tolist()
    assert wins.tolist() == [[7, 3], [1, 9]]


def test_no_players_no_ratings():
    assert fit(np.zeros((0, 0))).shape == (0,)
    assert fit(np.zeros((0, 3, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    "wins, why",
    [
        ([[0, 1]], "shape"),
        ([0, 1], "shape"),
        ([[0, -1], [0, 0]], "negative"),
        ([[0, math.nan], [0, 0]], "not finite"),
        ([[0, math.inf], [0, 0]], "not finite"),
    ],
)
def test_what_is_no_table_of_wins_is_refused(wins, why):
    with pytest.raises(ValueError, match=why):
        fit(wins)


def test_what_is_not_found_is_said(monkeypatch):
    monkeypatch.setattr(bradley_terry, "_LIMIT", 1)
    with pytest.raises(NotConverged, match="1 steps"):
        fit([[0, 9], [1, 0]])
