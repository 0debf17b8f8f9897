"""How often people prefer or pass outputs, of votes on some items and a judge's verdicts on all.

A judge errs, so the mean of its verdicts is no figure of people's. Where both are there, the votes
tell by how much it errs; that is taken out of the mean of its verdicts where nobody voted. Items
with votes must be like the others, as those are of which prompts are voted on in a keyed order.

Grades are 1 (won, passed), 0, and 1/2 for a tie. A pair of which people say that both are bad has a
vote and no grade: the rate is that among the other pairs, a ratio. A judge that was asked and gave
no verdict is taken to say 1/2, whether there is a vote or not: left out, outputs on which it fails
would be missing. Standard errors are sums over prompts, since items of one resemble each other.
"""

from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from judge_eval.stats.bootstrap import BoolArray, FloatArray, IntArray
from judge_eval.stats.estimate import (
    FEWEST_FOR_SAVING,
    FEWEST_PROMPTS,
    Corrected,
    Estimate,
    Share,
    no_figure,
)
from judge_eval.stats.judge_figures import TOO_FEW_PROMPTS, share_of_prompts

# Items on which people and the judge differ, and such on which people say what they say less often.
# Of fewer the variance is no guide: where people say the same of all it would be 0.
FEWEST_ITEMS: Final = 5
TOO_FEW_LABELS: Final = (
    f"too few labels to correct: it takes votes on {FEWEST_PROMPTS} prompts, {FEWEST_ITEMS} items "
    f"on which people and the judge differ, and {FEWEST_ITEMS} on which people say what they say "
    "less often"
)
NOTHING_LEFT: Final = "nothing is left to correct: people voted wherever the judge has a verdict"
UNSELECTIVE: Final = "the judge tells passed from flagged outputs hardly better than by chance"
NO_BOTH: Final = "nothing has both a vote and a verdict"
LEAST_ANSWERED: Final = 0.95
FEW_ANSWERS: Final = (
    "the judge answered fewer than 95 %: its error rates tell nothing of the others"
)
FOLDS: Final = 5
# Of a judge's sensitivity and specificity together, less 1: dividing by less would blow up.
LEAST_SELECTIVE: Final = 0.2


class Mean(NamedTuple):
    value: float
    error: float


class Grades(NamedTuple):
    """Of items with votes: grades by people and by the judge, and numbers of their prompts.

    People's are NaN where they say that both are bad. The others are items without votes, two or
    more, about which the judge was asked too.
    """

    people: FloatArray
    judge: FloatArray
    prompts: IntArray
    others: FloatArray
    others_prompts: IntArray


def ppi(grades: Grades, weights: FloatArray | float) -> Mean:
    """Return people's mean grade by prediction-powered inference, with its standard error.

    With weights of 0 it is the mean of the votes alone.

    Notes
    -----
    With L the n items with votes, U the N others, a weight l, and t = 0 where both are bad, else 1
    (after A. N. Angelopoulos, J. C. Duchi and T. Zrnic, 2023; theirs is that of t = 1)::

        theta0 = sum t y / sum t,  z = t (y - theta0)
        theta = theta0 + l (mean(f_U) - mean(f_L)) / mean(t)
        se ** 2 = (var(z - l f) / n + l ** 2 var(f_U) / N) / mean(t) ** 2

    Items of one prompt enter the variance as their sum. Weights may differ from item to item, as
    `crossfitted_weights` do; then l before f_U is their mean.

    Examples
    --------
    >>> people, judge = np.array([1, 1, 0, 1, 0]), np.array([1, 1, 1, 1, 0])
    >>> others = np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0])
    >>> result = ppi(Grades(people, judge, np.arange(5), others, np.arange(5, 15)), 1.0)
    >>> round(result.value, 6), round(result.error, 6)
    (0.5, 0.251661)
    """
    people, judge, prompts, others, others_prompts = grades
    weights = np.broadcast_to(weights, judge.shape)
    values = _apart(people) + weights * (others.mean() - judge)
    size, decided = int(max(prompts.max(), others_prompts.max())) + 1, np.mean(~np.isnan(people))
    moves = _moves(values, prompts, size) + weights.mean() * _moves(others, others_prompts, size)
    value = np.nanmean(people) + values.mean() / decided
    return Mean(float(value), float(np.sqrt((moves**2).sum()) / decided))


def _apart(people: FloatArray) -> FloatArray:
    """Return how far each grade is from their mean; 0 where there is none."""
    return np.nan_to_num(people - np.nanmean(people))


def mean_by_prompt(values: FloatArray, prompts: IntArray) -> Mean:
    moves = _moves(values, prompts, int(prompts.max()) + 1)
    return Mean(float(values.mean()), float(np.sqrt((moves**2).sum())))


