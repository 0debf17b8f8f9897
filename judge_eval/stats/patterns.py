"""Array work on labels grouped by item: which items look alike, and who shares an item."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.vocabulary import MISSING, IntArray


@dataclass(frozen=True)
class Patterns:
    """Items that look alike, taken together.

    Attributes
    ----------
    counts : int array, shape (n_patterns,)
        How many items have each pattern.
    pair : int array, shape (n_kept,)
        Positions of what was said of one item of each pattern.
    pattern : int array, shape (n_kept,)
        The pattern of each of these.
    """

    counts: IntArray
    pair: IntArray
    pattern: IntArray


def patterns_of(item: IntArray, said: NDArray[np.uint64]) -> Patterns:
    """Find the items on which the same was said.

    Parameters
    ----------
    item : int array, shape (n,)
        Sorted.
    said : uint64 array, shape (n,)
        What was said of the item, as a number; the order of what was said does not matter.

    Examples
    --------
    >>> found = patterns_of(np.array([1, 1, 2, 2, 3]), np.array([7, 8, 8, 7, 9], np.uint64))
    >>> sorted(map(int, found.counts)), len(found.pair)
    ([1, 2], 3)
    """
    fresh = np.ones(len(item), bool)
    fresh[1:] = item[1:] != item[:-1]
    starts = np.flatnonzero(fresh)
    hashed = _scrambled(said)
    keys = np.add.reduceat(hashed, starts) if len(item) else hashed
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    of_item = np.full(len(starts), MISSING)
    of_item[first] = np.arange(len(first))
    pattern = np.repeat(of_item, np.diff(starts, append=len(item)))
    kept = np.flatnonzero(pattern != MISSING)
    return Patterns(counts, kept, pattern[kept])


def partners(group: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every element with each other one of its group, in both orders.

    Parameters
    ----------
    group : int array, shape (n,)
        Sorted.

    Returns
    -------
    one, other : int array, shape (n_pairs,)
        Positions, in order of `one`.

    Examples
    --------
    >>> [list(map(int, side)) for side in partners(np.array([4, 4, 7]))]
    [[0, 1], [1, 0]]
    """
    _, first, inverse, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    size = sizes[inverse]
    one = np.repeat(np.arange(len(group)), size)
    within = np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    other = first[inverse][one] + within
    return one[one != other], other[one != other]


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash numbers to numbers (the finaliser of splitmix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
