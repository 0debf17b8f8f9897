"""What a metric answers: a figure that says how sure it is, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Interval: TypeAlias = tuple[float, float]

_NAMES_KEPT = 20


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was not counted, and why.

    Attributes
    ----------
    what : str
        ``items``, ``labels`` (of a person on an item), ``humans`` or ``tasks``.
    why : str
        A sentence's end, to be read after "left out: ".
    names : tuple of str
        Which, each once; of many only the alphabetically first 20.
    """

    what: str
    count: int
    why: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """One number, or the reason why there is none.

    Attributes
    ----------
    value : float or None
        None where it cannot be computed; then, and only then, `reason` says why.
    n : int
        Labels (pairs of a judge's and a person's) that it was computed from.
    reason : str or None
        A sentence for people.
    interval : (low, high) or None
        95 % interval.
    method : str or None
        How the interval was made.

    Raises
    ------
    ValueError
        Where there are both a value and a reason, or neither, or the value is not finite.

    Examples
    --------
    >>> Figure(0.8, n=10, interval=(0.49, 0.94), method="Wilson").value
    0.8
    >>> Figure(float("nan"), n=0)
    Traceback (most recent call last):
    ...
    ValueError: nan is no figure: give None and a reason
    """

    value: float | None
    n: int
    reason: str | None = None
    interval: Interval | None = None
    method: str | None = None
    left_out: tuple[LeftOut, ...] = ()

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise ValueError(f"{self.value} is no figure: give None and a reason")
        if (self.value is None) == (self.reason is None):
            raise ValueError("a figure has a value, or a reason why there is none")

    def as_dict(self) -> dict[str, object]:
        """Return what JSON can hold."""
        return asdict(self) | {
            "interval": list(self.interval) if self.interval else None,
            "left_out": [_left_out(gap) for gap in self.left_out],
        }


def no_figure(reason: str, n: int = 0, left_out: tuple[LeftOut, ...] = ()) -> Figure:
    """Return a figure that could not be computed."""
    return Figure(None, n=n, reason=reason, left_out=left_out)


def left_out(what: str, names: Sequence[object], why: str) -> tuple[LeftOut, ...]:
    """Return what was left out as a tuple, empty where nothing was."""
    few = tuple(nsmallest(_NAMES_KEPT, set(map(str, names))))
    return (LeftOut(what, len(names), why, few),) if names else ()


def _left_out(gap: LeftOut) -> dict[str, object]:
    return asdict(gap) | {"names": list(gap.names)}


SIGNIFICANCE: Final = 0.05
Z95: Final = 1.959963984540054


def wilson(successes: float, trials: int, z: float = Z95) -> tuple[float, float] | None:
    """Return the Wilson score interval of a proportion.

    Parameters
    ----------
    successes : float
        ``0 <= successes <= trials``; a whole number but where a trial may succeed in part.
    z : float
        Quantile of the normal distribution; the default gives 95 %.

    Returns
    -------
    (low, high) : tuple of float, or None
        Fractions in [0, 1]; None when there were no trials.

    Raises
    ------
    ValueError
        When the counts cannot be.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.

    Examples
    --------
    >>> [round(bound, 4) for bound in wilson(8, 10)]
    [0.4902, 0.9433]
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials cannot be")
    if trials == 0:
        return None
    share = successes / trials
    spread = z * z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == trials else min(1.0, middle + half)
    return low, high


def bootstrap_tail(
    sizes: Sequence[int] | NDArray[np.int64], share: float = 0.95
) -> NDArray[np.float64]:
    """Return which quantiles of a bootstrap bound an interval that holds what it says.

    The percentile interval of n resampled things is too narrow: resampling varies as if the
    variance were divided by n instead of n - 1, and knows nothing of the doubt about the variance
    itself. Reaching as far out as Student's interval does, in quantiles of the bootstrap, mends
    both (the expanded percentile interval); for large n nothing changes.

    Parameters
    ----------
    sizes : int array, shape (n,)
        How many things were drawn from; at least 2 each.
    share : float
        Between 0 and 1.

    Returns
    -------
    float array, shape (n,)
        ``Phi(-sqrt(n / (n - 1)) t)`` with the quantile t of n - 1 degrees of freedom; the upper
        bound is at 1 minus that.

    References
    ----------
    T. C. Hesterberg, "What teachers should know about the bootstrap", 2015, section 4.

    Examples
    --------
    >>> bootstrap_tail([2, 10, 30, 1_000_000]).round(4).tolist()
    [0.0, 0.0086, 0.0188, 0.025]
    """
    import numpy as np
    from scipy.special import ndtr, stdtrit  # type: ignore[import-untyped]

    n = np.asarray(sizes, dtype=np.float64)
    return np.asarray(ndtr(np.sqrt(n / (n - 1)) * stdtrit(n - 1, (1 - share) / 2)))


def best_first(values: Sequence[float | None]) -> list[int]:
    """Return positions from the highest value to the lowest; what has none stands last.

    Examples
    --------
    >>> best_first([0.5, None, 0.7])
    [2, 0, 1]
    """
    placed = [float("inf") if value is None else -value for value in values]
    return sorted(range(len(placed)), key=placed.__getitem__)
