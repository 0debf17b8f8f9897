"""Labels of people and of judges, lined up by item.

A label is one of

======================================  =====================================================
text                                    a pair vote (``A``, ``B``, ``tie``, ``both_bad``), pass
                                        or flag, a category, or free text
truth value                             counts as a category, never as a number
number                                  a rating; a category for all scorers but the Alt-Test
list or set of texts                    a label set; ``FALSE`` in it says that a label is absent
list of numbers or truth values         an indicator vector: position i says whether label i is
                                        there
======================================  =====================================================

None, NaN and an empty text are missing labels, which are dropped and counted; but free text may be
empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from math import isfinite, isnan
from typing import Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

import numpy as np
from numpy.typing import NDArray

Item: TypeAlias = Hashable
Label: TypeAlias = str | int | float | tuple[object, ...] | frozenset[object]
Kind: TypeAlias = Literal["text", "truth", "number", "vector", "set"]


class LabelsUnfit(ValueError):
    """Labels that cannot be compared in the way asked for; the message says why."""


class HumanLabel(NamedTuple):
    item: Item
    human: str
    label: Label


class JudgeLabel(NamedTuple):
    item: Item
    label: Label


class Vector(tuple[object, ...]):
    """The labels that several tasks gave one item, in the order of the tasks."""

    __slots__ = ()


Row = TypeVar("Row", HumanLabel, JudgeLabel)


class _Rows(list[Row]):
    """Rows without the missing labels."""

    def _parted(self, fits: Callable[[Label], bool]) -> tuple[list[Row], list[Row]]:
        """Return the rows whose labels fit, and the others; each different label is asked once."""
        known: dict[tuple[type, Label], bool] = {}
        kept: list[Row] = []
        others: list[Row] = []
        for row in self:
            key = type(row.label), row.label
            if key not in known:
                known[key] = fits(row.label)
            (kept if known[key] else others).append(row)
        return kept, others

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of labels there are."""
        return frozenset(kind_of(row.label) for row in self)


class HumanLabels(_Rows[HumanLabel]):
    """What people said: rows of (item, human, label) without the missing ones.

    Parameters
    ----------
    free_text : bool
        Whether an empty text is a label.

    Attributes
    ----------
    humans : tuple of str
        Everybody who gave a label, in order of name.
    missing : Counter
        Labels that were missing, by human.

    Raises
    ------
    ValueError
        When someone labelled an item twice.
    TypeError
        When something cannot be a label.

    Examples
    --------
    >>> labels = HumanLabels([("q1", "ann", "A"), ("q1", "ben", "tie"), ("q2", "ann", None)])
    >>> labels.humans, len(labels), labels[1].label, labels.missing["ann"]
    (('ann', 'ben'), 2, 'tie', 1)
    """

    def __init__(
        self, rows: Iterable[tuple[Item, str, object]], *, free_text: bool = False
    ) -> None:
        self.missing: Counter[str] = Counter()
        super().__init__()
        seen: set[tuple[Item, str]] = set()
        for item, human, raw in rows:
            if (item, human) in seen:
                raise ValueError(f"{human} labelled {item} twice")
            seen.add((item, human))
            label = clean(raw, free_text=free_text)
            if label is None:
                self.missing[human] += 1
            else:
                self.append(HumanLabel(item, human, label))
        self.humans = tuple(sorted({row.human for row in self}))

    def only(self, fits: Callable[[Label], bool]) -> tuple[HumanLabels, list[HumanLabel]]:
        """Return the labels that fit, and the rows of the others."""
        kept, others = self._parted(fits)
        if not others:
            return self, []
        found = HumanLabels(kept)
        found.missing = self.missing.copy()
        return found, others


class JudgeLabels(_Rows[JudgeLabel]):
    """What one judge said: rows of (item, label) without the missing ones.

    Parameters
    ----------
    free_text : bool
        Whether an empty text is a label.

    Attributes
    ----------
    by_item : dict
        The label of each item.
    missing : int
        Labels that were missing.

    Raises
    ------
    ValueError
        When an item is labelled twice.
    TypeError
        When something cannot be a label.
    """

    def __init__(self, rows: Iterable[tuple[Item, object]], *, free_text: bool = False) -> None:
        self.by_item: dict[Item, Label] = {}
        missing: set[Item] = set()
        for item, raw in rows:
            if item in self.by_item or item in missing:
                raise ValueError(f"the judge labelled {item} twice")
            label = clean(raw, free_text=free_text)
            if label is None:
                missing.add(item)
            else:
                self.by_item[item] = label
        self.missing = len(missing)
        super().__init__(JudgeLabel(item, label) for item, label in self.by_item.items())

    def only(self, fits: Callable[[Label], bool]) -> tuple[JudgeLabels, list[JudgeLabel]]:
        """Return the labels that fit, and the rows of the others."""
        kept, others = self._parted(fits)
        if not others:
            return self, []
        found = JudgeLabels(kept)
        found.missing = self.missing
        return found, others


