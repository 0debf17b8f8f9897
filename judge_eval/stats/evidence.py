"""Evidence that one judge is better than another, which may be looked at at any time.

It is what a bet against "X is not better than Y" has won: if that is so its expectation is at most
1 at every moment, so that it ever reaches 1 / 0.05 in at most 5 % of runs (J. Ville, 1939; A.
Ramdas et al., 2022; I. Waudby-Smith and A. Ramdas, 2024).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log, log10
from typing import Final, NamedTuple

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import LEADS, SIGNIFICANCE
from judge_eval.stats.evidence_order import EnteredVotes
from judge_eval.stats.judge_figures import ratio

NEVER: Final = -1
# With fewer prompts there is no forecast of how many more votes it takes.
FEWEST_FOR_FORECAST: Final = 20

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)
NODES, WEIGHTS = (1 + NODES) / 2, WEIGHTS / 2
# So many factors are multiplied before logarithms are taken: too few to leave the range of floats.
_FACTORS: Final = 32
# Few enough for the caches of a processor.
_SEQUENCES: Final = 64
_HALVINGS: Final = 30
# By so many standard errors the difference may be larger, and smaller, than it looks.
_LARGER, _SMALLER = 1.645, -2.33
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, eq=False, slots=True)
class Evidence:
    """The evidence that the judge of a row is better than that of a column, shapes (J, J).

    Logarithms, for it may be beyond any float: `log_now` and `log_largest`, which is what counts.
    `log_possible` is what it comes to if the row alone is right on all prompts that have not
    entered. `since` is the entry with which it first reached its threshold, or `NEVER`, and `until`
    the vote up to which it was at least `LEADS`. `growth`, of shape (2, J, J), is what the best bet
    would gain per vote, of all `votes` on the prompts that entered, if the difference were as large
    as it may be, and as small.
    """

    log_now: FloatArray
    log_largest: FloatArray
    log_possible: FloatArray
    since: IntArray
    until: IntArray
    growth: FloatArray
    votes: int

    @property
    def reached(self) -> BoolArray:
        return np.asarray(self.since != NEVER)


def evidence(entered: EnteredVotes, thresholds: FloatArray) -> Evidence:
    """Weigh every two judges; `thresholds`, of shape (J, J), are those of the function so named.

    Examples
    --------
    >>> from judge_eval.stats.evidence_order import ItemOpened, VoteCast, enter
    >>> opened = [ItemOpened(n, n, n, 1, [0, 1]) for n in range(10)]
    >>> entered = enter([*opened, *(VoteCast(10 + n, n, 0) for n in range(10))], range(10))
    >>> proof = evidence(entered, thresholds(np.array([False, False])))
    >>> np.exp(proof.log_largest).round(1).tolist(), proof.since.tolist()
    ([[1.0, 186.1], [1.0, 1.0]], [[-1, 17], [-1, -1]])
    """
    judges = entered.n_judges
    rows, columns = np.triu_indices(judges, 1)
    most = max(entered.planned.max(initial=1), entered.most_votes.max(initial=1))
    log_rest = np.log1p(entered.rest[:, None] / most * NODES).sum(axis=0) + np.log(WEIGHTS)
    log_now, log_largest = (np.zeros((judges, judges)) for _ in range(2))
    log_possible = np.full((judges, judges), np.logaddexp.reduce(log_rest))
    growth = np.zeros((2, judges, judges))
    since, until = (np.full((judges, judges), NEVER) for _ in range(2))
    for part in parts(len(rows) if len(entered.prompts) else 0):
        differences = np.nan_to_num(entered.differences[:, part])
        # What brings no difference moves no evidence: those that do come first.
        order = np.argsort(differences == 0, axis=0, kind="stable")
        moves = np.take_along_axis(differences, order, axis=0)
        last = np.count_nonzero(moves, axis=0) - 1
        moves = moves[: last.max() + 1]
        values, times, error = _counted(entered.differences[:, part])
        for sign, *cells in ((1, rows, columns), (-1, columns, rows)) if len(moves) else ():
            cell = cells[0][part], cells[1][part]
            log_all = np.where(moves != 0, log_wealth(sign * moves), -np.inf)
            log_now[cell] = np.where(last < 0, 0, log_all[last, np.arange(len(last))])
            log_largest[cell] = log_all.max(axis=0, initial=0)
            reached = log_all >= np.log(thresholds[cell])
            first = np.take_along_axis(order, reached.argmax(axis=0)[None], axis=0)[0]
            since[cell] = np.where(reached.any(axis=0), entered.seqs[first], NEVER)
            leads = log_all >= log(LEADS)
            final = len(leads) - 1 - leads[::-1].argmax(axis=0)
            final = np.take_along_axis(order, final[None], axis=0)[0]
            until[cell] = np.where(leads.any(axis=0), entered.vote_numbers[final], NEVER)
            logs = times.T.astype(np.float64) @ np.log1p(sign * values[:, None] * NODES)
            log_possible[cell] = np.logaddexp.reduce(logs + log_rest, axis=1)
            for bound, errors in enumerate((_LARGER, _SMALLER)):
                bets = np.clip(sign * values[:, None] + errors * error, -1, 1)
                growth[(bound, *cell)] = best_growth(bets, times) / entered.all_votes
    return Evidence(
        log_now, log_largest, log_possible, since, until, growth, votes=entered.all_votes
    )


def _counted(differences: FloatArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return the values, how often each is in every column, and the standard errors of the means.

    NaN is no value.
    """
    values, codes = np.unique(differences, return_inverse=True)
    columns = np.arange(differences.shape[1])
    cells = codes.reshape(differences.shape) * len(columns) + columns
    times = np.bincount(cells.ravel(), minlength=len(values) * len(columns))
    times = times.reshape(len(values), len(columns))[~np.isnan(values)]
    values = values[~np.isnan(values)]
    prompts = times.sum(axis=0)
    mean = ratio(sum_of_rows(times * values[:, None]), prompts)
    squares = sum_of_rows(times * (values[:, None] - mean) ** 2)
    error = np.sqrt(ratio(squares, np.where(prompts > 1, (prompts - 1.0) * prompts, 0)))
    return values, times, np.nan_to_num(error)


