"""Labels as whole numbers, so that arrays can hold them; and what a label set is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.labels import Item, Label, kind_of

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

    Parameters
    ----------
    labels : iterable of Label

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
