"""Does the composite still rank items as people do: against scipy, and in words."""

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge_eval.stats.bootstrap import Resampling
from judge_eval.stats.estimate import Estimate
from reports.composite.compute import (
    QuarterDrift,
    Tally,
    drift,
    drift_in_words,
    has_changed,
    quarter_of,
)
from reports.composite.compute import spearman as spearman_of
from tests.helpers import oracles


def spearman(xs, ys, *resampling):
    return spearman_of(tuple(zip(xs, ys, strict=True)), *resampling)


few = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda pair: (pair[0] / 5, pair[1] / 5)),
    min_size=3,
    max_size=40,
)


class TestSpearman:
    @given(few)
    def test_equals_scipy_with_ties(self, pairs):
        x, y = zip(*pairs, strict=True)
        found = spearman(x, y, Resampling(resamples=1))
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert found.value is None
            assert "so there is no order to compare" in found.why
        else:
            assert found.value == pytest.approx(oracles.stats.spearmanr(x, y).statistic, abs=1e-12)
            assert found.n == len(pairs)

    def test_each_resample_is_what_scipy_makes_of_its_items(self):
        drawing = np.random.default_rng(4)
        x, y = drawing.integers(0, 6, (2, 30)) / 5
        found = spearman(x, y, Resampling(resamples=4000, seed=2))
        picks = drawing.integers(0, 30, (4000, 30))
        resampled = [oracles.stats.spearmanr(x[pick], y[pick]).statistic for pick in picks]
        low, high = np.quantile(resampled, (0.025, 0.975))
        assert found.interval == pytest.approx((low, high), abs=0.03)
        assert found.method == "bootstrap over 30 items, 4,000 resamples, seed 2"

    def test_the_same_seed_gives_the_same_interval(self):
        x, y = np.random.default_rng(1).random((2, 20))
        assert spearman(x, y).interval == spearman(list(x), list(y)).interval
        assert spearman(x, y).interval != spearman(x, y, Resampling(seed=1)).interval

    def test_noise_in_the_last_bit_is_no_order(self):
        assert spearman([0.1 + 0.2, 0.3, 0.3], [0, 0.5, 1]).value is None

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_too_few_items(self, n):
        found = spearman([0.1, 0.9][:n], [0.2, 0.8][:n])
        assert (found.value, found.n) == (None, n)
        assert found.why == f"it takes 3 items that people voted on, there are {n}"

    @pytest.mark.parametrize(
        "x,y,what", [([1, 1, 1], [0, 1, 0.5], "composite"), ([0, 1, 0.5], [1, 1, 1], "rate")]
    )
    def test_no_order_on_one_side(self, x, y, what):
        found = spearman(x, y)
        assert found.value is None
        assert what in found.why

    def test_a_perfect_order_has_no_interval_and_says_so(self):
        found = spearman([1, 2, 3, 4, 5], [10, 20, 30, 40, 50])
        assert (found.value, found.interval) == (1, None)
        assert "no interval" in found.method