def sum_of_rows(rows: FloatArray | IntArray) -> FloatArray:
    """Sum the rows one after the other: how `sum` rounds depends on the number of columns."""
    return np.asarray(np.cumsum(rows, axis=0)[-1]) if len(rows) else np.zeros(rows.shape[1])


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
        block = slice(first, first + _FACTORS)
        products = np.multiply(bets[block, :, None], NODES, out=room[: len(bets[block])])
        products += 1
        for step in range(1, len(products)):
            products[step] *= products[step - 1]
        top = logs.max(axis=1)
        shares = np.exp(logs - top[:, None])
        # Not a product of matrices: how that rounds depends on the number of sequences.
        log[block] = np.log(np.einsum("bnl,nl->bn", products, shares)) + top
        logs += np.log(products[-1])
    return log


def parts(sequences: int) -> Iterator[slice]:
    """Divide so many sequences into parts that `log_wealth` is fast on."""
    return (slice(start, start + _SEQUENCES) for start in range(0, sequences, _SEQUENCES))


def best_growth(bets: FloatArray, times: IntArray | int = 1) -> FloatArray:
    """Return ``max over l in (0, 1) of sum log(1 + l b)`` of every sequence, shape (n,).

    A bet, of shape (n_bets, n), is made so many times.

    Examples
    --------
    >>> best_growth(np.array([[1.0, -1.0], [1.0, 0.5], [-0.5, 0.0]])).round(6).tolist()
    [0.693147, 0.0]
    """
    low, high = np.zeros(bets.shape[1]), np.ones(bets.shape[1])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        slope = sum_of_rows(times * (bets / (1 + middle * bets)))
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    return sum_of_rows(times * np.log1p(low * bets))


