"""A plan says how many items tell judges apart: no fewer for less, and as often as it says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judge_eval.stats.evidence import log_wealth
from judge_eval.stats.planning import (
    MOST_ITEMS,
    Study,
    items_for,
    plan,
    power_by_evidence,
    power_by_interval,
)

USUAL = {"judges": 3, "people_agreement": 0.7, "difference": 0.1, "votes_per_item": 1, "ties": 0.1}
METHODS = st.sampled_from(["evidence", "interval"])


def needs(method, **changes):
    return items_for(Study(**USUAL | changes), method) or MOST_ITEMS + 1


@given(METHODS, st.integers(1, 98), st.floats(0.6, 0.95), st.floats(0, 0.5))
@example("evidence", 8, 0.6, 0.1)  # majorities of 9 votes would need 6 items more
def test_more_people_on_each_item_need_no_more_items_but_for_steps(method, votes, agreement, ties):
    about = {"people_agreement": agreement, "ties": ties, "difference": 0.05}
    more = needs(method, votes_per_item=votes + 1, **about)
    assert more <= 1.01 * needs(method, votes_per_item=votes, **about) + 2


@given(METHODS, st.floats(0.03, 0.2), st.floats(0.01, 0.1))
def test_a_smaller_difference_needs_more_items(method, difference, less):
    smaller = max(0.02, difference - less)
    assert needs(method, difference=smaller) > needs(method, difference=difference)


@given(st.integers(2, 20), st.floats(0.5, 0.9))
def test_more_judges_and_more_power_need_no_fewer_items(judges, power):
    few = needs("evidence", judges=judges, power=power)
    assert few <= needs("evidence", judges=judges + 1, power=power)
    assert few <= needs("evidence", judges=judges, power=min(0.99, power + 0.05))


def played(study, items, studies=4000):
    """Play studies through: by how much the judges' shares of votes differ on each item."""
    rng = np.random.default_rng(17)
    shape = studies, items
    is_decided = rng.random(shape) >= study.ties
    right = rng.binomial(study.votes_per_item, study.person, shape)
    better, worse = (rng.random(shape) < p for p in (study.person, study.worse))
    share = right / study.votes_per_item
    equal = [np.where(judge, share, 1 - share) for judge in (better, worse)]
    return np.where(is_decided, equal[0] - equal[1], 0)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"votes_per_item": 3, "difference": 0.15},
        {"votes_per_item": 2, "ties": 0.4, "judges": 6},
        {"votes_per_item": 9, "people_agreement": 0.85},
    ],
)
def test_a_plan_by_evidence_finds_the_difference_as_often_as_it_says(changes):
    study = Study(**USUAL | {"difference": 0.12} | changes)
    items = items_for(study, "evidence")
    bets = played(study, items)
    largest = np.concatenate([log_wealth(some.T).max(axis=0) for some in np.array_split(bets, 40)])
    found = (largest >= np.log(study.threshold)).mean()
    assert found == pytest.approx(study.power, abs=0.025)
    assert found == pytest.approx(power_by_evidence(study)(items), abs=0.025)


@pytest.mark.parametrize("changes", [{}, {"votes_per_item": 5, "ties": 0.3}])
def test_a_plan_by_interval_finds_the_difference_as_often_as_it_says(changes):
    study = Study(**USUAL | changes)
    items = items_for(study, "interval")
    differences = played(study, items)
    mean, error = differences.mean(axis=1), differences.std(axis=1, ddof=1) / np.sqrt(items)
    assert mean.mean() == pytest.approx(study.difference, abs=0.002)
    assert (mean > 1.96 * error).mean() == pytest.approx(study.power, abs=0.03)
    assert power_by_interval(study)(items) >= study.power


def test_people_are_as_many_as_the_hours_take_and_at_least_one_for_each_vote_on_an_item():
    study = Study(2, 1.0, 0.5)
    alone = plan(study, "interval", seconds_per_vote=10, hours_per_person=100)
    assert alone.people == 1
    assert alone.hours == pytest.approx(alone.votes * 10 / 3600)
    several = plan(
        replace(study, votes_per_item=5), "interval", seconds_per_vote=10, hours_per_person=100
    )
    assert several.people == 5
    many = plan(study, "interval", seconds_per_vote=3600, hours_per_person=2)
    assert many.people == -(-many.votes // 2)


def test_what_no_study_here_can_tell_has_no_number_of_items():
    hopeless = plan(Study(3, 0.7, 0.001), "evidence", seconds_per_vote=9, hours_per_person=1)
    assert (hopeless.items, hopeless.people) == (None, None)


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"judges": 1}, "judges: at least 2"),
        ({"people_agreement": 0.5}, "people_agreement: above 0.5"),
        ({"difference": 0.5}, "difference: such people .* by 46 points at most"),
        ({"ties": 1}, "ties: at least 0, and below 1"),
        ({"votes_per_item": 0}, "votes_per_item"),
        ({"power": 1}, "power: between"),
    ],
)
def test_what_cannot_be_is_refused_in_words(changes, says):
    with pytest.raises(ValueError, match=says):
        Study(**USUAL | changes)
