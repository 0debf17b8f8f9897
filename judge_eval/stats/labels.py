"""Labels of people and of judges.

A label is a text (a vote, a category, or free text); a truth value, which counts as a category; a
number, which is a category for all scorers but the Alt-Test; a list or set of texts, in which
``FALSE`` says that one is absent; or a list of numbers or truth values, of which position i says
whether label i is there. None, NaN and an empty text are missing labels, which are dropped and
counted; but free text may be empty.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import isfinite, isnan
from types import UnionType
from typing import Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from judge_eval.stats.bootstrap import FloatArray, IntArray, SparseArray, sparse
from judge_eval.stats.estimate import check_option

Item: TypeAlias = Hashable
Label: TypeAlias = str | int | float | tuple[object, ...] | frozenset[object]
Kind: TypeAlias = Literal["text", "truth", "number", "vector", "set"]
TieRule: TypeAlias = Literal["alphabetical", "last"]
Element: TypeAlias = tuple[int | None, object]

# A truth value is a whole number, too, and a vector of tasks a tuple: the first one counts.
_KINDS: Final[tuple[tuple[type | UnionType, Kind], ...]] = (
    (str, "text"),
    (bool, "truth"),
    (int | float, "number"),
    (tuple, "vector"),
    (set | frozenset, "set"),
)
# Stands where a judge gave no label and that shall count as wrong; it equals itself only.
NO_LABEL: Final = frozenset({object()})
MAJORITY: Final = "majority"


class LabelsUnfit(ValueError):
    """Labels that cannot be compared in the way asked for; the message says why."""


class Vector(tuple[object, ...]):
    """The labels that several tasks gave one item, in the order of the tasks."""

    __slots__ = ()


class HumanLabel(NamedTuple):
    item: Item
    human: str
    label: Label


class HumanLabels(list[HumanLabel]):
    """What people said: rows of (item, human, label) without the missing ones.

    `humans` are those who gave a label, by name; `missing` counts missing labels by human.

    Examples
    --------
    >>> labels = HumanLabels([("q1", "ann", "A"), ("q1", "ben", "tie"), ("q2", "ann", None)])
    >>> labels.humans, len(labels), labels[1].label, labels.missing["ann"]
    (('ann', 'ben'), 2, 'tie', 1)
    """

    def __init__(
        self, rows: Iterable[tuple[Item, str, object]], *, free_text: bool = False
    ) -> None:
        super().__init__()
        self.missing: Counter[str] = Counter()
        labelled_pairs: set[tuple[Item, str]] = set()
        for item, human, raw in rows:
            if (item, human) in labelled_pairs:
                raise ValueError(f"{human} labelled {item} twice")
            labelled_pairs.add((item, human))
            label = clean(raw, free_text=free_text)
            if label is None:
                self.missing[human] += 1
            else:
                self.append(HumanLabel(item, human, label))
        self.humans = tuple(sorted({row.human for row in self}))


class JudgeLabels(dict[Item, Label]):
    """What one judge said: the label of each item, without the missing ones."""

    def __init__(self, rows: Iterable[tuple[Item, object]], *, free_text: bool = False) -> None:
        labels: dict[Item, Label | None] = {}
        for item, raw in rows:
            if item in labels:
                raise ValueError(f"the judge labelled {item} twice")
            labels[item] = clean(raw, free_text=free_text)
        super().__init__({x: label for x, label in labels.items() if label is not None})

    @property
    def by_item(self) -> Mapping[Item, Label]:
        return self


Labels: TypeAlias = Mapping[Item, object]
HumanData: TypeAlias = HumanLabels | Mapping[str, Labels] | Iterable[tuple[Item, str, object]]
JudgeData: TypeAlias = JudgeLabels | Labels | Iterable[tuple[Item, object]]


def human_labels(data: HumanData, *, free_text: bool = False) -> HumanLabels:
    """Read people's labels: rows of (item, human, label), or ``{human: {item: label}}``.

    Examples
    --------
    >>> list(human_labels({"ann": {"q1": "A"}}))
    [HumanLabel(item='q1', human='ann', label='A')]
    """
    if isinstance(data, HumanLabels):
        return data
    if isinstance(data, Mapping):
        data = [(item, human, label) for human in data for item, label in data[human].items()]
    return HumanLabels(data, free_text=free_text)


def judge_labels(data: JudgeData, *, free_text: bool = False) -> JudgeLabels:
    """Read a judge's labels: rows of (item, label), or ``{item: label}``."""
    if isinstance(data, JudgeLabels):
        return data
    return JudgeLabels(data.items() if isinstance(data, Mapping) else data, free_text=free_text)


