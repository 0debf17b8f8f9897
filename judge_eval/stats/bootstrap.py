"""The bootstrap over items: what the figures would be, had other items been drawn.

What several people say of one item is not independent, so an item (a comparison, a prompt) is drawn
with all that was said of it. Items that look alike are one group, every figure is a function of
sums over items, and so all resamples together are one product of matrices.

Reference: B. Efron, "Bootstrap methods: another look at the jackknife", 1979.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.estimate import Interval, bootstrap_tail
from judge_eval.stats.labels import FloatArray, IntArray
from judge_eval.stats.pairs import Patterns

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

SparseArray: TypeAlias = "csr_array"

RESAMPLES: Final = 1000
# With fewer of them no interval on a board holds what it says (docs/scoring.md has the figures).
MIN_COMPARISONS: Final = 10
TOO_FEW: Final = f"fewer than {MIN_COMPARISONS} comparisons to resample"
ALL_ALIKE: Final = "the comparisons all say the same, so resampling cannot tell how sure this is"

_SAME: Final = 1e-12
# Drawing the size of one group takes about as long as drawing so many items one by one.
_DRAWS_PER_GROUP: Final = 20
_ITEMS_AT_ONCE: Final = 1_000_000
_CELLS_AT_ONCE: Final = 4_000_000
_NUMBERS_AT_ONCE: Final = 25_000_000
_ROWS_AT_ONCE: Final = 2048


@dataclass(frozen=True)
class Resampling:
    """How often to resample and from which seed; the same seed gives the same interval."""

    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples < 1:
            raise ValueError("an interval needs at least one resample")


@dataclass(frozen=True)
class Bootstrapped:
    """A 95 % interval, and how it was made; None where there is none, and then why."""

    interval: Interval | None
    method: str


def draws(
    counts: IntArray, rng: np.random.Generator, resamples: int, at_once: int
) -> Iterator[NDArray[np.integer]]:
    """Draw as many items as there are, with replacement, many times.

    Parameters
    ----------
    counts : int array, shape (n_groups,)
        Items of each group.
    rng : numpy.random.Generator
        Seeded; how many are drawn at once makes no difference to what is drawn.

    Yields
    ------
    int array, shape (at most at_once, n_groups)
        How often each group was drawn.

    Raises
    ------
    ValueError
        When there is nothing to draw from.
    """
    groups, items = len(counts), int(counts.sum())
    if not items:
        raise ValueError("there are no comparisons to draw from")
    member_of = np.repeat(np.arange(groups), counts)
    for first in range(0, resamples, at_once):
        size = min(at_once, resamples - first)
        if groups * _DRAWS_PER_GROUP < items:
            yield rng.multinomial(items, counts / items, size=size)
        else:
            yield _drawn_singly(member_of, groups, rng, size)


def _drawn_singly(
    member_of: NDArray[np.intp], groups: int, rng: np.random.Generator, size: int
) -> NDArray[np.int32]:
    items = len(member_of)
    drawn = np.empty((size, groups), dtype=np.int32)
    step = max(1, _ITEMS_AT_ONCE // items)
    for first in range(0, size, step):
        part = drawn[first : first + step]
        chosen = member_of[rng.integers(items, size=(len(part), items))]
        chosen += np.arange(len(part))[:, np.newaxis] * groups
        part[:] = np.bincount(chosen.ravel(), minlength=part.size).reshape(part.shape)
    return drawn


def weights(counts: IntArray, resampling: Resampling, rows: int = 1) -> Iterator[FloatArray]:
    """Draw resamples of items, as weights of the patterns.

    Parameters
    ----------
    counts : int array, shape (n_patterns,)
        Items of each pattern.
    rows : int
        Sums that the caller takes of each resample; with more of them fewer come at once.

    Yields
    ------
    float array, shape (n_patterns, n_resamples_in_this_block)
        Every column sums to the number of items.

    Examples
    --------
    >>> [block] = weights(np.array([3, 1]), Resampling(resamples=5))
    >>> block.shape, {float(total) for total in block.sum(axis=0)}
    ((2, 5), {4.0})
    """
    at_once = max(1, _CELLS_AT_ONCE // max(rows, len(counts)))
    rng = np.random.default_rng(resampling.seed)
    for block in draws(counts, rng, resampling.resamples, at_once):
        yield block.T.astype(np.float64)


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


def resampled_rates(
    patterns: Patterns, row: IntArray, values: FloatArray, rows: int, resampling: Resampling
) -> FloatArray:
    """Return the mean of values that belong to rows (people), for each row and resample of items.

    Parameters
    ----------
    row, values : array, shape (n_kept,)
        Of what was said of one item of each pattern.
    rows : int

    Returns
    -------
    float array, shape (rows, resamples)
        NaN where a resample has nothing of a row.
    """
    cells = sparse(
        np.concatenate([row, row + rows]),
        np.tile(patterns.pattern, 2),
        np.concatenate([values, np.ones(len(row))]),
        (2 * rows, len(patterns.counts)),
    )
    return bootstrap(cells, patterns.counts, lambda sums: sums[:rows] / sums[rows:], resampling)


def resampled_sums(
    rows: Callable[[slice], NDArray[np.generic]],
    multiplicity: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> FloatArray:
    """Sum the rows of drawn comparisons, for many draws.

    Parameters
    ----------
    rows : callable
        Given a slice of groups, their rows, shape (n_groups_in_slice, n_columns): the table of
        all of them may be too large for memory.
    multiplicity : int array, shape (n_groups,)
        How many comparisons have this row.

    Returns
    -------
    float array, shape (resamples, n_columns)

    Raises
    ------
    ValueError
        When there is nothing to draw from.

    Examples
    --------
    >>> ones = np.ones((3, 1))
    >>> rng = np.random.default_rng(7)
    >>> resampled_sums(lambda part: ones[part], np.array([1, 1, 2]), rng, 2).tolist()
    [[4.0], [4.0]]
    """
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, len(multiplicity)))
    blocks = draws(multiplicity, rng, resamples, at_once)
    return np.concatenate([_weighted_sums(rows, block) for block in blocks])


def _weighted_sums(
    rows: Callable[[slice], NDArray[np.generic]], drawn: NDArray[np.integer]
) -> FloatArray:
    starts = range(0, drawn.shape[1], _ROWS_AT_ONCE)
    first, *others = (slice(start, start + _ROWS_AT_ONCE) for start in starts)
    sums = drawn[:, first].astype(np.float64) @ rows(first).astype(np.float64)
    for part in others:
        sums += drawn[:, part].astype(np.float64) @ rows(part).astype(np.float64)
    return np.asarray(sums)


def interval_of(values: FloatArray, items: int, resampling: Resampling) -> Bootstrapped:
    """Return the percentile interval of bootstrapped values, shape (resamples,).

    With few items it reaches further out than 2.5 and 97.5 %, see `bootstrap_tail`. NaN is a
    resample without a value (for instance a kappa of one label only). Where all values are the same
    (judge and people agree on everything, or there is one item), resampling cannot tell how sure
    the figure is, and there is no interval instead of one without width.

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


