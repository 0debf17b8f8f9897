"""A composite of several components with gates, and whether it still ranks items as people do.

The weighted mean of components in [0, 1], unless a gate is not fully met: then 0. It is checked by
its rank correlation with people's votes, per calendar quarter of the votes.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from math import atanh, fsum, sqrt
from typing import Final, NamedTuple, TypeVar

import numpy as np

from judge_eval.stats import Estimate, Resampling, no_figure, rank_correlation
from judge_eval.stats.bootstrap import DEFAULT
from judge_eval.stats.estimate import Z95, left_out
from judge_eval.stats.rank_correlations import FEWEST

# With fewer items in either quarter, no change is claimed or denied.
FEWEST_TO_COMPARE: Final = 20
# Sums and means of floats end so near to 0 and 1 that are meant.
ROUNDING: Final = 1e-6
OK: Final = "ok"
Item = TypeVar("Item", bound=Hashable)


class Composite(NamedTuple):
    """The composite of one item: in [0, 1], 0 where a gate failed, None where it has none."""

    value: float | None
    reason: str = OK
    failed_gate: str | None = None
    # Whether that gate has no value.
    is_missing: bool = False


def composite_of_item(
    components: Mapping[str, float | None],
    weights: Mapping[str, float],
    gates: Collection[str] = (),
) -> Composite:
    """Return ``sum(weight * component) / sum(weight)``, or 0 where a gate is below 1 or missing.

    Components are in [0, 1], None where they are missing; of weights, which are above 0, only the
    ratios count. A gate may be weighted too. There is no composite where a component is outside
    [0, 1] by more than `ROUNDING`, or a weighted one is missing and no gate failed.

    Examples
    --------
    >>> weights, gates = {"correctness": 0.6, "brevity": 0.4}, ("safety", "format")
    >>> item = {"correctness": 0.9, "brevity": 0.7, "safety": 1, "format": 1}
    >>> round(composite_of_item(item, weights, gates).value, 12)
    0.82
    >>> composite_of_item(item | {"safety": 0}, weights, gates)
    Composite(value=0.0, reason='hard-gate fail: safety', failed_gate='safety', is_missing=False)
    """
    present = {name: value for name, value in components.items() if value is not None}
    for name, value in present.items():
        if not -ROUNDING <= value <= 1 + ROUNDING:
            return Composite(None, f"component {name!r} is {value:.9g}, which is outside [0, 1]")
        present[name] = min(max(value, 0.0), 1.0)
    for gate in gates:
        if present.get(gate, 0) < 1:
            return Composite(0.0, f"hard-gate fail: {gate}", gate, gate not in present)
    for name in weights:
        if name not in present:
            return Composite(None, f"component {name!r} is missing")
    # Each product is made of a share, so that no rounding leaves [0, 1] by more than the last bit.
    total = fsum(weights.values())
    return Composite(min(1.0, fsum(w / total * present[name] for name, w in weights.items())))


class CompositeTotals(NamedTuple):
    """The composites of many items: the mean of those that have one, and on how many each gate
    failed, or had no value.
    """

    mean: float | None
    items: int
    without: int
    failed: Counter[str]
    missing: Counter[str]


def totals_of(composites: Collection[Composite]) -> CompositeTotals:
    """Take composites together; an item whose gate failed counts with its 0.

    Examples
    --------
    >>> failed = Composite(0.0, "hard-gate fail: safe", "safe")
    >>> totals_of([Composite(0.82), failed, Composite(None)])
    CompositeTotals(mean=0.41, items=2, without=1, failed=Counter({'safe': 1}), missing=Counter())
    """
    values = [composite.value for composite in composites if composite.value is not None]
    failed, missing = (
        Counter(c.failed_gate for c in composites if c.failed_gate and c.is_missing == is_missing)
        for is_missing in (False, True)
    )
    mean = fsum(values) / len(values) if values else None
    return CompositeTotals(mean, len(values), len(composites) - len(values), failed, missing)


class Tally(NamedTuple):
    """The sum of some values in [0, 1], such as people's votes on an item; and how many."""

    total: float
    number: int


class QuarterDrift(NamedTuple):
    """The check of one quarter, such as ``2026 Q4``: a rank correlation, whose n counts items."""

    quarter: str
    votes: int
    figure: Estimate

    @property
    def note(self) -> str:
        """Why there is no figure or how its interval was made, and what was left out."""
        gaps = [f"left out: {gap.count} {gap.what}, {gap.why}" for gap in self.figure.left_out]
        return "; ".join([self.figure.why or self.figure.method or "", *gaps])

    @property
    def is_as_people(self) -> bool:
        """Say whether it is shown that the composite ranks items as people do."""
        return self.figure.interval is not None and self.figure.interval[0] > 0


