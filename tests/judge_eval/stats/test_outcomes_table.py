"""Counted votes hold all that single votes do: every count against a loop over the votes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.elo import split
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED, OutcomesTable
from tests.helpers.outcome_tables import outcomes_of, tables, votes_of
from voting.items.choices import CHOICES


def wins_by_loop(table):
    wins = np.zeros((table.n_judges, table.n_judges), dtype=int)
    for choice, said in votes_of(table):
        correct, wrong = split(choice, said)
        for winner in correct:
            for loser in wrong:
                wins[winner, loser] += 1
    return wins


@given(tables())
def test_wins_are_those_of_the_single_votes(table):
    assert table.wins().tolist() == wins_by_loop(table).tolist()


@given(tables())
def test_games_add_up_to_wins(table):
    assert table.games().sum(axis=0).tolist() == table.wins().tolist()


@given(tables())
def test_playing_are_those_with_a_game(table):
    games = table.games()
    assert table.playing().tolist() == (games.any(axis=1) | games.any(axis=2)).tolist()


@given(tables())
def test_right_and_judged_count_the_single_votes(table):
    votes = votes_of(table)
    for judge in range(table.n_judges):
        told = [(choice, said[judge]) for choice, said in votes if said[judge] is not None]
        assert table.judged()[:, judge].sum() == len(told)
        assert table.right()[:, judge].sum() == sum(choice == said for choice, said in told)


@given(tables(), st.randoms(use_true_random=False))
def test_groups_are_the_table_whatever_its_order(table, random):
    order = np.array(random.sample(range(len(table.votes)), len(table.votes)))
    groups, multiplicity = table.grouped()
    again, as_often = table.select(order).grouped()
    assert again.votes.tolist() == groups.votes.tolist()
    assert again.verdicts.tolist() == groups.verdicts.tolist()
    assert as_often.tolist() == multiplicity.tolist()
    assert multiplicity.sum() == len(table.votes)
    assert np.tensordot(multiplicity, groups.games(), 1).tolist() == table.wins().tolist()


@given(tables())
def test_comparisons_without_votes_play_no_part(table):
    voted = table.voted()
    assert voted.votes.sum(axis=1).all()
    assert (voted.n_votes, voted.wins().tolist()) == (table.n_votes, table.wins().tolist())


def test_words_become_codes_and_a_judge_that_joined_later_was_not_asked():
    table = outcomes_of([{"both_bad": 2}, {"A": 1, "B": 3}], [["A"], [None, "tie"]], judges=3)
    assert table.votes.tolist() == [[0, 0, 0, 2], [1, 3, 0, 0]]
    assert table.verdicts.tolist() == [[0, UNASSIGNED, UNASSIGNED], [FAILED, 2, UNASSIGNED]]
    assert table.n_votes == 6


def test_a_verdict_that_is_wrong_whatever_people_say_is_judged_and_loses():
    everything = dict.fromkeys(CHOICES, 1)
    table = outcomes_of([everything], [["A", "wrong", "wrong"]])
    assert table.right().tolist() == [[1, 0, 0]]
    assert table.judged().tolist() == [[4, 4, 4]]
    assert table.wins().tolist() == [[0, 1, 1], [0, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("choices", [1, 2, 30])
def test_any_number_of_choices_can_be_counted(choices):
    votes = np.eye(choices, dtype=np.int64)
    table = OutcomesTable(votes, np.stack([np.arange(choices), np.full(choices, choices)], axis=1))
    assert table.right().sum(axis=0).tolist() == [choices, 0]
    assert table.wins().tolist() == [[0, choices], [0, 0]]
    assert table.playing().all()


def test_nothing_is_a_table_too():
    empty = outcomes_of([], [], judges=2)
    assert (empty.n_judges, empty.n_votes) == (2, 0)
    assert empty.wins().tolist() == [[0, 0], [0, 0]]
    groups, multiplicity = empty.grouped()
    assert (len(groups.votes), len(multiplicity)) == (0, 0)
    assert outcomes_of([{"A": 1}], [[]]).wins().shape == (0, 0)


@pytest.mark.parametrize(
    "votes, verdicts, why",
    [
        ([1, 0], [[0], [1]], "votes and verdicts have shapes"),
        ([[1, 0, 0, 0]], [[0], [1]], "votes and verdicts have shapes"),
        ([[1, 0, 0, -1]], [[0]], "negative"),
        ([[1, 0, 0, 0]], [[5]], "code is unknown"),
        ([[1, 0, 0, 0]], [[-3]], "code is unknown"),
    ],
)
def test_what_is_no_table_is_refused(votes, verdicts, why):
    with pytest.raises(ValueError, match=why):
        OutcomesTable(np.array(votes), np.array(verdicts, dtype=np.int8))
