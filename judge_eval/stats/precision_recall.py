"""Accuracy, precision, recall and F1 of a judge, each person being the truth in turn.

The figures are those of scikit-learn with ``zero_division=0``, but undefined where there is one
class only. They need to know no more than how often each class was said by the judge, by each
person and by both at once; these sums are linear in the items, so a resample of items is a resample
of the sums.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import (
    DEFAULT,
    FloatArray,
    IntArray,
    Resampling,
    SparseArray,
    bootstrap,
    sparse,
)
from judge_eval.stats.estimate import check_option
from judge_eval.stats.labels import NO_LABEL, HumanData, Label
from judge_eval.stats.pairs import (
    Averaged,
    JudgeOrPairs,
    Missing,
    Paired,
    averaged,
    mean_by_rater,
    paired,
    wilson_intervals,
)

Metric: TypeAlias = Literal["accuracy", "f1", "precision", "recall"]
Average: TypeAlias = Literal["binary", "macro", "micro", "weighted", "samples"]


@dataclass(frozen=True)
class Classification:
    """Which classification figure is meant.

    `average` tells how classes are put together, as in scikit-learn; ``binary`` takes the positive
    label. Items that the judge gave no label are left out (``drop``), or count as wrong.
    """

    metric: Metric = "accuracy"
    pos_label: Label = 1
    average: Average = "binary"
    missing: Missing = "drop"
    resampling: Resampling = DEFAULT

    def __post_init__(self) -> None:
        for name, names in (("metric", Metric), ("average", Average), ("missing", Missing)):
            check_option(name, getattr(self, name), names)


def classification(
    judge: JudgeOrPairs,
    humans: HumanData = (),
    metric: Metric = "accuracy",
    *,
    pos_label: Label = 1,
    average: Average = "binary",
    missing: Missing = "drop",
    resampling: Resampling = DEFAULT,
) -> Averaged:
    """Compare a judge with each person and average over people; see `paired` and `Classification`.

    Accuracy is of whole label sets and vectors, other figures of their elements.

    Examples
    --------
    >>> judge = {"q1": "flag", "q2": "pass", "q3": "flag"}
    >>> people = {"ann": {"q1": "flag", "q2": "flag", "q3": "flag"}}
    >>> classification(judge, people, "f1", pos_label="flag").figure.value
    0.8
    >>> classification(judge, people, "f1").figure.why
    'neither the judge nor the person gave the label 1'
    """
    settings = Classification(metric, pos_label, average, missing, resampling)
    pairs = paired(judge, humans, missing=missing).merged
    if metric == "accuracy":
        same = np.where(pairs.left == pairs.right, 1.0, 0.0)
        return mean_by_rater(pairs, same, resampling, is_rate=True)
    if average == "samples" and pairs.vocabulary.is_multilabel:
        elements = pairs.vocabulary.elements
        left, right = elements[pairs.left], elements[pairs.right]
        both, *sizes = (cells.sum(axis=1) for cells in (left * right, left, right))
        total = {"precision": sizes[0], "recall": sizes[1]}.get(metric, sum(sizes) / 2)
        shares = np.divide(both, total, out=np.zeros(len(pairs)), where=total > 0)
        return mean_by_rater(pairs, shares, resampling)
    sums, positive = class_sums(pairs), pairs.vocabulary.code(pos_label)
    is_positive = (sums.label == positive)[:, np.newaxis]

    def statistic(both: FloatArray, judge: FloatArray, human: FloatArray) -> FloatArray:
        denominator = {"precision": judge, "recall": human, "f1": (judge + human) / 2}[metric]
        if average == "binary":
            both, denominator = both * is_positive, denominator * is_positive
        if average in ("binary", "micro"):
            return sums.by_rater(both) / sums.by_rater(denominator)
        weight = human
        if average != "weighted":
            is_given = (judge + human > 0) | pairs.vocabulary.is_multilabel
            weight = is_given.astype(np.float64)
        per_class = np.where(denominator > 0, both / denominator, 0.0)
        return sums.by_rater(per_class * weight) / sums.by_rater(weight)

    reasons = [_missing_reason(pairs, settings, rater) for rater in range(len(pairs.raters))]
    is_missing = np.array([bool(reason) for reason in reasons], bool)
    # Elements that nobody gave have a share of 0, as in scikit-learn.
    values, resampled = sums.bootstrap(statistic, resampling)
    values = np.where(is_missing, np.nan, np.nan_to_num(values))
    resampled[is_missing] = np.nan
    intervals, mean_interval = None, None
    if average == "binary" and metric != "f1":
        # A rate among positive labels.
        is_counted = (pairs.left if metric == "precision" else pairs.right) == positive
        good = is_counted & (pairs.left == pairs.right)
        counts = (np.bincount(pairs.rater[x], minlength=len(reasons)) for x in (good, is_counted))
        intervals = wilson_intervals(*counts)
        mean_interval = intervals[0] if len(intervals) == 1 else None
    return averaged(
        pairs, values, resampled, resampling, reasons, intervals=intervals, of_mean=mean_interval
    )


def _missing_reason(pairs: Paired, settings: Classification, rater: int) -> str:
    if settings.average != "binary":
        if pairs.vocabulary.is_multilabel:
            return "" if pairs.vocabulary.elements.shape[1] else "every label is empty"
        return "the average samples takes label sets" if settings.average == "samples" else ""
    if pairs.vocabulary.is_multilabel:
        return "label sets and vectors need another average than binary"
    rater_rows, metric = pairs.rater == rater, settings.metric
    positive, label = pairs.vocabulary.code(settings.pos_label), f"the label {settings.pos_label!r}"
    judge, person = set(pairs.left[rater_rows].tolist()), set(pairs.right[rater_rows].tolist())
    codes = (judge | person) - {pairs.vocabulary.code(NO_LABEL)}
    words = ", ".join(str(pairs.vocabulary.labels[code]) for code in sorted(codes))
    never = {"precision": ("judge", judge), "recall": ("person", person)}
    annotator, labels = never.get(metric, ("", codes))
    reasons = {
        f"the average binary takes two labels, and these are more: {words}": len(codes) > 2,
        f"neither the judge nor the person gave {label}": positive not in codes,
        f"the {annotator} never gave {label}, so there is no {metric}": positive not in labels,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


Statistic: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


class ClassSums(NamedTuple):
    """How often each class was said by both, by the judge, and by the person, as sums over items.

    A row is a class (`label`) of a rater, in order of raters; `cells`, of shape (3 n_rows,
    n_patterns), hold what one item of each pattern adds to each sum.
    """

    rater: IntArray
    label: IntArray
    cells: SparseArray
    counts: IntArray

    def by_rater(self, rows: FloatArray) -> FloatArray:
        starts = np.flatnonzero(np.diff(self.rater, prepend=-1))
        return np.add.reduceat(rows, starts, axis=0) if len(starts) else rows

    def bootstrap(
        self, statistic: Statistic, resampling: Resampling
    ) -> tuple[FloatArray, FloatArray]:
        """Compute a statistic, of shape (n_raters,), and of each resample."""
        return bootstrap(
            self.cells,
            self.counts,
            lambda sums: statistic(*np.split(sums, 3)),
            resampling.rng,
            resampling.resamples,
        )


def class_sums(
    pairs: Paired, agreement: FloatArray | None = None, *, is_whole: bool = False
) -> ClassSums:
    """Count the classes of pairs of labels: elements of label sets and vectors, or whole labels.

    With the `agreement` of every two labels, from 0 to 1, of shape (n_labels, n_labels), what both
    said is how far the two agree where the judge said the class.
    """
    vocabulary, pick = pairs.vocabulary, pairs.patterns.pick
    by_element = vocabulary.is_multilabel and not is_whole
    named = np.flatnonzero([label is not NO_LABEL for label in vocabulary.labels])
    whole_labels = sparse(named, named, None, (len(vocabulary), len(vocabulary)))
    classes, rater = vocabulary.elements if by_element else whole_labels, pairs.rater[pick]
    judge, human = classes[pairs.left[pick]], classes[pairs.right[pick]]
    nonzero = [matrix.nonzero() for matrix in (judge * human, judge, human)]
    values = None
    if agreement is not None:
        nonzero[0], agreed = nonzero[1], agreement[pairs.left[pick], pairs.right[pick]]
        values = np.concatenate([agreed, np.ones(2 * len(agreed))])
    size = max(1, classes.shape[1])
    places = [rater[pair_rows] * size + label for pair_rows, label in nonzero]
    keys = np.unique(np.concatenate(places))
    if by_element:  # also classes that neither said
        keys = np.arange(len(pairs.raters) * size)
    rows = [np.searchsorted(keys, place) + index * len(keys) for index, place in enumerate(places)]
    columns = np.concatenate([pairs.patterns.pattern[pair_rows] for pair_rows, _ in nonzero])
    shape = (3 * len(keys), len(pairs.patterns.counts))
    cells = sparse(np.concatenate(rows), columns, values, shape)
    return ClassSums(keys // size, keys % size, cells, pairs.patterns.counts)
