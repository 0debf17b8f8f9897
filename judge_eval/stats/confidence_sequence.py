"""Intervals that hold however often one looks: at every moment at once, with 95 %."""

from math import log
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.entering import Entered
from judge_eval.stats.estimate import SIGNIFICANCE
from judge_eval.stats.evidence import NODES, WEIGHTS, log_wealth, parts, sum_of_rows

# So far apart in agreement per vote two judges may be and still do the same in practice.
MARGIN: Final = 0.10
_LOG_BOUND: Final = log(1 / SIGNIFICANCE)
_TOLERANCE: Final = 1e-6


def always_valid(right: IntArray | FloatArray, votes: IntArray, most_votes: IntArray) -> FloatArray:
    """Return the intervals of overall agreement that hold however often one looks, shape (n, 2).

    `right` of `votes`, of shape (n_prompts, n), are those of the prompts in the order in which they
    entered, and `most_votes`, of shape (n_prompts,), what a prompt might have entered with at most;
    see `Entered`. A vote may be right in part. NaN where no agreement fits all prompts, since it
    has changed on the way.

    Notes
    -----
    All m for which the largest value so far of ::

        1/2 integral prod (1 + l (c - m n) / (m n_max)) dl
        + 1/2 integral prod (1 - l (c - m n) / ((1 - m) n_max)) dl

    over l in (0, 1) stays below 20. It is convex in m after every prompt, so they are an interval.

    Examples
    --------
    >>> right, votes = np.tile([[3, 1], [2, 0]], (20, 1)), np.full((40, 2), 3)
    >>> always_valid(right, votes, np.full(40, 3)).round(3).tolist()
    [[0.718, 0.912], [0.091, 0.283]]
    """
    found = np.zeros((right.shape[1], 2))
    # Where no votes are wanted, or none of this part, a prompt enters without any.
    most = np.maximum(most_votes, 1)[:, None]
    for part in parts(right.shape[1]):
        share, gain = votes[:, part] / most, right[:, part] / most
        found[part] = np.stack([_lowest(gain, share), 1 - _lowest(share - gain, share)], axis=1)
    return np.where(found[:, :1] <= found[:, 1:], found, np.nan)


def _lowest(gain: FloatArray, share: FloatArray) -> FloatArray:
    """Return the low ends: the highest of those after every prompt, shape (n,).

    Begin with the one after the last prompt; while another prompt excludes what is found, take the
    one after the prompt that does so most.
    """
    low, taken = np.zeros(gain.shape[1]), np.full(gain.shape[1], len(gain))
    todo = np.flatnonzero(gain.any(axis=0))
    while len(todo):
        gains, shares = gain[:, todo], share[:, todo]
        low[todo] = m = _low_after(gains, shares, taken[todo])
        over = log_wealth(gains / m - shares), log_wealth((m * shares - gains) / (1 - m))
        is_left = np.cumsum(gains, axis=0) >= m * np.cumsum(shares, axis=0)
        value = np.where(is_left, np.logaddexp(*over) - log(2), -np.inf)
        taken[todo] = 1 + value.argmax(axis=0)
        todo = todo[value.max(axis=0) > _LOG_BOUND + _TOLERANCE]
    return low


def _low_after(gain: FloatArray, share: FloatArray, taken: IntArray) -> FloatArray:
    """Return the low ends after so many prompts have been taken, shape (n,)."""
    from scipy.optimize.elementwise import find_root  # type: ignore[import-untyped]  # slow

    columns = np.arange(gain.shape[1])
    kinds, codes = np.unique(gain + 1j * share, return_inverse=True)
    is_taken = np.arange(len(gain))[:, None] < taken
    cells = (codes.reshape(gain.shape) * len(columns) + columns)[is_taken]
    counts = np.bincount(cells, minlength=len(kinds) * len(columns))
    counts = counts.reshape(len(kinds), len(columns))
    gains, shares = kinds.real[:, None], kinds.imag[:, None]

    def above_bound(log_m: FloatArray, column: FloatArray) -> FloatArray:
        m = np.exp(log_m)
        bets = np.stack([gains / m - shares, (m * shares - gains) / (1 - m)])
        times = counts[:, column.astype(np.intp), None]
        logs = (times * np.log1p(bets[..., None] * NODES)).sum(axis=1)
        mixtures = np.logaddexp.reduce(logs + np.log(WEIGHTS / 2), axis=2)
        return np.asarray(np.logaddexp(*mixtures) - _LOG_BOUND)

    gained, shared = (sum_of_rows(of * is_taken) for of in (gain, share))
    bracket = np.full(len(columns), log(1e-300)), np.log(np.minimum(gained / shared, 1 - 1e-9))
    return np.asarray(np.exp(find_root(above_bound, bracket, args=(columns * 1.0,)).x))


def practically_same(entered: Entered, is_baseline: BoolArray, margin: float = MARGIN) -> BoolArray:
    """Tell which judges differ by less than a margin in agreement per vote, shape (J, J).

    Two bets have each reached (pairs of judges) / 0.05, so that all that is claimed holds at once:
    with c and n the votes of a prompt that entered, against "X is better by the margin or more"
    ``(margin n - (c_X - c_Y)) / ((1 + margin) n_max)``, and its mirror. Of no baselines.

    Examples
    --------
    >>> from judge_eval.stats.entering import Opened, Voted, enter
    >>> opened = [Opened(n, n, n, 1, [n % 40 > 0, n % 40 > 1, n % 40 > 1]) for n in range(800)]
    >>> entered = enter([*opened, *(Voted(800 + n, n, 1) for n in range(800))], range(800))
    >>> practically_same(entered, np.array([False, False, True])).tolist()
    [[False, True, False], [True, False, False], [False, False, False]]
    """
    same = np.zeros((entered.n_judges, entered.n_judges), dtype=bool)
    one, other = np.triu_indices(entered.n_judges, 1)
    tested = np.flatnonzero(~is_baseline[one] & ~is_baseline[other])
    log_needed = log(max(1, len(tested)) / SIGNIFICANCE)
    most = np.maximum(entered.most_votes, 1)[:, None]
    for part in parts(len(tested)):
        at = tested[part]
        apart = np.nan_to_num(entered.differences[:, at])
        allowed = margin * entered.shared[:, at] / most
        bets = np.stack([allowed - apart, allowed + apart]) / (1 + margin)
        # The logarithm of what a bet has won is at most the sum of the bets.
        may_be = (np.cumsum(bets, axis=1).max(axis=1, initial=0) >= log_needed).all(axis=0)
        won = [log_wealth(each[:, may_be]).max(axis=0, initial=0) for each in bets]
        is_same = np.minimum(*won) >= log_needed
        same[one[at[may_be]], other[at[may_be]]] = is_same
    return same | same.T
