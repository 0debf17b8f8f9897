"""Which votes are divided, by the worked values; and when a decided item waits again."""

from datetime import UTC, datetime, timedelta
from statistics import pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.review.ambiguity import StandingDecision, is_ambiguous, is_disputed, waits
from voting.items.disputes import population_variance

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


def variance_of(votes):
    return population_variance(len(votes), sum(votes), sum(vote * vote for vote in votes))


@given(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=50))
def test_the_variance_is_that_of_the_population(votes):
    expected = float(pvariance([vote / 1e6 for vote in votes]))
    assert variance_of(votes) == pytest.approx(expected, abs=1e-12)
    assert 0 <= variance_of(votes) <= 0.25


def test_no_votes_have_no_variance_and_are_not_ambiguous():
    assert population_variance(0, 0, 0) is None
    assert not is_ambiguous(None, 0)
    assert not is_disputed([])


def test_the_critical_value_itself_is_not_above_it():
    assert not is_ambiguous(0.05, 3)
    assert is_ambiguous(0.2, 2, critical_variance=0.1, min_votes=2)


@pytest.mark.parametrize(
    "counts, disputed",
    [([2, 1], False), ([4, 2], False), ([3, 2], True), ([5, 3, 0, 0], True), ([1, 1], False)],
)
def test_two_thirds_settle_a_dispute(counts, disputed):
    assert is_disputed(counts) is disputed


@pytest.mark.parametrize("action", ["exclude", "keep", "another_round"])
def test_a_flag_that_is_newer_than_the_decision_brings_it_back(action):
    decided = StandingDecision(action, NOW, votes_wanted=9)
    seen = {"divided": False, "votes": 3, "decided": decided}
    assert not waits(flagged_at=NOW, **seen)
    assert waits(flagged_at=LATER, **seen)


def test_another_round_brings_it_back_only_when_it_is_over_and_has_settled_nothing():
    decided = StandingDecision("another_round", NOW, votes_wanted=6)

    def after(votes, *, divided):
        return waits(divided=divided, votes=votes, flagged_at=None, decided=decided)

    assert not after(5, divided=True)
    assert after(6, divided=True)
    assert not after(6, divided=False)
