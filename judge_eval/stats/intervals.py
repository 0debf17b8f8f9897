"""Intervals for proportions, and how far out those of a bootstrap reach."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # pages need no more of this module than what a few multiplications give
    import numpy as np
    from numpy.typing import NDArray

SIGNIFICANCE: Final = 0.05
Z95: Final = 1.959963984540054


def wilson(successes: float, trials: int, z: float = Z95) -> tuple[float, float] | None:
    """Return the Wilson score interval of a proportion.

    Parameters
    ----------
    successes : float
        ``0 <= successes <= trials``; a whole number but where a trial may succeed in part.
    trials : int
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
