"""Array work on labels grouped by item: which items look alike, and who shares an item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from judge_eval.stats.estimate import LeftOut, left_out
from judge_eval.stats.labels import (
    MISSING,
    NO_LABEL,
    BoolArray,
    HumanData,
    HumanLabel,
    HumanLabels,
    IntArray,
    Item,
    JudgeData,
    Label,
    Vocabulary,
    human_labels,
    judge_labels,
    numbered,
)


@dataclass(frozen=True)
class Patterns:
    """Items that look alike, taken together.

    Attributes
    ----------
    counts : int array, shape (n_patterns,)
        How many items have each pattern.
    pair : int array, shape (n_kept,)
        Positions of what was said of one item of each pattern.
    pattern : int array, shape (n_kept,)
        The pattern of each of these.
    """

    counts: IntArray
    pair: IntArray
    pattern: IntArray


def patterns_of(item: IntArray, said: NDArray[np.uint64]) -> Patterns:
    """Find the items on which the same was said.

    Parameters
    ----------
    item : int array, shape (n,)
        Sorted.
    said : uint64 array, shape (n,)
        What was said of the item, as a number; the order of what was said does not matter.

    Examples
    --------
    >>> found = patterns_of(np.array([1, 1, 2, 2, 3]), np.array([7, 8, 8, 7, 9], np.uint64))
    >>> sorted(map(int, found.counts)), len(found.pair)
    ([1, 2], 3)
    """
    fresh = np.ones(len(item), bool)
    fresh[1:] = item[1:] != item[:-1]
    starts = np.flatnonzero(fresh)
    hashed = _scrambled(said)
    keys = np.add.reduceat(hashed, starts) if len(item) else hashed
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    of_item = np.full(len(starts), MISSING)
    of_item[first] = np.arange(len(first))
    pattern = np.repeat(of_item, np.diff(starts, append=len(item)))
    kept = np.flatnonzero(pattern != MISSING)
    return Patterns(counts, kept, pattern[kept])


def partners(group: IntArray) -> tuple[IntArray, IntArray]:
    """Pair every element with each other one of its group, in both orders.

    Parameters
    ----------
    group : int array, shape (n,)
        Sorted.

    Returns
    -------
    one, other : int array, shape (n_pairs,)
        Positions, in order of `one`.

    Examples
    --------
    >>> [list(map(int, side)) for side in partners(np.array([4, 4, 7]))]
    [[0, 1], [1, 0]]
    """
    _, first, inverse, sizes = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    size = sizes[inverse]
    one = np.repeat(np.arange(len(group)), size)
    within = np.arange(len(one)) - np.repeat(np.cumsum(size) - size, size)
    other = first[inverse][one] + within
    return one[one != other], other[one != other]


def _scrambled(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash numbers to numbers (the finaliser of splitmix64)."""
    z = numbers + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


Missing: TypeAlias = Literal["drop", "wrong"]
_NOT_JUDGED: Final = "the judge gave that item no label"


@dataclass(frozen=True)
class Paired:
    """Pairs of labels, in order of item.

    Attributes
    ----------
    raters : tuple of str
        Who stands on the right: the people. Between people, the names of both.
    names : tuple
        The items, by their number.
    item, rater, left, right : int array, shape (n,)
        Number of the item and of the rater, and the codes of both labels. In a comparison with a
        judge its label is on the left.
    """

    vocabulary: Vocabulary
    raters: tuple[str, ...]
    names: tuple[Item, ...]
    item: IntArray
    rater: IntArray
    left: IntArray
    right: IntArray
    between_people: bool = False
    left_out: tuple[LeftOut, ...] = ()

    def __len__(self) -> int:
        return len(self.item)

    @property
    def items(self) -> int:
        """How many items there are."""
        return int(self.patterns.counts.sum())

    @cached_property
    def n_by_rater(self) -> IntArray:
        """Pairs of each rater, shape (n_raters,)."""
        return np.bincount(self.rater, minlength=len(self.raters))

    @cached_property
    def unlabelled(self) -> int:
        """Items that the judge gave no label, where these are kept."""
        code = self.vocabulary.code(NO_LABEL)
        return 0 if code is None else len(np.unique(self.item[self.left == code]))

    def select(self, keep: BoolArray) -> Paired:
        """Return the pairs where `keep`, of shape (n,), is true; raters stay as they are."""
        return replace(
            self,
            item=self.item[keep],
            rater=self.rater[keep],
            left=self.left[keep],
            right=self.right[keep],
        )

    def without(self, *labels: object) -> Paired:
        """Return the pairs in which nobody said one of these labels (for instance ``tie``)."""
        codes = [code for label in labels if (code := self.vocabulary.code(label)) is not None]
        return self.select(~(np.isin(self.left, codes) | np.isin(self.right, codes)))

    @property
    def merged(self) -> Paired:
        """The pairs with one code for all labels that say the same; see `Vocabulary.same`."""
        if not self.vocabulary.is_multilabel:
            return self
        same = self.vocabulary.same
        return replace(self, left=same[self.left], right=same[self.right])

    @cached_property
    def patterns(self) -> Patterns:
        """Items on which everybody said the same, as one pattern with a count.

        The pattern of an item is the sum of a hash of each of its pairs, which depends on nothing
        but who said what: not on the items' names or order.
        """
        width = np.uint64(len(self.vocabulary))
        said = (self.rater.astype(np.uint64) * width + self.left.astype(np.uint64)) * width
        return patterns_of(self.item, said + self.right.astype(np.uint64))


