"""Agreement beyond chance: Cohen's kappa of two raters, Krippendorff's alpha of any number."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from judge_eval.stats.bootstrap import (
    DEFAULT,
    FloatArray,
    Resampling,
    bootstrap,
    interval_of,
    sparse,
)
from judge_eval.stats.estimate import Estimate, check_option, left_out, no_figure
from judge_eval.stats.labels import HumanData, Label, grades, human_labels, numbered
from judge_eval.stats.pairs import Averaged, JudgeOrPairs, averaged, paired, partners, patterns_of
from judge_eval.stats.precision_recall import class_sums

Weights: TypeAlias = Literal["linear", "quadratic"]
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
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
    judge: JudgeOrPairs,
    humans: HumanData = (),
    *,
    weights: Weights | None = None,
    order: Sequence[Label] = (),
    resampling: Resampling = DEFAULT,
) -> Averaged:
    """Compare a judge with each person by Cohen's kappa, and average over people; see `paired`.

    ``kappa = (p_o - p_e) / (1 - p_e)``, with the observed agreement ``p_o`` and the agreement
    ``p_e`` of two raters who give the same labels as often, but blindly. With weights two labels
    agree by ``1 - distance / largest`` or ``1 - (distance / largest) ** 2``; one step in `order` is
    a distance of 1. Who gave one label only has no kappa. Source: J. Cohen, 1960 and 1968.

    Examples
    --------
    >>> judge = {"q1": "A", "q2": "B", "q3": "A", "q4": "B"}
    >>> people = {"ann": judge | {"q4": "A"}, "ben": dict.fromkeys(judge, "A")}
    >>> result = cohen_kappa(judge, people)
    >>> result.figure.value, result.by_human["ben"].why
    (0.5, 'the person gave every item the same label, so kappa cannot tell agreement from chance')
    """
    pairs, agreement = paired(judge, humans).merged, None
    if weights:
        check_option("weights", weights, Weights)
        values = grades(pairs.vocabulary, order)
        distance = np.abs(values[:, np.newaxis] - values)
        distance /= max(float(distance.max(initial=0)), np.finfo(float).tiny)
        agreement = 1 - (distance if weights == "linear" else distance**2)
    sums = class_sums(pairs, agreement, is_whole=True)
    rows_by_rater = [np.flatnonzero(sums.rater == rater) for rater in range(len(pairs.raters))]

    def kappa(both: FloatArray, judge: FloatArray, human: FloatArray) -> FloatArray:
        n, agreed, beside = sums.by_rater(human), sums.by_rater(both), human
        if agreement is not None:
            labels = [sums.label[rater_rows] for rater_rows in rows_by_rater]
            parts = [
                agreement[np.ix_(x, x)] @ human[o]
                for x, o in zip(labels, rows_by_rater, strict=True)
            ]
            beside = np.concatenate([*parts, human[:0]])
        expected = sums.by_rater(judge * beside)
        varied = sums.by_rater((human > 0).astype(np.float64)) > 1
        if pairs.between_people:  # then the one on the left is a person too
            varied &= sums.by_rater((judge > 0).astype(np.float64)) > 1
        return np.where(varied, (n * agreed - expected) / (n * n - expected), np.nan)

    rater = "one of the two" if pairs.between_people else "the person"
    reason = f"{rater} gave every item the same label, so kappa cannot tell agreement from chance"
    estimates = sums.bootstrap(kappa, resampling)
    return averaged(pairs, *estimates, resampling, [reason] * len(rows_by_rater))


def band(value: float) -> str:
    """Name the strength of agreement that a kappa stands for (Landis and Koch, 1977).

    Examples
    --------
    >>> [band(value) for value in (-0.1, 0.0, 0.2, 0.21, 0.6, 0.8, 1.0)]
    ['Poor', 'Slight', 'Slight', 'Fair', 'Moderate', 'Substantial', 'Almost Perfect']
    """
    return "Poor" if value < -_SAME else next(name for top, name in BANDS if value <= top + _SAME)


def krippendorff_alpha(
    humans: HumanData,
    level: Level = "nominal",
    *,
    order: Sequence[Label] = (),
    resampling: Resampling = DEFAULT,
) -> Estimate:
    """Return Krippendorff's alpha: 1 is agreement on every item, 0 what chance gives.

    With ``n_uc`` labels c on item u, ``n_u`` labels on it in all, and n labels on all items with
    at least two, of which ``n_c`` are c::

        D_o = sum over u, c, k of n_uc n_uk d_ck / (n_u - 1) / n
        D_e = sum over c, k of n_c n_k d_ck / (n (n - 1))
        krippendorff_alpha = 1 - D_o / D_e

    ``d_ck`` is by `level` 1 where two labels differ; the squared difference of their mean ranks
    among all n labels; or that of the numbers, which other labels are by their `order`. Source: K.
    Krippendorff, 2011.

    Examples
    --------
    >>> ann = {"u1": 1, "u2": 2, "u3": 3, "u4": 3, "u5": 2}
    >>> figure = krippendorff_alpha({"ann": ann, "ben": ann | {"u5": 1}})
    >>> round(figure.value, 6), figure.n
    (0.727273, 10)
    """
    check_option("level", level, Level)
    people = human_labels(humans)
    if len(people.humans) < 2:
        return no_figure("agreement among people takes labels of at least two")
    vocabulary, names, _, item, _, code = numbered(people)
    code, values = vocabulary.same[code], None
    if level != "nominal":
        values, place = np.unique(grades(vocabulary, order), return_inverse=True)
        code = place[code]
    sizes = np.bincount(item)
    alone = [names[x] for x in np.flatnonzero(sizes == 1)]
    gaps = left_out("items", alone, "only one person labelled it")
    is_shared = sizes[item] > 1
    item, code = item[is_shared], code[is_shared]
    if not len(item):
        return no_figure("no item has labels of two people", left_out=gaps)
    if np.ptp(code) == 0:
        reason = "everybody gave every item the same label, so there is no disagreement to expect"
        return no_figure(reason, len(item), gaps)
    # Sums over items: of each two labels that met on an item, then of the labels of each code.
    counts, pick, column = patterns_of(item, code.astype(np.uint64))
    label, (first, second) = code[pick], partners(column)
    first, second = (side[label[first] < label[second]] for side in (first, second))
    pairs, row = np.unique(np.stack([label[first], label[second]]), axis=1, return_inverse=True)
    cells = sparse(
        np.concatenate([row.ravel(), label + pairs.shape[1]]),
        np.concatenate([column[first], column]),
        np.concatenate([2 / (np.bincount(column)[column[first]] - 1), np.ones(len(label))]),
        (pairs.shape[1] + int(code.max()) + 1, len(counts)),
    )

    def alpha(sums: FloatArray) -> FloatArray:
        together, labels = np.split(sums, [pairs.shape[1]])
        n = labels.sum(axis=0)
        if values is None:
            observed, expected = together.sum(axis=0), n * n - (labels * labels).sum(axis=0)
        else:
            scale = np.broadcast_to(values[: len(labels), np.newaxis], labels.shape)
            if level == "ordinal":
                scale = np.cumsum(labels, axis=0) - labels / 2
            observed = (together * (scale[pairs[0]] - scale[pairs[1]]) ** 2).sum(axis=0)
            expected = (
                2 * n * (labels * (scale - (labels * scale).sum(axis=0) / n) ** 2).sum(axis=0)
            )
        return np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)

    value, resampled = bootstrap(cells, counts, alpha, resampling.rng, resampling.resamples)
    low, high, method = interval_of(resampled, int(counts.sum()), resampling)
    return Estimate(float(value), low, high, len(item), method, left_out=gaps)