def _moves(values: FloatArray, prompts: IntArray, size: int) -> FloatArray:
    """Return how far each prompt moves the mean: their squares add up to its variance."""
    moves = np.bincount(prompts, values - values.mean(), size) / len(values)
    groups = np.count_nonzero(np.bincount(prompts))
    return moves * sqrt(groups / (groups - 1)) if groups > 1 else moves


def tuned_weight(
    people: FloatArray, judge: FloatArray, others: FloatArray, ratio: float | None = None
) -> float:
    """Return how much of the judge to use so that the variance is least, between 0 and 1.

    ``cov(y, f) / ((1 + n / N) var(f))``, the variance over all that the judge graded; `ratio` is
    n / N where the weight is for more items than it is tuned on.

    Examples
    --------
    >>> people, judge = np.array([1, 1, 0, 1, 0]), np.array([1, 1, 1, 1, 0])
    >>> round(tuned_weight(people, judge, np.array([1, 1, 0, 1, 1, 0, 1, 1, 1, 0])), 6)
    0.477273
    """
    if np.count_nonzero(~np.isnan(people)) < 2:
        return 0.0
    ratio = len(people) / len(others) if ratio is None else ratio
    together = _apart(people) @ (judge - judge.mean()) / (len(people) - 1)
    spread = (1 + ratio) * np.var(np.concatenate([judge, others]), ddof=1)
    return float(np.clip(together / spread, 0, 1)) if spread > 0 else 0.0


def crossfitted_weights(grades: Grades) -> FloatArray:
    """Return a weight for each item with votes, tuned on the four fifths of prompts without it.

    Tuned on the same items, the weight would make the error look smaller than it is.
    """
    people, judge, prompts, others, _ = grades
    folds = np.unique(prompts, return_inverse=True)[1] % FOLDS
    weights, ratio = np.zeros(len(people)), len(people) / len(others)
    for fold in range(FOLDS):
        in_fold = folds == fold
        weights[in_fold] = tuned_weight(people[~in_fold], judge[~in_fold], others, ratio)
    return weights


def rogan_gladen(grades: Grades) -> Mean | None:
    """Return the pass rate by how well the judge finds passes and flags; None where it does not.

    Items on which people are divided say nothing of either.

    Notes
    -----
    With p the judge's pass rate on n items without votes, its specificity q0 on m0 flagged items
    and its sensitivity q1 on m1 passed ones (W. J. Rogan and B. Gladen, 1978)::

        theta = (p + q0 - 1) / (q0 + q1 - 1)
        var = [p (1 - p) / n + (1 - theta) ** 2 q0 (1 - q0) / m0 + theta ** 2 q1 (1 - q1) / m1]
              / (q0 + q1 - 1) ** 2

    Items of one prompt enter it as their sum.

    Examples
    --------
    >>> people, judge = np.repeat([0, 1], [60, 140]), np.repeat([0, 1, 1, 0], [48, 12, 126, 14])
    >>> others = np.repeat([1, 0], [700, 300])
    >>> result = rogan_gladen(Grades(people, judge, np.arange(200), others, np.arange(200, 1200)))
    >>> round(result.value, 7), round(result.error, 7)
    (0.7142857, 0.0392708)
    """
    people, judge, prompts, others, others_prompts = grades
    flagged, passed = people == 0, people == 1
    if not flagged.any() or not passed.any():
        return None
    specificity, sensitivity = 1 - judge[flagged].mean(), judge[passed].mean()
    selective = specificity + sensitivity - 1
    if selective < LEAST_SELECTIVE:
        return None
    theta = (others.mean() + specificity - 1) / selective
    # By how much each item moves theta.
    of_people = np.zeros(len(people))
    of_people[flagged] = (1 - theta) * (1 - judge[flagged] - specificity) / flagged.sum()
    of_people[passed] = -theta * (judge[passed] - sensitivity) / passed.sum()
    of_others = (others - others.mean()) / len(others)
    moves = np.bincount(
        np.concatenate([prompts, others_prompts]), np.concatenate([of_people, of_others])
    )
    return Mean(float(theta), float(np.sqrt((moves**2).sum()) / selective))