def clean(raw: object, *, free_text: bool = False) -> Label | None:
    """Return a label that can be compared and counted; None where it is missing.

    An empty text is missing, unless the task is `free_text`. Raises TypeError for what cannot be a
    label, ValueError for an infinite number.

    Examples
    --------
    >>> clean(["b", "a"]), clean(True), clean(float("nan")), clean(" "), clean("", free_text=True)
    (('b', 'a'), True, None, None, '')
    """
    if isinstance(raw, str):
        return raw if free_text or raw.strip() else None
    if raw is None or isinstance(raw, Vector):
        return raw
    if isinstance(raw, int | float):
        if not isfinite(raw) and not isnan(raw):
            raise ValueError(f"{raw} cannot be a label")
        return None if isnan(raw) else raw
    if isinstance(raw, list | tuple):
        # An empty part of a label set says that a label is absent.
        parts = tuple(clean(part, free_text=True) for part in raw)
        return None if None in parts else parts
    if isinstance(raw, set | frozenset):
        return frozenset(raw)
    if hasattr(raw, "tolist"):  # what numpy holds, scalar or array
        return clean(raw.tolist(), free_text=free_text)
    raise TypeError(f"a {type(raw).__name__} cannot be a label: {raw!r}")


def kind_of(label: object) -> Kind:
    """Say what a label is.

    Examples
    --------
    >>> [kind_of(label) for label in ("A", True, 4, (1, 0), ("toxic", "FALSE"))]
    ['text', 'truth', 'number', 'vector', 'set']
    """
    if isinstance(label, tuple | list) and not isinstance(label, Vector):
        return "vector" if label and not any(isinstance(part, str) for part in label) else "set"
    return next((kind for types, kind in _KINDS if isinstance(label, types)), "text")


def elements_of(label: object) -> frozenset[Element]:
    """Return what a label says is there: pairs of a position, in a vector, and a part.

    Zero, False, the empty text and the word ``FALSE`` say that something is absent.

    Examples
    --------
    >>> sorted(elements_of(("hateful", "FALSE"))), sorted(elements_of((1, 0, True)))
    ([(None, 'hateful')], [(0, 1), (2, True)])
    >>> elements_of("hateful")
    frozenset({(None, 'hateful')})
    """
    kind = kind_of(label)
    if kind not in ("vector", "set"):
        return frozenset([(None, label)])
    return frozenset(
        (position if kind == "vector" else None, part)
        for position, part in enumerate(cast("Iterable[object]", label))
        if not (part in (0, "") or (isinstance(part, str) and part.casefold() == "false"))
    )


class Vocabulary:
    """The different labels of some data in alphabetical order, numbers by size and first.

    A label's code is its place in that order, so codes do not depend on the order of the data.

    Examples
    --------
    >>> vocabulary = Vocabulary(["tie", "A", "tie", 10, 9])
    >>> vocabulary.labels, vocabulary.codes(["A", 9])
    ((9, 10, 'A', 'tie'), array([2, 0]))
    """

    def __init__(self, labels: Iterable[Label]) -> None:
        self.labels: tuple[Label, ...] = tuple(sorted(set(labels), key=_order))
        self._code = {label: code for code, label in enumerate(self.labels)}
        self.is_multilabel = any(
            kind_of(label) in ("set", "vector") for label in self.labels if label is not NO_LABEL
        )

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: Hashable) -> int:
        """Return a label's code, -1 where nothing has that label."""
        return self._code.get(cast("Label", label), -1)

    def codes(self, labels: Iterable[Label]) -> IntArray:
        return np.array([self._code[label] for label in labels], np.int64)

    @cached_property
    def same(self) -> IntArray:
        """The code of the first label that says the same, by code: label sets have no order.

        Examples
        --------
        >>> Vocabulary([("a", "b"), ("b", "a"), ("b", "FALSE")]).same
        array([0, 1, 0])
        """
        if not self.is_multilabel:
            return np.arange(len(self))
        first: dict[frozenset[Element], int] = {}
        parts = map(elements_of, self.labels)
        return np.array([first.setdefault(part, code) for code, part in enumerate(parts)], np.int64)

    @cached_property
    def elements(self) -> SparseArray:
        """Which elements each label stands for, shape (n_labels, n_elements).

        Every position of an indicator vector is an element, also one that is never on.
        """
        parts = [frozenset() if label is NO_LABEL else elements_of(label) for label in self.labels]
        all_elements = {element for part in parts for element in part}
        for label in self.labels:
            if isinstance(label, tuple) and kind_of(label) == "vector" and {*label} <= {0, 1}:
                all_elements |= {(position, 1) for position in range(len(label))}
        ordered = sorted(all_elements, key=lambda element: (element[0] or 0, _order(element[1])))
        number = {element: column for column, element in enumerate(ordered)}
        places = [(code, number[element]) for code, part in enumerate(parts) for element in part]
        rows, columns = np.array(places, np.int64).reshape(-1, 2).T
        return sparse(rows, columns, None, (len(parts), len(ordered)))


def numbered(
    rows: Sequence[HumanLabel], others: Sequence[Label] = ()
) -> tuple[Vocabulary, tuple[Item, ...], tuple[str, ...], IntArray, IntArray, IntArray]:
    """Return the vocabulary, items, humans by name, and of each row item, human and label as codes.

    The vocabulary has other labels, too; the codes are in order of item and human.
    """
    vocabulary = Vocabulary([*others, *(row.label for row in rows)])
    items = {item: place for place, item in enumerate(dict.fromkeys(row.item for row in rows))}
    humans = {human: place for place, human in enumerate(sorted({row.human for row in rows}))}
    item = np.array([items[row.item] for row in rows], np.int64)
    human = np.array([humans[row.human] for row in rows], np.int64)
    order, code = np.lexsort((human, item)), vocabulary.codes(row.label for row in rows)
    return vocabulary, tuple(items), tuple(humans), item[order], human[order], code[order]


