"""Ranks with their range, and tie groups as compact letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from judge_eval.stats.labels import BoolArray, FloatArray, IntArray

# Equal ratings come out of the solver equal to about 1e-9 points.
_SAME: Final = 1e-6


def ranks(ratings: FloatArray) -> IntArray:
    """Return ranks from 1, the same for equal ratings.

    Parameters
    ----------
    ratings : float array, shape (n,)

    Examples
    --------
    >>> ranks(np.array([1000.0, 1200.0, 1000.0])).tolist()
    [2, 1, 2]
    """
    return np.asarray(1 + (ratings[None, :] > ratings[:, None] + _SAME).sum(axis=1))


def rank_ranges(resampled: FloatArray, share: float = 0.95) -> list[tuple[int, int]]:
    """Return the ranks that each one takes in the central share of the resamples.

    Parameters
    ----------
    resampled : float array, shape (resamples, n)
        Ratings. Equal ones share all their ranks: two equal leaders are both 1 to 2.

    Returns
    -------
    list of (best, worst), length n

    Examples
    --------
    >>> rank_ranges(np.array([[3.0, 2.0, 1.0]] * 9 + [[2.0, 3.0, 1.0]]))
    [(1, 2), (1, 2), (3, 3)]
    """
    best = np.empty(resampled.shape, dtype=np.int64)
    worst = np.empty_like(best)
    for n, own in enumerate(resampled.T):
        best[:, n] = 1 + (resampled > own[:, None] + _SAME).sum(axis=1)
        worst[:, n] = (resampled >= own[:, None] - _SAME).sum(axis=1)
    tail = (1 - share) / 2
    low = np.quantile(best, tail, axis=0, method="inverted_cdf")
    high = np.quantile(worst, 1 - tail, axis=0, method="inverted_cdf")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def tie_groups(distinct: BoolArray, order: Sequence[int] | IntArray) -> list[str]:
    """Return compact letters: two share a letter exactly when they cannot be told apart.

    Parameters
    ----------
    distinct : bool array, shape (n, n)
        Symmetric: which two are told apart.
    order : sequence of int
        The positions of those to compare, best first; groups of the best come first in the
        alphabet. The others have no letter.

    Returns
    -------
    list of str, length n
        ``a``, ``ab``, ``b`` …; after ``z`` comes ``a2``.

    Notes
    -----
    Not being told apart is no equivalence: a may tie with b, and b with c, and a yet beat c. Each
    letter is a largest group of which no two are told apart; letters are added until every tied
    pair shares one, and then those that are not needed are dropped again.

    Reference: H.-P. Piepho, "An algorithm for a letter-based representation of all-pairwise
    comparisons", 2004.

    Examples
    --------
    >>> distinct = np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool)
    >>> tie_groups(distinct, np.array([0, 1, 2]))
    ['a', 'ab', 'b']
    """
    order, letters = np.array(order, np.intp), [""] * len(distinct)
    for number, group in enumerate(tie_group_members(distinct[np.ix_(order, order)])):
        letter = chr(ord("a") + number % 26) + (str(number // 26 + 1) if number >= 26 else "")
        for place in group:
            letters[order[place]] += letter
    return letters


def tie_group_members(distinct: BoolArray) -> list[list[int]]:
    """Return the groups behind the letters, as positions in the matrix; the first ones first.

    Examples
    --------
    >>> tie_group_members(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    [[0, 1], [1, 2]]
    """
    tied = ~(distinct | distinct.T)
    np.fill_diagonal(tied, val=True)
    return _without_spare(_groups(tied), len(tied))


def _groups(tied: BoolArray) -> list[list[int]]:
    """Return groups of tied places that together cover every tied pair, first places first."""
    covered = np.zeros_like(tied)
    groups = []
    for one, other in np.argwhere(np.triu(tied)):
        if covered[one, other] or (one == other and tied[one].sum() > 1):
            continue
        group = [int(one)] if one == other else [int(one), int(other)]
        for place in range(len(tied)):
            if place not in group and tied[place, group].all():
                group.append(place)
        covered[np.ix_(group, group)] = True
        groups.append(sorted(group))
    return sorted(groups)


def _without_spare(groups: list[list[int]], size: int) -> list[list[int]]:
    """Drop groups all of whose pairs others cover."""
    times = np.zeros((size, size), dtype=np.int64)
    for group in groups:
        times[np.ix_(group, group)] += 1
    kept = []
    for group in groups:
        if (times[np.ix_(group, group)] > 1).all():
            times[np.ix_(group, group)] -= 1
        else:
            kept.append(group)
    return kept
