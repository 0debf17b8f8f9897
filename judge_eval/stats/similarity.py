"""How alike two texts are: their letters, or their meaning by embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

import numpy as np

from judge_eval.stats.averages import Averaged, mean_by_rater
from judge_eval.stats.labels import HumanData, JudgeData, LabelsUnfit
from judge_eval.stats.pairs import Paired, paired
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.vocabulary import BoolArray, FloatArray

BEST_MATCH = "best match"


@dataclass(frozen=True)
class Spread:
    """All similarities together, whoever they are with; null where there are none.

    Attributes
    ----------
    mean, median, std : float or None
        `std` is that of these values, not an estimate for others (divided by n).
    count : int
    """

    mean: float | None
    median: float | None
    std: float | None
    count: int


@dataclass(frozen=True)
class Similarity(Averaged):
    """A similarity per person and on average, and how the single ones are spread.

    Attributes
    ----------
    spread : Spread
        Of all comparisons that could be made.
    """

    spread: Spread


def text_similarity(
    judge: JudgeData,
    humans: HumanData,
    *,
    best_match: bool = False,
    resampling: Resampling | None = None,
) -> Similarity:
    """Compare a judge's texts with each person's, letter by letter, and average over people.

    ``2 M / T`` with the letters M that match and all letters T of both texts, lower-cased and
    without spaces at the ends (``difflib.SequenceMatcher.ratio``). Two empty texts are alike.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
        Of vectors of texts the ratios are averaged.
    best_match : bool
        Compare each item with the person whose text is most alike, instead of with everybody.

    Raises
    ------
    LabelsUnfit
        When a label is no text and no vector of texts.

    Examples
    --------
    >>> text_similarity({"q": "abcd"}, {"ann": {"q": " BCDE"}}).figure.value
    0.75
    """
    return similarities(
        paired(judge, humans, free_text=True),
        best_match=best_match,
        resampling=resampling or Resampling(),
    )


def similarities(pairs: Paired, *, best_match: bool, resampling: Resampling) -> Similarity:
    """Compute the text similarity of pairs of labels, per rater and on average."""
    values = ratios(pairs)
    if best_match:
        pairs, values = best_of_item(pairs, values)
    found = mean_by_rater(pairs, values, resampling)
    return Similarity(found.figure, found.by_human, spread(values))


def ratios(pairs: Paired) -> FloatArray:
    """Return how alike each two texts are, shape (n_pairs,)."""
    both, where = np.unique(pairs.left * len(pairs.vocabulary) + pairs.right, return_inverse=True)
    texts = [texts_of(label) for label in pairs.vocabulary.labels]
    unique = [
        _ratio(texts[left], texts[right])
        for left, right in (divmod(int(key), len(pairs.vocabulary)) for key in both)
    ]
    return np.array(unique, np.float64)[where]


def texts_of(label: object) -> tuple[str, ...]:
    """Return the texts that a label holds.

    Raises
    ------
    LabelsUnfit
        When it is no text and no vector of texts.
    """
    if isinstance(label, str):
        return (label,)
    if isinstance(label, tuple) and label and all(isinstance(part, str) for part in label):
        return label
    raise LabelsUnfit(f"{label!r} is no text")


def is_text(label: object) -> bool:
    """Say whether a label is a text or a vector of texts."""
    return isinstance(label, str) or (
        isinstance(label, tuple) and bool(label) and all(isinstance(part, str) for part in label)
    )


def best_of_item(pairs: Paired, values: FloatArray) -> tuple[Paired, FloatArray]:
    """Keep of each item the pair with the highest value, as by one rater.

    Examples
    --------
    >>> pairs = paired({"q": "x"}, {"ann": {"q": "y"}, "ben": {"q": "x"}})
    >>> best, values = best_of_item(pairs, np.array([0.0, 1.0]))
    >>> best.raters, values
    (('best match',), array([1.]))
    """
    order = np.lexsort((-pairs.rater, values, pairs.item))
    is_best: BoolArray = np.zeros(len(pairs), bool)
    last = np.append(pairs.item[order][1:] != pairs.item[order][:-1], True)[: len(pairs)]
    is_best[order[last]] = True
    kept = pairs.select(is_best)
    raters = (BEST_MATCH,) if len(kept) else ()
    return replace(kept, raters=raters, rater=np.zeros_like(kept.rater)), values[is_best]


def spread(values: FloatArray) -> Spread:
    """Sum up all similarities.

    Examples
    --------
    >>> spread(np.array([0.0, 1.0]))
    Spread(mean=0.5, median=0.5, std=0.5, count=2)
    """
    if not len(values):
        return Spread(None, None, None, 0)
    return Spread(float(values.mean()), float(np.median(values)), float(values.std()), len(values))


def _ratio(one: Sequence[str], other: Sequence[str]) -> float:
    if len(one) != len(other):
        raise LabelsUnfit(f"{len(one)} texts cannot be compared with {len(other)}")
    parts = [
        SequenceMatcher(None, a.lower().strip(), b.lower().strip()).ratio()
        for a, b in zip(one, other, strict=True)
    ]
    return sum(parts) / len(parts)
