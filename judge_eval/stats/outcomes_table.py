"""What people chose and what judges said, counted by item: the input of every statistic.

A million votes on fifty thousand comparisons are fifty thousand rows of four counts: a vote is
right for a judge when it names what the judge's verdict names, whoever cast it, and when.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import require

FAILED: Final = -1
UNASSIGNED: Final = -2
_ROWS_AT_ONCE: Final = 2048

Counts = IntArray
Codes = NDArray[np.int16]


@dataclass(frozen=True, eq=False, slots=True)
class OutcomesTable:
    """Votes and verdicts, one row per comparison, or per single item.

    `votes`, of shape (n_comparisons, n_choices), count for each choice. `verdicts`, of shape
    (n_comparisons, n_judges), are positions of choices, or behind them all `n_choices`, which is
    right for no vote; `FAILED`, which is neither right nor wrong and lowers coverage, or
    `UNASSIGNED`.

    Examples
    --------
    Two people say A, one says tie; the first judge says A, the second tie, the third failed.

    >>> table = OutcomesTable(np.array([[2, 0, 1, 0]]), np.array([[0, 2, FAILED]], dtype=np.int16))
    >>> table.wins().tolist()
    [[0, 2, 0], [1, 0, 0], [0, 0, 0]]
    """

    votes: IntArray
    verdicts: Codes

    def __post_init__(self) -> None:
        shapes = self.votes.shape, self.verdicts.shape
        fit = self.votes.ndim == self.verdicts.ndim == 2 and shapes[0][0] == shapes[1][0]
        require(fit, f"votes and verdicts have shapes {shapes[0]} and {shapes[1]}")
        are_codes = (self.verdicts >= UNASSIGNED) & (self.verdicts <= self.n_choices)
        require((self.votes >= 0).all(), "a number of votes is negative")
        require(are_codes.all(), "a verdict's code is unknown")

    @property
    def n_choices(self) -> int:
        return int(self.votes.shape[1])

    @property
    def n_judges(self) -> int:
        return int(self.verdicts.shape[1])

    @property
    def n_votes(self) -> int:
        return int(self.votes.sum())

    def select(self, rows: BoolArray | NDArray[np.intp] | slice) -> Self:
        return type(self)(self.votes[rows], self.verdicts[rows])

    def voted(self) -> Self:
        return self.select(np.asarray(self.votes.any(axis=1)))

    def grouped(self) -> tuple[Self, IntArray]:
        """Return the different rows, in an order of their own, and how often each one stands.

        Judges agree in few ways, so a table is often far longer than its groups; and what is
        drawn from groups by a seed does not depend on the order of the comparisons.
        """
        packed = np.hstack([self.votes, self.verdicts.astype(np.int64)])
        if not packed.size:
            return self, np.ones(len(packed), dtype=np.int64)
        # One opaque word per row sorts much faster than rows of numbers do.
        words = np.ascontiguousarray(packed).view(np.dtype((np.void, packed[0].nbytes)))[:, 0]
        _, first, multiplicity = np.unique(words, return_index=True, return_counts=True)
        return self.select(first), multiplicity.astype(np.int64)

    def right(self) -> IntArray:
        """Return the votes that each verdict was right about, shape (n_comparisons, n_judges)."""
        is_choice = (self.verdicts >= 0) & (self.verdicts < self.n_choices)
        column = np.where(is_choice, self.verdicts, 0).astype(np.intp)
        return np.where(is_choice, np.take_along_axis(self.votes, column, axis=1), 0)

    def judged(self) -> IntArray:
        """Return the votes on which each judge has a verdict, shape (n_comparisons, n_judges)."""
        return np.where(self.verdicts >= 0, self.votes.sum(axis=1, keepdims=True), 0)

    def assigned(self) -> IntArray:
        """Return the votes on what each judge was asked about, shape (n_comparisons, n_judges)."""
        return np.where(self.verdicts != UNASSIGNED, self.votes.sum(axis=1, keepdims=True), 0)

    def playing(self) -> BoolArray:
        """Tell which judges have a game on which comparison, shape (n_comparisons, n_judges).

        That is: some vote was right for the judge and wrong for another one, or the reverse.
        """
        codes = range(self.n_choices + 1)
        answers = np.stack([(self.verdicts == code).any(axis=1) for code in codes], 1)
        backed = answers[:, :-1] & (self.votes > 0)
        own_backed = self.right() > 0
        alone = answers.sum(axis=1, keepdims=True) < 2
        others_backed = backed.sum(axis=1, keepdims=True) > own_backed
        return np.asarray((self.verdicts >= 0) & ((own_backed & ~alone) | others_backed))

    def games(self) -> IntArray:
        """Return what each comparison adds to `wins`, shape (n_comparisons, n_judges, n_judges)."""
        is_different = self.verdicts[:, :, None] != self.verdicts[:, None, :]
        wrong = is_different & (self.verdicts >= 0)[:, None, :]
        return np.asarray(self.right()[:, :, None] * wrong)

    def wins(self) -> IntArray:
        """Count how often judge i was right where judge j was wrong, in single votes."""
        # Floats multiply fast, and hold whole numbers exactly up to 2 ** 53.
        right = self.right().astype(np.float64)
        wins = right.T @ (self.verdicts >= 0).astype(np.float64)
        for code in range(self.n_choices):
            answers = (self.verdicts == code).astype(np.float64)
            wins -= (right * answers).T @ answers
        return np.rint(wins).astype(np.int64)


@dataclass(frozen=True)
class Games:
    """The `games` of each row as cells of a bootstrap: made some rows at a time, to save memory."""

    table: OutcomesTable

    @property
    def shape(self) -> tuple[int, int]:
        return self.table.n_judges**2, len(self.table.votes)

    def __matmul__(self, times: FloatArray) -> FloatArray:
        sums = np.zeros((self.shape[0], times.shape[1]))
        for first in range(0, len(times), _ROWS_AT_ONCE):
            part = slice(first, first + _ROWS_AT_ONCE)
            games = self.table.select(part).games()
            sums += games.reshape(len(games), len(sums)).T.astype(np.float64) @ times[part]
        return sums