class TestQuarters:
    @pytest.mark.parametrize(
        "at,quarter",
        [
            (datetime(2026, 1, 1, tzinfo=UTC), "2026 Q1"),
            (datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC), "2026 Q1"),
            (datetime(2026, 4, 1, tzinfo=UTC), "2026 Q2"),
            (datetime(2026, 12, 31, tzinfo=UTC), "2026 Q4"),
            (datetime(2026, 7, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2026 Q2"),
        ],
    )
    def test_of_a_time(self, at, quarter):
        assert quarter_of(at) == quarter

    def test_a_time_without_a_zone(self):
        with pytest.raises(ValueError, match="no time zone"):
            quarter_of(datetime(2026, 1, 1))  # noqa: DTZ001

    def test_oldest_first_with_counts_and_what_was_left_out(self):
        people = {
            "2026 Q2": {"a": Tally(1, 1), "b": Tally(0, 2), "c": Tally(1, 3), "gone": Tally(1, 9)},
            "2026 Q1": {"a": Tally(1, 1)},
        }
        older, newer = drift({"a": 0.9, "b": 0.1, "c": 0.5, "gone": None}, people)
        assert (older.quarter, newer.quarter) == ("2026 Q1", "2026 Q2")
        assert older.figure.value is None
        assert (newer.figure.value, newer.figure.n, newer.votes) == (1, 3, 6)
        (gap,) = newer.figure.left_out
        assert (gap.names, gap.why) == (("gone",), "they have no composite")


def quarter(name, value, low, high, n=30):
    return QuarterDrift(name, 90, Estimate(value, n=n, low=low, high=high, method="bootstrap"))


NOTHING = QuarterDrift("2026 Q4", 2, Estimate(None, n=2, why="too few"))
HOLDS = quarter("2026 Q1", 0.7, 0.4, 0.9)
FAILS = quarter("2026 Q2", 0.1, -0.3, 0.4)
DOES = "composite ranks items as people do"
NOT_SHOWN = f"In 2026 Q2 it cannot be shown that the {DOES}"
SAME = "No change since 2026 Q1 (0.70, 30 items) can be shown"
OTHER = "Changed since 2026 Q1 (0.70, 30 items): look at what people reward now"
WEAKER = quarter("2026 Q2", 0.4, -0.1, 0.7)


class TestChange:
    @pytest.mark.parametrize("items", [20, 60])
    @pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
    def test_quiet_quarters_differ_in_five_of_a_hundred(self, items, correlation):
        drawing = np.random.default_rng(3)
        x, noise = drawing.standard_normal((2, 2, 2000, items))
        y = correlation * x + np.sqrt(1 - correlation**2) * noise
        ranks = np.argsort(np.argsort([x, y])) - (items - 1) / 2
        found = (ranks[0] * ranks[1]).sum(-1) / (ranks[0] ** 2).sum(-1)
        changed = [
            has_changed(Estimate(one, n=items), Estimate(other, n=items)) for one, other in found.T
        ]
        assert 0.03 < np.mean(changed) < 0.06

    def test_a_perfect_order_can_be_compared(self):
        assert not has_changed(Estimate(1.0, n=30), Estimate(1.0, n=30))
        assert has_changed(Estimate(1.0, n=30), Estimate(0.5, n=30))
        assert has_changed(Estimate(-1.0, n=30), Estimate(0.0, n=30))


class TestWords:
    @pytest.mark.parametrize(
        "quarters,said",
        [
            ([], "It cannot be said yet whether the composite ranks items as people do."),
            ([NOTHING], "It cannot be said yet whether the composite ranks items as people do."),
            ([HOLDS], f"In 2026 Q1 the {DOES} (0.70, 95 % interval 0.40 to 0.90, 30 items)."),
            (
                [HOLDS, WEAKER, NOTHING],
                f"{NOT_SHOWN} (0.40, 95 % interval -0.10 to 0.70, 30 items). {SAME}.",
            ),
            (
                [quarter("2026 Q2", -0.001, -0.004, 0.9)],
                f"{NOT_SHOWN} (0.00, 95 % interval 0.00 to 0.90, 30 items).",
            ),
            (
                [HOLDS, FAILS],
                f"{NOT_SHOWN} (0.10, 95 % interval -0.30 to 0.40, 30 items). {OTHER}.",
            ),
        ],
    )
    def test_what_is_said(self, quarters, said):
        assert drift_in_words(quarters) == said

    def test_fewer_than_twenty_items_in_either_quarter_tell_nothing_of_a_change(self):
        few = quarter("2026 Q2", -0.9, -1, -0.8, n=19)
        too_few = "too few items to tell; it takes 20 in each of two quarters."
        assert drift_in_words([HOLDS, few]).endswith(too_few)
        assert drift_in_words([few, FAILS]).endswith(too_few)

    def test_a_small_quarter_between_two_large_ones_is_passed_over(self):
        few = quarter("2026 Q2", -0.9, -1, -0.8, n=19)
        words = drift_in_words([HOLDS, few, quarter("2026 Q3", 0.1, -0.3, 0.4)])
        assert "Changed since 2026 Q1 (0.70, 30 items)" in words
