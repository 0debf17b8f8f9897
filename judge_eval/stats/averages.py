"""A figure for each person, and the plain mean of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judge_eval.stats.bootstrap import Bootstrapped, Resampling, interval_of, resampled_rates
from judge_eval.stats.estimate import Figure, LeftOut, left_out, no_figure, wilson
from judge_eval.stats.labels import FloatArray, IntArray
from judge_eval.stats.pairs import Paired

NOTHING_IN_COMMON = "no item has a label both of the judge and of a person"
NOBODY_IN_COMMON = "no item has labels of two people"
WILSON = "Wilson score interval"


@dataclass(frozen=True)
class Averaged:
    """The plain mean over people, and the figure of each of them."""

    figure: Figure
    by_human: Mapping[str, Figure]


def averaged(
    pairs: Paired,
    values: FloatArray,
    resampled: FloatArray,
    resampling: Resampling,
    why_not: Callable[[int], str],
    *,
    intervals: Sequence[Bootstrapped] | None = None,
    of_mean: Bootstrapped | None = None,
) -> Averaged:
    """Put together the figure of each person and their mean.

    Parameters
    ----------
    values : float array, shape (n_raters,)
        NaN where there is no figure.
    resampled : float array, shape (n_raters, resamples)
    why_not : function
        From a rater without a figure to the reason. Such a rater is left out of the mean.
    intervals, of_mean : optional
        Each rater's interval and the mean's, where they are not those of the resamples.
    """
    if intervals is None:
        sizes = zip(resampled, pairs.n_by_rater, strict=True)
        intervals = [interval_of(row, int(n), resampling) for row, n in sizes]
    if of_mean is None:
        of_mean = interval_of(mean_over_raters(resampled), pairs.items, resampling)
    by_human = {
        name: Figure(float(value), int(n), interval=found.interval, method=found.method)
        if np.isfinite(value)
        else no_figure(why_not(rater), int(n))
        for rater, (name, value, n, found) in enumerate(
            zip(pairs.raters, values, pairs.n_by_rater, intervals, strict=True)
        )
    }
    gaps = (*pairs.left_out, *_without(by_human))
    known = [figure for figure in by_human.values() if figure.value is not None]
    n = sum(figure.n for figure in known)
    if not known:
        return Averaged(no_figure(_why_none(pairs, by_human), left_out=gaps), by_human)
    mean = float(np.mean([figure.value for figure in known]))
    return Averaged(
        Figure(mean, n, interval=of_mean.interval, method=of_mean.method, left_out=gaps), by_human
    )


def mean_by_rater(
    pairs: Paired,
    values: FloatArray,
    resampling: Resampling,
    *,
    is_rate: bool = False,
    why_not: Callable[[int], str] = lambda _: NOTHING_IN_COMMON,
) -> Averaged:
    """Average a value of each pair of labels: per person, then over people.

    Parameters
    ----------
    values : float array, shape (n_pairs,)
    is_rate : bool
        Whether the values are 0 and 1. Then one person's interval is Wilson's, and so is the
        mean's where there is one person only; several people's labels on one item are not
        independent, so their mean is resampled by item.
    """
    sums = np.bincount(pairs.rater, values, len(pairs.raters))
    with np.errstate(invalid="ignore"):
        means = sums / pairs.n_by_rater
    resampled = np.empty((len(sums), 0))
    if len(pairs) and not (is_rate and len(sums) == 1):
        pick = pairs.patterns.pair
        row, kept = pairs.rater[pick], values[pick]
        resampled = resampled_rates(pairs.patterns, row, kept, len(sums), resampling)
    if not is_rate:
        return averaged(pairs, means, resampled, resampling, why_not)
    intervals = wilson_intervals(sums, pairs.n_by_rater)
    of_mean = interval_of(mean_over_raters(resampled), pairs.items, resampling)
    if len(sums) == 1:
        [of_mean] = intervals
    elif of_mean.interval is None and len(pairs):
        of_mean = _wilson_of_mean(pairs, means)
    return averaged(
        pairs, means, resampled, resampling, why_not, intervals=intervals, of_mean=of_mean
    )


def _wilson_of_mean(pairs: Paired, means: FloatArray) -> Bootstrapped:
    """Return Wilson's interval of a mean over people that is the same in every resample.

    It counts as that of so many items as would make it as sure: all of them, or fewer where some
    people labelled few, since each person weighs the same in the mean.
    """
    of_each = pairs.n_by_rater[pairs.n_by_rater > 0]
    items = min(pairs.items, int(len(of_each) ** 2 / (1 / of_each).sum()))
    share = float(np.nanmean(means))
    return Bootstrapped(wilson(share * items, items), f"{WILSON} of {items:,} items, all alike")


def wilson_intervals(successes: FloatArray | IntArray, trials: IntArray) -> list[Bootstrapped]:
    """Return the Wilson interval of each rater's rate."""
    return [
        Bootstrapped(wilson(round(float(good)), int(n)), WILSON)
        for good, n in zip(successes, trials, strict=True)
    ]


def mean_over_raters(values: FloatArray) -> FloatArray:
    """Average over raters, of shape (n_raters, n), those left out that have no value.

    Examples
    --------
    >>> mean_over_raters(np.array([[1.0, np.nan], [0.0, np.nan]]))
    array([0.5, nan])
    """
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        mean: FloatArray = np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean


def _without(by_human: Mapping[str, Figure]) -> tuple[LeftOut, ...]:
    names = defaultdict(list)
    for name, figure in by_human.items():
        if figure.reason is not None:
            names[figure.reason].append(name)
    return tuple(gap for why, who in names.items() for gap in left_out("humans", who, why))


def _why_none(pairs: Paired, by_human: Mapping[str, Figure]) -> str:
    if not by_human:
        return NOBODY_IN_COMMON if pairs.between_people else NOTHING_IN_COMMON
    reasons = sorted({figure.reason for figure in by_human.values() if figure.reason})
    return reasons[0] if len(reasons) == 1 else "no person's labels allow it: see each of them"


def agreement(pairs: Paired, *, resampling: Resampling | None = None) -> Figure:
    """Return the share of pairs of labels that are the same.

    Every pair counts once, whoever it is by; `classification` instead averages over people.

    Parameters
    ----------
    pairs : Paired
        Of a judge with people, or of people with each other.
    resampling : Resampling, optional
        Of items, where some item has several pairs: those are not independent. Else the interval
        is Wilson's.

    Examples
    --------
    >>> from judge_eval.stats import paired
    >>> said = {"q1": "A", "q2": "tie"}
    >>> agreement(paired(said, {"ann": said, "ben": {"q1": "B"}})).value
    0.6666666666666666
    """
    if not len(pairs):
        reason = NOBODY_IN_COMMON if pairs.between_people else NOTHING_IN_COMMON
        return no_figure(reason, left_out=pairs.left_out)
    pairs = pairs.merged
    same = pairs.left == pairs.right
    value = float(same.mean())
    if pairs.items == len(pairs):
        interval = wilson(int(same.sum()), len(same))
        return Figure(value, len(pairs), None, interval, WILSON, pairs.left_out)
    settings, patterns = resampling or Resampling(), pairs.patterns
    row = np.zeros_like(patterns.pair)
    [resampled] = resampled_rates(patterns, row, same[patterns.pair], 1, settings)
    found = interval_of(resampled, pairs.items, settings)
    return Figure(value, len(pairs), None, found.interval, found.method, pairs.left_out)
