"""ELO in other orders: all shuffles at once rate as the plain fold and evalica rate one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.elo import Standings, split
from judge_eval.stats.elo_orders import elo_range, shuffled_elo
from tests.helpers import oracles
from tests.helpers.outcome_tables import made_up, one_by_one, tables
from voting.items.choices import CHOICES, WRONG

NAMES = {-2: None, -1: None, **dict(enumerate([*CHOICES, WRONG]))}


def of_items(said, *votes):
    """Return votes as (item, choice) on items of which judges said something, in words."""
    codes = {name: code for code, name in NAMES.items()}
    items, choices = zip(*votes, strict=True)
    verdicts = [[codes[word] for word in row] for row in said]
    return np.array(items), np.array([codes[c] for c in choices]), np.array(verdicts, dtype=np.int8)


def shuffled_votes(items, choices, verdicts, seed, shuffles, most):
    """Draw the same orders of items, the votes on each as they came."""
    said = [[NAMES[code] for code in row] for row in verdicts.tolist()]
    by_item = {item: [] for item in sorted(set(items.tolist()))}
    for item, choice in zip(items.tolist(), choices.tolist(), strict=True):
        by_item[item].append((CHOICES[choice], said[item]))
    together = list(by_item.values())
    rng = np.random.default_rng(seed)
    for _ in range(shuffles):
        order = rng.permutation(len(together))
        yield [vote for n in order for vote in together[n]][:most]


def plain_elo(votes, judges):
    standings = Standings()
    standings.grow(judges)
    for choice, said in votes:
        standings.apply(*split(choice, said), len(said))
    return standings.elo


def evalica_elo(votes, judges):
    games = [
        (winner, loser)
        for choice, said in votes
        for sides in [split(choice, said)]
        for winner in sides[0]
        for loser in sides[1]
    ]
    won, lost = zip(*games, strict=True)
    scores = oracles.evalica.elo(won, lost, [oracles.evalica.Winner.X] * len(games), k=32).scores
    return [scores.get(judge, 1000.0) for judge in range(judges)]


@given(tables(), st.sampled_from([3, 5000]))
def test_every_shuffle_is_rated_as_by_the_plain_fold(table, most):
    votes = one_by_one(table)
    found = shuffled_elo(*votes, np.random.default_rng(4), 3, most)
    for ratings, drawn in zip(found, shuffled_votes(*votes, 4, 3, most), strict=True):
        assert ratings == pytest.approx(plain_elo(drawn, table.n_judges), abs=1e-9)


@pytest.mark.parametrize("judges, votes", [(2, 1), (7, 3), (20, 2)])
def test_every_shuffle_is_rated_as_by_evalica(judges, votes):
    skills = np.linspace(0.2, 0.8, judges)
    table = made_up(np.random.default_rng(2), comparisons=60, skills=skills, votes=votes)
    single = one_by_one(table)
    found = shuffled_elo(*single, np.random.default_rng(5), 4)
    for ratings, drawn in zip(found, shuffled_votes(*single, 5, 4, 5000), strict=True):
        assert ratings == pytest.approx(evalica_elo(drawn, judges), abs=1e-8)


@pytest.mark.parametrize("judges", [3, 30])
def test_the_last_votes_decide_the_ratings_of_long_shuffles(judges):
    skills = np.linspace(0.3, 0.8, judges)
    table = made_up(np.random.default_rng(8), comparisons=1500, skills=skills, votes=2)
    votes = one_by_one(table)
    found = shuffled_elo(*votes, np.random.default_rng(9), 2)
    for ratings, drawn in zip(found, shuffled_votes(*votes, 9, 2, 5000), strict=True):
        assert ratings == pytest.approx(plain_elo(drawn, judges), abs=1e-8)


def test_ratings_that_remember_all_votes_are_played_from_the_first_one():
    """A judge that is always right rises as long as there are votes."""
    votes = [(item, "AB"[item % 2]) for item in range(1000)]
    facts = of_items([["A", "A"], ["B", "A"]] * 500, *votes)
    [ratings] = shuffled_elo(*facts, np.random.default_rng(2), 1)
    assert ratings == pytest.approx(plain_elo([("B", ["B", "A"])] * 500, 2), abs=1e-8)


@given(tables())
def test_ratings_are_zero_sum_around_1000(table):
    found = shuffled_elo(*one_by_one(table), np.random.default_rng(1), 2)
    assert found.mean(axis=1) == pytest.approx([1000, 1000], abs=1e-9)


def test_votes_on_one_item_stay_together_as_they_came():
    """Ten votes on each of two items have two orders, and not 20 over 10."""
    votes = [(item, choice) for item, choice in [(0, "A"), (1, "A"), (0, "B"), (1, "B")] * 5]
    facts = of_items([["A", "B"], ["B", "A"]], *votes)
    found = shuffled_elo(*facts, np.random.default_rng(1), 100)
    first = [(c, ["A", "B"]) for c in "AB" * 5]
    second = [(c, ["B", "A"]) for c in "AB" * 5]
    expected = {round(plain_elo(order, 2)[0], 6) for order in (first + second, second + first)}
    assert {round(rating, 6) for rating in found[:, 0].tolist()} == expected


def test_the_range_is_from_the_5th_to_the_95th_percentile_of_100_shuffles():
    table = made_up(np.random.default_rng(6), comparisons=80, skills=[0.7, 0.5, 0.4])
    votes = one_by_one(table)
    ratings = shuffled_elo(*votes, np.random.default_rng(7))
    assert len(ratings) == 100
    low, high = elo_range(*votes, np.random.default_rng(7))
    assert [
        ((column < a).sum(), (column > b).sum())
        for column, a, b in zip(ratings.T, low, high, strict=True)
    ] == [(5, 5)] * 3
    assert (high - low > 20).all()


def test_where_the_order_cannot_matter_the_range_is_one_value():
    facts = of_items([["A", "B"]] * 20, *((item, "A") for item in range(20)))
    low, high = elo_range(*facts, np.random.default_rng(1))
    assert low == pytest.approx(plain_elo([("A", ["A", "B"])] * 20, 2), abs=1e-9)
    assert high == pytest.approx(low, abs=1e-9)


@pytest.mark.parametrize(
    "there_are, most, counted", [(7000, 5000, 5000), (70, 5000, 70), (70, 9, 9)]
)
def test_a_sample_holds_as_many_votes_as_it_may(there_are, most, counted):
    """The same vote again and again: its ratings tell how often it was counted."""
    votes = [(n % 2, "A") for n in range(there_are)]
    facts = of_items([["A", "B"]] * 2, *votes)
    [ratings] = shuffled_elo(*facts, np.random.default_rng(2), 1, most)
    assert ratings == pytest.approx(plain_elo([("A", ["A", "B"])] * counted, 2), abs=1e-9)


@pytest.mark.parametrize("votes", [[], [(0, "A"), (0, "B")]], ids=["none", "one item"])
def test_without_another_order_there_is_no_range(votes):
    items, choices = np.array(votes, dtype=object).reshape(-1, 2).T
    codes = np.array([CHOICES.index(choice) for choice in choices], dtype=np.int64)
    said = np.array([[0, 1]], dtype=np.int8)
    found = elo_range(items.astype(np.int64), codes, said, np.random.default_rng(1))
    assert np.isnan(found).all()
    assert found.shape == (2, 2)
