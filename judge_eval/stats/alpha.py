"""Krippendorff's alpha: how far any number of people agree, beyond chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from judge_eval.stats.bootstrap import Resampling, SparseArray, bootstrap, interval_of, sparse
from judge_eval.stats.estimate import Figure, left_out, no_figure
from judge_eval.stats.labels import (
    FloatArray,
    HumanData,
    HumanLabels,
    IntArray,
    Label,
    Vocabulary,
    grades,
    human_labels,
    numbered,
)
from judge_eval.stats.pairs import partners, patterns_of

Level: TypeAlias = Literal["nominal", "ordinal", "interval"]


def krippendorff_alpha(
    humans: HumanData,
    level: Level = "nominal",
    *,
    order: Sequence[Label] = (),
    resampling: Resampling | None = None,
) -> Figure:
    """Return Krippendorff's alpha.

    With ``n_uc`` labels c on item u, ``n_u`` labels on it in all, and n labels on all items with
    at least two, of which ``n_c`` are c::

        D_o = sum over u, c, k of n_uc n_uk d_ck / (n_u - 1) / n
        D_e = sum over c, k of n_c n_k d_ck / (n (n - 1))
        krippendorff_alpha = 1 - D_o / D_e

    1 is agreement on every item, 0 what chance gives, below 0 less than that. People may have
    labelled different items, and any number of them.

    Parameters
    ----------
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    level : {'nominal', 'ordinal', 'interval'}
        How far two labels are apart: ``d_ck`` is 1 where they differ; the squared difference of
        their mean ranks among all n labels; the squared difference of the numbers.
    order : sequence of Label, optional
        Of labels that are no numbers, from the lowest to the highest.
    resampling : Resampling, optional
        Of items.

    Returns
    -------
    Figure
        `n` counts labels on items with at least two. None where no item has two labels, or where
        everybody always gave the same label.

    Raises
    ------
    LabelsUnfit
        When labels have no order, and the level is not nominal.

    References
    ----------
    K. Krippendorff, "Computing Krippendorff's alpha-reliability", 2011.

    Examples
    --------
    >>> ann = {"u1": 1, "u2": 2, "u3": 3, "u4": 3, "u5": 2}
    >>> figure = krippendorff_alpha({"ann": ann, "ben": ann | {"u5": 1}})
    >>> round(figure.value, 6), figure.n
    (0.727273, 10)
    >>> round(krippendorff_alpha({"ann": ann, "ben": ann | {"u5": 1}}, "interval").value, 6)
    0.869565
    """
    if level not in get_args(Level):
        raise ValueError(f"level must be one of {', '.join(get_args(Level))}")
    people, settings = human_labels(humans), resampling or Resampling()
    if len(people.humans) < 2:
        return no_figure("agreement among people takes labels of at least two")
    vocabulary = Vocabulary(row.label for row in people)
    item, code, alone = _shared(people, vocabulary)
    gaps = left_out("items", alone, "only one person labelled it")
    values = None
    if level != "nominal":
        values, place = np.unique(grades(vocabulary, order), return_inverse=True)
        code = place[code]
    if not len(item):
        return no_figure("no item has labels of two people", left_out=gaps)
    if len(np.unique(code)) < 2:
        reason = "everybody gave every item the same label, so there is no disagreement to expect"
        return no_figure(reason, len(item), gaps)
    counts, cells, met = _sums(item, code)

    def alpha(sums: FloatArray) -> FloatArray:
        return _alpha(sums, met, values, is_ordinal=level == "ordinal")

    value = alpha(cells @ counts.astype(np.float64)[:, np.newaxis])[0]
    found = interval_of(bootstrap(cells, counts, alpha, settings), int(counts.sum()), settings)
    return Figure(float(value), len(item), None, found.interval, found.method, gaps)


def _shared(people: HumanLabels, vocabulary: Vocabulary) -> tuple[IntArray, IntArray, list[object]]:
    """Return item and label code of every label on an item with two, sorted; and other items."""
    items = numbered(row.item for row in people)
    item = np.array([items[row.item] for row in people], np.int64)
    code = vocabulary.same[vocabulary.codes([row.label for row in people])]
    sizes = np.bincount(item, minlength=len(items))
    order = np.argsort(item, kind="stable")
    order = order[sizes[item[order]] > 1]
    alone = [name for name, number in items.items() if sizes[number] == 1]
    return item[order], code[order], alone


def _sums(item: IntArray, code: IntArray) -> tuple[IntArray, SparseArray, IntArray]:
    """Return how many items look alike, and what one of each adds to the sums of `_alpha`.

    The first sums are of each two labels that met on an item, whose codes are returned last, of
    shape (2, n_met); the others are the labels of each code.
    """
    found = patterns_of(item, code.astype(np.uint64))
    column, said = found.pattern, code[found.pair]
    by_column = np.argsort(column, kind="stable")
    column, said = column[by_column], said[by_column]
    one, other = partners(column)
    apart = said[one] < said[other]
    one, other = one[apart], other[apart]
    met, row = np.unique(np.stack([said[one], said[other]]), axis=1, return_inverse=True)
    weight = 2 / (np.bincount(column)[column[one]] - 1)
    cells = sparse(
        np.concatenate([row.ravel(), said + met.shape[1]]),
        np.concatenate([column[one], column]),
        np.concatenate([weight, np.ones(len(said))]),
        (met.shape[1] + int(code.max()) + 1, len(found.counts)),
    )
    return found.counts, cells, met


def _alpha(
    sums: FloatArray, met: IntArray, values: FloatArray | None, *, is_ordinal: bool
) -> FloatArray:
    """Return alpha from sums of shape (n_met + n_codes, n); without values it is nominal.

    Values are in ascending order, so that codes are.
    """
    together, labels = np.split(sums, [met.shape[1]])
    n = labels.sum(axis=0)
    if values is None:
        observed = together.sum(axis=0)
        expected = n * n - (labels * labels).sum(axis=0)
    else:
        at = np.broadcast_to(values[: len(labels), np.newaxis], labels.shape)
        if is_ordinal:
            at = np.cumsum(labels, axis=0) - labels / 2
        observed = (together * (at[met[0]] - at[met[1]]) ** 2).sum(axis=0)
        expected = 2 * n * (labels * (at - (labels * at).sum(axis=0) / n) ** 2).sum(axis=0)
    return np.where(expected > 0, 1 - (n - 1) * observed / expected, np.nan)
