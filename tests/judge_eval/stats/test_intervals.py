"""Wilson intervals against published values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.estimate import wilson

counts = st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    "successes, trials, low, high",
    [
        # Newcombe, "Two-sided confidence intervals for the single proportion", 1998, Table I.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
        # R: prop.test(x, n, correct = FALSE).
        (8, 10, 0.4902, 0.9433),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
    ],
)
def test_known_values(successes, trials, low, high):
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_no_trials_no_interval():
    assert wilson(0, 0) is None


@pytest.mark.parametrize("successes, trials", [(-1, 3), (4, 3), (1, 0)])
def test_counts_that_cannot_be_are_refused(successes, trials):
    with pytest.raises(ValueError, match="cannot be"):
        wilson(successes, trials)


@given(counts)
def test_an_interval_lies_around_the_share_within_0_and_1(case):
    low, high = wilson(*case)
    assert 0 <= low <= case[0] / case[1] <= high <= 1
    assert low < high


@given(counts)
def test_an_interval_of_failures_is_the_mirror_image(case):
    successes, trials = case
    low, high = wilson(successes, trials)
    mirrored_low, mirrored_high = wilson(trials - successes, trials)
    assert (1 - high, 1 - low) == pytest.approx((mirrored_low, mirrored_high), abs=1e-12)


@given(counts)
def test_more_of_the_same_narrows_it(case):
    low, high = wilson(*case)
    wider_low, wider_high = wilson(case[0] * 4, case[1] * 4)
    assert wider_high - wider_low < high - low
