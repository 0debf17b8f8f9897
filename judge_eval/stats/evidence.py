"""Evidence that one judge is better than another, which may be looked at at any time.

It is what a bet against "X is not better than Y" has won: if that is so its expectation is at most
1 at every moment, so that it ever reaches 1 / 0.05 in at most 5 % of runs (J. Ville, 1939; A.
Ramdas et al., 2022; I. Waudby-Smith and A. Ramdas, 2024).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.entering import Entered
from judge_eval.stats.estimate import SIGNIFICANCE

NEVER: Final = -1
# Less evidence than this is none in words.
LEADS: Final = 3.0

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = (1 + NODES) / 2, WEIGHTS / 2
# So many factors are multiplied before logarithms are taken: too few to leave the range of floats.
_FACTORS: Final = 32
# Few enough for the caches of a processor.
_SEQUENCES: Final = 64
_HALVINGS: Final = 50


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """The evidence that the judge of a row is better than that of a column, shapes (J, J).

    Logarithms, for it may be beyond any float: `log_now` and `log_largest`, which is what counts.
    `since` is the entry with which it first reached its threshold, or `NEVER`. `growth` is what the
    best bet would have gained per vote, of all `votes` on the prompts that entered.
    """

    log_now: FloatArray
    log_largest: FloatArray
    since: IntArray
    growth: FloatArray
    votes: int

    @property
    def reached(self) -> BoolArray:
        return np.asarray(self.since != NEVER)


def evidence(entered: Entered, thresholds: FloatArray) -> Evidence:
    """Weigh every two judges; `thresholds`, of shape (J, J), are those of the function so named.

    Examples
    --------
    >>> from judge_eval.stats.entering import Opened, Voted, enter
    >>> opened = [Opened(n, n, n, 1, [0, 1]) for n in range(10)]
    >>> entered = enter([*opened, *(Voted(10 + n, n, 0) for n in range(10))], range(10))
    >>> found = evidence(entered, thresholds(np.array([False, False])))
    >>> np.exp(found.log_largest).round(1).tolist(), found.since.tolist()
    ([[1.0, 186.1], [1.0, 1.0]], [[-1, 17], [-1, -1]])
    """
    judges = entered.n_judges
    one, other = np.triu_indices(judges, 1)
    log_now, log_largest, growth = (np.zeros((judges, judges)) for _ in range(3))
    since = np.full((judges, judges), NEVER)
    for part in parts(len(one)):
        differences = np.nan_to_num(entered.differences[:, part])
        # What brings no difference moves no evidence: those that do come first.
        order = np.argsort(differences == 0, axis=0, kind="stable")
        moves = np.take_along_axis(differences, order, axis=0)
        last = np.count_nonzero(moves, axis=0) - 1
        moves = moves[: last.max() + 1]
        for sign, *cells in ((1, one, other), (-1, other, one)) if len(moves) else ():
            cell = cells[0][part], cells[1][part]
            log = np.where(moves != 0, log_wealth(sign * moves), -np.inf)
            log_now[cell] = np.where(last < 0, 0, log[last, np.arange(len(last))])
            log_largest[cell] = log.max(axis=0, initial=0)
            reached = log >= np.log(thresholds[cell])
            first = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)[0]
            since[cell] = np.where(reached.any(axis=0), entered.seqs[first], NEVER)
            growth[cell] = best_growth(sign * moves) / entered.all_votes
    return Evidence(log_now, log_largest, since, growth, entered.all_votes)


def log_wealth(bets: FloatArray) -> FloatArray:
    """Return the log of ``integral over l in (0, 1) of prod (1 + l b)`` after each bet b >= -1.

    Of n sequences of bets, and to as many, shape (n_bets, n). By 64-point Gauss-Legendre, which is
    a mixture of 64 bets and so valid at any length; equal to the integral up to 127 bets.

    Examples
    --------
    >>> def last(bets):
    ...     return round(float(np.exp(log_wealth(np.array([bets]).T)[-1, 0])), 6)
    >>> last([1] * 5), last([1] * 15 + [-1] * 3), last([1] * 16 + [-1] * 2)
    (10.5, 33.741486, 180.287926)
    >>> last([1] * 20 + [-1] * 8), last([1] * 30 + [-1] * 14), last([1] * 60 + [-1] * 40)
    (5.884463, 6.746793, 1.784059)
    >>> last([0]), last([1, 1 / 3, -1 / 3, 1, 0])
    (1.0, 2.218519)
    """
    log = np.empty(bets.shape)
    logs = np.tile(np.log(WEIGHTS), (bets.shape[1], 1))
    room = np.empty((_FACTORS, *logs.shape))
    for first in range(0, len(bets), _FACTORS):
        some = slice(first, first + _FACTORS)
        products = np.multiply(bets[some, :, None], NODES, out=room[: len(bets[some])])
        products += 1
        for step in range(1, len(products)):
            products[step] *= products[step - 1]
        top = logs.max(axis=1)
        shares = np.exp(logs - top[:, None])
        # Not a product of matrices: how that rounds depends on the number of sequences.
        log[some] = np.log(np.einsum("bnl,nl->bn", products, shares)) + top
        logs += np.log(products[-1])
    return log


def parts(sequences: int) -> Iterator[slice]:
    """Divide so many sequences into parts that `log_wealth` is fast on."""
    return (slice(at, at + _SEQUENCES) for at in range(0, sequences, _SEQUENCES))


def best_growth(bets: FloatArray) -> FloatArray:
    """Return ``max over l in (0, 1) of sum log(1 + l b)`` of every sequence, shape (n,).

    Examples
    --------
    >>> best_growth(np.array([[1.0, -1.0], [1.0, 0.5], [-0.5, 0.0]])).round(6).tolist()
    [0.693147, 0.0]
    """
    values, codes = np.unique(bets, return_inverse=True)
    columns = np.arange(bets.shape[1])
    cells = np.bincount(
        (codes.reshape(bets.shape) * len(columns) + columns).ravel(),
        minlength=len(values) * len(columns),
    )
    counts = cells.reshape(len(values), len(columns))
    low, high = np.zeros(len(columns)), np.ones(len(columns))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = (counts * (values[:, None] / (1 + middle * values[:, None]))).sum(axis=0)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return np.asarray((counts * np.log1p(low * values[:, None])).sum(axis=0))


def thresholds(is_baseline: BoolArray) -> FloatArray:
    """Return the evidence that the judge of a row needs to be called better, shape (J, J).

    With k judges that are no baselines, and b that are: k (k - 1) / 0.05 among judges, k b / 0.05
    against a baseline, and infinite for baselines, of which nothing is said.

    Examples
    --------
    >>> thresholds(np.array([False, False, True])).tolist()
    [[inf, 40.0, 40.0], [40.0, inf, 40.0], [inf, inf, inf]]
    """
    baselines = int(is_baseline.sum())
    judges = len(is_baseline) - baselines
    needed = np.where(is_baseline, judges * baselines, judges * (judges - 1)) / SIGNIFICANCE
    matrix = np.where(is_baseline[:, None], np.inf, needed)
    np.fill_diagonal(matrix, np.inf)
    return matrix


def beats(reached: BoolArray, agreement: FloatArray) -> BoolArray:
    """Tell which judge of a row is said to beat which of a column, shape (J, J).

    It needs enough evidence, not the reverse as well, and more overall `agreement`, shape (J,).

    Examples
    --------
    >>> reached = np.array([[False, True], [False, False]])
    >>> beats(reached, np.array([0.8, 0.7])).tolist(), beats(reached, np.array([0.7, 0.8])).any()
    ([[False, True], [False, False]], np.False_)
    """
    return np.asarray(reached & ~reached.T & (agreement[:, None] > agreement[None, :]))


def rank_range(beats: BoolArray) -> list[tuple[int, int]]:
    """Return the best and the worst rank of each of k judges, without baselines.

    Examples
    --------
    >>> rank_range(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool))
    [(1, 2), (1, 3), (2, 3)]
    """
    better, worse = beats.sum(axis=0).tolist(), beats.sum(axis=1).tolist()
    return [(1 + up, len(beats) - down) for up, down in zip(better, worse, strict=True)]


def forecast(log_threshold: float, log_largest: float, growth: float) -> int | None:
    """Return how many more votes it takes if the difference stays what it looks like.

    Rounded up to two figures; 0 if it is enough, None if more votes will not settle it.

    Examples
    --------
    >>> forecast(np.log(120), np.log(1.6684736021758608), 0.002207695917831303)
    2000
    >>> forecast(4.0, 4.0, 0.0), forecast(4.0, 1.0, 0.0), forecast(4.0, 3.0, 0.13)
    (0, None, 8)
    """
    if log_largest >= log_threshold:
        return 0
    if growth <= 0:
        return None
    votes = (log_threshold - log_largest) / growth
    unit: int = 10 ** max(0, floor(log10(votes)) - 1)
    return ceil(votes / unit) * unit


def too_few_prompts(prompts: int, threshold: float) -> bool:
    """Tell that even one judge right on all P prompts could not reach it: (2^(P+1) - 1) / (P + 1).

    Examples
    --------
    >>> too_few_prompts(7, 40), too_few_prompts(8, 40)
    (True, False)
    """
    return bool(2 ** (prompts + 1) - 1 < threshold * (prompts + 1))
