"""How much of a judge's ELO is the luck of the order in which people happened to vote.

The same votes are shuffled many times and rated each time by the rule of `elo`; the standard
deviation of a judge's ratings is its order luck. Of very many votes each shuffle is a sample, so
what is measured then is the luck of so many votes.

All shuffles are played side by side. Within a vote the games of correct judge k and wrong judge l
wait only for the games of k against l - 1 and of k - 1 against l; so those with the same k + l are
played at once, which changes no rating.
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
_PER_POINT: Final = math.log(10) / 400

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
    """Return the ELO of each judge after each shuffle, shape (shuffles, n_judges)."""
    groups, multiplicity = table.grouped()
    comparison, choice = np.nonzero(groups.votes)
    votes = groups.votes[comparison, choice] * multiplicity[comparison]
    verdicts = groups.verdicts[comparison]
    right = verdicts == choice[:, None]
    wrong = (verdicts >= 0) & ~right
    # Votes that all judges were right or all were wrong about move nothing and are left out; the
    # kind after the last one, which nobody plays, fills the shorter shuffles up.
    moves = right.any(axis=1) & wrong.any(axis=1)
    total, ends = int(votes.sum()), votes.cumsum()
    rows = []
    for _ in range(shuffles):
        chosen = rng.choice(total, min(total, most_votes), replace=False)
        kinds = np.searchsorted(ends, chosen, side="right")
        rows.append(kinds[moves[kinds]])
    drawn = np.full((shuffles, max(map(len, rows), default=0)), len(votes), dtype=np.intp)
    for row, kinds in zip(drawn, rows, strict=True):
        row[: len(kinds)] = kinds
    # Two more players fill the places of games that nobody plays. The one has won for good and the
    # other has lost for good, so their games move nothing.
    judges = table.n_judges
    ratings = np.full((shuffles, judges + 2), START)
    ratings[:, judges:] = np.inf, -np.inf
    _play(ratings, drawn, _listed(right, filler=judges), _listed(wrong, filler=judges + 1))
    return ratings[:, :judges]


def _listed(mask: BoolArray, filler: int) -> tuple[Positions, Positions]:
    """List the judges of each kind of vote in the run's order, and count them; then nobody."""
    counts = np.append(mask.sum(axis=1), 0)
    listed = np.full((len(counts), counts.max()), filler, dtype=np.intp)
    kind, judge = np.nonzero(mask)
    listed[kind, (mask.cumsum(axis=1) - 1)[kind, judge]] = judge
    return listed, counts


def _play(
    ratings: FloatArray,
    drawn: Positions,
    right: tuple[Positions, Positions],
    wrong: tuple[Positions, Positions],
) -> None:
    """Play the votes of all shuffles, in place: the first ones of each, the second ones …"""
    flat = ratings.reshape(-1)
    row = np.arange(len(ratings)) * ratings.shape[1]
    turns = right[1] + wrong[1] - 1
    for kinds in drawn.T:
        n_right, n_wrong = right[1][kinds].max(), wrong[1][kinds].max()
        winners = right[0][kinds, :n_right].T + row
        # Last one first: then those that winners k, k + 1 … meet in a turn are a slice as well.
        losers = wrong[0][kinds, :n_wrong].T[::-1] + row
        for turn in range(turns[kinds].max()):
            first, end = max(0, turn - n_wrong + 1), min(n_right, turn + 1)
            shift = n_wrong - 1 - turn
            winner, loser = winners[first:end], losers[first + shift : end + shift]
            won, lost = flat.take(winner), flat.take(loser)
            points = K / (1 + np.exp((won - lost) * _PER_POINT))
            flat[winner] = won + points
            flat[loser] = lost - points
