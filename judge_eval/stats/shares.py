"""Shares of a board with their intervals: agreement, coverage, position, consistency.

Wilson's interval where every comparison has one trial; otherwise the bootstrap over comparisons,
because trials on one comparison are not independent. Where every comparison says the same, so do
all resamples, and each comparison counts as one trial of Wilson's interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Final

import numpy as np

from judge_eval.stats.bootstrap import (
    MIN_COMPARISONS,
    RESAMPLES,
    TOO_FEW,
    FloatArray,
    IntArray,
    bounds,
    resampled_sums,
)
from judge_eval.stats.estimate import Share, wilson
from judge_eval.stats.outcomes_table import NOT_ASKED, Codes, OutcomesTable

NOTHING: Final = Share(None, None, None, 0, 0, 0, why="there is nothing to count")
FEWEST_PROMPTS: Final = 10
TOO_FEW_PROMPTS: Final = f"votes on fewer than {FEWEST_PROMPTS} prompts do not tell how sure it is"
TOO_FEW_PAIRS: Final = f"votes on fewer than {FEWEST_PROMPTS} pairs do not tell how sure it is"


def shares(
    successes: IntArray | FloatArray,
    trials: IntArray,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> list[Share]:
    """Make shares of counts by comparison.

    Parameters
    ----------
    successes, trials : int array, shape (n_comparisons, n_shares)
        A trial may succeed in part; then the successes are no whole numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> [one] = shares(np.array([[1], [0], [1]]), np.ones((3, 1), dtype=int), rng)
    >>> one.method, round(one.value, 3), round(one.low, 3), round(one.high, 3)
    ('wilson', 0.667, 0.208, 0.939)
    """
    if ((successes < 0) | (successes > trials)).any():
        raise ValueError("there are more successes than trials, or fewer than none")
    several = (trials > 1).any(axis=0)
    resampled = np.full((resamples, trials.shape[1]), np.nan)
    if several.any():
        both = np.hstack([successes[:, several], trials[:, several]])
        both, multiplicity = np.unique(both[both.any(axis=1)], axis=0, return_counts=True)
        sums = resampled_sums(lambda part: both[part], multiplicity, rng, resamples)
        resampled[:, several] = ratio(*np.hsplit(sums, 2))
    return shares_of(successes, trials, resampled)


def ratio(successes: FloatArray, trials: FloatArray) -> FloatArray:
    """Divide; NaN where there were no trials."""
    nothing = np.full(np.shape(trials), np.nan)
    return np.asarray(np.divide(successes, trials, out=nothing, where=trials > 0))


def shares_of(
    successes: IntArray | FloatArray, trials: IntArray, resampled: FloatArray
) -> list[Share]:
    """Make shares whose bootstrap, of shape (resamples, n_shares), was done elsewhere."""
    counts = np.count_nonzero(trials, axis=0)
    totals = np.stack([successes.sum(axis=0), trials.sum(axis=0), counts], axis=1)
    found = []
    for (right, total, comparisons), low, high in zip(
        totals.tolist(), *bounds(resampled, counts), strict=True
    ):
        if not total:
            found.append(NOTHING)
            continue
        value, several = right / total, total > comparisons
        of = round(right), int(total), int(comparisons)
        if several and comparisons < MIN_COMPARISONS:
            found.append(Share(value, None, None, *of, why=TOO_FEW))
        elif several and high > low:
            found.append(Share(value, float(low), float(high), *of, "bootstrap"))
        else:
            ends = wilson(value * comparisons if several else right, comparisons) or (None, None)
            found.append(Share(value, ends[0], ends[1], *of, "wilson"))
    return found


def overall_agreement(table: OutcomesTable, prompts: IntArray) -> list[Share]:
    """Return the overall agreement of every judge with its 95 % interval.

    Wilson's interval where every pair has one vote and its own prompt; otherwise by prompts
    (`prompt_interval`). None below 10 of these.

    Parameters
    ----------
    prompts : int array, shape (n_comparisons,)
        Which prompt each comparison is of. Pairs of a prompt share outputs, and votes on a pair
        resemble each other, so prompts are what may be taken as independent.

    Examples
    --------
    A verdict that failed is on the side of the votes it did not agree with.

    >>> votes = np.array([[1, 0, 0, 0]] * 8 + [[0, 1, 0, 0]] * 4)
    >>> table = OutcomesTable(votes, np.tile(np.int8([0, -1]), (12, 1)))
    >>> one, other = overall_agreement(table, np.arange(12))
    >>> round(one.value, 3), round(one.low, 3), round(one.high, 3), one.method
    (0.667, 0.391, 0.862, 'wilson')
    >>> other.value, other.trials
    (0.0, 12)
    """
    asked = table.verdicts != NOT_ASKED
    votes = np.where(asked, table.votes.sum(axis=1, keepdims=True), 0)
    return _by_prompt(table.right(), votes, prompts)


def per_answer(votes: IntArray, answers: Codes, prompts: IntArray) -> list[Share]:
    """Return each judge's agreement per answer: every single answer in both orders counts.

    What it loses by contradicting itself is how much higher this is than its agreement.

    Parameters
    ----------
    votes : int array, shape (n_comparisons, n_choices)
    answers : int8 array, shape (n_comparisons, n_judges, 2)
        Codes of the answers in the stored and the swapped order, of the stored A and B; negative
        where the judge did not answer in both. Each vote is a trial of either answer.
    prompts : int array, shape (n_comparisons,)

    Examples
    --------
    Who always picks what stands first contradicts itself, and is right by half.

    >>> first = np.tile(np.array([0, 1], dtype=np.int8), (12, 1, 1))
    >>> [share] = per_answer(np.tile([1, 0, 0, 0], (12, 1)), first, np.arange(12))
    >>> share.value, share.trials
    (0.5, 24)
    """
    known = (answers >= 0).all(axis=2)
    codes = np.maximum(answers, 0).astype(np.intp)
    one, other = (np.take_along_axis(votes, codes[:, :, order], axis=1) for order in range(2))
    trials = 2 * known * votes.sum(axis=1, keepdims=True)
    return _by_prompt(np.where(known, one + other, 0), trials, prompts)


def _by_prompt(right: IntArray, votes: IntArray, prompts: IntArray) -> list[Share]:
    """Return shares of counts of shape (n_comparisons, n_judges)."""
    number = np.unique(prompts, return_inverse=True)[1]
    sums = np.zeros((3, int(number.max(initial=-1)) + 1, right.shape[1]))
    for total, values in zip(sums, (right, votes, votes > 0), strict=True):
        np.add.at(total, number, values)
    return [_share_by_prompt(*sums[:, sums[1, :, n] > 0, n]) for n in range(right.shape[1])]


def _share_by_prompt(right: FloatArray, votes: FloatArray, pairs: FloatArray) -> Share:
    """Return one judge's share of its sums by prompt, each of shape (n_prompts,)."""
    good, total, comparisons = int(right.sum()), int(votes.sum()), int(pairs.sum())
    if not total:
        return NOTHING
    value, prompts = good / total, len(votes)
    is_plain = total == comparisons == prompts
    if prompts < FEWEST_PROMPTS:
        why = TOO_FEW_PAIRS if is_plain else TOO_FEW_PROMPTS
        return Share(value, None, None, good, total, comparisons, why=why)
    if is_plain or good in (0, total):
        low, high = wilson(value * prompts, prompts) or (None, None)
        return Share(value, low, high, good, total, comparisons, "wilson")
    return Share(value, *prompt_interval(right, votes), good, total, comparisons, "prompts")


