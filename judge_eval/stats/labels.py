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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import isfinite, isnan
from typing import Literal, NamedTuple, TypeAlias, TypeVar, overload

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


class _Rows(Sequence[Row]):
    _rows: list[Row]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def _parted(self, fits: Callable[[Label], bool]) -> tuple[list[Row], list[Row]]:
        """Return the rows whose labels fit, and the others; each different label is asked once."""
        known: dict[tuple[type, Label], bool] = {}
        kept: list[Row] = []
        others: list[Row] = []
        for row in self._rows:
            key = type(row.label), row.label
            if key not in known:
                known[key] = fits(row.label)
            (kept if known[key] else others).append(row)
        return kept, others

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of labels there are."""
        return frozenset(kind_of(row.label) for row in self._rows)


class HumanLabels(_Rows[HumanLabel]):
    """What people said: rows of (item, human, label) without the missing ones.

    Parameters
    ----------
    rows : iterable of (item, human, label)
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
        self._rows = []
        seen: set[tuple[Item, str]] = set()
        for item, human, raw in rows:
            if (item, human) in seen:
                raise ValueError(f"{human} labelled {item} twice")
            seen.add((item, human))
            label = clean(raw, free_text=free_text)
            if label is None:
                self.missing[human] += 1
            else:
                self._rows.append(HumanLabel(item, human, label))
        self.humans = tuple(sorted({row.human for row in self._rows}))

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
    rows : iterable of (item, label)
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
        self._rows = [JudgeLabel(item, label) for item, label in self.by_item.items()]

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
