"""The score after each of very many votes at once, as array operations: what a replay computes.

Both the score and the sums within a batch obey ``y[i] = keep[i] * y[i-1] + gain[i]``, whose closed
form is a weighted sum: the weight of gain j in y[i] is the product of what is kept from j to i,
for the score ``exp(-lambda (T_i - T_j))``. Written as one cumulative sum of gains over weights, it
overflows after 709 / lambda, so the votes are taken in blocks, side by side.
"""

from dataclasses import dataclass
from math import isqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from reports.quality.score import FoldState, Rule
from voting.items.choices import PASSES_FROM

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Course:
    """Where the fold stands behind each of n votes; every array has the shape (n,).

    The names are those of `FoldState`, but for `times`; `score` and `freshness` are in [0, 1].
    """

    times: Integers
    seq: Integers
    before: Floats
    decay: Floats
    opened: Integers
    weight: Floats
    worth: Floats
    passes: Integers

    @property
    def score(self) -> Floats:
        return self.decay * self.before + (1 - self.decay) * self.worth / self.weight

    @property
    def freshness(self) -> Floats:
        return 1 - self.decay

    def state_after(self, votes: int) -> FoldState:
        """Return where the fold stands behind the first so many votes, at least one."""
        last = votes - 1
        return FoldState(
            before=float(self.before[last]),
            decay=float(self.decay[last]),
            opened=int(self.opened[last]),
            weight=float(self.weight[last]),
            worth=float(self.worth[last]),
            at=int(self.times[last]),
            seq=int(self.seq[last]),
            votes=votes,
            passes=int(self.passes[last]),
        )


def course(times: Integers, seq: Integers, worth: Floats, reputation: Floats, rule: Rule) -> Course:
    """Return the course of the score over votes in the order of (time, number) [HJ][GJ].

    Parameters
    ----------
    times, seq
        Shape (n,), n > 0: times in microseconds, and numbers in the ledger.
    worth, reputation
        Shape (n,): votes in [0, 1], and their weights, above 0.

    Examples
    --------
    >>> rule = Rule(initial=0.72, rate=0.1, unit="day")
    >>> times, seq = np.full(3, 3 * 86_400_000_000), np.arange(1, 4)
    >>> folds = course(times, seq, np.array([0.9, 0.8, 0.6]), np.ones(3), rule)
    >>> float(folds.score[-1].round(6)), float(folds.freshness[-1].round(6))
    (0.732095, 0.259182)
    """
    first = _openings(times, rule.window)
    is_first = np.zeros(len(times), dtype=bool)
    is_first[first] = True
    batch = np.cumsum(is_first) - 1
    opened = times[first]
    weight = _recurrence(1.0 - is_first, reputation, 0.0)
    sums = _recurrence(1.0 - is_first, reputation * worth, 0.0)
    last = np.append(first[1:], len(times)) - 1
    # The first time runs from the start of the project or the earliest vote, whichever is older.
    passed = np.diff(opened, prepend=min(rule.start, int(times[0])))
    decay = np.exp(-rule.per_microsecond * passed)
    score = _recurrence(decay, (1 - decay) * sums[last] / weight[last], rule.initial)
    return Course(
        times=times,
        seq=seq,
        before=np.concatenate([[rule.initial], score[:-1]])[batch],
        decay=decay[batch],
        opened=opened[batch],
        weight=weight,
        worth=sums,
        passes=np.cumsum(worth >= PASSES_FROM),
    )


def _openings(times: Integers, window: int) -> Integers:
    """Return the places of the votes that open a batch."""
    if window == 0:
        return np.flatnonzero(np.diff(times, prepend=times[:1] - 1))
    following = np.searchsorted(times, times + window).tolist()
    places, place = [], 0
    while place < len(following):
        places.append(place)
        place = following[place]
    return np.array(places, dtype=np.int64)


def _recurrence(keep: Floats, gain: Floats, initial: float) -> Floats:
    """Return ``y[i] = keep[i] * y[i-1] + gain[i]`` with ``y[-1] = initial``; `keep` is in [0, 1].

    Examples
    --------
    >>> _recurrence(np.array([0.5, 0.5, 0.5]), np.array([1.0, 0.0, 1.0]), 2.0).tolist()
    [2.0, 1.0, 1.5]
    """
    length = isqrt(len(gain)) + 1
    rest = -len(gain) % length
    # One row for each place within a block, one column for each block.
    factors = np.append(keep, np.ones(rest)).reshape(-1, length).T.copy()
    values = np.append(gain, np.zeros(rest)).reshape(-1, length).T.copy()
    for row in range(1, length):
        values[row] += factors[row] * values[row - 1]
    np.cumprod(factors, axis=0, out=factors)
    carried = np.empty(values.shape[1])
    for block in range(values.shape[1]):
        carried[block] = initial
        initial = factors[-1, block] * initial + values[-1, block]
    return (values + factors * carried).T.ravel()[: len(gain)]
