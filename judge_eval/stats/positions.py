"""Habits of position: does a judge say the same in both orders, does it favour the first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import RESAMPLES
from judge_eval.stats.outcomes_table import Codes, Counts
from judge_eval.stats.shares import Share, shares


@dataclass(frozen=True, slots=True)
class Habits:
    """How one judge answers to the two orders of a pair.

    Attributes
    ----------
    consistency : Share
        Of the comparisons answered in both orders, those with one answer after unswapping.
    first_position : Share
        Of the answers that chose a side, those that chose what was shown first. Half is fair.
    """

    consistency: Share
    first_position: Share


def habits(
    consistent: Codes,
    first_picks: Counts,
    side_picks: Counts,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> list[Habits]:
    """Make the habits of every judge.

    Parameters
    ----------
    consistent : int8 array, shape (n_comparisons, n_judges)
        1 where both orders agreed, 0 where they did not, -1 where not both answered.
    first_picks, side_picks : int array, shape (n_comparisons, n_judges)
        How many answers chose what was shown first, and how many chose a side at all.
    rng : numpy.random.Generator
        Seeded. Two answers about one comparison are drawn together.
    resamples : int

    Returns
    -------
    list of Habits, length n_judges

    Raises
    ------
    ValueError
        When there are more first picks than picks of a side.

    Examples
    --------
    >>> import numpy as np
    >>> same = np.array([[1], [1], [0], [-1]], dtype=np.int8)
    >>> first, sided = np.array([[1], [1], [2], [1]]), np.array([[2], [2], [2], [1]])
    >>> [one] = habits(same, first, sided, np.random.default_rng(1))
    >>> round(one.consistency.value, 3), one.consistency.trials, round(one.first_position.value, 3)
    (0.667, 3, 0.714)
    """
    same = shares(1 * (consistent == 1), 1 * (consistent >= 0), rng, resamples)
    first = shares(first_picks, side_picks, rng, resamples)
    return [Habits(*pair) for pair in zip(same, first, strict=True)]


def left_share(
    left: Counts, sided: Counts, rng: np.random.Generator, resamples: int = RESAMPLES
) -> Share:
    """Return the same habit of people: the share of votes for what stood left.

    Parameters
    ----------
    left, sided : int array, shape (n_comparisons,)
        Votes for the left side, and votes for a side at all.

    Examples
    --------
    >>> import numpy as np
    >>> left_share(np.array([1, 0]), np.array([1, 1]), np.random.default_rng(1)).value
    0.5
    """
    return shares(left[:, None], sided[:, None], rng, resamples)[0]