def thresholds(
    is_baseline: BoolArray, floor: BoolArray | None = None, is_silent: BoolArray | None = None
) -> FloatArray:
    """Return the evidence that the judge of a row needs to be called better, shape (J, J).

    `floor` tells which baselines, in columns, a judge is held against: those that were asked as it
    was; without it all. With k judges that are no baselines, and b that one is held against:
    k (k - 1) / 0.05 among judges, k b / 0.05 between that judge and these, either way. All else is
    infinite, for nothing is claimed of it: nor of those that are silent, which count in no number.

    Examples
    --------
    >>> thresholds(np.array([False, False, True])).tolist()
    [[inf, 40.0, 40.0], [40.0, inf, 40.0], [40.0, 40.0, inf]]
    >>> floor = np.array([[False, False, True], [False, False, False], [False, False, False]])
    >>> thresholds(np.array([False, False, True]), floor).tolist()
    [[inf, 40.0, 40.0], [40.0, inf, inf], [40.0, inf, inf]]
    >>> is_silent = np.array([False, True, False])
    >>> thresholds(np.array([False, False, True]), is_silent=is_silent).tolist()
    [[inf, inf, 20.0], [inf, inf, inf], [20.0, inf, inf]]
    """
    silent = np.zeros_like(is_baseline) if is_silent is None else is_silent
    floor = whole_floor(is_baseline, silent) if floor is None else floor
    judges = int((~is_baseline & ~silent).sum())
    over_floor = np.where(floor, judges * floor.sum(axis=1)[:, None] / SIGNIFICANCE, np.inf)
    among_judges = ~((is_baseline | silent)[:, None] | (is_baseline | silent))
    needed = np.where(
        among_judges, judges * (judges - 1) / SIGNIFICANCE, np.minimum(over_floor, over_floor.T)
    )
    np.fill_diagonal(needed, np.inf)
    return needed


def whole_floor(is_baseline: BoolArray, is_silent: BoolArray | None = None) -> BoolArray:
    """Return the floor of judges that are held against every baseline, shape (J, J).

    Those that are silent are held against none, and nobody is held against them.

    Examples
    --------
    >>> whole_floor(np.array([False, True])).tolist()
    [[False, True], [False, False]]
    >>> whole_floor(np.array([False, True]), np.array([True, False])).any()
    np.False_
    """
    speaks = np.ones_like(is_baseline) if is_silent is None else ~is_silent
    return np.asarray((~is_baseline & speaks)[:, None] & is_baseline & speaks)


def best_threshold(judges: int) -> float:
    """Return the evidence over every other of k judges that the best one needs: k / 0.05.

    To call X the best is false only if some judge is no worse than X, and for each X one such judge
    is enough: k hypotheses, a family of its own.

    Examples
    --------
    >>> best_threshold(3)
    60.0
    """
    return judges / SIGNIFICANCE


def beats(reached: BoolArray, log_now: FloatArray, agreement: FloatArray) -> BoolArray:
    """Tell which judge of a row beats which of a column, shape (J, J).

    The evidence was enough once and is at least `LEADS` now, not the reverse as well, and the
    judge has more overall `agreement`, shape (J,).

    Examples
    --------
    >>> reached, now = np.array([[False, True], [False, False]]), np.log([[1, 3], [1, 1]])
    >>> beats(reached, now, np.array([0.8, 0.7])).tolist()
    [[False, True], [False, False]]
    >>> beats(reached, now, np.array([0.7, 0.8])).any()
    np.False_
    >>> beats(reached, now - 0.1, np.array([0.8, 0.7])).any()
    np.False_
    """
    is_lasting = log_now >= log(LEADS) - _ROUNDING
    above = agreement[:, None] > agreement[None, :]
    return np.asarray(reached & ~reached.T & is_lasting & above)


