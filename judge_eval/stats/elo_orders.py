"""What the ELO of judges is in other orders of the same votes.

The items are shuffled many times, the votes on each item kept together as they came, and each order
is rated by the rule of `elo`. Of very many votes each order is a sample, so what is measured then
is the range after so many votes.
"""

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.elo import START, K
from judge_eval.stats.outcomes_table import Codes

SHUFFLES: Final = 100
MOST_VOTES: Final = 5000
PERCENTILES: Final = (5, 95)
# Of every run, so that the same votes have the same range on every machine.
SEED: Final = 1
# Ratings are played in units of which the chance to win is (1 + tanh(difference)) / 2.
_PER_POINT: Final = math.log(10) / 800
_HALF_K: Final = K / 2 * _PER_POINT
# So many votes at the end of a shuffle are tried first.
_FEW_VOTES: Final = 128
_SAME_POINTS: Final = 1e-6

Positions = NDArray[np.intp]


def elo_range(
    items: IntArray, choices: IntArray, verdicts: Codes, rng: np.random.Generator
) -> FloatArray:
    """Return the 5th and the 95th percentile of each judge's ELO over shuffles of the items.

    The arguments are those of `shuffled_elo`. The shape is (2, n_judges), of NaN where fewer than
    two items have votes: there is no other order then.

    Examples
    --------
    >>> items, choices = np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])
    >>> verdicts = np.array([[0, 1], [0, 1]], dtype=np.int16)
    >>> elo_range(items, choices, verdicts, np.random.default_rng(3)).round(1).tolist()
    [[994.7, 994.7], [1005.3, 1005.3]]
    """
    if len(np.unique(items)) < 2:
        return np.full((2, verdicts.shape[1]), np.nan)
    ratings = shuffled_elo(items, choices, verdicts, rng)
    return np.asarray(np.percentile(ratings, PERCENTILES, axis=0))


def shuffled_elo(
    items: IntArray,
    choices: IntArray,
    verdicts: Codes,
    rng: np.random.Generator,
    shuffles: int = SHUFFLES,
    most_votes: int = MOST_VOTES,
) -> FloatArray:
    """Return the ELO of each judge after each shuffle, shape (shuffles, n_judges).

    `items` and `choices`, of shape (n_votes,), tell of each vote, in the order in which they came,
    the row of its item in `verdicts`, of shape (n_items, n_judges), and the code of its choice.
    Of each shuffle the first `most_votes` are played.

    Notes
    -----
    A game draws two histories of the same ratings together and never apart, so that ratings forget:
    mostly the last few hundred votes of a shuffle decide them to the last digit. These are played
    alone where twice as many change nothing. A judge that is always right, or always wrong, never
    forgets: then all votes are played.
    """
    judges = verdicts.shape[1]
    together = np.argsort(items, kind="stable")
    _, starts, counts = np.unique(items[together], return_index=True, return_counts=True)
    # Votes of one kind have the same choice and meet the same verdicts.
    verdict_rows, row_of_item = np.unique(verdicts, axis=0, return_inverse=True)
    width = choices.max(initial=0) + 1
    vote_kinds = (row_of_item.reshape(-1)[items] * width + choices)[together]
    different, kind_of = np.unique(vote_kinds, return_inverse=True)
    verdict_rows = verdict_rows[different // width]
    right = verdict_rows == (different % width)[:, None]
    wrong = (verdict_rows >= 0) & ~right
    # Votes that all judges were right or all were wrong about move nothing and are left out.
    moves, rows = right.any(axis=1) & wrong.any(axis=1), []
    for _ in range(shuffles):
        order = rng.permutation(len(starts))
        order = order[: 1 + np.searchsorted(counts[order].cumsum(), most_votes)]
        ends = counts[order].cumsum()
        # The votes on an item stand behind each other from its start on.
        places = np.arange(ends[-1] if len(ends) else 0)
        places += np.repeat(starts[order] - ends + counts[order], counts[order])
        kinds = kind_of[places[:most_votes]]
        rows.append(kinds[moves[kinds]])
    # Shorter shuffles begin with the kind after the last one, which nobody plays.
    votes = max(map(len, rows), default=0)
    drawn = np.full((shuffles, votes), len(moves), dtype=np.intp)
    for row, kinds in zip(drawn, rows, strict=True):
        row[votes - len(kinds) :] = kinds
    last, before = _FEW_VOTES, None
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