HumanData: TypeAlias = (
    HumanLabels | Mapping[str, Mapping[Item, object]] | Iterable[tuple[Item, str, object]]
)
JudgeData: TypeAlias = JudgeLabels | Mapping[Item, object] | Iterable[tuple[Item, object]]


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
        data = (
            (item, human, label) for human, said in data.items() for item, label in said.items()
        )
    return HumanLabels(data, free_text=free_text)


def judge_labels(data: JudgeData, *, free_text: bool = False) -> JudgeLabels:
    """Read a judge's labels: rows of (item, label), or ``{item: label}``."""
    if isinstance(data, JudgeLabels):
        return data
    rows = data.items() if isinstance(data, Mapping) else data
    return JudgeLabels(rows, free_text=free_text)


def clean(raw: object, *, free_text: bool = False) -> Label | None:
    """Return a label that can be compared and counted; None where it is missing.

    An empty text is missing, unless the task is `free_text`: there it is an answer.

    Raises
    ------
    TypeError
        When it cannot be a label.
    ValueError
        When it is an infinite number.

    Examples
    --------
    >>> clean(["b", "a"]), clean(True), clean(float("nan")), clean(" "), clean("", free_text=True)
    (('b', 'a'), True, None, None, '')
    """
    if isinstance(raw, str):
        return raw if free_text or raw.strip() else None
    if raw is None:
        return None
    if isinstance(raw, int | float):
        return _number(raw)
    if isinstance(raw, Vector):
        return raw
    if isinstance(raw, list | tuple):
        # An empty part of a label set says that a label is absent.
        parts = [clean(part, free_text=True) for part in raw]
        return None if None in parts else tuple(parts)
    if isinstance(raw, set | frozenset):
        return frozenset(raw)
    if hasattr(raw, "tolist"):  # what numpy holds, scalar or array
        return clean(raw.tolist(), free_text=free_text)
    raise TypeError(f"a {type(raw).__name__} cannot be a label: {raw!r}")


def _number(raw: float) -> float | None:
    if isnan(raw):
        return None
    if not isfinite(raw):
        raise ValueError(f"{raw} cannot be a label")
    return raw


def kind_of(label: object) -> Kind:
    """Say what a label is.

    Examples
    --------
    >>> [kind_of(label) for label in ("A", True, 4, (1, 0), ("toxic", "FALSE"))]
    ['text', 'truth', 'number', 'vector', 'set']
    """
    if isinstance(label, bool):
        return "truth"
    if isinstance(label, int | float):
        return "number"
    if isinstance(label, Vector):
        return "vector"
    if isinstance(label, tuple | list):
        return "vector" if label and not any(isinstance(part, str) for part in label) else "set"
    return "set" if isinstance(label, frozenset | set) else "text"


IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Element = tuple[int | None, object]

MISSING = -1


class _NoLabel(tuple[object, ...]):
    """A label set of nothing that is not the empty one: it equals itself only."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return "no label"


# Stands where a judge gave none and that shall count as wrong; no class of labels holds it.
NO_LABEL = _NoLabel()


class Vocabulary:
    """The different labels of some data in alphabetical order, numbers by size and first.

    A label's code is its place in that order, so codes do not depend on the order of the data.

    Examples
    --------
    >>> vocabulary = Vocabulary(["tie", "A", "tie", 10, 9])
    >>> vocabulary.labels
    (9, 10, 'A', 'tie')
    >>> vocabulary.codes(["A", 9, None])
    array([ 2,  0, -1])
    """

    def __init__(self, labels: Iterable[Label]) -> None:
        self.labels: tuple[Label, ...] = tuple(sorted(set(labels), key=_order))
        self._code = {label: code for code, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    def code(self, label: object) -> int | None:
        """Return a label's code, None where nothing has that label."""
        return self._code.get(label)  # type: ignore[call-overload, no-any-return]

    def codes(self, labels: Sequence[Label | None]) -> IntArray:
        """Return the codes of labels, -1 for None."""
        found = (MISSING if label is None else self._code[label] for label in labels)
        return np.fromiter(found, np.int64, len(labels))

    @cached_property
    def is_multilabel(self) -> bool:
        """Whether labels are sets or vectors."""
        return any(
            kind_of(label) in ("set", "vector") for label in self.labels if label is not NO_LABEL
        )

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
        said = (
            frozenset([(None, label)]) if label is NO_LABEL else elements_of(label)
            for label in self.labels
        )
        return np.array([first.setdefault(part, code) for code, part in enumerate(said)], np.int64)

    @cached_property
    def elements(self) -> tuple[tuple[Element, ...], list[IntArray]]:
        """The classes there are, and which of them each label stands for.

        A single label is one class. A label set is its elements; an indicator vector the positions
        that are on, and every position is a class, also one that is never on.
        """
        parts = [frozenset() if label is NO_LABEL else elements_of(label) for label in self.labels]
        classes = {element for part in parts for element in part}
        for label in self.labels:
            if isinstance(label, tuple) and _is_indicator(label):
                classes |= {(position, 1) for position in range(len(label))}
        ordered = tuple(sorted(classes, key=lambda element: (element[0] or 0, _order(element[1]))))
        number = {element: index for index, element in enumerate(ordered)}
        return ordered, [
            np.array(sorted(number[element] for element in part), np.int64) for part in parts
        ]


