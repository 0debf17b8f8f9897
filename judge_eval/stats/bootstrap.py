"""The bootstrap over items: what the figures would be, had other items been drawn.

What several people say of one item is not independent, so an item (a comparison, a prompt) is drawn
with all that was said of it. Items that look alike are one group, and every figure is a function of
sums over items, so many resamples are one product of matrices (B. Efron, 1979).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.estimate import Interval, require

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]

SparseArray: TypeAlias = "csr_array"
IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

RESAMPLES: Final = 1000
# With fewer of them no interval on a board holds what it says (docs/scoring.md has the figures).
MIN_COMPARISONS: Final = 10
TOO_FEW: Final = f"fewer than {MIN_COMPARISONS} comparisons to resample"
ALL_ALIKE: Final = "the comparisons all say the same, so resampling cannot tell how sure this is"

_SAME: Final = 1e-12
# Drawing the size of one group takes about as long as drawing so many items one by one.
_DRAWS_PER_GROUP: Final = 20
_ITEMS_AT_ONCE: Final = 20_000
# Two blocks of so many numbers are in memory at once: the one in use and the next.
_NUMBERS_AT_ONCE: Final = 12_500_000
_ROWS_AT_ONCE: Final = 2048


@dataclass(frozen=True)
class Resampling:
    """How often to resample and from which seed; the same seed gives the same interval."""

    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.resamples >= 1, "an interval needs at least one resample")


DEFAULT: Final = Resampling()


class Bootstrapped(NamedTuple):
    """A 95 % interval, and how it was made; None where there is none, and then why."""

    interval: Interval | None
    method: str


def draws(
    counts: IntArray, rng: np.random.Generator, resamples: int, rows: int = 1
) -> Iterator[NDArray[np.integer]]:
    """Draw as many items as there are, with replacement, many times.

    Of `counts` by group come blocks of shape (n_resamples, n_groups): how often each was drawn,
    fewer at once where a caller takes more sums (`rows`) of a resample.

    Examples
    --------
    >>> [block] = draws(np.array([3, 1]), np.random.default_rng(0), resamples=5)
    >>> block.shape, {int(total) for total in block.sum(axis=1)}
    ((5, 2), {4})
    """
    groups, items = len(counts), int(counts.sum())
    require(items, "there are no comparisons to draw from")
    member_of = np.repeat(np.arange(groups), counts)
    at_once = max(1, _NUMBERS_AT_ONCE // max(rows, groups))
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


def bootstrap(
    cells: SparseArray,
    counts: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    resampling: Resampling,
) -> tuple[FloatArray, FloatArray]:
    """Compute a statistic of all items, and of each resample; NaN where it has no value.

    The statistic takes sums of shape (n_cells, n) to values of shape (…, n); `cells`, of shape
    (n_cells, n_groups), hold what one item of each group adds to each sum.
    """
    rng = np.random.default_rng(resampling.seed)
    blocks = draws(counts, rng, resampling.resamples, cells.shape[0]) if len(counts) else ()
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = statistic(cells @ counts.astype(np.float64)[:, np.newaxis])
        drawn = [statistic(cells @ block.T.astype(np.float64)) for block in blocks]
    return whole[..., 0], np.concatenate([whole[..., :0], *drawn], axis=-1)


def resampled_sums(
    rows: Callable[[slice], NDArray[np.generic]],
    multiplicity: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> FloatArray:
    """Sum the rows of drawn comparisons for many draws, shape (resamples, n_columns).

    `rows` returns the rows of a slice of the groups, for all may be too large for memory, and
    `multiplicity` tells how many comparisons have each.

    Examples
    --------
    >>> ones, rng = np.ones((3, 1)), np.random.default_rng(7)
    >>> resampled_sums(lambda part: ones[part], np.array([1, 1, 2]), rng, 2).tolist()
    [[4.0], [4.0]]
    """
    slices = [slice(at, at + _ROWS_AT_ONCE) for at in range(0, len(multiplicity), _ROWS_AT_ONCE)]
    return np.concatenate(
        [
            np.asarray(
                sum(
                    block[:, part].astype(np.float64) @ rows(part).astype(np.float64)
                    for part in slices
                )
            )
            for block in draws(multiplicity, rng, resamples)
        ]
    )


def bootstrap_tail(sizes: Sequence[int] | IntArray) -> FloatArray:
    """Return which quantile of a bootstrap of n things bounds a 95 % interval that holds it.

    It reaches out as far as Student's interval: ``Phi(-sqrt(n / (n - 1)) t)`` with the quantile t
    of n - 1 degrees of freedom (T. C. Hesterberg, 2015, section 4).

    Examples
    --------
    >>> bootstrap_tail([2, 10, 30, 1_000_000]).round(4).tolist()
    [0.0, 0.0086, 0.0188, 0.025]
    """
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]  # slow to import

    n = np.asarray(sizes, dtype=np.float64)
    return np.asarray(ndtr(np.sqrt(n / (n - 1)) * stdtrit(n - 1, 0.025)))


def interval_of(values: FloatArray, items: int, resampling: Resampling) -> Bootstrapped:
    """Return the percentile interval of bootstrapped values; see `bootstrap_tail`.

    NaN is a resample without a value. Where all values are the same, resampling cannot tell how
    sure the figure is: no interval, not one without width.

    Examples
    --------
    >>> values = np.array([0.5] * 20 + [0.6] * 20 + [np.nan])
    >>> found = interval_of(values, 10, Resampling(resamples=41))
    >>> found.interval, found.method
    ((0.5, 0.6), 'bootstrap over 10 items, 41 resamples, seed 0, 1 of them without a value')
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
    """Return the low and high ends of many resampled figures; see `bootstrap_tail`.

    `values`, of shape (resamples, n_figures), may hold NaN. Figures that rest on fewer than
    `MIN_COMPARISONS` comparisons have NaN.

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
    from scipy.sparse import coo_array  # slow to import

    data = np.ones(len(rows)) if values is None else values
    return coo_array((data, (rows, columns)), shape=shape).tocsr()