def corrected(
    people: FloatArray,
    judge: FloatArray,
    prompts: IntArray,
    *,
    both_bad: BoolArray | None = None,
    is_asked: BoolArray | None = None,
    are_passes: bool = False,
) -> Corrected:
    """Set a judge's grades of some outputs beside people's, and correct them by these.

    The grades, of shape (n_items,), are NaN where nobody voted, where people say `both_bad`, or
    where the judge has no verdict; `prompts` are numbered. What the judge was not asked about, by
    `is_asked`, corrects nothing. `are_passes` asks for `rogan_gladen` too.

    Examples
    --------
    The judge passes 30 of 40 outputs that people pass and 4 of 20 that they flag, and 66 of 120
    on which nobody voted.

    >>> people = np.repeat([1.0, 0.0, np.nan], [40, 20, 120])
    >>> judge = np.repeat([1.0, 0, 1, 0, 1, 0], [30, 10, 4, 16, 66, 54])
    >>> order = np.random.default_rng(1).permutation(180)
    >>> result = corrected(people[order], judge[order], np.arange(180))
    >>> round(result.judge.value, 3), round(result.error.value, 3), result.unvoted
    (0.556, -0.1, 120)
    >>> round(result.corrected.value, 3), round(result.saving, 2)
    (0.662, 0.17)
    """
    judged = ~np.isnan(judge)
    voted = ~np.isnan(people) if both_bad is None else ~np.isnan(people) | both_bad
    is_asked = np.ones(len(judge), dtype=bool) if is_asked is None else is_asked
    unvoted, labelled = is_asked & ~voted, is_asked & voted
    number = np.unique(prompts, return_inverse=True)[1]
    apart = judge - people
    both = ~np.isnan(apart)
    error = no_figure(NO_BOTH)
    if both.any():
        mean = mean_by_prompt(apart[both], number[both])
        error = _estimate(mean, number[both], "prompts", least=-1.0)
    most_frequent = np.unique(people[both], return_counts=True)[1].max(initial=0)
    few = min(np.count_nonzero(apart[both]), both.sum() - most_frequent) < FEWEST_ITEMS
    rates, saving = None, None
    # One prompt without votes does not tell how much such prompts vary.
    if len(np.unique(number[unvoted & judged])) < 2:
        alone = share_of_grades(people, number)
        reason = alone.why or NOTHING_LEFT
        figure = Estimate(alone.value, alone.low, alone.high, alone.n, "people", reason)
    elif few or _few(number[labelled]):
        figure = no_figure(TOO_FEW_LABELS, int(labelled.sum()))
    else:
        filled = np.nan_to_num(judge, nan=0.5)
        grades = Grades(
            people[labelled], filled[labelled], number[labelled], filled[unvoted], number[unvoted]
        )
        mean = ppi(grades, crossfitted_weights(grades))
        figure = _estimate(mean, number[labelled], "ppi++")
        graded = ~np.isnan(people)
        votes = mean_by_prompt(people[graded], number[graded])
        if votes.error and len(np.unique(number[labelled])) >= FEWEST_FOR_SAVING:
            saving = 1 - (mean.error / votes.error) ** 2
        if are_passes:
            rates = _by_rates(grades, float(np.mean(judged[is_asked])))
    return Corrected(
        judge=share_of_grades(judge, number),
        error=error,
        corrected=figure,
        by_rates=rates,
        unvoted=int(unvoted.sum()),
        saving=saving,
    )


def _by_rates(grades: Grades, answered: float) -> Estimate:
    if answered < LEAST_ANSWERED:
        return no_figure(FEW_ANSWERS)
    mean = rogan_gladen(grades)
    return _estimate(mean, grades.prompts, "rogan-gladen") if mean else no_figure(UNSELECTIVE)


def _few(prompts: IntArray) -> bool:
    return len(np.unique(prompts)) < FEWEST_PROMPTS


def share_of_grades(grades: FloatArray, prompts: IntArray) -> Share:
    """Return the mean of some grades, those that are not NaN, with its interval by prompts.

    Examples
    --------
    >>> share = share_of_grades(np.array([1, 0, np.nan, 0.5] * 10), np.arange(40) // 4)
    >>> share.value, share.n
    (0.5, 30)
    """
    graded = ~np.isnan(grades)
    number = np.unique(prompts[graded], return_inverse=True)[1]
    won, items = np.bincount(number, grades[graded]), np.bincount(number)
    # Ties vary less than what is won or lost, for which Wilson's interval is.
    return share_of_prompts(won, items, items, of_ratings=bool((grades == 0.5).any()))


def _estimate(mean: Mean, prompts: IntArray, method: str, *, least: float = 0.0) -> Estimate:
    """Return a figure with its interval by t, of as many prompts with votes; kept in its range."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    value = min(1.0, max(least, mean.value))
    if _few(prompts):
        return Estimate(value, n=len(prompts), why=TOO_FEW_PROMPTS)
    reach = float(stdtrit(len(np.unique(prompts)) - 1, 0.975)) * mean.error
    low, high = max(least, mean.value - reach), min(1.0, mean.value + reach)
    return Estimate(value, min(low, 1.0), max(high, least), len(prompts), method)
