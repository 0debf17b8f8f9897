"""Bets on whether a judge has changed, started anew every 14 days."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.drift import START_DAYS, THRESHOLD, drift, evidence, yardstick
from judge_eval.stats.evidence import log_wealth

DIFFERENCES = st.lists(st.sampled_from([-1, -1 / 3, 0, 1 / 3, 1]), max_size=60)


def days_of(differences, a_day=2):
    return [place // a_day for place in range(len(differences))]


def weighed(differences, judges=1):
    return drift(differences, days_of(differences), judges)


def test_worked_value_of_two_starts():
    """WORKSHOP 3: differences for "worse", starts before the first and the fourth."""
    won = evidence(np.array([[-1.0, 1, -1, 1, 1, 1, 1]]).T, np.array([0, 3]))[:, 0]
    assert (won[2], won[-1]) == (pytest.approx(0.708333, abs=1e-6), pytest.approx(3.751786))
    [one, four] = (
        np.exp(log_wealth(np.array([bets], float).T)[-1, 0])
        for bets in ([-1, 1, -1, 1, 1, 1, 1], [1, 1, 1, 1])
    )
    assert (one, four) == (pytest.approx(1.303571, abs=1e-6), pytest.approx(6.2))


@given(DIFFERENCES, st.lists(st.integers(0, 70), min_size=1, max_size=8))
def test_it_is_the_mean_of_what_each_start_has_won(differences, starts):
    bets = np.array(differences, float)[:, None]
    won = []
    for start in starts:
        own = np.exp(log_wealth(bets[start:])[:, 0])
        won.append(np.concatenate([np.ones(len(bets) - len(own)), own]))
    expected = np.mean(won, axis=0)
    assert evidence(bets, np.minimum(starts, len(bets)))[:, 0] == pytest.approx(expected)


def test_a_bet_starts_every_fourteen_days_of_the_year():
    assert len(START_DAYS) == 27
    # A start counts what comes on its day: of those days nothing else is told.
    differences, days = [1.0] * 3 + [-1.0] * 20, [13] * 3 + [14] * 20
    assert drift(differences, days).since == 14
    assert drift(differences[:3] + [-1.0] * 30, [0] * 3 + [13] * 30).since == 0


@pytest.mark.parametrize(
    "a_day, anchors, repeats", [(3, 100, 11), (10, 100, 37), (3, 400, 3), (1, 365, 1), (1, 366, 1)]
)
def test_a_yardstick_lasts_for_a_year(a_day, anchors, repeats):
    assert yardstick(a_day, anchors) == repeats
    assert repeats * anchors >= 365 * a_day > (repeats - 1) * anchors


@given(DIFFERENCES)
def test_worse_and_better_mirror_each_other(differences):
    one, other = weighed(differences), weighed([-d for d in differences])
    assert (one.worse, one.better) == (other.better, other.worse)
    assert {one.direction, other.direction} in ({""}, {"worse", "better"})
    assert (one.change_index, one.since) == (other.change_index, other.since)


@given(DIFFERENCES, DIFFERENCES)
def test_what_was_said_stays_said(first, later):
    before, after = weighed(first), weighed(first + later)
    assert after.worse >= before.worse - 1e-9
    if before.direction:
        assert (after.direction, after.change_index) == (before.direction, before.change_index)


@given(DIFFERENCES, st.integers(1, 5))
def test_it_is_said_where_evidence_first_reaches_its_threshold(differences, judges):
    said = weighed(differences, judges)
    bets = np.array([[-each, each] for each in differences], float).reshape(-1, 2)
    starts = np.searchsorted(days_of(differences), START_DAYS)
    reached = evidence(bets, starts).max(axis=1, initial=0) >= judges * THRESHOLD - 1e-6
    assert reached.any() == (said.change_index is not None)
    assert not reached.any() or reached.argmax() == said.change_index


def test_so_many_the_same_stay_within_the_range_of_floats():
    assert weighed([-1] * 3000).worse > 1e200


def test_nothing_asked_says_nothing():
    assert weighed([]) == weighed([0] * 400)