def paired(
    judge: JudgeData,
    humans: HumanData,
    *,
    missing: Missing = "drop",
    free_text: bool = False,
) -> Paired:
    """Line up a judge's labels with those of every person who labelled the same items.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    missing : {'drop', 'wrong'}
        Leave items out that the judge gave no label, or let it have given `NO_LABEL` there, which
        equals nothing.
    free_text : bool
        Whether an empty text is a label.

    Returns
    -------
    Paired
        People without an item in common with the judge are left out, and reported.

    Examples
    --------
    >>> pairs = paired({"q1": "A", "q2": "B"}, {"ann": {"q1": "A", "q3": "B"}, "ben": {"q4": "A"}})
    >>> len(pairs), pairs.raters
    (1, ('ann',))
    >>> [(gap.what, gap.count, gap.why) for gap in pairs.left_out][0]
    ('labels', 2, 'the judge gave that item no label')
    """
    said = judge_labels(judge, free_text=free_text)
    people = human_labels(humans, free_text=free_text)
    by_item = dict(said.by_item)
    if missing == "wrong":
        by_item = {row.item: NO_LABEL for row in people} | by_item
    common = [row for row in people if row.item in by_item]
    raters = tuple(sorted({row.human for row in common}))
    items, numbers = numbered(row.item for row in common), numbered(raters)
    vocabulary = Vocabulary([*by_item.values(), *(row.label for row in people)])
    item = np.array([items[row.item] for row in common], np.int64)
    order = np.argsort(item, kind="stable")
    return Paired(
        vocabulary,
        raters,
        tuple(items),
        item[order],
        np.array([numbers[row.human] for row in common], np.int64)[order],
        vocabulary.codes([by_item[row.item] for row in common])[order],
        vocabulary.codes([row.label for row in common])[order],
        left_out=_gaps(by_item, people, common, raters),
    )


def paired_people(humans: HumanData, *, ordered: bool = False, free_text: bool = False) -> Paired:
    """Line up the labels of every two people who labelled the same items.

    Parameters
    ----------
    humans : rows of (item, human, label), or ``{human: {item: label}}``
    ordered : bool
        Whether two people are compared twice, each once on the left, as figures need that tell the
        judge from the person (precision, recall).
    free_text : bool
        Whether an empty text is a label.

    Examples
    --------
    >>> people = {"ann": {"q1": "A"}, "ben": {"q1": "B"}, "cem": {"q1": "A"}}
    >>> paired_people(people).raters
    ('ann & ben', 'ann & cem', 'ben & cem')
    """
    people = human_labels(humans, free_text=free_text)
    numbers, items = numbered(people.humans), numbered(row.item for row in people)
    item = np.array([items[row.item] for row in people], np.int64)
    who = np.array([numbers[row.human] for row in people], np.int64)
    order = np.lexsort((who, item))
    item, who = item[order], who[order]
    vocabulary = Vocabulary(row.label for row in people)
    code = vocabulary.codes([row.label for row in people])[order]
    one, other = partners(item)
    if not ordered:
        one, other = one[one < other], other[one < other]
    together, rater = np.unique(who[one] * len(numbers) + who[other], return_inverse=True)
    names = [divmod(int(both), len(numbers)) for both in together]
    return Paired(
        vocabulary,
        tuple(f"{people.humans[a]} & {people.humans[b]}" for a, b in names),
        tuple(items),
        item[one],
        rater,
        code[one],
        code[other],
        between_people=True,
        left_out=_missing(people),
    )


def _gaps(
    by_item: Mapping[Item, Label],
    people: HumanLabels,
    common: list[HumanLabel],
    raters: tuple[str, ...],
) -> tuple[LeftOut, ...]:
    labelled = {row.item for row in people}
    unjudged = [row.item for row in people if row.item not in by_item]
    alone = [item for item in by_item if item not in labelled]
    strangers = sorted(set(people.humans) - set(raters)) if common else []
    return (
        *left_out("labels", unjudged, _NOT_JUDGED),
        *left_out("items", alone, "no person labelled it"),
        *left_out("humans", strangers, "they labelled no item that the judge labelled"),
        *_missing(people),
    )


def _missing(people: HumanLabels) -> tuple[LeftOut, ...]:
    total = people.missing.total()
    names = tuple(sorted(people.missing))
    return (LeftOut("labels", total, "the person's label is missing", names),) if total else ()
