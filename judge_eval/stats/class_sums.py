"""How often each class was said, by the judge, by each person and by both at once.

Kappa, precision, recall and F1 need no more than these sums. They are linear in the items, so a
resample of items is a resample of the sums, and the formulas below take a thousand of them at once.
Precision, recall and F1 are those of scikit-learn with ``zero_division=0``, but undefined is NaN
where there is one class only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import Resampling, SparseArray, bootstrap, sparse
from judge_eval.stats.labels import NO_LABEL, FloatArray, IntArray
from judge_eval.stats.pairs import Paired, partners

if TYPE_CHECKING:
    from collections.abc import Callable


Average: TypeAlias = Literal["binary", "macro", "micro", "weighted", "samples"]
Share: TypeAlias = Literal["precision", "recall", "f1"]


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


def kappa(sums: Sums) -> FloatArray:
    """Return Cohen's kappa, NaN where the person said one label only."""
    n, agreed = sums.by_rater @ sums.human, sums.by_rater @ sums.both
    beside = sums.human if sums.agreement is None else sums.agreement @ sums.human
    expected = sums.by_rater @ (sums.judge * beside)
    varied = sums.by_rater @ (sums.human > 0).astype(np.float64) > 1
    return np.where(varied, (n * agreed - expected) / (n * n - expected), np.nan)


def share(sums: Sums, metric: Share, average: Average, only: SparseArray | None) -> FloatArray:
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
