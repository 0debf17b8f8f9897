"""Bradley-Terry ratings on the ELO scale: what ELO would say if the order did not matter.

The chance that i beats j is ``1 / (1 + 10 ** ((R_j - R_i) / 400))``. The ratings are the ones that
make what happened most likely, with half a win and half a loss of everyone against a virtual
opponent of 1000, so that a judge that never lost has a rating too.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from judge_eval.stats.elo import START
from judge_eval.stats.outcomes_table import Floats

POINTS: Final = 400 / math.log(10)
PRIOR: Final = 0.5
_TOLERANCE: Final = 1e-7
_LIMIT = 200
# Few enough to stay in the caches of a processor.
_NUMBERS_AT_ONCE: Final = 200_000


class NotConverged(ArithmeticError):
    """No ratings were found, which only numbers beyond any count of votes can do."""


def fit(wins: ArrayLike) -> Floats:
    """Fit one or many tables of wins at once.

    Parameters
    ----------
    wins : array, shape (..., n, n)
        ``wins[..., i, j]``: how often i beat j; halves are fine. The diagonal is not read.

    Returns
    -------
    float array, shape (..., n)
        Ratings with mean 1000, exact to 1e-8 points.

    Raises
    ------
    ValueError
        When wins are not square, negative or not finite.
    NotConverged

    Notes
    -----
    With s the ratings in natural units around the virtual opponent, this maximises the concave ::

        sum_ij wins_ij log p(s_i - s_j) + sum_i PRIOR (log p(s_i) + log p(-s_i)),
        p(x) = 1 / (1 + exp(-x))

    by Newton's method with steps of length ``log(1 + d) / d``, d being the widest change of any
    difference: these climb from anywhere (T. Sun and Q. Tran-Dinh, "Generalized self-concordant
    functions", 2019), and their error is squared with every step near the end. The virtual
    opponent holds the ratings near 1000; at last they are moved to have that mean exactly.

    References
    ----------
    R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block designs", 1952.

    Examples
    --------
    Three wins to one would be 190.85 points apart; the prior draws them a little nearer.

    >>> fit([[0, 3], [1, 0]]).round(2).tolist()
    [1082.42, 917.58]
    >>> fit([[[0, 3], [1, 0]], [[0, 0], [0, 0]]]).round(2).tolist()
    [[1082.42, 917.58], [1000.0, 1000.0]]
    """
    table = np.array(wins, dtype=np.float64)
    if table.ndim < 2 or table.shape[-1] != table.shape[-2]:
        raise ValueError(f"wins have shape {table.shape}, not (..., n, n)")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise ValueError("wins are negative or not finite")
    players = table.shape[-1]
    if table.size == 0:
        return np.zeros(table.shape[:-1])
    batch = table.reshape(-1, players, players)
    batch[:, np.arange(players), np.arange(players)] = 0
    step = max(1, _NUMBERS_AT_ONCE // players**2)
    parts = [_strengths(batch[i : i + step]) for i in range(0, len(batch), step)]
    strengths = np.concatenate(parts).reshape(table.shape[:-1])
    strengths -= strengths.mean(axis=-1, keepdims=True)
    return np.asarray(START + POINTS * strengths)


def _strengths(wins: Floats) -> Floats:
    """Return natural-unit strengths around the virtual opponent, shape (n_tables, n)."""
    strengths = np.zeros(wins.shape[:2])
    games = wins + wins.transpose(0, 2, 1)
    diagonal = np.arange(wins.shape[1])
    for _ in range(_LIMIT):
        beaten = _chance(strengths[:, None, :] - strengths[:, :, None])
        surprise = wins * beaten
        against_virtual = _chance(strengths)
        uphill = (surprise - surprise.transpose(0, 2, 1)).sum(axis=2)
        uphill += PRIOR - 2 * PRIOR * against_virtual
        curvature = -games * beaten * beaten.transpose(0, 2, 1)
        own = 2 * PRIOR * against_virtual * (1 - against_virtual) - curvature.sum(axis=2)
        curvature[:, diagonal, diagonal] = own
        change = np.linalg.solve(curvature, uphill[:, :, None])[:, :, 0]
        # The virtual opponent stays where it is: a change of 0.
        widest = np.maximum(change.max(axis=1), 0) - np.minimum(change.min(axis=1), 0)
        length = np.divide(np.log1p(widest), widest, out=np.ones_like(widest), where=widest > 0)
        strengths += length[:, None] * change
        if widest.max() < _TOLERANCE:
            return strengths
    raise NotConverged(f"no ratings after {_LIMIT} steps")


def _chance(difference: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-difference)))
