"""Accuracy, precision, recall and F1 of a judge, each person being the truth in turn.

They need to know no more than how often each class was said by the judge, by each person and by
both at once. These sums are linear in the items, so a resample of items is a resample of the sums,
and the formulas take a thousand of them at once. The figures are those of scikit-learn with
``zero_division=0``, but undefined is NaN where there is one class only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.averages import (
    Averaged,
    averaged,
    mean_by_rater,
    wilson_intervals,
)
from judge_eval.stats.bootstrap import (
    Bootstrapped,
    Resampling,
    SparseArray,
    bootstrap,
    sparse,
)
from judge_eval.stats.labels import (
    MISSING,
    NO_LABEL,
    FloatArray,
    HumanData,
    IntArray,
    JudgeData,
    Label,
)
from judge_eval.stats.pairs import Missing, Paired, paired, partners

Metric: TypeAlias = Literal["accuracy", "f1", "precision", "recall"]
Average: TypeAlias = Literal["binary", "macro", "micro", "weighted", "samples"]
Rate: TypeAlias = Literal["precision", "recall", "f1"]


@dataclass(frozen=True)
class Classification:
    """Which classification figure is meant.

    Attributes
    ----------
    pos_label : label
        The positive label, with `average` binary.
    average : {'binary', 'macro', 'micro', 'weighted', 'samples'}
        How classes are put together, as in scikit-learn. Accuracy has no use for it.
    missing : {'drop', 'wrong'}
        Leave out items that the judge gave no label (and count them), or count them as wrong.
    """

    metric: Metric = "accuracy"
    pos_label: Label = 1
    average: Average = "binary"
    missing: Missing = "drop"
    resampling: Resampling = field(default_factory=Resampling)

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise ValueError(f"metric must be one of {', '.join(get_args(Metric))}")
        if self.average not in get_args(Average):
            raise ValueError(f"average must be one of {', '.join(get_args(Average))}")
        if self.missing not in get_args(Missing):
            raise ValueError(f"missing must be one of {', '.join(get_args(Missing))}")


def classification(
    judge: JudgeData,
    humans: HumanData,
    metric: Metric = "accuracy",
    *,
    pos_label: Label = 1,
    average: Average = "binary",
    missing: Missing = "drop",
    resampling: Resampling | None = None,
) -> Averaged:
    """Compare a judge with each person and average over people.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
        For a comparison with their consensus see `consensus`.
    metric, pos_label, average, missing
        See `Classification`.

    Returns
    -------
    Averaged
        Label sets and vectors count as right when they are the same, and otherwise by element.

    References
    ----------
    scikit-learn, ``accuracy_score`` and ``precision_recall_fscore_support``.

    Examples
    --------
    >>> judge = {"q1": "flag", "q2": "pass", "q3": "flag"}
    >>> people = {"ann": {"q1": "flag", "q2": "flag", "q3": "flag"}}
    >>> classification(judge, people, "f1", pos_label="flag").figure.value
    0.8
    >>> classification(judge, people, "f1").figure.reason
    'neither the judge nor the person gave the label 1'
    """
    settings = Classification(metric, pos_label, average, missing, resampling or Resampling())
    return classify(paired(judge, humans, missing=missing), settings)


def classify(pairs: Paired, settings: Classification) -> Averaged:
    """Compute a classification figure of pairs of labels."""
    pairs, metric, resampling = pairs.merged, settings.metric, settings.resampling
    if metric == "accuracy":
        same = np.where(pairs.left == pairs.right, 1.0, 0.0)
        return mean_by_rater(pairs, same, resampling, is_rate=True)
    if settings.average == "samples" and pairs.vocabulary.is_multilabel:
        return mean_by_rater(pairs, _by_sample(pairs, metric), resampling)
    counted, only = of_elements(pairs), None
    if settings.average == "binary":
        positive = pairs.vocabulary.code(settings.pos_label)
        only = counted.rows_of(MISSING if positive is None else positive)

    def statistic(sums: Sums) -> FloatArray:
        return share(sums, metric, settings.average, only)

    reasons = [_why_not(pairs, settings, rater) for rater in range(len(pairs.raters))]
    is_missing = np.array([reason is not None for reason in reasons], bool)
    # Elements that nobody gave have a share of 0, as in scikit-learn.
    values = np.where(is_missing, np.nan, np.nan_to_num(counted.values(statistic)))
    resampled = counted.resampled(statistic, resampling)
    resampled[is_missing] = np.nan
    intervals, of_mean = None, None
    if settings.average == "binary" and metric != "f1":
        intervals = _intervals_of_rates(pairs, settings)
        of_mean = intervals[0] if len(intervals) == 1 else None
    return averaged(
        pairs,
        values,
        resampled,
        resampling,
        lambda rater: reasons[rater] or "",
        intervals=intervals,
        of_mean=of_mean,
    )


def _why_not(pairs: Paired, settings: Classification, rater: int) -> str | None:
    """Return why a person has no precision, recall or F1."""
    if settings.average != "binary":
        return _why_no_average(pairs, settings)
    if pairs.vocabulary.is_multilabel:
        return "label sets and vectors need another average than binary"
    own = pairs.rater == rater
    left, right = set(pairs.left[own].tolist()), set(pairs.right[own].tolist())
    left.discard(pairs.vocabulary.code(NO_LABEL))
    positive, name = pairs.vocabulary.code(settings.pos_label), repr(settings.pos_label)
    if len(left | right) > 2:
        words = ", ".join(str(pairs.vocabulary.labels[code]) for code in sorted(left | right))
        return f"the average binary takes two labels, and these are more: {words}"
    if positive not in left | right:
        return f"neither the judge nor the person gave the label {name}"
    if settings.metric == "precision" and positive not in left:
        return f"the judge never gave the label {name}, so there is no precision"
    if settings.metric == "recall" and positive not in right:
        return f"the person never gave the label {name}, so there is no recall"
    return None


def _why_no_average(pairs: Paired, settings: Classification) -> str | None:
    if not pairs.vocabulary.is_multilabel:
        return "the average samples takes label sets" if settings.average == "samples" else None
    return None if pairs.vocabulary.elements[0] else "every label is empty"


def _by_sample(pairs: Paired, metric: Rate) -> FloatArray:
    """Return precision, recall or F1 of the elements of each pair of labels."""
    sets = [set(part.tolist()) for part in pairs.vocabulary.elements[1]]

    def one(judge: set[int], human: set[int]) -> float:
        mean_size = (len(judge) + len(human)) / 2
        whole = {"precision": len(judge), "recall": len(human), "f1": mean_size}[metric]
        return len(judge & human) / whole if whole else 0.0

    either = zip(pairs.left, pairs.right, strict=True)
    return np.fromiter((one(sets[a], sets[b]) for a, b in either), np.float64, len(pairs))


def _intervals_of_rates(pairs: Paired, settings: Classification) -> list[Bootstrapped]:
    """Return each person's interval of a precision or recall, a rate among positive labels."""
    positive = pairs.vocabulary.code(settings.pos_label)
    whole = (pairs.left if settings.metric == "precision" else pairs.right) == positive
    right = whole & (pairs.left == pairs.right)
    good, n = (
        np.bincount(pairs.rater[some], minlength=len(pairs.raters)) for some in (right, whole)
    )
    return wilson_intervals(good, n)


