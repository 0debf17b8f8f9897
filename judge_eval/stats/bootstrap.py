"""The bootstrap over items: what the figures would be, had other items been drawn.

What several people say of one item is not independent, so an item (a comparison, a prompt) is drawn
with all that was said of it. Items that look alike are one group, and every figure is a function of
sums over items, so many resamples are one product of matrices (B. Efron, 1979).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.estimate import require

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


@dataclass(frozen=True)
class Resampling:
    """How often to resample and from which seed; the same seed gives the same interval."""

    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.resamples >= 1, "an interval needs at least one resample")

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


DEFAULT: Final = Resampling()


class Summable(Protocol):
    """What items of each group add to sums, shape (n_cells, n_groups)."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __matmul__(self, times: FloatArray, /) -> FloatArray: ...


class Bounds(NamedTuple):
    """A 95 % interval, and how it was made; None where there is none, and then why."""

    low: float | None
    high: float | None
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
        drawn_groups = member_of[rng.integers(items, size=(len(part), items))]
        drawn_groups += np.arange(len(part))[:, np.newaxis] * groups
        part[:] = np.bincount(drawn_groups.ravel(), minlength=part.size).reshape(part.shape)
    return drawn


def bootstrap(
    cells: Summable,
    counts: IntArray,
    statistic: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> tuple[FloatArray, FloatArray]:
    """Compute a statistic of all items, and of each resample; NaN where it has no value.

    The statistic takes sums of shape (n_cells, n) to values of shape (…, n); `cells` hold what one
    item of each group adds to each sum, and `counts` how many items each group has.

    Examples
    --------
    >>> ones, rng = np.ones((1, 3)), np.random.default_rng(7)
    >>> whole, drawn = bootstrap(ones, np.array([1, 1, 2]), lambda sums: sums, rng, 2)
    >>> whole.tolist(), drawn.tolist()
    ([4.0], [[4.0, 4.0]])
    """
    blocks = draws(counts, rng, resamples, cells.shape[0]) if len(counts) else ()
    with np.errstate(invalid="ignore", divide="ignore"):
        full_sample = statistic(cells @ counts.astype(np.float64)[:, np.newaxis])
        drawn = [statistic(cells @ block.T.astype(np.float64)) for block in blocks]
    return full_sample[..., 0], np.concatenate([full_sample[..., :0], *drawn], axis=-1)


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


def interval_of(values: FloatArray, items: int, resampling: Resampling) -> Bounds:
    """Return the percentile interval of bootstrapped values; see `bootstrap_tail`.

    NaN is a resample without a value. Where all values are the same, resampling cannot tell how
    sure the figure is: no interval, not one without width.

    Examples
    --------
    >>> values = np.array([0.5] * 20 + [0.6] * 20 + [np.nan])
    >>> low, high, method = interval_of(values, 10, Resampling(resamples=41))
    >>> low, high, method
    (0.5, 0.6, 'bootstrap over 10 items, 41 resamples, seed 0, 1 of them without a value')
    """
    finite = values[~np.isnan(values)]
    if not len(finite):
        return Bounds(None, None, "no interval: there is nothing to resample")
    if np.ptp(finite) < _SAME:
        return Bounds(None, None, "no interval: every resample of these items gives the same")
    method = f"bootstrap over {items:,} items, {len(values):,} resamples, seed {resampling.seed}"
    if len(finite) < len(values):
        method += f", {len(values) - len(finite):,} of them without a value"
    low, high = bounds(finite[:, np.newaxis], np.array([max(2, items)]))
    return Bounds(float(low[0]), float(high[0]), method)


def bounds(values: FloatArray, items: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the low and high ends of many bootstrapped figures; see `bootstrap_tail`.

    `values` have shape (resamples, n_figures), and `items` tell on how many each figure rests.

    Examples
    --------
    >>> low, high = bounds(np.tile(np.arange(101.0)[:, None], 2), np.array([1_000_000, 10]))
    >>> low.round(2).tolist(), high.round(2).tolist()
    ([2.5, 0.86], [97.5, 99.14])
    """
    ends, tails = np.empty((2, values.shape[1])), bootstrap_tail(np.maximum(items, 2))
    for tail in np.unique(tails):
        same = tails == tail
        ends[:, same] = np.quantile(values[:, same], [tail, 1 - tail], axis=0)
    return ends[0], ends[1]


def sparse(
    rows: IntArray, columns: IntArray, values: FloatArray | None, shape: tuple[int, int]
) -> SparseArray:
    from scipy.sparse import coo_array  # slow to import

    data = np.ones(len(rows)) if values is None else values
    return coo_array((data, (rows, columns)), shape=shape).tocsr()
