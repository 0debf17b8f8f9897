"""The conditions of a gate: what passes, what fails, and what nobody can say yet."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.claims import always_valid, differences_always_valid
from judge_eval.stats.estimate import Estimate
from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
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


def test_who_looks_again_and_again_passes_a_judge_at_the_bound_falsely_in_a_twentieth():
    rng = np.random.default_rng(7)
    right = (rng.random((200, 400)) < 0.8).astype(int)
    # The low end is the highest after any prompt, so that the last look has all looks in it.
    low, _ = always_valid(right, np.ones_like(right), np.ones(200, int)).T
    assert (low > 0.8).mean() <= 0.05
    votes = np.arange(10, 201, 10)[:, None]
    shares = np.cumsum(right, axis=0)[votes[:, 0] - 1] / votes
    for_one_look = shares - 1.96 * np.sqrt(shares * (1 - shares) / votes)
    assert (for_one_look > 0.8).any(axis=0).mean() > 0.05


def test_who_looks_again_and_again_seldom_finds_a_judge_no_worse_that_is_worse_by_the_margin():
    rng, false, found = np.random.default_rng(8), 0, 0
    for _ in range(20):
        says = (rng.random((200, 2)) < [0.75, 0.85]).astype(int)
        opened = [ItemOpened(n, n, n, 1, row) for n, row in enumerate(says.tolist())]
        votes = [VoteCast(200 + n, n, 1) for n in range(200)]
        lows = [
            differences_always_valid(enter([*opened[:n], *votes[:n]], range(200)))[0]
            for n in range(10, 201, 10)
        ]
        # Of the worse judge less the other one, and the other way round.
        false += any(low[0, 1] > -0.1 for low in lows)
        found += lows[-1][1, 0] > -0.1
    assert false <= 1
    assert found == 20
