"""Does the composite still measure what people want: its rank correlation with their votes.

Per calendar quarter of the votes. The interval is a bootstrap over items: an item and all that
people said of it is drawn as one. Two quarters differ where the difference of their correlations
is significant: that the newest interval holds 0 and an older one does not shows no change.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import atanh, sqrt
from typing import Final, TypeVar

import numpy as np

from judge_eval.metrics.figures import Figure, left_out, no_figure
from judge_eval.metrics.rank_correlation import FEWEST, places_of
from judge_eval.metrics.rank_correlation import spearman as correlations
from judge_eval.metrics.resampling import Resampling, interval_of, weights
from judge_eval.statistics.intervals import Z95

# With fewer items in either quarter, nothing is said of a change.
FEWEST_TO_COMPARE: Final = 20
_SAME: Final = 1e-12
Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class Said:
    """What people said of one item: the sum of their votes, each in [0, 1], and how many."""

    total: float
    votes: int

    @property
    def rate(self) -> float:
        return self.total / self.votes


@dataclass(frozen=True)
class Drift:
    """One quarter's check.

    Attributes
    ----------
    quarter : str
        ``2026 Q4``: calendar quarter of the votes' own time, UTC.
    votes : int
        On the items that were compared.
    figure : Figure
        Spearman's rank correlation; its n counts items.
    """

    quarter: str
    votes: int
    figure: Figure

    @property
    def holds(self) -> bool:
        """Whether it is shown that the composite ranks items as people do."""
        return self.figure.interval is not None and self.figure.interval[0] > 0

    @property
    def has_enough(self) -> bool:
        """Whether it can be compared with another quarter."""
        return self.figure.value is not None and self.figure.n >= FEWEST_TO_COMPARE


def quarter_of(at: datetime) -> str:
    """Return the calendar quarter of a time, in UTC.

    Raises
    ------
    ValueError
        For a time without a zone.

    Examples
    --------
    >>> quarter_of(datetime.fromisoformat("2026-12-31T23:30:00-01:00"))
    '2027 Q1'
    """
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone")
    there = at.astimezone(UTC)
    return f"{there.year} Q{(there.month + 2) // 3}"


def spearman(
    xs: Sequence[float], ys: Sequence[float], resampling: Resampling | None = None
) -> Figure:
    """Compute Spearman's rank correlation with a 95 % bootstrap interval.

    Pearson's correlation of the ranks; equal values share the mean of their ranks.

    Parameters
    ----------
    xs, ys : sequences of float, shape (n_items,)
    resampling : Resampling, optional
        1,000 resamples of items from seed 0; percentile interval.

    Returns
    -------
    Figure
        No value for fewer than 3 items, or where all are alike in one of the two.

    Examples
    --------
    >>> found = spearman([0.82, 0.89, 0.77, 0.5, 0.0], [0.6, 0.9, 0.7, 0.4, 0.1])
    >>> round(found.value, 4), found.n
    (0.9, 5)
    >>> spearman([0.5, 0.5, 0.5], [0, 1, 1]).reason
    'every item has the same composite, so there is no order to compare'
    """
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} values cannot be compared with {len(ys)}")
    drawn = resampling or Resampling()
    given = np.array([xs, ys], np.float64)
    return _spearman(given.tobytes(), drawn)


# A page is asked for again and again, and seldom has anything been said in between.
@lru_cache(maxsize=64)
def _spearman(given: bytes, resampling: Resampling) -> Figure:
    x, y = np.frombuffer(given, np.float64).reshape(2, -1)
    n = len(x)
    if n < FEWEST:
        return no_figure(f"it takes {FEWEST} items that people voted on, there are {n}", n=n)
    for values, what in ((x, "composite"), (y, "rate among people")):
        if np.ptp(values) < _SAME:
            return no_figure(f"every item has the same {what}, so there is no order to compare", n)
    places, counts = np.unique(np.array([places_of(x), places_of(y)]), axis=1, return_counts=True)
    value = float(correlations(places, counts[:, np.newaxis].astype(np.float64))[0])
    blocks = [correlations(places, block) for block in weights(counts, resampling, rows=4)]
    found = interval_of(np.concatenate(blocks), n, resampling)
    return Figure(value, n=n, interval=found.interval, method=found.method)


def drift(
    composites: Mapping[Item, float | None],
    people: Mapping[str, Mapping[Item, Said]],
    resampling: Resampling | None = None,
) -> list[Drift]:
    """Compare the composite with what people said, quarter by quarter, the oldest first.

    Parameters
    ----------
    composites : mapping of item to float
        None where an item has none: it is left out, and counted.
    people : mapping of quarter to mapping of item to Said

    Examples
    --------
    >>> said = {"a": Said(3, 3), "b": Said(1, 2), "c": Said(0, 4)}
    >>> [found] = drift({"a": 0.9, "b": 0.7, "c": 0.2}, {"2026 Q4": said})
    >>> found.quarter, found.figure.value, found.figure.n, found.votes
    ('2026 Q4', 1.0, 3, 9)
    """
    return [
        _of_quarter(quarter, composites, people[quarter], resampling) for quarter in sorted(people)
    ]


def _of_quarter(
    quarter: str,
    composites: Mapping[Item, float | None],
    said: Mapping[Item, Said],
    resampling: Resampling | None,
) -> Drift:
    found = [(item, composites.get(item), word) for item, word in said.items()]
    known = [(value, word) for _, value, word in found if value is not None]
    missing = [item for item, value, _ in found if value is None]
    figure = spearman([value for value, _ in known], [word.rate for _, word in known], resampling)
    gaps = left_out("items", missing, "they have no composite")
    whole = Figure(
        figure.value, figure.n, figure.reason, figure.interval, figure.method, left_out=gaps
    )
    return Drift(quarter, sum(word.votes for _, word in known), whole)


def has_changed(older: Figure, newer: Figure) -> bool:
    """Say whether two rank correlations differ significantly: Fisher's z, two-sided, at .05.

    ``z = (atanh r1 - atanh r2) / sqrt(v1 + v2)`` with ``v = (1 + r ** 2 / 2) / (n - 3)``: ranks
    vary more than the ``1 / (n - 3)`` of Pearson's correlation. A perfect order of n items, whose
    z would be infinite, counts as half a step below 1.

    Parameters
    ----------
    older, newer : Figure
        Spearman's correlations of at least `FEWEST_TO_COMPARE` items each.

    References
    ----------
    D. G. Bonett and T. A. Wright, "Sample size requirements for estimating Pearson, Kendall and
    Spearman correlations", 2000.

    Examples
    --------
    >>> has_changed(Figure(0.8, n=40), Figure(0.1, n=40))
    True
    >>> has_changed(Figure(0.8, n=40), Figure(0.6, n=40))
    False
    """
    (one, one_varies), (other, other_varies) = _fisher(older), _fisher(newer)
    return abs(one - other) > Z95 * sqrt(one_varies + other_varies)


def _fisher(figure: Figure) -> tuple[float, float]:
    """Return Fisher's z of a rank correlation, and its variance."""
    value, n = figure.value, figure.n
    assert value is not None  # the caller's
    largest = 1 - 6 / (n * (n * n - 1))
    return atanh(min(max(value, -largest), largest)), (1 + value**2 / 2) / (n - 3)


