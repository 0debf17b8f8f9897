"""Cohen's kappa: agreement of two raters beyond what their habits alone would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.averages import (
    Averaged,
    averaged,
)
from judge_eval.stats.bootstrap import Resampling
from judge_eval.stats.labels import FloatArray, HumanData, JudgeData, Label, grades
from judge_eval.stats.pairs import Paired, paired
from judge_eval.stats.precision_recall import Sums, of_labels

Weights: TypeAlias = Literal["linear", "quadratic"]
BANDS: Final = (
    (0.2, "Slight"),
    (0.4, "Fair"),
    (0.6, "Moderate"),
    (0.8, "Substantial"),
    (1.0, "Almost Perfect"),
)
# A mean of kappas is exact only to its last digits: the mean of .1, .2 and .3 is above .2.
_SAME: Final = 1e-12


def cohen_kappa(
    judge: JudgeData,
    humans: HumanData,
    *,
    weights: Weights | None = None,
    order: Sequence[Label] = (),
    resampling: Resampling | None = None,
) -> Averaged:
    """Compare a judge with each person by Cohen's kappa, and average over people.

    ``kappa = (p_o - p_e) / (1 - p_e)``, with the observed agreement ``p_o`` and the agreement
    ``p_e`` that two raters would reach who gave the same labels as often, but blindly. With weights
    two labels agree the less the further they are apart, ``1 - (distance / largest)`` or
    ``1 - (distance / largest) ** 2``.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
        One is enough: a column of gold labels is one person.
    weights : {'linear', 'quadratic'}, optional
        For labels that have an order.
    order : sequence of Label, optional
        Of labels that are no numbers, from the lowest to the highest; one step is a distance of 1.

    Returns
    -------
    Averaged
        A person who gave one label only has no kappa: there is nothing to agree on beyond chance.
        They are left out of the mean.

    References
    ----------
    J. Cohen, "A coefficient of agreement for nominal scales", 1960; "Weighted kappa", 1968.

    Examples
    --------
    >>> judge = {"q1": "A", "q2": "B", "q3": "A", "q4": "B"}
    >>> people = {"ann": judge | {"q4": "A"}, "ben": dict.fromkeys(judge, "A")}
    >>> found = cohen_kappa(judge, people)
    >>> found.figure.value, found.by_human["ben"].reason
    (0.5, 'the person gave every item the same label, so kappa cannot tell agreement from chance')
    """
    settings = resampling or Resampling()
    return kappas(paired(judge, humans), settings, weights=weights, order=order)


def kappas(
    pairs: Paired,
    resampling: Resampling,
    *,
    weights: Weights | None = None,
    order: Sequence[Label] = (),
) -> Averaged:
    """Compute kappa of pairs of labels, per rater and on average."""
    if weights not in (None, *get_args(Weights)):
        raise ValueError(f"weights must be one of {', '.join(get_args(Weights))}, or none")
    pairs = pairs.merged
    agreement = _agreement(grades(pairs.vocabulary, order), weights) if weights else None

    def statistic(sums: Sums) -> FloatArray:
        values = kappa_of(sums)
        if pairs.between_people:  # then the one on the left is a person too
            varied = sums.by_rater @ (sums.judge > 0) > 1
            values = np.where(varied, values, np.nan)
        return values

    counted = of_labels(pairs, agreement)
    resampled = counted.resampled(statistic, resampling)
    values = counted.values(statistic)
    return averaged(pairs, values, resampled, resampling, lambda _: _constant(pairs))


def kappa_of(sums: Sums) -> FloatArray:
    """Return Cohen's kappa, NaN where the person said one label only."""
    n, agreed = sums.by_rater @ sums.human, sums.by_rater @ sums.both
    beside = sums.human if sums.agreement is None else sums.agreement @ sums.human
    expected = sums.by_rater @ (sums.judge * beside)
    varied = sums.by_rater @ (sums.human > 0).astype(np.float64) > 1
    return np.where(varied, (n * agreed - expected) / (n * n - expected), np.nan)


def _agreement(values: FloatArray, weights: Weights) -> FloatArray:
    """Return how far each two labels agree, shape (n_labels, n_labels)."""
    distance = np.abs(values[:, np.newaxis] - values)
    distance /= max(float(distance.max(initial=0)), np.finfo(float).tiny)
    return 1 - (distance if weights == "linear" else distance**2)


def _constant(pairs: Paired) -> str:
    who = "one of the two" if pairs.between_people else "the person"
    return f"{who} gave every item the same label, so kappa cannot tell agreement from chance"


def band(value: float) -> str:
    """Name the strength of agreement that a kappa stands for.

    References
    ----------
    J. R. Landis and G. G. Koch, "The measurement of observer agreement for categorical data", 1977.

    Examples
    --------
    >>> [band(value) for value in (-0.1, 0.0, 0.2, 0.21, 0.6, 0.8, 1.0)]
    ['Poor', 'Slight', 'Slight', 'Fair', 'Moderate', 'Substantial', 'Almost Perfect']
    """
    if value < -_SAME:
        return "Poor"
    return next(name for top, name in BANDS if value <= top + _SAME)
