"""Accuracy, precision, recall and F1 of a judge, each person being the truth in turn.

The figures are those of scikit-learn. Rates have Wilson intervals; what is no rate, or a mean over
several people, is resampled by item.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.averages import (
    Averaged,
    averaged,
    mean_by_rater,
    wilson_intervals,
)
from judge_eval.stats.bootstrap import Bootstrapped, Resampling
from judge_eval.stats.class_sums import Average, Share, Sums, of_elements, share
from judge_eval.stats.labels import (
    MISSING,
    NO_LABEL,
    FloatArray,
    HumanData,
    JudgeData,
    Label,
)
from judge_eval.stats.pairs import Missing, Paired, paired

Metric: TypeAlias = Literal["accuracy", "f1", "precision", "recall"]


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
    asked = Classification(metric, pos_label, average, missing, resampling or Resampling())
    return classify(paired(judge, humans, missing=missing), asked)


def classify(pairs: Paired, asked: Classification) -> Averaged:
    """Compute a classification figure of pairs of labels."""
    pairs, metric, resampling = pairs.merged, asked.metric, asked.resampling
    if metric == "accuracy":
        same = np.where(pairs.left == pairs.right, 1.0, 0.0)
        return mean_by_rater(pairs, same, resampling, is_rate=True)
    if asked.average == "samples" and pairs.vocabulary.is_multilabel:
        return mean_by_rater(pairs, _by_sample(pairs, metric), resampling)
    counted, only = of_elements(pairs), None
    if asked.average == "binary":
        positive = pairs.vocabulary.code(asked.pos_label)
        only = counted.rows_of(MISSING if positive is None else positive)

    def statistic(sums: Sums) -> FloatArray:
        return share(sums, metric, asked.average, only)

    reasons = [_why_not(pairs, asked, rater) for rater in range(len(pairs.raters))]
    is_missing = np.array([reason is not None for reason in reasons], bool)
    # Elements that nobody gave have a share of 0, as in scikit-learn.
    values = np.where(is_missing, np.nan, np.nan_to_num(counted.values(statistic)))
    resampled = counted.resampled(statistic, resampling)
    resampled[is_missing] = np.nan
    intervals, of_mean = None, None
    if asked.average == "binary" and metric != "f1":
        intervals = _intervals_of_rates(pairs, asked)
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


def _why_not(pairs: Paired, asked: Classification, rater: int) -> str | None:
    """Return why a person has no precision, recall or F1."""
    if asked.average != "binary":
        return _why_no_average(pairs, asked)
    if pairs.vocabulary.is_multilabel:
        return "label sets and vectors need another average than binary"
    own = pairs.rater == rater
    left, right = set(pairs.left[own].tolist()), set(pairs.right[own].tolist())
    left.discard(pairs.vocabulary.code(NO_LABEL))
    positive, shown = pairs.vocabulary.code(asked.pos_label), repr(asked.pos_label)
    if len(left | right) > 2:
        words = ", ".join(str(pairs.vocabulary.labels[code]) for code in sorted(left | right))
        return f"the average binary takes two labels, and these are more: {words}"
    if positive not in left | right:
        return f"neither the judge nor the person gave the label {shown}"
    if asked.metric == "precision" and positive not in left:
        return f"the judge never gave the label {shown}, so there is no precision"
    if asked.metric == "recall" and positive not in right:
        return f"the person never gave the label {shown}, so there is no recall"
    return None


def _why_no_average(pairs: Paired, asked: Classification) -> str | None:
    if not pairs.vocabulary.is_multilabel:
        return "the average samples takes label sets" if asked.average == "samples" else None
    return None if pairs.vocabulary.elements[0] else "every label is empty"


def _by_sample(pairs: Paired, metric: Share) -> FloatArray:
    """Return precision, recall or F1 of the elements of each pair of labels."""
    sets = [set(part.tolist()) for part in pairs.vocabulary.elements[1]]

    def one(judge: set[int], human: set[int]) -> float:
        mean_size = (len(judge) + len(human)) / 2
        whole = {"precision": len(judge), "recall": len(human), "f1": mean_size}[metric]
        return len(judge & human) / whole if whole else 0.0

    either = zip(pairs.left, pairs.right, strict=True)
    return np.fromiter((one(sets[a], sets[b]) for a, b in either), np.float64, len(pairs))


def _intervals_of_rates(pairs: Paired, asked: Classification) -> list[Bootstrapped]:
    """Return each person's interval of a precision or recall, a rate among positive labels."""
    positive = pairs.vocabulary.code(asked.pos_label)
    whole = (pairs.left if asked.metric == "precision" else pairs.right) == positive
    right = whole & (pairs.left == pairs.right)
    good, n = (
        np.bincount(pairs.rater[some], minlength=len(pairs.raters)) for some in (right, whole)
    )
    return wilson_intervals(good, n)
