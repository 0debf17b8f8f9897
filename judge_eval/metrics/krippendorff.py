"""Krippendorff's alpha among people: the ceiling that a judge is measured against."""

from __future__ import annotations

import numpy as np

from judge_eval.metrics.figures import Figure, left_out, no_figure
from judge_eval.metrics.labels import HumanData, HumanLabels, human_labels
from judge_eval.metrics.patterns import patterns_of
from judge_eval.metrics.resampling import Resampling, SparseArray, bootstrap, interval_of, sparse
from judge_eval.metrics.vocabulary import FloatArray, IntArray, Vocabulary, numbered


def krippendorff_alpha(humans: HumanData, *, resampling: Resampling | None = None) -> Figure:
    """Return Krippendorff's alpha of nominal labels.

    With ``n_uc`` labels c on item u, ``n_u`` labels on it in all, and n labels on all items with
    at least two::

        D_o = sum over u of (sum over c of n_uc (n_u - n_uc)) / (n_u - 1) / n
        D_e = sum over c of n_c (n - n_c) / (n (n - 1))
        krippendorff_alpha = 1 - D_o / D_e

    1 is agreement on every item, 0 what chance gives, below 0 less than that. People may have
    labelled different items, and any number of them.

    Parameters
    ----------
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    resampling : Resampling, optional
        Of items.

    Returns
    -------
    Figure
        `n` counts labels on items with at least two. None where no item has two labels, or where
        everybody always gave the same label.

    References
    ----------
    K. Krippendorff, "Computing Krippendorff's alpha-reliability", 2011.

    Examples
    --------
    >>> ann = {"u1": 1, "u2": 2, "u3": 3, "u4": 3, "u5": 2}
    >>> figure = krippendorff_alpha({"ann": ann, "ben": ann | {"u5": 1}})
    >>> round(figure.value, 6), figure.n
    (0.727273, 10)
    """
    people, settings = human_labels(humans), resampling or Resampling()
    if len(people.humans) < 2:
        return no_figure("agreement among people takes labels of at least two")
    item, code, alone = _shared(people)
    gaps = left_out("items", alone, "only one person labelled it")
    if not len(item):
        return no_figure("no item has labels of two people", left_out=gaps)
    if len(np.unique(code)) < 2:
        reason = "everybody gave every item the same label, so there is no disagreement to expect"
        return no_figure(reason, len(item), gaps)
    counts, cells = _sums(item, code)
    value = _alpha(cells @ counts.astype(np.float64)[:, np.newaxis])[0]
    found = interval_of(bootstrap(cells, counts, _alpha, settings), int(counts.sum()), settings)
    return Figure(float(value), len(item), None, found.interval, found.method, gaps)


def _shared(people: HumanLabels) -> tuple[IntArray, IntArray, list[object]]:
    """Return item and label code of every label on an item with two, sorted; and other items."""
    items = numbered(row.item for row in people)
    item = np.array([items[row.item] for row in people], np.int64)
    vocabulary = Vocabulary(row.label for row in people)
    code = vocabulary.same[vocabulary.codes([row.label for row in people])]
    sizes = np.bincount(item, minlength=len(items))
    order = np.argsort(item, kind="stable")
    order = order[sizes[item[order]] > 1]
    alone = [name for name, number in items.items() if sizes[number] == 1]
    return item[order], code[order], alone


def _sums(item: IntArray, code: IntArray) -> tuple[IntArray, SparseArray]:
    """Return how many items look alike, and what one of each adds to the sums of `_alpha`.

    The first sum is the disagreement on the item, the others its labels of each code.
    """
    found = patterns_of(item, code.astype(np.uint64))
    column, row = found.pattern, code[found.pair] + 1
    total = np.bincount(column)
    same = sparse(row, column, None, (int(code.max()) + 2, len(found.counts)))
    squares = np.asarray(same.multiply(same).sum(axis=0)).ravel()
    disagreement = (total * total - squares) / (total - 1)
    there = np.arange(len(found.counts))
    return found.counts, same + sparse(np.zeros_like(there), there, disagreement, same.shape)


def _alpha(sums: FloatArray) -> FloatArray:
    """Return alpha from sums of shape (1 + n_codes, n): of disagreement, and of each label."""
    disagreement, labels = sums[0], sums[1:]
    n = labels.sum(axis=0)
    expected = n * n - (labels * labels).sum(axis=0)
    return np.where(expected > 0, 1 - (n - 1) * disagreement / expected, np.nan)
