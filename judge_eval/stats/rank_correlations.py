"""Do a judge's grades rise and fall with people's: Spearman's and Kendall's rank correlations."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.bootstrap import (
    DEFAULT,
    Bounds,
    FloatArray,
    IntArray,
    Resampling,
    bootstrap,
    sparse,
)
from judge_eval.stats.estimate import check_option
from judge_eval.stats.labels import HumanData, Label, grades
from judge_eval.stats.pairs import Averaged, JudgeOrPairs, averaged, paired

Coefficient: TypeAlias = Literal["spearman", "kendall"]
COEFFICIENTS: Final[tuple[Coefficient, ...]] = get_args(Coefficient)
FEWEST: Final = 3
# Kendall's tau compares every two different pairs of grades, in every resample.
_MOST_PAIRS: Final = 1_500


def rank_correlation(
    judge: JudgeOrPairs,
    humans: HumanData = (),
    coefficient: Coefficient = "spearman",
    *,
    order: Sequence[Label] = (),
    resampling: Resampling = DEFAULT,
) -> Averaged:
    """Correlate a judge's grades with each person's, and average over people; see `paired`.

    ``spearman`` is Pearson's correlation of the ranks, where equal grades share the mean of their
    ranks (C. Spearman, 1904); ``kendall`` is tau-b, ``(concordant - discordant) / sqrt((pairs -
    tied by one) (pairs - tied by other))`` (M. G. Kendall, 1945). Labels that are no numbers need
    their `order`. There is no figure with fewer than 3 items or only one grade of the two.

    Examples
    --------
    >>> judge, human = {1: 9, 2: 7, 3: 7, 4: 2}, {1: 5, 2: 4, 3: 3, 4: 1}
    >>> for coefficient in COEFFICIENTS:
    ...     print(round(rank_correlation(judge, {"ann": human}, coefficient).figure.value, 4))
    0.9487
    0.9129
    """
    pairs = paired(judge, humans)
    check_option("coefficient", coefficient, Coefficient)
    # Noise in the last digits of a grade is no difference.
    places = np.unique(np.round(grades(pairs.vocabulary, order), 12), return_inverse=True)[1]
    both, sizes = np.stack([places[pairs.left], places[pairs.right]]), pairs.n_by_rater
    counts, pick, pattern = pairs.patterns
    rows = [np.flatnonzero(pairs.rater[pick] == rater) for rater in range(len(sizes))]
    grids = [(both[:, pick[row]], pattern[row]) for row in rows]
    correlate = _kendall if coefficient == "kendall" else _spearman

    def correlations(drawn: FloatArray) -> FloatArray:
        return np.stack([correlate(grid, drawn[rater_patterns]) for grid, rater_patterns in grids])

    intervals, mean_interval, values, resampled = None, None, np.empty(0), np.empty((len(sizes), 0))
    if coefficient == "kendall" and any(len(row) > _MOST_PAIRS for row in rows):
        from scipy.stats import kendalltau  # type: ignore[import-untyped]  # slow to import

        grades_by_rater = [both[:, pairs.rater == rater] for rater in range(len(sizes))]
        values = np.array([kendalltau(*rater_grades).statistic for rater_grades in grades_by_rater])
        mean_interval = Bounds(None, None, "no interval: too many different grades to resample tau")
        intervals = [mean_interval] * len(sizes)
    elif len(pairs):
        pattern_numbers = np.arange(len(counts))
        cells = sparse(pattern_numbers, pattern_numbers, None, (len(counts), len(counts)))
        values, resampled = bootstrap(
            cells, counts, correlations, resampling.rng, resampling.resamples
        )
    values[sizes < FEWEST] = np.nan
    resampled[np.isnan(values)] = np.nan
    constant = "one of the two gave every item the same grade, so there is no order to compare"
    few = f"it takes {FEWEST} items that both graded, and there are"
    reasons = [f"{few} {n}" if n < FEWEST else constant for n in sizes.tolist()]
    return averaged(
        pairs, values, resampled, resampling, reasons, intervals=intervals, of_mean=mean_interval
    )


def _spearman(places: IntArray, drawn: FloatArray) -> FloatArray:
    """Return Spearman's rank correlation of each resample, NaN where one holds one value only.

    `places`, of shape (2, n_patterns), are grades; patterns may repeat. `drawn`, of shape
    (n_patterns, n_resamples), says how often each pattern was drawn.
    """
    x, y = (_centred_ranks(row, drawn) for row in places)
    correlation: FloatArray = (drawn * x * y).sum(0)
    correlation /= np.sqrt((drawn * x**2).sum(0) * (drawn * y**2).sum(0))
    return correlation.clip(-1, 1)


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
    """Return tau-b of each resample; arguments and result are those of `_spearman`."""
    x, y = (np.sign(row[:, np.newaxis] - row).astype(np.float64) for row in places)
    correlation: FloatArray = (drawn * ((x * y) @ drawn)).sum(0)
    correlation /= np.sqrt((drawn * (x**2 @ drawn)).sum(0) * (drawn * (y**2 @ drawn)).sum(0))
    return correlation.clip(-1, 1)