@dataclass(frozen=True)
class Sums:
    """Sums over items, each of shape (n_rows, n); a row is a class of a rater.

    Attributes
    ----------
    both : float array
        Both said the class. With weights: how far the two agree where the judge said it.
    by_rater : sparse array, shape (n_raters, n_rows)
        Adds up the rows of each rater.
    counted : float array
        1 where the class counts in a plain mean over classes.
    agreement : sparse array, shape (n_rows, n_rows), or None
        How far two labels of one rater agree; None where only equal ones do.
    """

    both: FloatArray
    judge: FloatArray
    human: FloatArray
    by_rater: SparseArray
    counted: FloatArray
    agreement: SparseArray | None = None


@dataclass(frozen=True)
class ClassSums:
    """Which sums there are for some pairs of labels.

    Attributes
    ----------
    classes : sequence of int array, length n_labels
        The classes that each label stands for.
    is_multilabel : bool
        Whether every class counts for every rater, also one that neither said.
    agreement : float array, shape (n_labels, n_labels), or None
        How far each two labels agree, from 0 to 1, where every label is one class.
    """

    pairs: Paired
    classes: list[IntArray]
    n_classes: int
    is_multilabel: bool = False
    agreement: FloatArray | None = None

    def values(self, statistic: Callable[[Sums], FloatArray]) -> FloatArray:
        """Compute a statistic of the data itself: from `Sums` to shape (n_raters, n)."""
        counts = self.pairs.patterns.counts.astype(np.float64)[:, np.newaxis]
        with np.errstate(invalid="ignore", divide="ignore"):
            return statistic(self._split(self._cells @ counts))[:, 0]

    def resampled(
        self, statistic: Callable[[Sums], FloatArray], resampling: Resampling
    ) -> FloatArray:
        """Compute a statistic of each resample, shape (n_raters, resamples)."""
        if not len(self.pairs):
            return np.empty((len(self.pairs.raters), 0))
        counts = self.pairs.patterns.counts
        return bootstrap(self._cells, counts, lambda sums: statistic(self._split(sums)), resampling)

    def rows_of(self, number: int) -> SparseArray:
        """Return a sparse array of shape (n_raters, n_rows) that picks one class of each rater."""
        chosen = np.flatnonzero(self._rows % self.n_classes == number)
        raters = self._rows[chosen] // self.n_classes
        return sparse(raters, chosen, None, (len(self.pairs.raters), len(self._rows)))

    @cached_property
    def _expanded(self) -> tuple[tuple[IntArray, IntArray], tuple[IntArray, IntArray]]:
        """Keys (pair, class) of the kept pairs, said by the judge and by the person."""
        kept = self.pairs.patterns.pair
        return self._keys(self.pairs.left[kept]), self._keys(self.pairs.right[kept])

    def _keys(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        parts = [self.classes[code] for code in codes]
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        said = np.concatenate(parts) if parts else np.empty(0, np.int64)
        return np.repeat(np.arange(len(parts)), sizes), said.astype(np.int64)

    @cached_property
    def _rows(self) -> IntArray:
        """The key (rater, class) of each row, in order."""
        if self.is_multilabel:
            return np.arange(len(self.pairs.raters) * self.n_classes)
        rater = self.pairs.rater[self.pairs.patterns.pair]
        keys = [rater[pair] * self.n_classes + said for pair, said in self._expanded]
        return np.unique(np.concatenate(keys))

    @cached_property
    def _cells(self) -> SparseArray:
        patterns, (judge, human) = self.pairs.patterns, self._expanded
        rater = self.pairs.rater[patterns.pair]
        said_by = [pair * self.n_classes + said for pair, said in (judge, human)]
        together = np.intersect1d(said_by[0], said_by[1], assume_unique=True)
        both = np.divmod(together, self.n_classes)
        values = None
        if self.agreement is not None:
            both = judge
            kept = patterns.pair
            agreed = self.agreement[self.pairs.left[kept], self.pairs.right[kept]]
            values = np.concatenate([agreed, np.ones(len(judge[0]) + len(human[0]))])
        rows = [
            np.searchsorted(self._rows, rater[pair] * self.n_classes + said) + at * len(self._rows)
            for at, (pair, said) in enumerate((both, judge, human))
        ]
        columns = [patterns.pattern[pair] for pair, _ in (both, judge, human)]
        shape = (3 * len(self._rows), len(patterns.counts))
        return sparse(np.concatenate(rows), np.concatenate(columns), values, shape)

    @cached_property
    def _alike(self) -> SparseArray | None:
        """How far the labels of two rows agree that are of one rater."""
        if self.agreement is None:
            return None
        rater, label = np.divmod(self._rows, self.n_classes)
        same, other = partners(rater)
        one, two = (np.concatenate([side, np.arange(len(rater))]) for side in (same, other))
        values = self.agreement[label[one], label[two]]
        return sparse(one, two, values, (len(rater), len(rater)))

    @cached_property
    def _by_rater(self) -> SparseArray:
        raters = self._rows // self.n_classes
        shape = (len(self.pairs.raters), len(self._rows))
        return sparse(raters, np.arange(len(self._rows)), None, shape)

    def _split(self, sums: FloatArray) -> Sums:
        both, judge, human = np.split(sums, 3)
        counted = ((judge + human > 0) | self.is_multilabel).astype(np.float64)
        return Sums(both, judge, human, self._by_rater, counted, self._alike)


def of_labels(pairs: Paired, agreement: FloatArray | None = None) -> ClassSums:
    """Count whole labels, of which every rater said exactly one of each item."""
    labels = pairs.vocabulary.labels
    codes = [
        np.array([code] * (label is not NO_LABEL), np.int64) for code, label in enumerate(labels)
    ]
    return ClassSums(pairs, codes, max(len(labels), 1), agreement=agreement)


def of_elements(pairs: Paired) -> ClassSums:
    """Count what labels are made of: a label set's elements, a vector's positions."""
    if not pairs.vocabulary.is_multilabel:
        return of_labels(pairs)
    classes, parts = pairs.vocabulary.elements
    return ClassSums(pairs, parts, max(len(classes), 1), is_multilabel=True)


def share(sums: Sums, metric: Rate, average: Average, only: SparseArray | None) -> FloatArray:
    """Return precision, recall or F1 per rater.

    Parameters
    ----------
    metric : {'precision', 'recall', 'f1'}
    average : {'binary', 'macro', 'micro', 'weighted'}
    only : sparse array, shape (n_raters, n_rows)
        Picks the positive class, with `average` binary.
    """
    whole = {"precision": sums.judge, "recall": sums.human, "f1": (sums.judge + sums.human) / 2}
    of = whole[metric]
    pick = sums.by_rater if only is None else only
    if average in ("binary", "micro"):
        return np.asarray((pick @ sums.both) / (pick @ of))
    per_class = np.where(of > 0, sums.both / of, 0.0)
    weight = sums.human if average == "weighted" else sums.counted
    return np.asarray((pick @ (per_class * weight)) / (pick @ weight))
