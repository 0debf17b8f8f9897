"""Does the composite still measure what people want: its rank correlation with their votes.

Per calendar quarter of the votes. The interval is a bootstrap over items: an item and all that
people said of it is drawn as one.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final, TypeVar

import numpy as np

from judge_eval.metrics.figures import Figure, left_out, no_figure
from judge_eval.metrics.resampling import Resampling, interval_of, weights
from judge_eval.metrics.vocabulary import FloatArray, IntArray

FEWEST: Final = 3
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
    places, counts = np.unique(np.array([_places(x), _places(y)]), axis=1, return_counts=True)
    value = float(_correlations(places, counts[:, np.newaxis].astype(np.float64))[0])
    blocks = [_correlations(places, block) for block in weights(counts, resampling, rows=4)]
    found = interval_of(np.concatenate(blocks), n, resampling)
    return Figure(value, n=n, interval=found.interval, method=found.method)


def _places(values: FloatArray) -> IntArray:
    """Return which of the distinct values each is, the smallest being 0; noise is no difference."""
    places: IntArray = np.unique(np.round(values, 12), return_inverse=True)[1]
    return places


def _correlations(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return the rank correlation of each resample.

    Parameters
    ----------
    places : int array, shape (2, n_patterns)
    drawn : float array, shape (n_patterns, n_resamples)
        How often each pattern was drawn.

    Returns
    -------
    float array, shape (n_resamples,)
        NaN where a resample holds one value only.
    """
    x, y = (_centred_ranks(row, drawn) for row in places)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (drawn * x * y).sum(0)
        found /= np.sqrt((drawn * x**2).sum(0) * (drawn * y**2).sum(0))
    return found.clip(-1, 1)


def _centred_ranks(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return the ranks of the patterns in each resample, ties sharing theirs, less their mean."""
    order = np.argsort(places, kind="stable")
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    of_value = np.add.reduceat(drawn[order], starts, axis=0)
    middle: FloatArray = np.cumsum(of_value, axis=0) - of_value / 2
    middle -= drawn.sum(axis=0) / 2
    return middle[places]


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


def drift_in_words(quarters: Sequence[Drift]) -> str:
    """Say whether the composite still ranks items as people do, and if not, since when.

    It holds in a quarter whose interval lies above 0. A quarter without an interval says nothing.

    Examples
    --------
    >>> good = Figure(0.8, n=40, interval=(0.6, 0.9), method="bootstrap")
    >>> poor = Figure(0.1, n=50, interval=(-0.2, 0.4), method="bootstrap")
    >>> print(drift_in_words([Drift("2026 Q1", 90, good), Drift("2026 Q2", 99, poor)]))
    It stopped: in 2026 Q1 the composite ranked items as people do (0.80), in 2026 Q2 that can no \
longer be shown (0.10, 95 % interval -0.20 to 0.40, 50 items). Look at what people reward now.
    """
    checked = [quarter for quarter in quarters if quarter.figure.interval is not None]
    if not checked:
        return "It cannot be said yet whether the composite ranks items as people do."
    last = checked[-1]
    if last.holds:
        return (
            f"The composite ranks items as people do: {_in_figures(last)} in {last.quarter}, "
            "and above 0 beyond chance."
        )
    held = [quarter for quarter in checked if quarter.holds]
    if not held:
        return (
            "In no quarter can it be shown that the composite ranks items as people do: "
            f"{_in_figures(last)} in {last.quarter}."
        )
    first_after = checked[checked.index(held[-1]) + 1]
    return (
        f"It stopped: in {held[-1].quarter} the composite ranked items as people do "
        f"({held[-1].figure.value:.2f}), in {first_after.quarter} that can no longer be shown "
        f"({_in_figures(first_after)}). Look at what people reward now."
    )


def _in_figures(quarter: Drift) -> str:
    figure = quarter.figure
    assert figure.interval is not None  # the caller's
    low, high = figure.interval
    return f"{figure.value:.2f}, 95 % interval {low:.2f} to {high:.2f}, {figure.n:,} items"
