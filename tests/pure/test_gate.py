"""The conditions of a gate: what passes, what fails, and what nobody can say yet."""

from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.estimate import Estimate
from judge_eval.stats.gate import Outcome, beats_floor, min_agreement, not_worse_than, overall

SHARES = st.floats(0, 1)
OUTCOMES = st.lists(st.sampled_from(Outcome), min_size=1)


@given(st.tuples(SHARES, SHARES, SHARES).map(sorted), SHARES)
def test_an_interval_passes_above_the_bound_and_fails_below_it(shares, least):
    low, value, high = shares
    outcome = min_agreement(Estimate(value, low, high), least).outcome
    assert (outcome == Outcome.PASSED) == (low > least)
    assert (outcome == Outcome.FAILED) == (high < least)


@given(SHARES, SHARES)
def test_without_an_interval_nothing_is_settled(value, bound):
    figure = Estimate(value, why="fewer than 10 prompts")
    for check in (min_agreement(figure, bound), not_worse_than("other", figure, bound)):
        assert check.outcome == Outcome.TOO_FEW
        assert "fewer than 10 prompts" in check.words


@given(st.tuples(SHARES, SHARES).map(sorted), SHARES)
def test_a_wider_margin_never_turns_passed_into_failed(ends, margin):
    figure = Estimate(sum(ends) / 2, *ends)
    narrow, wide = (not_worse_than("x", figure, m).outcome for m in (margin / 2, margin))
    assert not (narrow == Outcome.PASSED and wide != Outcome.PASSED)
    assert not (wide == Outcome.FAILED and narrow != Outcome.FAILED)


def test_a_difference_that_rounds_to_zero_has_no_sign():
    words = not_worse_than("other", Estimate(-0.0001, -0.0004, 0.0002), 0.05).words
    assert "-0.0" not in words


@given(OUTCOMES)
def test_one_that_fails_decides_else_one_that_is_not_settled(outcomes):
    end = overall(outcomes)
    assert end in outcomes
    assert (end == Outcome.FAILED) == (Outcome.FAILED in outcomes)
    assert (end == Outcome.PASSED) == ({*outcomes} == {Outcome.PASSED})


@given(st.sampled_from([True, False, None]), st.lists(st.text(min_size=1)))
def test_the_floor_is_passed_only_where_it_is_claimed(claimed, worse_than):
    outcome = beats_floor(claimed, worse_than).outcome
    assert (outcome == Outcome.FAILED) == bool(worse_than)
    assert (outcome == Outcome.PASSED) == (claimed is True and not worse_than)
