"""Intervals for proportions."""

from __future__ import annotations

from math import sqrt

Z95 = 1.959963984540054


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float] | None:
    """Return the Wilson score interval of a proportion.

    Parameters
    ----------
    successes, trials : int
        Counts, ``0 <= successes <= trials``.
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