def prompt_interval(
    right: Sequence[int] | FloatArray, votes: Sequence[int] | FloatArray
) -> tuple[float, float]:
    """Return the 95 % interval of a share whose trials come in prompts.

    With ``c_i`` right of ``n_i`` votes on prompt i of P, which are at least two, and neither all
    right nor all wrong::

        theta = sum c / sum n,   e_i = c_i - theta n_i
        se = sqrt(P / (P - 1) sum e_i ** 2) / sum n
        logit(theta) -+ t(.975, P - 1) se / (theta (1 - theta))

    Examples
    --------
    >>> low, high = prompt_interval([3, 2, 1, 3, 0, 2, 3, 1, 2, 3], [3] * 10)
    >>> round(low, 6), round(high, 6)
    (0.392234, 0.861072)
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    theta = float(np.sum(right) / np.sum(votes))
    reach = stdtrit(len(votes) - 1, 0.975) * standard_error(right, votes) / (theta * (1 - theta))
    middle = log(theta / (1 - theta))
    low, high = 1 / (1 + np.exp(-(middle + np.array([-reach, reach]))))
    return float(low), float(high)


def standard_error(right: Sequence[int] | FloatArray, votes: Sequence[int] | FloatArray) -> float:
    """Return the standard error of a share whose trials come in prompts; see `prompt_interval`."""
    good, n = np.asarray(right, np.float64), np.asarray(votes, np.float64)
    apart = good - good.sum() / n.sum() * n
    prompts = len(n)
    return sqrt(prompts / (prompts - 1) * float((apart**2).sum())) / float(n.sum())
