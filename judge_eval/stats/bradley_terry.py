"""Bradley-Terry ratings on the ELO scale: what ELO would say if the order did not matter.

The chance that i beats j is ``1 / (1 + 10 ** ((R_j - R_i) / 400))``. The ratings are the ones that
make what happened most likely, with half a win and half a loss of everyone against a virtual
opponent of 1000, so that a judge that never lost has a rating too.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from judge_eval.stats.bootstrap import (
    ALL_ALIKE,
    MIN_COMPARISONS,
    RESAMPLES,
    TOO_FEW,
    BoolArray,
    FloatArray,
    IntArray,
    bootstrap,
    bounds,
    sparse,
)
from judge_eval.stats.elo import START
from judge_eval.stats.estimate import ModelBoard, Rating, best_first, require
from judge_eval.stats.outcomes_table import Codes
from voting.items.choices import CHOICES, TABLE

POINTS: Final = 400 / math.log(10)
PRIOR: Final = 0.5
UNKNOWN: Final = -1
NO_GAMES: Final = "it never was right where another was wrong, nor the reverse"
_TOLERANCE: Final = 1e-7
_LIMIT = 200
# Few enough to stay in the caches of a processor.
_NUMBERS_AT_ONCE: Final = 200_000
# Equal ratings come out of the solver equal to about 1e-9 points.
_SAME: Final = 1e-6
# What a vote for each choice comes to for A and for B, in halves; none for both rates no model.
_HALVES: Final = np.array([[round(2 * grade) for grade in TABLE[c].grades] for c in CHOICES])


class NotConverged(ArithmeticError):
    """No ratings were found, which only numbers beyond any count of votes can do."""


def fit(wins: ArrayLike) -> FloatArray:
    """Fit one or many tables of wins at once: from shape (..., n, n) to ratings of shape (..., n).

    ``wins[..., i, j]`` tells how often i beat j; halves are fine, and the diagonal is not read. The
    ratings have mean 1000 and are exact to 1e-8 points.

    Notes
    -----
    With s the ratings in natural units around the virtual opponent, this maximises the concave ::

        sum_ij wins_ij log p(s_i - s_j) + sum_i PRIOR (log p(s_i) + log p(-s_i)),
        p(x) = 1 / (1 + exp(-x))

    (R. A. Bradley and M. E. Terry, 1952) by Newton's method with steps ``log(1 + d) / d`` long, d
    being the widest change of any difference, which climb from anywhere (T. Sun and Q. Tran-Dinh,
    2019).

    Examples
    --------
    Three wins to one would be 190.85 points apart; the prior draws them a little nearer.

    >>> fit([[[0, 3], [1, 0]], [[0, 0], [0, 0]]]).round(2).tolist()
    [[1082.42, 917.58], [1000.0, 1000.0]]
    """
    table = np.array(wins, dtype=np.float64)
    is_square = table.ndim >= 2 and table.shape[-1] == table.shape[-2]
    require(is_square, f"wins have shape {table.shape}, not (..., n, n)")
    require((np.isfinite(table) & (table >= 0)).all(), "wins are negative or not finite")
    if table.size == 0:
        return np.zeros(table.shape[:-1])
    players = np.arange(table.shape[-1])
    table[..., players, players] = 0
    batch = table.reshape(-1, len(players), len(players))
    step = max(1, _NUMBERS_AT_ONCE // len(players) ** 2)
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
        beaten = 1 / (1 + np.exp(strengths[:, :, None] - strengths[:, None, :]))
        surprise = wins * beaten
        against_virtual = 1 / (1 + np.exp(-strengths))
        uphill = (surprise - surprise.transpose(0, 2, 1)).sum(axis=2)
        uphill += PRIOR - 2 * PRIOR * against_virtual
        curvature = -games * beaten * beaten.transpose(0, 2, 1)
        own_curvature = 2 * PRIOR * against_virtual * (1 - against_virtual) - curvature.sum(axis=2)
        curvature[:, diagonal, diagonal] = own_curvature
        change = np.linalg.solve(curvature, uphill[:, :, None])[:, :, 0]
        # The virtual opponent stays where it is: a change of 0.
        widest = np.maximum(change.max(axis=1), 0) - np.minimum(change.min(axis=1), 0)
        length = np.divide(np.log1p(widest), widest, out=np.ones_like(widest), where=widest > 0)
        strengths += length[:, None] * change
        if widest.max() < _TOLERANCE:
            return strengths
    raise NotConverged(f"no ratings after {_LIMIT} steps")


def rate(
    wins: FloatArray | IntArray, resampled_wins: FloatArray, comparisons: IntArray
) -> list[Rating]:
    """Rate players from their wins and from resamples of them, of shape (resamples, n, n).

    `comparisons`, of shape (n,), tells on how many each has a game: one with none is not rated.

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
    ratings = [Rating(None, why=NO_GAMES)] * len(comparisons)
    if not rated.size:
        return ratings
    values = fit(wins[np.ix_(rated, rated)])
    resampled = fit(resampled_wins[:, rated][:, :, rated])
    low, high = bounds(resampled, comparisons[rated])
    places = 1 + (values[None, :] > values[:, None] + _SAME).sum(axis=1)
    ranges = rank_ranges(resampled)
    for n, player in enumerate(rated):
        value, rank, games = float(values[n]), int(places[n]), int(comparisons[player])
        if games < MIN_COMPARISONS or high[n] - low[n] < _SAME:
            reason = TOO_FEW if games < MIN_COMPARISONS else ALL_ALIKE
            ratings[player] = Rating(value, n=games, why=reason, rank=rank)
        else:
            ends, ranks = (float(low[n]), float(high[n])), (rank, *ranges[n])
            ratings[player] = Rating(value, *ends, games, "bootstrap", None, (), *ranks)
    return ratings