def drift_in_words(quarters: Sequence[Drift]) -> str:
    """Say whether the composite ranks items as people do, and whether that has changed.

    The newest quarter with a figure is compared with the last one before it that has enough items.

    Examples
    --------
    >>> good = Figure(0.8, n=40, interval=(0.6, 0.9), method="bootstrap")
    >>> poor = Figure(0.1, n=50, interval=(-0.2, 0.4), method="bootstrap")
    >>> print(drift_in_words([Drift("2026 Q1", 90, good), Drift("2026 Q2", 99, poor)]))
    In 2026 Q2 it cannot be shown that the composite ranks items as people do (0.10, 95 % interval \
-0.20 to 0.40, 50 items). Changed since 2026 Q1 (0.80, 40 items): look at what people reward now.
    """
    checked = [quarter for quarter in quarters if quarter.figure.value is not None]
    if not checked:
        return "It cannot be said yet whether the composite ranks items as people do."
    last = checked[-1]
    if last.holds:
        now = f"In {last.quarter} the composite ranks items as people do"
    else:
        now = f"In {last.quarter} it cannot be shown that the composite ranks items as people do"
    return f"{now} ({_in_figures(last.figure)}).{_change_in_words(checked)}"


def _change_in_words(checked: Sequence[Drift]) -> str:
    *earlier, last = checked
    if not earlier:
        return ""
    large = [quarter for quarter in earlier if quarter.has_enough]
    if not last.has_enough or not large:
        return (
            f" Whether that has changed: too few items to tell; it takes {FEWEST_TO_COMPARE} in "
            "each of two quarters."
        )
    before = large[-1]
    since = f"since {before.quarter} ({before.figure.value:.2f}, {before.figure.n:,} items)"
    if has_changed(before.figure, last.figure):
        return f" Changed {since}: look at what people reward now."
    return f" No change {since} can be shown."


def _in_figures(figure: Figure) -> str:
    interval = "no interval"
    if figure.interval is not None:
        interval = "95 % interval {:.2f} to {:.2f}".format(*figure.interval)
    return f"{figure.value:.2f}, {interval}, {figure.n:,} items"
