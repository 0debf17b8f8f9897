"""The heart of the Alt-Test: who agrees better with the others, the judge or a person left out?"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from judge_eval.stats.labels import (
    HumanLabels,
    JudgeLabels,
    Kind,
    Label,
    LabelsUnfit,
    kind_of,
)
from judge_eval.stats.patterns import partners
from judge_eval.stats.vocabulary import (
    MISSING,
    BoolArray,
    FloatArray,
    IntArray,
    Vocabulary,
    elements_of,
    numbered,
)

Scoring: TypeAlias = Literal["accuracy", "neg_rmse", "jaccard_similarity"]
Jaccard: TypeAlias = Literal["set", "positional"]

TIE = 1e-12


@dataclass(frozen=True)
class LeftOutScores:
    """How well each person, left out, and each judge agree with the others on each item.

    Attributes
    ----------
    item, human : int array, shape (n,)
        One entry for each label of a person on an item with enough people, in order of item.
    by_human : float array, shape (n,)
        Agreement of the person left out with the others.
    by_judge : float array, shape (n_judges, n)
        Agreement of the judges with the same others; NaN where the judge gave no label.
    """

    item: IntArray
    human: IntArray
    by_human: FloatArray
    by_judge: FloatArray

    @property
    def judge_holds(self) -> BoolArray:
        """Where the judge agrees at least as well, shape (n_judges, n)."""
        return np.asarray(self.by_judge >= self.by_human - TIE)

    @property
    def human_holds(self) -> BoolArray:
        """Where the person agrees at least as well, shape (n_judges, n)."""
        return np.asarray(self.by_human >= self.by_judge - TIE)

    def outcomes(self, humans: int) -> IntArray:
        """Count who agrees better with the others, per judge and person left out.

        Returns
        -------
        int array, shape (n_judges, n_humans, 3)
            Items on which both agree equally well, the person alone better, the judge alone.
        """
        judge, human = self.judge_holds, self.human_holds
        kinds = (judge & human, human & ~judge, judge & ~human)
        counted = [
            [np.bincount(self.human[row], minlength=humans) for row in kind] for kind in kinds
        ]
        return np.array(counted, np.int64).transpose(1, 2, 0)


def scoring_of(kinds: AbstractSet[Kind]) -> Scoring:
    """Tell how labels of these kinds are compared.

    Text and truth values by equality, numbers by RMSE, label sets by Jaccard; a mix by equality.

    Examples
    --------
    >>> scoring_of({"text"}), scoring_of({"truth"}), scoring_of({"number"}), scoring_of({"set"})
    ('accuracy', 'accuracy', 'neg_rmse', 'jaccard_similarity')
    """
    if kinds and kinds <= {"set", "vector"}:
        return "jaccard_similarity"
    return "neg_rmse" if kinds == {"number"} else "accuracy"


def leave_one_out(
    judges: Mapping[str, JudgeLabels],
    people: HumanLabels,
    min_humans_per_item: int,
    scoring: Scoring,
    jaccard: Jaccard = "set",
) -> LeftOutScores:
    """Score every label of a person, and the judges' on that item, against the other people's.

    Parameters
    ----------
    judges : mapping of str to JudgeLabels
    people : HumanLabels
    min_humans_per_item : int
        Items with fewer labels are left out; at least 2, since someone must be left to agree with.
    scoring : {'accuracy', 'neg_rmse', 'jaccard_similarity'}
        The mean over the others of ``[x = y]``; ``-sqrt(mean (x - y)²)``; the mean of the Jaccard
        similarity.
    jaccard : {'set', 'positional'}
        See `jaccard_similarity`.
    """
    items = numbered(row.item for row in people)
    people_numbers = numbered(people.humans)
    item = np.array([items[row.item] for row in people], np.int64)
    human = np.array([people_numbers[row.human] for row in people], np.int64)
    said = [[judge.by_item.get(name) for name in items] for judge in judges.values()]
    vocabulary = Vocabulary(
        [row.label for row in people] + [x for labels in said for x in labels if x is not None]
    )
    code = vocabulary.codes([row.label for row in people])
    enough = np.bincount(item, minlength=len(items)) >= max(2, min_humans_per_item)
    order = np.argsort(item, kind="stable")
    order = order[enough[item[order]]]
    item, human, code = item[order], human[order], code[order]
    judged = np.array([vocabulary.codes(labels)[item] for labels in said])
    judged = judged.reshape(len(said), len(item))
    if scoring == "accuracy":
        scores = [_matches(item, code, one, len(vocabulary)) for one in (code, *judged)]
    else:
        compare = _Comparison(item, code, vocabulary, scoring, jaccard)
        scores = [compare.with_others(one) for one in (code, *judged)]
    by_judge = np.array(scores[1:]).reshape(judged.shape)
    return LeftOutScores(item, human, scores[0], np.where(judged == MISSING, np.nan, by_judge))


def _matches(item: IntArray, code: IntArray, said: IntArray, size: int) -> FloatArray:
    """Return the share of the other people who gave the label `said`, shape (n,)."""
    keys, counts = np.unique(item * size + code, return_counts=True)
    wanted = item * size + said
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    matching = np.where(keys[at] == wanted, counts[at], 0) - (said == code)
    others = np.bincount(item)[item] - 1
    return np.asarray(matching / others)


class _Comparison:
    """Compares labels two by two, each combination of labels once."""

    def __init__(
        self,
        item: IntArray,
        code: IntArray,
        vocabulary: Vocabulary,
        scoring: Scoring,
        jaccard: Jaccard,
    ) -> None:
        self._labels, self._scoring, self._jaccard = vocabulary.labels, scoring, jaccard
        self._one, other = partners(item)
        self._other = code[other]
        _, self._starts = np.unique(self._one, return_index=True)

    def with_others(self, said: IntArray) -> FloatArray:
        """Return how well `said`, shape (n,), agrees with the other people, shape (n,)."""
        if not len(said):
            return np.empty(0)
        mine = said[self._one]
        if self._scoring == "neg_rmse":
            numbers = np.array([_number(label) for label in self._labels])
            squares = (numbers[mine] - numbers[self._other]) ** 2
            return np.asarray(-np.sqrt(self._mean(squares)))
        keys, where = np.unique(mine * len(self._labels) + self._other, return_inverse=True)
        alike = [
            jaccard_similarity(self._labels[a], self._labels[b], self._jaccard)
            for a, b in (divmod(int(key), len(self._labels)) for key in keys)
        ]
        return self._mean(np.array(alike)[where])

    def _mean(self, values: FloatArray) -> FloatArray:
        sizes = np.diff(self._starts, append=len(values))
        return np.asarray(np.add.reduceat(values, self._starts) / sizes)


def _number(label: Label) -> float:
    if not isinstance(label, int | float):
        raise LabelsUnfit(f"the distance of numbers cannot be taken of a {kind_of(label)}: {label}")
    return float(label)


def jaccard_similarity(one: Label, other: Label, form: Jaccard = "set") -> float:
    """Return how alike two label sets or vectors are.

    Parameters
    ----------
    one, other : label set or vector
    form : {'set', 'positional'}
        ``set``: elements of both over elements of either, and 1 where both are empty.
        ``positional``: for each label the positions that have it in both over those in either,
        averaged over the labels; so agreeing on what is absent counts too.

    Raises
    ------
    LabelsUnfit
        When vectors are compared by position and their lengths differ.

    Examples
    --------
    >>> a, b = ("hateful", "FALSE", "sexual"), ("hateful", "FALSE", "FALSE")
    >>> jaccard_similarity(a, b), jaccard_similarity(a, b, "positional")
    (0.5, 0.5)
    """
    if form == "set":
        mine, theirs = elements_of(one), elements_of(other)
        return len(mine & theirs) / len(mine | theirs) if mine | theirs else 1.0
    if not (isinstance(one, tuple) and isinstance(other, tuple)) or len(one) != len(other):
        raise LabelsUnfit("labels are compared by position only where they have as many positions")
    either = list(zip(one, other, strict=True))
    shares = [
        sum(a == b == label for a, b in either) / sum(label in pair for pair in either)
        for label in {*one, *other}
    ]
    return sum(shares) / len(shares) if shares else 1.0
