"""Order luck: all shuffles at once rate as the plain fold and evalica rate one after the other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge_eval.stats.elo import Standings, split
from judge_eval.stats.elo_orders import order_luck, shuffled_elo
from judge_eval.stats.outcomes_table import OutcomesTable
from tests.helpers.oracles import evalica
from tests.pure.outcome_tables import made_up, outcomes_of, tables, votes_of


def shuffled_votes(table, seed, shuffles, most):
    """Draw the same votes, written out one by one."""
    groups, multiplicity = table.grouped()
    written_out = votes_of(
        OutcomesTable(groups.votes * multiplicity[:, None], groups.verdicts.copy())
    )
    rng = np.random.default_rng(seed)
    for _ in range(shuffles):
        size = min(len(written_out), most)
        yield [written_out[n] for n in rng.choice(len(written_out), size, replace=False)]


def plain_elo(votes, judges):
    standings = Standings()
    standings.grow(judges)
    for choice, said in votes:
        standings.count(choice, said)
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
    scores = evalica.elo(won, lost, [evalica.Winner.X] * len(games), k=32).scores
    return [scores.get(judge, 1000.0) for judge in range(judges)]


@settings(max_examples=60)
@given(tables(), st.sampled_from([3, 5000]))
def test_every_shuffle_is_rated_as_by_the_plain_fold(table, most):
    found = shuffled_elo(table, np.random.default_rng(4), 3, most)
    for ratings, votes in zip(found, shuffled_votes(table, 4, 3, most), strict=True):
        assert ratings == pytest.approx(plain_elo(votes, table.n_judges), abs=1e-9)


@pytest.mark.parametrize("judges, votes", [(2, 1), (7, 3), (20, 2)])
def test_every_shuffle_is_rated_as_by_evalica(judges, votes):
    skills = np.linspace(0.2, 0.8, judges)
    table = made_up(np.random.default_rng(2), comparisons=60, skills=skills, votes=votes)
    found = shuffled_elo(table, np.random.default_rng(5), 4)
    for ratings, drawn in zip(found, shuffled_votes(table, 5, 4, 5000), strict=True):
        assert ratings == pytest.approx(evalica_elo(drawn, judges), abs=1e-8)


@pytest.mark.parametrize("judges", [3, 30])
def test_the_last_votes_decide_the_ratings_of_long_shuffles(judges):
    skills = np.linspace(0.3, 0.8, judges)
    table = made_up(np.random.default_rng(8), comparisons=1500, skills=skills, votes=2)
    found = shuffled_elo(table, np.random.default_rng(9), 2)
    for ratings, votes in zip(found, shuffled_votes(table, 9, 2, 5000), strict=True):
        assert ratings == pytest.approx(plain_elo(votes, judges), abs=1e-8)


def test_ratings_that_remember_all_votes_are_played_from_the_first_one():
    """A judge that is always right rises as long as there are votes."""
    table = outcomes_of([{"A": 2}, {"B": 2}] * 500, [["A", "A"], ["B", "A"]] * 500)
    [ratings] = shuffled_elo(table, np.random.default_rng(2), 1)
    assert ratings == pytest.approx(plain_elo([("B", ["B", "A"])] * 1000, 2), abs=1e-8)


@given(tables())
def test_ratings_are_zero_sum_around_1000(table):
    found = shuffled_elo(table, np.random.default_rng(1), 2)
    assert found.mean(axis=1) == pytest.approx([1000, 1000], abs=1e-9)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_comparisons_does_not_matter(table, random):
    order = np.array(random.sample(range(len(table.votes)), len(table.votes)))
    here, there = (
        shuffled_elo(one, np.random.default_rng(3), 2) for one in (table, table.where(order))
    )
    assert here.tolist() == there.tolist()


def test_luck_is_the_standard_deviation_over_shuffles():
    table = made_up(np.random.default_rng(6), comparisons=80, skills=[0.7, 0.5, 0.4])
    ratings = shuffled_elo(table, np.random.default_rng(7))
    assert len(ratings) == 100
    expected = [np.std(column, ddof=1) for column in ratings.T]
    assert order_luck(table, np.random.default_rng(7)) == pytest.approx(expected)
    assert min(expected) > 5


def test_where_the_order_cannot_matter_there_is_no_luck():
    """The same game again and again gives the same ratings in every order, up to rounding."""
    table = outcomes_of([{"A": 2}] * 20, [["A", "B"]] * 20)
    assert order_luck(table, np.random.default_rng(1)) == pytest.approx([0, 0], abs=1e-9)
    unanimous = outcomes_of([{"A": 2, "B": 1}] * 5, [["A", "A"]] * 5)
    assert order_luck(unanimous, np.random.default_rng(1)).tolist() == [0, 0]


@pytest.mark.parametrize(
    "there_are, most, counted", [(7000, 5000, 5000), (70, 5000, 70), (70, 9, 9)]
)
def test_a_sample_holds_as_many_votes_as_it_may(there_are, most, counted):
    """The same vote again and again: its ratings tell how often it was counted."""
    table = outcomes_of([{"A": there_are}], [["A", "B"]])
    [ratings] = shuffled_elo(table, np.random.default_rng(2), 1, most)
    assert ratings == pytest.approx(plain_elo([("A", ["A", "B"])] * counted, 2), abs=1e-9)


def test_without_votes_there_is_no_figure():
    assert order_luck(outcomes_of([], [], judges=2), np.random.default_rng(1)) is None