def _order(label: object) -> tuple[int, float, str, tuple[object, ...]]:
    if isinstance(label, int | float):
        return 0, label, "", ()
    if isinstance(label, str):
        return 1, 0, label, ()
    if isinstance(label, tuple):
        return 2, 0, "", tuple(map(_order, label))
    if isinstance(label, frozenset):
        return 3, 0, "", tuple(sorted(map(_order, label)))
    return 4, 0, repr(label), ()


def grades(vocabulary: Vocabulary, order: Sequence[Label] = ()) -> FloatArray:
    """Return the number that each label stands for, by code.

    With an `order`, the lowest first, these are 0, 1, 2 …. Without it labels must be numbers, or
    texts that can be read as numbers.

    Examples
    --------
    >>> grades(Vocabulary([4, 2.5])).tolist(), grades(Vocabulary(["10", "9"])).tolist()
    ([2.5, 4.0], [10.0, 9.0])
    >>> grades(Vocabulary(["good", "bad"]), ["bad", "fair", "good"]).tolist()
    [0.0, 2.0]
    """
    if not order:
        return np.array([_grade(label) for label in vocabulary.labels], np.float64)
    place = {label: number for number, label in enumerate(order)}
    if strange := [label for label in vocabulary.labels if label not in place]:
        raise LabelsUnfit(f"the order of labels does not hold {str(strange[0])[:60]!r}")
    return np.array([place[label] for label in vocabulary.labels], np.float64)


def _grade(label: Label) -> float:
    if kind_of(label) in ("number", "text"):
        with suppress(ValueError):
            number = float(cast("str | float", label))
            if isfinite(number):
                return number
    complaint = f"{str(label)[:60]!r} is no number"
    raise LabelsUnfit(f"{complaint}: give the labels' `order`, from the lowest to the highest")


def nominal_warning(labels: Iterable[object], fits: str) -> tuple[str, ...]:
    """Warn where numbers are counted as mere categories; of two it makes no difference.

    Examples
    --------
    >>> print(*nominal_warning([1, 2, 5, 5], "rank_correlation"))
    these labels are numbers, and here 4 differs from 5 as much as from 1; rank_correlation fits
    """
    if len({label for label in labels if kind_of(label) == "number"}) <= 2:
        return ()
    reason = "these labels are numbers, and here 4 differs from 5 as much as from 1"
    return (f"{reason}; {fits} fits",)


def consensus(humans: HumanData, tie_rule: TieRule = "alphabetical") -> HumanLabels:
    """Return the label that most people gave each item, as labels of one ``majority``.

    Vectors are decided position by position, and label sets element by element. Of labels that
    equally many people gave, the alphabetically first is taken (of numbers the smallest; of an
    element: that it is absent), or by `tie_rule` the last one.

    Examples
    --------
    >>> people = {"ann": {"q": "good", "r": "ok"}, "ben": {"q": "bad", "r": "ok"}}
    >>> [row.label for row in consensus(people)], [row.label for row in consensus(people, "last")]
    (['bad', 'ok'], ['good', 'ok'])
    """
    check_option("tie_rule", tie_rule, TieRule)
    by_item: dict[Item, list[Label]] = {}
    for item, _, label in human_labels(humans):
        by_item.setdefault(item, []).append(label)
    kinds = {kind_of(label) for labels in by_item.values() for label in labels}
    if len(kinds) > 1 and kinds & {"vector", "set"}:
        raise LabelsUnfit("label sets or vectors and single labels have no consensus")
    return HumanLabels(
        (item, MAJORITY, _consensus_label(labels, kinds, tie_rule))
        for item, labels in by_item.items()
    )


def _consensus_label(labels: Sequence[Label], kinds: set[Kind], tie_rule: TieRule) -> Label:
    if "vector" in kinds:
        rows = cast("Sequence[tuple[Label, ...]]", labels)
        if len({len(row) for row in rows}) > 1:
            raise LabelsUnfit("vectors of different lengths have no consensus")
        return type(rows[0])(_plurality(column, tie_rule) for column in zip(*rows, strict=True))
    if "set" in kinds:
        sets = [elements_of(label) for label in labels]
        return frozenset(
            element[1]
            for element in frozenset[Element]().union(*sets)
            if _plurality([element in elements for elements in sets], tie_rule)
        )
    return _plurality(labels, tie_rule)


def _plurality(labels: Sequence[Label], tie_rule: TieRule) -> Label:
    counts = Counter(labels)
    most = max(counts.values())
    tied = [label for label in counts if counts[label] == most]
    return (max if tie_rule == "last" else min)(tied, key=_order)