def rank_ranges(resampled: FloatArray) -> list[tuple[int, int]]:
    """Return the best and worst rank that each one takes in the central 95 % of the resamples.

    Equal ratings, of shape (resamples, n), share all their ranks: two equal leaders are both 1-2.

    Examples
    --------
    >>> rank_ranges(np.array([[3.0, 2.0, 1.0]] * 9 + [[2.0, 3.0, 1.0]]))
    [(1, 2), (1, 2), (3, 3)]
    """
    best = np.empty(resampled.shape, dtype=np.int64)
    worst = np.empty_like(best)
    for n, player_ratings in enumerate(resampled.T):
        best[:, n] = 1 + (resampled > player_ratings[:, None] + _SAME).sum(axis=1)
        worst[:, n] = (resampled >= player_ratings[:, None] - _SAME).sum(axis=1)
    low = np.quantile(best, 0.025, axis=0, method="inverted_cdf")
    high = np.quantile(worst, 0.975, axis=0, method="inverted_cdf")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]


def tie_groups(distinct: BoolArray, order: Sequence[int] | IntArray) -> list[str]:
    """Return compact letters: two share a letter exactly when they cannot be told apart.

    `distinct`, of shape (n, n), tells which two are told apart; `order` holds the positions of
    those to compare, best first. After ``z`` comes ``a2``. Letters, each a largest group of which
    no two are told apart, are added until every tied pair shares one, and those that are not needed
    are dropped again (H.-P. Piepho, 2004).

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
    times, groups = np.zeros(tied.shape, dtype=np.int64), []
    for first, second in np.argwhere(np.triu(tied)):
        if times[first, second] or (first == second and tied[first].sum() > 1):
            continue
        group = list({int(first), int(second)})
        for place in range(len(tied)):
            if place not in group and tied[place, group].all():
                group.append(place)
        times[np.ix_(group, group)] += 1
        groups.append(sorted(group))
    needed_groups = []
    for group in sorted(groups):
        if (times[np.ix_(group, group)] > 1).all():
            times[np.ix_(group, group)] -= 1
        else:
            needed_groups.append(group)
    return needed_groups


def apart(ratings: list[Rating]) -> BoolArray:
    """Tell which intervals do not overlap, shape (n, n); a missing one overlaps with all.

    Examples
    --------
    >>> a = Rating(1100.0, 1050.0, 1150.0)
    >>> unsure = Rating(900.0)
    >>> b = Rating(900.0, 850.0, 950.0)
    >>> apart([a, b]).tolist(), apart([a, unsure]).any().item()
    ([[False, True], [True, False]], False)
    """
    low = np.array([-np.inf if r.low is None else r.low for r in ratings])
    high = np.array([np.inf if r.high is None else r.high for r in ratings])
    below = high[:, None] < low[None, :]
    return np.asarray(below | below.T)


def as_votes(verdicts: Codes) -> IntArray:
    """Return one judge's verdicts as if each was the only vote on its comparison.

    From a column of `OutcomesTable.verdicts` to shape (n_comparisons, 4).

    Examples
    --------
    >>> as_votes(np.array([1, -1], dtype=np.int16)).tolist()
    [[0, 1, 0, 0], [0, 0, 0, 0]]
    """
    return np.asarray(verdicts[:, None] == np.arange(len(_HALVES)), dtype=np.int64)


def model_board(
    models: IntArray,
    n_models: int,
    votes: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> ModelBoard:
    """Rank the models by Bradley-Terry, with intervals by bootstrap over comparisons.

    `models`, of shape (n_comparisons, 2), tells which model wrote A and which wrote B, `UNKNOWN`
    where none is named; `votes`, by `CHOICES`, are people's, or one judge's verdicts by `as_votes`.

    Examples
    --------
    >>> pairs = np.array([[0, 1]] * 8)
    >>> votes = np.array([[1, 0, 0, 0]] * 5 + [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    >>> board = model_board(pairs, 2, votes, np.random.default_rng(1))
    >>> board.wins, board.both_bad, [round(r.value) for r in board.ratings]
    ([[0.0, 5.5], [1.5, 0.0]], 1, [1103, 897])
    """
    require(((models >= UNKNOWN) & (models < n_models)).all(), "a model's number is unknown")
    are_two = (models[:, 0] != models[:, 1]) & (models != UNKNOWN).all(axis=1)
    # The decided comparisons: models in order of number, and half-votes for each.
    paired, scores = models[are_two], votes[are_two] @ _HALVES
    is_swapped = paired[:, 0] > paired[:, 1]
    paired[is_swapped], scores[is_swapped] = paired[is_swapped, ::-1], scores[is_swapped, ::-1]
    rows = np.hstack([paired, scores])[scores.any(axis=1)]
    kinds, multiplicity = np.unique(rows, axis=0, return_counts=True)
    wins, resampled = np.zeros((n_models, n_models)), np.zeros((resamples, n_models, n_models))
    if len(kinds):
        low, high = kinds[:, 0], kinds[:, 1]
        np.add.at(wins, (low, high), multiplicity * kinds[:, 2] / 2)
        np.add.at(wins, (high, low), multiplicity * kinds[:, 3] / 2)
        model_pairs, pair_of = np.unique(kinds[:, :2], axis=0, return_inverse=True)
        n_pairs, kind_numbers = len(model_pairs), np.arange(len(kinds))
        cells = sparse(
            np.concatenate([pair_of, pair_of + n_pairs]),
            np.tile(kind_numbers, 2),
            kinds[:, 2:].T.ravel() / 2,
            (2 * n_pairs, len(kinds)),
        )
        _, sums = bootstrap(cells, multiplicity, lambda sums: sums, rng, resamples)
        resampled[:, model_pairs[:, 0], model_pairs[:, 1]] = sums[:n_pairs].T
        resampled[:, model_pairs[:, 1], model_pairs[:, 0]] = sums[n_pairs:].T
    played = np.bincount(kinds[:, :2].ravel(), np.repeat(multiplicity, 2), minlength=n_models)
    ratings = rate(wins, resampled, played.astype(np.int64))
    rated = [n for n in best_first([r.value for r in ratings]) if ratings[n].value is not None]
    games = wins + wins.T
    rates = np.divide(wins, games, out=np.full_like(wins, np.nan), where=games > 0)
    return ModelBoard(
        ratings=ratings,
        ties=tie_groups(apart(ratings), rated),
        wins=wins.tolist(),
        win_rates=np.where(games > 0, rates, np.array(None)).tolist(),
        both_bad=int(votes[are_two][:, ~_HALVES.any(axis=1)].sum()),
        unpaired=int(votes[~are_two].sum()),
    )
