"""Bootstrap over items: percentile intervals from multinomial weights on patterns of items.

An item and all that was said of it is drawn as one, since what several people say of one item is
not independent. Items that look alike are one pattern, so a resample of n items is one draw of the
multinomial distribution over the patterns, and every sum over items is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from judge_eval.stats.figures import Interval
from judge_eval.stats.intervals import bootstrap_tail
from judge_eval.stats.vocabulary import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

SparseArray: TypeAlias = "csr_array"

_CELLS_AT_ONCE = 4_000_000
_SAME = 1e-12


@dataclass(frozen=True)
class Resampling:
    """How often to resample and from which seed; the same seed gives the same interval."""

    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError("an interval needs at least one resample")


@dataclass(frozen=True)
class Bootstrapped:
    """A 95 % interval, and how it was made; None where there is none, and then why."""

    interval: Interval | None
    method: str


def weights(counts: IntArray, resampling: Resampling, rows: int = 1) -> Iterator[FloatArray]:
    """Draw resamples of items.

    Parameters
    ----------
    counts : int array, shape (n_patterns,)
        Items of each pattern.
    resampling : Resampling
    rows : int
        Sums that the caller takes of each resample; with more of them fewer come at once.

    Yields
    ------
    float array, shape (n_patterns, n_resamples_in_this_block)
        How often each pattern was drawn; every column sums to the number of items.

    Examples
    --------
    >>> [block] = weights(np.array([3, 1]), Resampling(resamples=5))
    >>> block.shape, {float(total) for total in block.sum(axis=0)}
    ((2, 5), {4.0})
    """
    generator = np.random.default_rng(resampling.seed)
    items = int(counts.sum())
    # A draw costs as much as there are patterns, or as there are items, whichever way it is made.
    by_pattern = len(counts) * 8 < items
    at_once = max(1, _CELLS_AT_ONCE // max(rows, len(counts), 1 if by_pattern else items))
    pattern = np.repeat(np.arange(len(counts)), counts)
    left = resampling.resamples
    while left:
        block = min(left, at_once)
        left -= block
        if by_pattern:
            drawn = generator.multinomial(items, counts / items, size=block)
        else:
            chosen = pattern[generator.integers(0, items, size=(block, items))]
            chosen += np.arange(block)[:, np.newaxis] * len(counts)
            drawn = np.bincount(chosen.ravel(), minlength=block * len(counts))
        yield drawn.reshape(block, len(counts)).T.astype(np.float64)


def bootstrap(
    cells: SparseArray,
    counts: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    resampling: Resampling,
) -> FloatArray:
    """Compute a statistic of each resample.

    Parameters
    ----------
    cells : sparse array, shape (n_cells, n_patterns)
        What one item of each pattern adds to each sum.
    counts : int array, shape (n_patterns,)
    statistic : function
        From sums of shape (n_cells, n) to values of shape (…, n).

    Returns
    -------
    float array, shape (…, resamples)
        NaN where a resample has no value.
    """
    blocks = weights(counts, resampling, cells.shape[0])
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.concatenate([statistic(cells @ block) for block in blocks], axis=-1)


def interval_of(values: FloatArray, items: int, resampling: Resampling) -> Bootstrapped:
    """Return the percentile interval of bootstrapped values.

    With few items it reaches further out than 2.5 and 97.5 %, see `bootstrap_tail`. Where all
    values are the same (judge and people agree on everything, or there is one item), resampling
    cannot tell how sure the figure is, and there is no interval instead of one without width.

    Parameters
    ----------
    values : float array, shape (resamples,)
        NaN where a resample had no value (for instance a kappa of one label only).

    Examples
    --------
    >>> values = np.array([0.5] * 20 + [0.6] * 20 + [np.nan])
    >>> found = interval_of(values, 10, Resampling(resamples=41))
    >>> found.interval, found.method
    ((0.5, 0.6), 'bootstrap over 10 items, 41 resamples, seed 0, 1 of them without a value')
    >>> interval_of(values[:20], 10, Resampling(resamples=20)).method
    'no interval: every resample of these items gives the same'
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return Bootstrapped(None, "no interval: there is nothing to resample")
    if np.ptp(known) < _SAME:
        return Bootstrapped(None, "no interval: every resample of these items gives the same")
    method = f"bootstrap over {items:,} items, {len(values):,} resamples, seed {resampling.seed}"
    if len(known) < len(values):
        method += f", {len(values) - len(known):,} of them without a value"
    [tail] = bootstrap_tail([max(2, items)])
    low, high = np.quantile(known, (tail, 1 - tail))
    return Bootstrapped((float(low), float(high)), method)


def sparse(
    rows: IntArray, columns: IntArray, values: FloatArray | None, shape: tuple[int, int]
) -> SparseArray:
    """Return a sparse array of sums; entries at the same place add up."""
    from scipy.sparse import coo_array  # slow to import

    data = np.ones(len(rows)) if values is None else values
    return coo_array((data, (rows, columns)), shape=shape).tocsr()
