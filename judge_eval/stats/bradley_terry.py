"""Bradley-Terry ratings on the ELO scale: what ELO would say if the order did not matter.

The chance that i beats j is ``1 / (1 + 10 ** ((R_j - R_i) / 400))``. The ratings are the ones that
make what happened most likely, with half a win and half a loss of everyone against a virtual
opponent of 1000, so that a judge that never lost has a rating too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from judge_eval.stats.bootstrap import (
    ALL_ALIKE,
    MIN_COMPARISONS,
    RESAMPLES,
    TOO_FEW,
    bounds,
    resampled_sums,
)
from judge_eval.stats.elo import START
from judge_eval.stats.estimate import best_first
from judge_eval.stats.labels import BoolArray, FloatArray, IntArray
from judge_eval.stats.outcomes_table import Codes
from judge_eval.stats.ranks import rank_ranges, ranks, tie_groups
from voting.choices import CHOICES, TABLE

POINTS: Final = 400 / math.log(10)
PRIOR: Final = 0.5
_TOLERANCE: Final = 1e-7
_LIMIT = 200
# Few enough to stay in the caches of a processor.
_NUMBERS_AT_ONCE: Final = 200_000


class NotConverged(ArithmeticError):
    """No ratings were found, which only numbers beyond any count of votes can do."""


def fit(wins: ArrayLike) -> FloatArray:
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


def _strengths(wins: FloatArray) -> FloatArray:
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


def _chance(difference: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-difference)))


NO_GAMES = "it never was right where another was wrong, nor the reverse"
# A rating that moves less than this from resample to resample does not move.
_STILL = 1e-6


@dataclass(frozen=True, slots=True)
class Rating:
    """One rating, how sure it is, and the ranks it may take.

    Attributes
    ----------
    value : float or None
        On the ELO scale, the mean of all being 1000; None without any game.
    low, high : float or None
        95 % interval by bootstrap over comparisons; None where `why` says why.
    rank : int or None
        From 1; the same for equal ratings.
    best_rank, worst_rank : int or None
        The ranks in the central 95 % of the bootstrap; None where there is no interval either.
    comparisons : int
        Comparisons on which it had a game.
    why : str or None
        Why the rating or its interval is missing.
    """

    value: float | None
    low: float | None
    high: float | None
    rank: int | None
    best_rank: int | None
    worst_rank: int | None
    comparisons: int
    why: str | None = None


def rate(
    wins: FloatArray | IntArray, resampled_wins: FloatArray, comparisons: IntArray
) -> list[Rating]:
    """Rate players from their wins and from resamples of them.

    Parameters
    ----------
    wins : array, shape (n, n)
        ``wins[i, j]``: how often i beat j.
    resampled_wins : float array, shape (resamples, n, n)
        The same for comparisons drawn with replacement; see `judge_eval.stats.bootstrap`.
    comparisons : int array, shape (n,)
        On how many comparisons each has a game; one with none is not rated.

    Returns
    -------
    list of Rating, length n

    Examples
    --------
    >>> wins = np.array([[0.0, 9.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    >>> first, _, third = rate(wins, np.stack([wins, wins.T]), np.array([12, 12, 0]))
    >>> round(first.value), round(first.low), round(first.high), first.rank, first.worst_rank
    (1091, 911, 1089, 1, 2)
    >>> third.value, third.why
    (None, 'it never was right where another was wrong, nor the reverse')
    """
    rated = np.flatnonzero(comparisons)
    found = [Rating(None, None, None, None, None, None, 0, NO_GAMES)] * len(comparisons)
    if not rated.size:
        return found
    values = fit(wins[np.ix_(rated, rated)])
    resampled = fit(resampled_wins[:, rated][:, :, rated])
    low, high = bounds(resampled, comparisons[rated])
    places = ranks(values)
    for n, (player, (best, worst)) in enumerate(zip(rated, rank_ranges(resampled), strict=True)):
        why = None
        if comparisons[player] < MIN_COMPARISONS:
            why = TOO_FEW
        elif high[n] - low[n] < _STILL:
            why = ALL_ALIKE
        interval = (None,) * 4 if why else (float(low[n]), float(high[n]), best, worst)
        found[player] = Rating(
            float(values[n]),
            interval[0],
            interval[1],
            int(places[n]),
            interval[2],
            interval[3],
            int(comparisons[player]),
            why,
        )
    return found


def apart(ratings: list[Rating]) -> BoolArray:
    """Tell which intervals do not overlap, shape (n, n); a missing one overlaps with all.

    Examples
    --------
    >>> a = Rating(1100.0, 1050.0, 1150.0, 1, 1, 1, 9)
    >>> unsure = Rating(900.0, None, None, 2, None, None, 9)
    >>> b = Rating(900.0, 850.0, 950.0, 2, 2, 2, 9)
    >>> apart([a, b]).tolist(), apart([a, unsure]).any().item()
    ([[False, True], [True, False]], False)
    """
    low = np.array([-np.inf if r.low is None else r.low for r in ratings])
    high = np.array([np.inf if r.high is None else r.high for r in ratings])
    below = high[:, None] < low[None, :]
    return np.asarray(below | below.T)


# What a vote for each choice comes to for A and for B, in halves; none for both rates no model.
_HALVES: Final = np.array([[round(2 * grade) for grade in row.grades] for row in TABLE.values()])
_RATES_NONE: Final = ~_HALVES.any(axis=1)
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False, slots=True)
class ModelBoard:
    """Models ranked by one source of preferences.

    Attributes
    ----------
    ties : list of str, length n_models
        Letters: models share one when their intervals overlap; empty without a rating.
    wins : float array, shape (n_models, n_models)
        ``wins[i, j]``: votes for i against j, a tie being half a vote for each.
    both_bad, unpaired : int
        Votes left out: of both bad, and on comparisons without two different known models.
    """

    ratings: list[Rating]
    ties: list[str]
    wins: FloatArray
    both_bad: int
    unpaired: int

    @property
    def win_rates(self) -> list[list[float | None]]:
        """Share of each model's votes against each other one; None where there are none."""
        games = self.wins + self.wins.T
        return [
            [float(won / played) if played else None for won, played in zip(*rows, strict=True)]
            for rows in zip(self.wins, games, strict=True)
        ]


def as_votes(verdicts: Codes) -> IntArray:
    """Return one judge's verdicts as if each was the only vote on its comparison.

    Parameters
    ----------
    verdicts : int8 array, shape (n_comparisons,)
        A column of `OutcomesTable.verdicts`.

    Returns
    -------
    int array, shape (n_comparisons, 4)
        No vote where the judge has no verdict.

    Examples
    --------
    >>> as_votes(np.array([1, -1], dtype=np.int8)).tolist()
    [[0, 1, 0, 0], [0, 0, 0, 0]]
    """
    return np.asarray(verdicts[:, None] == np.arange(len(CHOICES)), dtype=np.int64)


def model_board(
    models: IntArray,
    n_models: int,
    votes: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> ModelBoard:
    """Rank the models by Bradley-Terry, with intervals by bootstrap over comparisons.

    Parameters
    ----------
    models : int array, shape (n_comparisons, 2)
        Which model wrote A and which wrote B; `UNKNOWN` where none is named.
    votes : int array, shape (n_comparisons, 4)
        By `CHOICES`: people's votes, or one judge's verdicts by `as_votes`.

    Raises
    ------
    ValueError
        When a model's number is not below n_models.

    Examples
    --------
    >>> pairs = np.array([[0, 1]] * 8)
    >>> votes = np.array([[1, 0, 0, 0]] * 5 + [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    >>> board = model_board(pairs, 2, votes, np.random.default_rng(1))
    >>> board.wins.tolist(), board.both_bad, [round(r.value) for r in board.ratings]
    ([[0.0, 5.5], [1.5, 0.0]], 1, [1103, 897])
    """
    if ((models < UNKNOWN) | (models >= n_models)).any():
        raise ValueError("a model's number is unknown")
    is_pair = (models[:, 0] != models[:, 1]) & (models != UNKNOWN).all(axis=1)
    sided, scores = _by_lower_number(models[is_pair], votes[is_pair])
    kinds, multiplicity = np.unique(np.hstack([sided, scores]), axis=0, return_counts=True)
    wins, resampled = _wins(kinds, multiplicity, n_models, rng, resamples)
    ratings = rate(wins, resampled, _comparisons(kinds, multiplicity, n_models))
    rated = [n for n in best_first([r.value for r in ratings]) if ratings[n].value is not None]
    return ModelBoard(
        ratings=ratings,
        ties=tie_groups(apart(ratings), rated),
        wins=wins,
        both_bad=int(votes[is_pair][:, _RATES_NONE].sum()),
        unpaired=int(votes[~is_pair].sum()),
    )


def _by_lower_number(models: IntArray, votes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the decided comparisons: models in order of number, and half-votes for each."""
    scores = votes @ _HALVES
    is_swapped = models[:, 0] > models[:, 1]
    models = models.copy()
    models[is_swapped] = models[is_swapped, ::-1]
    scores[is_swapped] = scores[is_swapped, ::-1]
    is_decided = scores.any(axis=1)
    return models[is_decided], scores[is_decided]


def _wins(
    kinds: IntArray, multiplicity: IntArray, n_models: int, rng: np.random.Generator, resamples: int
) -> tuple[FloatArray, FloatArray]:
    """Return the wins, shape (n_models, n_models), and those of each resample."""
    wins, resampled = np.zeros((n_models, n_models)), np.zeros((resamples, n_models, n_models))
    if not len(kinds):
        return wins, resampled
    low, high = kinds[:, 0], kinds[:, 1]
    np.add.at(wins, (low, high), multiplicity * kinds[:, 2] / 2)
    np.add.at(wins, (high, low), multiplicity * kinds[:, 3] / 2)
    met, pair_of = np.unique(kinds[:, :2], axis=0, return_inverse=True)

    def rows(part: slice) -> FloatArray:
        pairs = pair_of[part]
        table = np.zeros((len(pairs), 2, len(met)))
        table[np.arange(len(pairs)), :, pairs] = kinds[part, 2:] / 2
        return table.reshape(len(pairs), -1)

    sums = resampled_sums(rows, multiplicity, rng, resamples).reshape(resamples, 2, len(met))
    resampled[:, met[:, 0], met[:, 1]] = sums[:, 0]
    resampled[:, met[:, 1], met[:, 0]] = sums[:, 1]
    return wins, resampled


def _comparisons(kinds: IntArray, multiplicity: IntArray, n_models: int) -> IntArray:
    """Count the comparisons with a decided vote that each model is in."""
    weights = np.repeat(multiplicity, 2)
    return np.bincount(kinds[:, :2].ravel(), weights, minlength=n_models).astype(np.int64)
