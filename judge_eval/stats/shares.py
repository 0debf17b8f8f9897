"""Shares with their intervals: agreement, coverage, position, consistency.

Wilson's interval where every comparison has one trial; otherwise the bootstrap over comparisons,
because trials on one comparison are not independent. Where every comparison says the same, so do
all resamples, and each comparison counts as one trial of Wilson's interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from judge_eval.stats.bootstrap import (
    MIN_COMPARISONS,
    RESAMPLES,
    TOO_FEW,
    bounds,
    resampled_sums,
)
from judge_eval.stats.intervals import wilson
from judge_eval.stats.outcomes_table import Counts, Floats

NOTHING = "there is nothing to count"


@dataclass(frozen=True, slots=True)
class Share:
    """A share, how sure it is, and of how many.

    Attributes
    ----------
    value : float or None
        In [0, 1]; None when there were no trials.
    low, high : float or None
        95 % interval; None where `why` says why.
    successes, trials, comparisons : int
        The comparisons are those with at least one trial.
    method : {"wilson", "bootstrap", "prompts"} or None
        What made the interval.
    why : str or None
        Why the share or its interval is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    successes: int
    trials: int
    comparisons: int
    method: Literal["wilson", "bootstrap", "prompts"] | None = None
    why: str | None = None


def shares(
    successes: Counts | Floats, trials: Counts, rng: np.random.Generator, resamples: int = RESAMPLES
) -> list[Share]:
    """Make shares of counts by comparison.

    Parameters
    ----------
    successes, trials : int array, shape (n_comparisons, n_shares)
        A trial may succeed in part; then the successes are no whole numbers.
    rng : numpy.random.Generator
        Seeded.
    resamples : int

    Returns
    -------
    list of Share, length n_shares

    Raises
    ------
    ValueError
        When there are more successes than trials.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> [one] = shares(np.array([[1], [0], [1]]), np.ones((3, 1), dtype=int), rng)
    >>> one.method, round(one.value, 3), round(one.low, 3), round(one.high, 3)
    ('wilson', 0.667, 0.208, 0.939)
    """
    if ((successes < 0) | (successes > trials)).any():
        raise ValueError("there are more successes than trials, or fewer than none")
    several = (trials > 1).any(axis=0)
    resampled = np.full((resamples, trials.shape[1]), np.nan)
    if several.any():
        both = np.hstack([successes[:, several], trials[:, several]])
        both, multiplicity = np.unique(both[both.any(axis=1)], axis=0, return_counts=True)
        sums = resampled_sums(lambda part: both[part], multiplicity, rng, resamples)
        resampled[:, several] = ratio(*np.hsplit(sums, 2))
    return shares_of(successes, trials, resampled)


def ratio(successes: Floats, trials: Floats) -> Floats:
    """Divide; NaN where there were no trials."""
    nothing = np.full(np.shape(trials), np.nan)
    return np.asarray(np.divide(successes, trials, out=nothing, where=trials > 0))


def shares_of(successes: Counts | Floats, trials: Counts, resampled: Floats) -> list[Share]:
    """Make shares whose bootstrap was done elsewhere.

    Parameters
    ----------
    successes, trials : int array, shape (n_comparisons, n_shares)
    resampled : float array, shape (resamples, n_shares)
        The shares of each resample; only read where a comparison has several trials.
    """
    low, high = bounds(resampled, np.count_nonzero(trials, axis=0))
    return [
        _share(successes[:, n], trials[:, n], float(low[n]), float(high[n]))
        for n in range(trials.shape[1])
    ]


def _share(successes: Counts | Floats, trials: Counts, low: float, high: float) -> Share:
    right, total = float(successes.sum()), int(trials.sum())
    comparisons = int(np.count_nonzero(trials))
    if not total:
        return Share(None, None, None, 0, 0, 0, why=NOTHING)
    value, whole = right / total, round(right)
    several = total > comparisons
    if several and comparisons < MIN_COMPARISONS:
        return Share(value, None, None, whole, total, comparisons, why=TOO_FEW)
    if several and high > low:
        return Share(value, low, high, whole, total, comparisons, "bootstrap")
    of_each = wilson(value * comparisons if several else right, comparisons)
    assert of_each is not None  # there are comparisons
    return Share(value, *of_each, whole, total, comparisons, "wilson")