def bounds(values: FloatArray, comparisons: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the 95 % intervals of many resampled figures at once, see `bootstrap_tail`.

    Parameters
    ----------
    values : float array, shape (resamples, n_figures)
        NaN where a resample had nothing to make the figure of; those are left out.
    comparisons : int array, shape (n_figures,)
        On how many comparisons each figure rests.

    Returns
    -------
    low, high : float array, shape (n_figures,)
        NaN where no resample had the figure, or it rests on fewer than `MIN_COMPARISONS`.

    Examples
    --------
    >>> values = np.tile(np.arange(101.0)[:, None], 3)
    >>> low, high = bounds(values, np.array([1_000_000, 10, 9]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([2.5, 0.86, nan], [97.5, 99.14, nan])
    """
    found = np.full((2, values.shape[1]), np.nan)
    enough = (comparisons >= MIN_COMPARISONS) & ~np.isnan(values).all(axis=0)
    tails = np.full(len(comparisons), np.nan)
    tails[enough] = bootstrap_tail(comparisons[enough])
    for tail in np.unique(tails[enough]):
        same = tails == tail
        found[:, same] = np.nanquantile(values[:, same], [tail, 1 - tail], axis=0)
    return found[0], found[1]


def sparse(
    rows: IntArray, columns: IntArray, values: FloatArray | None, shape: tuple[int, int]
) -> SparseArray:
    """Return a sparse array of sums; entries at the same place add up."""
    from scipy.sparse import coo_array  # slow to import

    data = np.ones(len(rows)) if values is None else values
    return coo_array((data, (rows, columns)), shape=shape).tocsr()
