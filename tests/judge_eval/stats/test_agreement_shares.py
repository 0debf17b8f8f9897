"""Shares: Wilson where trials are one per prompt, else by prompts; null with a reason."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.estimate import FEWEST_PROMPTS, Share, wilson
from judge_eval.stats.judge_figures import NOTHING, TOO_FEW_PROMPTS, shares_by_prompt

trials_by_row = st.lists(
    st.integers(0, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=25,
)


def share(successes, trials):
    columns = (np.array(values)[:, None] for values in (successes, trials))
    [found] = shares_by_prompt(*columns, np.arange(len(trials)))
    return found


def test_one_trial_per_comparison_gets_wilsons_interval():
    found = share([1] * 8 + [0] * 2, [1] * 10)
    assert found == Share(0.8, *wilson(8, 10), n=10, successes=8, comparisons=10, method="wilson")


def test_comparisons_without_a_trial_do_not_count():
    assert share([1, 0, 0], [1, 0, 1]) == share([1, 0], [1, 1])


def test_votes_that_always_go_together_are_no_more_evidence_than_one():
    """Ten equal votes on each of 400 comparisons: as sure as 400 votes, not as 4,000."""
    rng = np.random.default_rng(4)
    right = (rng.random(400) < 0.6).astype(int)
    together = share(10 * right, [10] * 400)
    assert together.method == "prompts"
    low, high = wilson(int(right.sum()), 400)
    assert (together.low, together.high) == pytest.approx((low, high), abs=0.01)


def test_independent_votes_are_as_much_evidence_as_they_are_many():
    rng = np.random.default_rng(5)
    found = share(rng.binomial(10, 0.6, 400), [10] * 400)
    low, high = wilson(found.successes, found.n)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.005)


def test_what_cannot_be_computed_is_missing_with_a_reason():
    assert share([0, 0], [0, 0]) == NOTHING
    alone = share([1] * 9, [1] * 9)
    assert (alone.value, alone.low, alone.high, alone.why) == (1, None, None, TOO_FEW_PROMPTS)
    few = share([1, 2, 0, 1, 1, 1, 1, 1, 1], [2] * 9)
    assert (few.value, few.low, few.high, few.method, few.why) == (
        *(0.5, None, None, None),
        TOO_FEW_PROMPTS,
    )
    assert str(FEWEST_PROMPTS) in TOO_FEW_PROMPTS


def test_comparisons_that_all_say_the_same_count_as_one_trial_each():
    """150 of 150 votes on 50 comparisons are no certainty, and no more than 50 of 50."""
    alike = share([3] * 50, [3] * 50)
    assert (alike.value, alike.low, alike.high) == (1, *wilson(50, 50))
    assert (alike.low, alike.method, alike.why) == (pytest.approx(0.93, abs=0.005), "wilson", None)
    never = share([0] * 12, [3] * 12)
    assert (never.low, never.high) == pytest.approx((0, 0.242494), abs=1e-6)
    halves = share([1] * 50, [2] * 50)
    assert (halves.low, halves.high) == pytest.approx(wilson(25, 50))


def test_shares_side_by_side_each_go_their_own_way():
    rng = np.random.default_rng(6)
    trials = np.stack([np.ones(50), np.full(50, 3), np.zeros(50)], axis=1).astype(int)
    found = shares_by_prompt(rng.binomial(trials, 0.5), trials, np.arange(50))
    assert [one.method for one in found] == ["wilson", "prompts", None]


@pytest.mark.parametrize("successes, trials", [([2], [1]), ([-1], [1])])
def test_counts_that_cannot_be_are_refused(successes, trials):
    with pytest.raises(ValueError, match="more successes than trials"):
        share(successes, trials)


@given(trials_by_row)
def test_an_interval_lies_within_0_and_1_and_a_missing_one_says_why(rows):
    found = share(*zip(*rows, strict=True))
    if found.low is None:
        assert found.why
    else:
        assert 0 <= found.low < found.high <= 1
        assert found.why is None