def numbered(items: Iterable[Item]) -> dict[Item, int]:
    """Number things in the order of their first appearance."""
    return {item: number for number, item in enumerate(dict.fromkeys(items))}


def elements_of(label: object) -> frozenset[Element]:
    """Return what a label says is there.

    Zero, False, the empty text and the word ``FALSE`` say that something is absent.

    Examples
    --------
    >>> sorted(elements_of(("hateful", "FALSE")))
    [(None, 'hateful')]
    >>> sorted(elements_of((1, 0, True)))
    [(0, 1), (2, True)]
    >>> elements_of("hateful")
    frozenset({(None, 'hateful')})
    """
    kind = kind_of(label)
    if kind == "vector" and isinstance(label, Sequence):
        return frozenset((at, part) for at, part in enumerate(label) if not is_absent(part))
    if kind == "set" and isinstance(label, Iterable):
        return frozenset((None, part) for part in label if not is_absent(part))
    return frozenset([(None, label)])


def is_absent(part: object) -> bool:
    """Say whether a part of a multilabel label means "not there"."""
    return part in (0, "") or (isinstance(part, str) and part.casefold() == "false")


def _is_indicator(label: tuple[object, ...]) -> bool:
    return kind_of(label) == "vector" and all(part in (0, 1) for part in label)


def _order(label: object) -> tuple[int, float, str, tuple[object, ...]]:
    if isinstance(label, int | float):
        return 0, label, "", ()
    if isinstance(label, str):
        return 1, 0, label, ()
    if isinstance(label, tuple):
        return 2, 0, "", tuple(_order(part) for part in label)
    if isinstance(label, frozenset):
        return 3, 0, "", tuple(sorted(_order(part) for part in label))
    return 4, 0, repr(label), ()


# With two labels there is one difference, and it is the same however it is counted.
TWO_LABELS = 2


def grades(vocabulary: Vocabulary, order: Sequence[Label] = ()) -> FloatArray:
    """Return the number that each label stands for, by code.

    Parameters
    ----------
    order : sequence of Label, optional
        All labels from the lowest to the highest; they stand for 0, 1, 2 …. Without it the labels
        must be numbers, or texts that can be read as numbers, and stand for these.

    Raises
    ------
    LabelsUnfit
        When the labels have no order, or some of them do not stand in it.

    Examples
    --------
    >>> grades(Vocabulary([4, 2.5])).tolist(), grades(Vocabulary(["10", "9"])).tolist()
    ([2.5, 4.0], [10.0, 9.0])
    >>> grades(Vocabulary(["good", "bad"]), ["bad", "fair", "good"]).tolist()
    [0.0, 2.0]
    """
    if order:
        place = {label: float(number) for number, label in enumerate(order)}
        strange = [label for label in vocabulary.labels if label not in place]
        if strange:
            raise LabelsUnfit(f"the order of labels does not hold {str(strange[0])[:60]!r}")
        return np.array([place[label] for label in vocabulary.labels])
    return np.array([_grade(label) for label in vocabulary.labels], np.float64)


def _grade(label: Label) -> float:
    if kind_of(label) in ("number", "text"):
        try:
            number = float(label)  # type: ignore[arg-type]
        except ValueError:
            number = np.nan
        if np.isfinite(number):
            return number
    what = f"{str(label)[:60]!r} is no number"
    raise LabelsUnfit(f"{what}: give the labels' `order`, from the lowest to the highest")


def nominal_warning(labels: Sequence[object], fits: str) -> tuple[str, ...]:
    """Warn where numbers are counted as mere categories.

    Examples
    --------
    >>> print(*nominal_warning([1, 2, 5, 5], "rank_correlation"))
    these labels are numbers, and here 4 differs from 5 as much as from 1; rank_correlation fits
    >>> nominal_warning([0, 1, 1], "rank_correlation")
    ()
    """
    numbers = {label for label in labels if kind_of(label) == "number"}
    if len(numbers) <= TWO_LABELS:
        return ()
    why = "these labels are numbers, and here 4 differs from 5 as much as from 1"
    return (f"{why}; {fits} fits",)


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
    return _plurality(item, labels, tie_rule) if labels else []


def _plurality(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> list[Label]:
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
        _plurality(item, cast("list[Label]", list(column)), tie_rule)
        for column in zip(*rows, strict=True)
    ]
    return [type(rows[0])(parts) for parts in zip(*columns, strict=True)]


def _by_element(item: IntArray, labels: Sequence[Label], tie_rule: TieRule) -> list[Label]:
    sets = [elements_of(label) for label in labels]
    every = sorted(frozenset().union(*sets), key=repr)
    columns = [_plurality(item, [element in said for said in sets], tie_rule) for element in every]
    chosen = zip(*columns, strict=True) if columns else [()] * (int(item.max()) + 1)
    return [
        frozenset(name for (_, name), there in zip(every, row, strict=True) if there)
        for row in chosen
    ]