def best_judge(
    ahead: BoolArray,
    beats: BoolArray,
    is_baseline: BoolArray,
    floor: BoolArray | None = None,
    is_silent: BoolArray | None = None,
) -> int | None:
    """Return the place of the best judge: ahead of every other judge, and beating every baseline.

    `ahead` is `beats` by the threshold of the best judge, `floor` and `is_silent` those of
    `thresholds`. Where there are baselines, but none that was asked as the judge was, it is not
    shown to beat them. A run with one judge has no best; those that are silent are none.

    Examples
    --------
    >>> ahead = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)
    >>> over_floor = np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool)
    >>> is_baseline = np.array([False, False, True])
    >>> best_judge(ahead, over_floor, is_baseline), best_judge(ahead, ~over_floor, is_baseline)
    (0, None)
    """
    speaks = np.ones_like(is_baseline) if is_silent is None else ~is_silent
    floor = whole_floor(is_baseline, is_silent) if floor is None else floor
    judges, baselines = np.flatnonzero(~is_baseline & speaks), is_baseline & speaks
    is_above = (beats | ~floor).all(axis=1) & (floor.any(axis=1) | ~baselines.any())
    is_best = (ahead[:, judges].sum(axis=1) == len(judges) - 1) & is_above
    return next((n for n in judges.tolist() if is_best[n] and len(judges) > 1), None)


def rank_range(beats: BoolArray, best: int | None = None) -> list[tuple[int, int]]:
    """Return the best and the worst rank of each of k judges, without baselines.

    The best judge has the first rank, and nobody else.

    Examples
    --------
    >>> rank_range(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool))
    [(1, 2), (1, 3), (2, 3)]
    >>> rank_range(np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]], dtype=bool), best=0)
    [(1, 1), (2, 3), (2, 3)]
    """
    beats = beats.copy()
    if best is not None:
        beats[best] = np.arange(len(beats)) != best
    better, worse = beats.sum(axis=0).tolist(), beats.sum(axis=1).tolist()
    return [(1 + up, len(beats) - down) for up, down in zip(better, worse, strict=True)]


class Forecast(NamedTuple):
    """From how many to how many more votes it takes; an open end is None."""

    low: int
    high: int | None


def forecast(log_missing: float, fast: float, slow: float) -> Forecast | None:
    """Return how many more votes it takes to reach a threshold, by two growths per vote.

    `log_missing` is the logarithm of the threshold less that of the largest evidence. Both ends
    have two figures; 0 if the evidence is enough, None if more votes will not settle it.

    Examples
    --------
    >>> forecast(np.log(120 / 8.970093823272881), 0.022546, 0.0), forecast(2.0, 0.0, 0.0)
    (Forecast(low=120, high=None), None)
    >>> forecast(-1.0, 0.1, 0.0), forecast(1.47, 0.19, 0.0071)
    (Forecast(low=0, high=0), Forecast(low=8, high=210))
    """
    if log_missing <= 0:
        return Forecast(0, 0)
    if fast <= 0:
        return None
    return Forecast(
        two_figures(log_missing / fast), two_figures(log_missing / slow) if slow > 0 else None
    )


def two_figures(votes: float) -> int:
    unit: int = 10 ** max(0, floor(log10(votes)) - 1)
    return max(1, round(votes / unit) * unit)


def too_few_prompts(votes: IntArray, threshold: float, most: float = 1.0) -> bool:
    """Tell that a judge right on all `votes` of P prompts, and the other on none, cannot reach it.

    `most` is the largest D that a prompt can bring: 1/2 against a constant share of 1/2. With equal
    prompts the evidence is (2^(P+1) - 1) / (P + 1).

    Examples
    --------
    >>> too_few_prompts(np.full(7, 3), 40), too_few_prompts(np.full(8, 3), 40)
    (True, False)
    >>> too_few_prompts(np.array([5, *[1] * 20]), 40), too_few_prompts(np.full(8, 3), 40, most=0.5)
    (True, True)
    """
    bets = most * votes[votes > 0] / votes.max(initial=1)
    log_most = log_wealth(bets[:, None])[-1, 0] if len(bets) else 0.0
    return bool(log_most < log(threshold) - _ROUNDING)
