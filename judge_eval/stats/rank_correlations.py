"""Do a judge's grades rise and fall with people's: Spearman's and Kendall's rank correlations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.averages import Averaged, averaged
from judge_eval.stats.bootstrap import Bootstrapped, Resampling, weights
from judge_eval.stats.labels import FloatArray, HumanData, IntArray, JudgeData, Label, grades
from judge_eval.stats.pairs import Paired, paired

Coefficient: TypeAlias = Literal["spearman", "kendall"]
COEFFICIENTS: Final[tuple[Coefficient, ...]] = get_args(Coefficient)
FEWEST: Final = 3
# Kendall's tau compares every two different pairs of grades, in every resample.
_MOST_PAIRS: Final = 1_500


def rank_correlation(
    judge: JudgeData,
    humans: HumanData,
    coefficient: Coefficient = "spearman",
    *,
    order: Sequence[Label] = (),
    resampling: Resampling | None = None,
) -> Averaged:
    """Correlate a judge's grades with each person's, and average over people.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    coefficient : {'spearman', 'kendall'}
        Pearson's correlation of the ranks, where equal grades share the mean of their ranks; or
        tau-b, ``(concordant - discordant) / sqrt((pairs - tied by one) (pairs - tied by other))``.
    order : sequence of Label, optional
        Of labels that are no numbers, from the lowest to the highest.
    resampling : Resampling, optional
        Of items.

    Returns
    -------
    Averaged
        No figure of a person with fewer than 3 items, or where one of the two gave one grade only.

    Raises
    ------
    LabelsUnfit
        When labels have no order.

    References
    ----------
    C. Spearman, "The proof and measurement of association between two things", 1904;
    M. G. Kendall, "The treatment of ties in ranking problems", 1945.

    Examples
    --------
    >>> judge = {"q1": 9, "q2": 7, "q3": 7, "q4": 2}
    >>> people = {"ann": {"q1": 5, "q2": 4, "q3": 3, "q4": 1}}
    >>> for coefficient in COEFFICIENTS:
    ...     print(round(rank_correlation(judge, people, coefficient).figure.value, 4))
    0.9487
    0.9129
    """
    pairs = paired(judge, humans)
    return rank_correlations(pairs, coefficient, order, resampling or Resampling())


def rank_correlations(
    pairs: Paired, coefficient: Coefficient, order: Sequence[Label], resampling: Resampling
) -> Averaged:
    """Correlate pairs of grades, per rater and on average."""
    if coefficient not in COEFFICIENTS:
        raise ValueError(f"coefficient must be one of {', '.join(COEFFICIENTS)}")
    places = places_of(grades(pairs.vocabulary, order))
    both = np.stack([places[pairs.left], places[pairs.right]])
    own = [np.flatnonzero(pairs.rater == rater) for rater in range(len(pairs.raters))]
    values = np.array([_value(both[:, pick], coefficient) for pick in own])
    resampled = _resampled(pairs, both, coefficient, resampling)
    resampled[np.isnan(values)] = np.nan
    intervals, of_mean = None, None
    if resampled.shape[1] == 0 and len(pairs):
        of_mean = Bootstrapped(None, "no interval: too many different grades to resample tau")
        intervals = [of_mean] * len(pairs.raters)
    return averaged(
        pairs,
        values,
        resampled,
        resampling,
        lambda rater: _why_not(both[:, own[rater]]),
        intervals=intervals,
        of_mean=of_mean,
    )


def _value(both: IntArray, coefficient: Coefficient) -> float:
    """Return a coefficient of grades of shape (2, n), NaN where there is none."""
    if both.shape[1] < FEWEST or any(np.ptp(row) == 0 for row in both):
        return np.nan
    if coefficient == "kendall":
        from scipy.stats import kendalltau  # type: ignore[import-untyped]  # slow to import

        return float(kendalltau(*both).statistic)
    return float(spearman(both, np.ones((both.shape[1], 1)))[0])


def _why_not(both: IntArray) -> str:
    n = both.shape[1]
    if n < FEWEST:
        return f"it takes {FEWEST} items that both graded, and there are {n}"
    return "one of the two gave every item the same grade, so there is no order to compare"


def _resampled(
    pairs: Paired, both: IntArray, coefficient: Coefficient, resampling: Resampling
) -> FloatArray:
    """Return the coefficient of every rater in every resample, shape (n_raters, resamples)."""
    patterns, raters = pairs.patterns, len(pairs.raters)
    rater, both = pairs.rater[patterns.pair], both[:, patterns.pair]
    correlate: Callable[[IntArray, FloatArray], FloatArray] = spearman
    if coefficient == "kendall":
        correlate = _kendall
        most = max(np.bincount(rater, minlength=1))
        if most > _MOST_PAIRS:
            return np.empty((raters, 0))
    if not len(pairs):
        return np.empty((raters, 0))
    own = [np.flatnonzero(rater == number) for number in range(raters)]
    blocks = weights(patterns.counts, resampling, rows=max(map(len, own)))
    return np.concatenate(
        [
            np.stack([correlate(both[:, pick], block[patterns.pattern[pick]]) for pick in own])
            for block in blocks
        ],
        axis=1,
    )


def places_of(values: FloatArray) -> IntArray:
    """Return which of the distinct values each is, the smallest being 0; noise is no difference.

    Examples
    --------
    >>> places_of(np.array([0.3, 0.1 + 0.2, 0.9])).tolist()
    [0, 0, 1]
    """
    places: IntArray = np.unique(np.round(values, 12), return_inverse=True)[1]
    return places


def spearman(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return Spearman's rank correlation of each resample.

    Parameters
    ----------
    places : int array, shape (2, n_patterns)
        See `places_of`; patterns may repeat.
    drawn : float array, shape (n_patterns, n_resamples)
        How often each pattern was drawn.

    Returns
    -------
    float array, shape (n_resamples,)
        NaN where a resample holds one value only.

    Examples
    --------
    >>> once, twice = [1.0], [2.0]
    >>> spearman(np.array([[0, 1, 2], [0, 2, 1]]), np.array([once, once, twice])).round(4)
    array([0.3333])
    """
    x, y = (_centred_ranks(row, drawn) for row in places)
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (drawn * x * y).sum(0)
        found /= np.sqrt((drawn * x**2).sum(0) * (drawn * y**2).sum(0))
    return found.clip(-1, 1)


def _centred_ranks(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return the ranks of the patterns in each resample, ties sharing theirs, less their mean."""
    distinct, place = np.unique(places, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(distinct)))
    of_value = np.add.reduceat(drawn[order], starts, axis=0)
    middle: FloatArray = np.cumsum(of_value, axis=0) - of_value / 2
    middle -= drawn.sum(axis=0) / 2
    return middle[place]


def _kendall(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return tau-b of each resample; arguments and result are those of `spearman`."""
    above = [np.sign(row[:, np.newaxis] - row).astype(np.float64) for row in places]
    x, y = above
    with np.errstate(invalid="ignore", divide="ignore"):
        found: FloatArray = (drawn * ((x * y) @ drawn)).sum(0)
        untied = [(drawn * (np.abs(each) @ drawn)).sum(0) for each in above]
        found /= np.sqrt(untied[0] * untied[1])
    return found.clip(-1, 1)
