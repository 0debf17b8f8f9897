"""The bootstrap over comparisons: what the figures would be, had other comparisons been drawn.

Votes on one comparison are not independent, so comparisons are drawn, with replacement and with
all their votes. Every figure of the board is a function of sums over comparisons; so all resamples
together are one product of matrices.

Reference: B. Efron, "Bootstrap methods: another look at the jackknife", 1979.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.intervals import bootstrap_tail
from judge_eval.stats.outcomes_table import Counts, Floats

RESAMPLES: Final = 1000
# With fewer of them no bootstrap interval holds what it says (docs/scoring.md has the figures).
MIN_COMPARISONS: Final = 10
TOO_FEW: Final = f"fewer than {MIN_COMPARISONS} comparisons to resample"
ALL_ALIKE: Final = "the comparisons all say the same, so resampling cannot tell how sure this is"

_NUMBERS_AT_ONCE: Final = 25_000_000
_ROWS_AT_ONCE: Final = 2048
# Drawing the size of one group takes about as long as drawing so many comparisons one by one.
_DRAWS_PER_GROUP: Final = 20


def resampled_sums(
    rows: Callable[[slice], NDArray[np.generic]],
    multiplicity: Counts,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Floats:
    """Sum the rows of drawn comparisons, for many draws.

    Parameters
    ----------
    rows : callable
        Given a slice of groups, their rows, shape (n_groups_in_slice, n_columns): the table of
        all of them may be too large for memory.
    multiplicity : int array, shape (n_groups,)
        How many comparisons have this row. As many as these together are drawn each time.
    rng : numpy.random.Generator
        Seeded; the same seed, groups and multiplicities give the same sums.
    resamples : int

    Returns
    -------
    float array, shape (resamples, n_columns)

    Raises
    ------
    ValueError
        When there is nothing to draw from.

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((3, 1))
    >>> rng = np.random.default_rng(7)
    >>> resampled_sums(lambda part: ones[part], np.array([1, 1, 2]), rng, 2).tolist()
    [[4.0], [4.0]]
    """
    groups = len(multiplicity)
    member_of = np.repeat(np.arange(groups), multiplicity)
    if not member_of.size:
        raise ValueError("there are no comparisons to draw from")
    at_once = max(1, _NUMBERS_AT_ONCE // groups)
    return np.concatenate(
        [
            _weighted_sums(rows, _drawn(member_of, groups, rng, min(at_once, resamples - first)))
            for first in range(0, resamples, at_once)
        ]
    )


def _drawn(
    member_of: NDArray[np.intp], groups: int, rng: np.random.Generator, resamples: int
) -> NDArray[np.int32]:
    """Return how often each group was drawn, shape (resamples, groups)."""
    if groups * _DRAWS_PER_GROUP < member_of.size:
        multiplicity = np.bincount(member_of, minlength=groups)
        shares = multiplicity / member_of.size
        return rng.multinomial(member_of.size, shares, size=resamples).astype(np.int32)
    drawn = np.empty((resamples, groups), dtype=np.int32)
    for weights in drawn:
        chosen = rng.integers(member_of.size, size=member_of.size)
        weights[:] = np.bincount(member_of[chosen], minlength=groups)
    return drawn


def _weighted_sums(
    rows: Callable[[slice], NDArray[np.generic]], weights: NDArray[np.int32]
) -> Floats:
    parts = (
        slice(first, first + _ROWS_AT_ONCE) for first in range(0, weights.shape[1], _ROWS_AT_ONCE)
    )
    first = next(parts)
    sums = weights[:, first].astype(np.float64) @ rows(first).astype(np.float64)
    for part in parts:
        sums += weights[:, part].astype(np.float64) @ rows(part).astype(np.float64)
    return np.asarray(sums)


def bounds(values: Floats, comparisons: Counts) -> tuple[Floats, Floats]:
    """Return the 95 % intervals of resampled figures, by linear interpolation.

    Parameters
    ----------
    values : float array, shape (resamples, n_figures)
        NaN where a resample had nothing to make the figure of; those are left out.
    comparisons : int array, shape (n_figures,)
        On how many comparisons each figure rests; with few of them the interval reaches further
        out (`bootstrap_tail`).

    Returns
    -------
    low, high : float array, shape (n_figures,)
        NaN where no resample had the figure, or it rests on fewer than `MIN_COMPARISONS`.

    Examples
    --------
    >>> import numpy as np
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