def quarter_of(vote_time: datetime) -> str:
    if vote_time.tzinfo is None:
        raise ValueError(f"{vote_time} has no time zone")
    in_utc = vote_time.astimezone(UTC)
    return f"{in_utc.year} Q{(in_utc.month + 2) // 3}"


# A page is opened again and again, and there are seldom new votes in between.
@lru_cache(maxsize=64)
def spearman(pairs: tuple[tuple[float, float], ...], resampling: Resampling = DEFAULT) -> Estimate:
    """Compute Spearman's rank correlation of items' composites and rates, with a 95 % interval.

    Items are resampled, each with all its votes. There is no value for fewer than 3 items, or
    where all are alike in one of the two.
    """
    n = len(pairs)
    if n < FEWEST:
        return no_figure(f"it takes {FEWEST} items that people voted on, there are {n}", n=n)
    for values, name in zip(
        zip(*pairs, strict=True), ("composite", "rate among people"), strict=True
    ):
        if np.ptp(values) < 1e-12:
            return no_figure(f"every item has the same {name}, so there is no order to compare", n)
    composites = ((item, x) for item, (x, _) in enumerate(pairs))
    rates = ((item, "people", y) for item, (_, y) in enumerate(pairs))
    return rank_correlation(composites, rates, resampling=resampling).by_human["people"]


def drift(
    composites: Mapping[Item, float | None],
    votes: Mapping[str, Mapping[Item, Tally]],
    resampling: Resampling = DEFAULT,
) -> list[QuarterDrift]:
    """Compare the composite with people's votes, quarter by quarter, the oldest first.

    Items without a composite are left out, and counted.
    """
    quarters = []
    for quarter, tallies in sorted(votes.items()):
        measured = {item: x for item in tallies if (x := composites.get(item)) is not None}
        means = {item: tallies[item].total / tallies[item].number for item in measured}
        pairs = tuple((x, means[item]) for item, x in measured.items())
        missing = [item for item in tallies if item not in measured]
        gaps = left_out("items", missing, "they have no composite")
        figure = replace(spearman(pairs, resampling), left_out=gaps)
        number = sum(tallies[item].number for item in measured)
        quarters.append(QuarterDrift(quarter, number, figure))
    return quarters


def has_changed(older: Estimate, newer: Estimate) -> bool:
    """Say whether two Spearman correlations differ significantly: Fisher's z, two-sided, at .05.

    ``z = (atanh r1 - atanh r2) / sqrt(v1 + v2)`` with ``v = (1 + r ** 2 / 2) / (n - 3)`` (D. G.
    Bonett and T. A. Wright, "Sample size requirements for estimating Pearson, Kendall and Spearman
    correlations", 2000). A perfect order, whose z would be infinite, counts as half a step below 1.
    """
    z, variance = [], 0.0
    for value, n in ((older.value or 0.0, older.n), (newer.value or 0.0, newer.n)):
        largest = 1 - 6 / (n * (n * n - 1))
        z.append(atanh(min(max(value, -largest), largest)))
        variance += (1 + value**2 / 2) / (n - 3)
    return abs(z[0] - z[1]) > Z95 * sqrt(variance)


def headline(quarters: Sequence[QuarterDrift]) -> str:
    """Say in a few words what the newest quarter with a figure shows."""
    checked = [quarter for quarter in quarters if quarter.figure.value is not None]
    if not checked:
        return "not checked with people yet"
    orders = "orders" if checked[-1].is_as_people else "is not shown to order"
    return f"{orders} outputs as people do ({checked[-1].figure.value:z.2f})"


def drift_in_words(quarters: Sequence[QuarterDrift]) -> str:
    """Say whether the composite ranks items as people do, and whether that has changed.

    The newest quarter with a figure is compared with the last one before it that has enough items.
    """
    checked = [quarter for quarter in quarters if quarter.figure.value is not None]
    if not checked:
        return "It cannot be said yet whether the composite ranks items as people do."
    *earlier, last = checked
    ends, claim = last.figure.interval, "the composite ranks items as people do"
    if not last.is_as_people:
        claim = f"it cannot be shown that {claim}"
    interval = f"95 % interval {ends[0]:z.2f} to {ends[1]:z.2f}" if ends else "no interval"
    words = f"In {last.quarter} {claim} ({last.figure.value:z.2f}, {interval}, "
    words += f"{last.figure.n:,} items)."
    if not earlier:
        return words
    large = [quarter for quarter in earlier if quarter.figure.n >= FEWEST_TO_COMPARE]
    if last.figure.n < FEWEST_TO_COMPARE or not large:
        return (
            f"{words} Whether that has changed: too few items to tell; it takes "
            f"{FEWEST_TO_COMPARE} in each of two quarters."
        )
    before = large[-1]
    since = f"since {before.quarter} ({before.figure.value:z.2f}, {before.figure.n:,} items)"
    if has_changed(before.figure, last.figure):
        return f"{words} Changed {since}: look at what people reward now."
    return f"{words} No change {since} can be shown."
