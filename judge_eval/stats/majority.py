"""What most people said of an item, as if one person had said it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, cast, get_args

import numpy as np

from judge_eval.stats.labels import (
    HumanData,
    HumanLabels,
    Label,
    LabelsUnfit,
    human_labels,
    kind_of,
)
from judge_eval.stats.vocabulary import IntArray, Vocabulary, elements_of, numbered

TieRule: TypeAlias = Literal["alphabetical", "last"]

NAME = "majority"


def consensus(humans: HumanData, tie_rule: TieRule = "alphabetical") -> HumanLabels:
    """Return the label that most people gave each item.

    Parameters
    ----------
    humans : rows of (item, human, label), or ``{human: {item: label}}``
        Vectors are decided position by position, and label sets element by element.
    tie_rule : {'alphabetical', 'last'}
        Of labels that equally many people gave, take the alphabetically first (of numbers the
        smallest; of an element: that it is absent), or the last one.

    Returns
    -------
    HumanLabels
        One label per item, by a person called ``majority``.

    Raises
    ------
    ValueError
        When the tie rule is unknown.
    LabelsUnfit
        When vectors differ in length, or stand beside single labels.

    Examples
    --------
    >>> people = {"ann": {"q": "good", "r": "ok"}, "ben": {"q": "bad", "r": "ok"}}
    >>> [row.label for row in consensus(people)]
    ['bad', 'ok']
    >>> [row.label for row in consensus(people, "last")]
    ['good', 'ok']
    """
    if tie_rule not in get_args(TieRule):
        raise ValueError(f"tie_rule must be one of {', '.join(get_args(TieRule))}")
    people = human_labels(humans)
    items = numbered(row.item for row in people)
    item = np.array([items[row.item] for row in people], np.int64)
    labels = _decided(item, [row.label for row in people], tie_rule)
    return HumanLabels((name, NAME, label) for name, label in zip(items, labels, strict=True))


def _decided(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> Sequence[Label]:
    kinds = {kind_of(label) for label in labels}
    if kinds == {"vector"}:
        return _by_position(item, labels, tie_rule)
    if kinds == {"set"}:
        return _by_element(item, labels, tie_rule)
    if kinds & {"vector", "set"}:
        raise LabelsUnfit("label sets or vectors and single labels have no consensus")
    return _most_said(item, labels, tie_rule) if labels else []


def _most_said(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> list[Label]:
    vocabulary = Vocabulary(labels)
    keys, counts = np.unique(item * len(vocabulary) + vocabulary.codes(labels), return_counts=True)
    where, code = np.divmod(keys, len(vocabulary))
    last_wins = code if tie_rule == "last" else -code
    best = np.lexsort((last_wins, counts, where))
    _, last_of_item = np.unique(where[best][::-1], return_index=True)
    return [vocabulary.labels[code[best[::-1][at]]] for at in last_of_item]


def _by_position(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> list[Label]:
    rows = [label for label in labels if isinstance(label, tuple)]
    if len({len(row) for row in rows}) > 1:
        raise LabelsUnfit("vectors of different lengths have no consensus")
    columns = [
        _most_said(item, cast("list[Label]", list(column)), tie_rule)
        for column in zip(*rows, strict=True)
    ]
    return [type(rows[0])(parts) for parts in zip(*columns, strict=True)]


def _by_element(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> list[Label]:
    sets = [elements_of(label) for label in labels]
    every = sorted(frozenset().union(*sets), key=repr)
    columns = [_most_said(item, [element in said for said in sets], tie_rule) for element in every]
    chosen = zip(*columns, strict=True) if columns else [()] * (int(item.max()) + 1)
    return [
        frozenset(name for (_, name), there in zip(every, row, strict=True) if there)
        for row in chosen
    ]
