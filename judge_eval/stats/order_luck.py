"""How much of a judge's ELO is the luck of the order in which people happened to vote.

The same votes are shuffled many times and rated each time by the rule of `elo`; the standard
deviation of a judge's ratings is its order luck. Of very many votes each shuffle is a sample, so
what is measured then is the luck of so many votes.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.bootstrap import BoolArray, FloatArray
from judge_eval.stats.elo import START, K
from judge_eval.stats.outcomes_table import OutcomesTable

SHUFFLES: Final = 100
MOST_VOTES: Final = 5000
# Ratings are played in units of which the chance to win is (1 + tanh(difference)) / 2.
_PER_POINT: Final = math.log(10) / 800
_HALF_K: Final = K / 2 * _PER_POINT
# So many votes at the end of a shuffle are tried first.
_FEW_VOTES: Final = 128
_SAME_POINTS: Final = 1e-6

Positions = NDArray[np.intp]


def order_luck(
    table: OutcomesTable,
    rng: np.random.Generator,
    shuffles: int = SHUFFLES,
    most_votes: int = MOST_VOTES,
) -> FloatArray | None:
    """Return the standard deviation of each judge's ELO over shuffles of the votes, if any.

    Beyond `most_votes` each shuffle is a sample of so many, without replacement. There are n - 1 in
    the denominator.

    Examples
    --------
    >>> table = OutcomesTable(np.array([[3, 3, 0, 0]]), np.array([[0, 1]], dtype=np.int16))
    >>> order_luck(table, np.random.default_rng(3)).round(1).tolist()
    [5.3, 5.3]
    """
    ratings = shuffled_elo(table, rng, shuffles, most_votes)
    return ratings.std(axis=0, ddof=1) if table.n_votes else None


def shuffled_elo(
    table: OutcomesTable,
    rng: np.random.Generator,
    shuffles: int = SHUFFLES,
    most_votes: int = MOST_VOTES,
) -> FloatArray:
    """Return the ELO of each judge after each shuffle, shape (shuffles, n_judges).

    Notes
    -----
    A game draws two histories of the same ratings together and never apart, so that ratings forget:
    mostly the last few hundred votes of a shuffle decide them to the last digit. These are played
    alone where twice as many change nothing. A judge that is always right, or always wrong, never
    forgets: then all votes are played.
    """
    groups, multiplicity = table.grouped()
    comparison, choice = np.nonzero(groups.votes)
    ends = (groups.votes[comparison, choice] * multiplicity[comparison]).cumsum()
    verdicts = groups.verdicts[comparison]
    right = verdicts == choice[:, None]
    wrong = (verdicts >= 0) & ~right
    # Votes that all judges were right or all were wrong about move nothing and are left out.
    moves = right.any(axis=1) & wrong.any(axis=1)
    total, rows = table.n_votes, []
    for _ in range(shuffles):
        chosen = rng.choice(total, min(total, most_votes), replace=False)
        kinds = np.searchsorted(ends, chosen, side="right")
        rows.append(kinds[moves[kinds]])
    # Shorter shuffles begin with the kind after the last one, which nobody plays.
    votes = max(map(len, rows), default=0)
    drawn = np.full((shuffles, votes), len(moves), dtype=np.intp)
    for row, kinds in zip(drawn, rows, strict=True):
        row[votes - len(kinds) :] = kinds
    judges, last, before = table.n_judges, _FEW_VOTES, None
    sides = _listed(right, filler=judges), _listed(wrong, filler=judges + 1)
    while 3 * last <= votes:
        ratings = _played(drawn[:, -last:], judges, *sides)
        if before is not None and np.abs(ratings - before).max() < _SAME_POINTS:
            return ratings
        before, last = ratings, 2 * last
    return _played(drawn, judges, *sides)


def _listed(mask: BoolArray, filler: int) -> tuple[Positions, Positions]:
    """List the judges of each kind of vote in the run's order, and count them; then nobody."""
    counts = np.append(mask.sum(axis=1), 0)
    listed = np.full((len(counts), counts.max()), filler, dtype=np.intp)
    kind, judge = np.nonzero(mask)
    listed[kind, (mask.cumsum(axis=1) - 1)[kind, judge]] = judge
    return listed, counts


def _played(
    drawn: Positions,
    judges: int,
    right: tuple[Positions, Positions],
    wrong: tuple[Positions, Positions],
) -> FloatArray:
    """Play the votes of all shuffles side by side: the first ones of each, the second ones …

    Within a vote the games of correct judge k and wrong judge l wait only for the games of k
    against l - 1 and of k - 1 against l; so those with the same k + l are played at once.
    """
    # Two more players fill the places of games that nobody plays. The one has won for good and the
    # other has lost for good, so their games move nothing.
    ratings = np.zeros((len(drawn), judges + 2))
    ratings[:, judges:] = np.inf, -np.inf
    flat, row = ratings.reshape(-1), np.arange(len(ratings)) * ratings.shape[1]
    turns, room = right[1] + wrong[1] - 1, np.empty((judges + 2, len(ratings)))
    for kinds in drawn.T:
        n_right, n_wrong = right[1][kinds].max(), wrong[1][kinds].max()
        winners = right[0][kinds, :n_right].T + row
        # Last one first: then those that winners k, k + 1 … meet in a turn are a slice as well.
        losers = wrong[0][kinds, :n_wrong].T[::-1] + row
        won, lost = flat.take(winners), flat.take(losers)
        for turn in range(turns[kinds].max()):
            first, end = max(0, turn - n_wrong + 1), min(n_right, turn + 1)
            shift = n_wrong - 1 - turn
            winner, loser = won[first:end], lost[first + shift : end + shift]
            points = np.subtract(winner, loser, out=room[: end - first])
            np.tanh(points, out=points)
            np.subtract(1, points, out=points)
            points *= _HALF_K
            winner += points
            loser -= points
        flat[winners], flat[losers] = won, lost
    return np.asarray(START + ratings[:, :judges] / _PER_POINT)
