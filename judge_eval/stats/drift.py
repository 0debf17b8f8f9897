"""Has a judge changed? The same question asked twice, weighed so that one may look every day.

An anchor is an item with votes of people. When a judge is watched it answers about each anchor so
many times at once: its yardstick, which is never renewed. Later an anchor is asked about again, and
that answer is set against one of the yardstick that was not used yet: by how much more it is right.
If nothing has changed both answers are drawn alike, so each difference is as often above 0 as
below, whatever was seen before: bets on either sign have an expectation of at most 1. An answer
that is used twice would spoil that. Since a change may come on any day, a bet starts anew every 14
days, and what counts is the mean of them all. See `evidence`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import FloatArray, IntArray
from judge_eval.stats.estimate import SIGNIFICANCE
from judge_eval.stats.evidence import NODES, WEIGHTS, log_wealth

DAYS: Final = 365
# The days of a watch on which a bet starts.
START_DAYS: Final = np.arange(0, DAYS, 14)
# Two bets a judge share the error.
THRESHOLD: Final = 2 / SIGNIFICANCE
_TOLERANCE: Final = 1e-9
# Wealth is cut here, lest it leaves the range of floats.
_MOST_WEALTH: Final = 1e250
Direction: TypeAlias = Literal["worse", "better", ""]


@dataclass(frozen=True, slots=True)
class JudgeDrift:
    """What anchors that were asked again say; without a direction nothing is said to have changed.

    `change_index` is that of the answer that settled it, `since` the day of the watch on which the
    best of the bets had started. `worse` and `better` are the largest evidence so far.
    """

    direction: Direction
    change_index: int | None
    since: int | None
    worse: float
    better: float


def yardstick(a_day: int, anchors: int) -> int:
    """Return how many times each anchor is asked about at once, to last a year at so many a day.

    Examples
    --------
    >>> yardstick(3, 100), yardstick(10, 400)
    (11, 10)
    """
    return ceil(DAYS * a_day / anchors)


def drift(differences: Sequence[float], days: Sequence[int], judges: int = 1) -> JudgeDrift:
    """Weigh differences in [-1, 1], in the order and by the days on which answers came.

    Days are counted from that of the yardstick, and `judges` are those ever watched in the run.

    Examples
    --------
    >>> drift([-1] * 13, range(13)).direction, drift([-1] * 13, range(13)).change_index
    ('worse', 12)
    >>> drift([0] * 20 + [-1] * 20, range(40)).since, drift([-1] * 13, range(13), 5).direction
    (14, '')
    """
    bets = np.array([[-change, change] for change in differences], dtype=float).reshape(-1, 2)
    starts = np.searchsorted(np.asarray(days), START_DAYS)
    reached = evidence(bets, starts)
    ends = reached.max(axis=0, initial=1.0).tolist()
    settled = reached >= THRESHOLD * judges - _TOLERANCE
    if not settled.any():
        return JudgeDrift("", None, None, *ends)
    change_index = int(settled.any(axis=1).argmax())
    side = int(settled[change_index].argmax())
    by_start = np.where(
        np.arange(change_index + 1)[:, None] >= starts, bets[: change_index + 1, side, None], 0
    )
    won = log_wealth(by_start)[-1].round(9).tolist()
    # Of equal ones the last: nothing came between them.
    since = max(zip(won, START_DAYS.tolist(), strict=True))[1]
    return JudgeDrift("better" if side else "worse", change_index, since, *ends)


def evidence(bets: FloatArray, starts: IntArray) -> FloatArray:
    """Return the mean evidence over bets that start at some places, after each bet, shape (n, m).

    Of m sequences of n bets >= -1. Each start brings what `log_wealth` says of the bets from its
    place on, and 1 before that.

    Examples
    --------
    >>> won = evidence(np.array([[-1.0, 1, -1, 1, 1, 1, 1]]).T, np.array([0, 3]))
    >>> round(float(won[2, 0]), 6), round(float(won[-1, 0]), 6)
    (0.708333, 3.751786)
    """
    begins = np.bincount(starts, minlength=len(bets) + 1) / len(starts)
    waiting = 1 - np.cumsum(begins)
    wealth, reached = np.zeros((bets.shape[1], len(NODES))), np.empty(bets.shape)
    for place, bet in enumerate(bets):
        wealth += begins[place]
        wealth *= 1 + bet[:, None] * NODES
        np.minimum(wealth, _MOST_WEALTH, out=wealth)
        reached[place] = wealth @ WEIGHTS + waiting[place]
    return reached
