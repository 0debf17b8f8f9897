"""How alike two texts are in meaning: the cosine of their embeddings.

Where embeddings come from is not this package's business: a function from texts to vectors is
handed in, which may ask an endpoint or a local model. What it could not embed is an error of that
item, never a similarity of 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from judge_eval.stats.averages import NOTHING_IN_COMMON, mean_by_rater
from judge_eval.stats.figures import LeftOut, left_out
from judge_eval.stats.labels import HumanData, JudgeData
from judge_eval.stats.pairs import Paired, paired
from judge_eval.stats.resampling import Resampling
from judge_eval.stats.similarity import Similarity, best_of_item, spread, texts_of
from judge_eval.stats.vocabulary import FloatArray

BATCH_SIZE = 100


class EmbeddingFailed(Exception):
    """Why a text has no embedding; raised where none of the texts given has one."""


class Embedder(Protocol):
    """Turns texts into vectors; `model` names what does, and stands in every result."""

    @property
    def model(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Sequence[npt.ArrayLike | EmbeddingFailed | None]:
        """Embed some texts.

        Returns
        -------
        sequence, one row per text
            An EmbeddingFailed that says why (or None, or a row with NaN) for a text that could not
            be embedded. An array will do.

        Raises
        ------
        EmbeddingFailed
            When all of them could not.
        """


@dataclass(frozen=True)
class Semantic(Similarity):
    """A semantic similarity, and by which model.

    Attributes
    ----------
    model : str
    """

    model: str


def semantic_similarity(
    judge: JudgeData,
    humans: HumanData,
    embed: Embedder,
    *,
    best_match: bool = False,
    resampling: Resampling | None = None,
    batch_size: int = BATCH_SIZE,
) -> Semantic:
    """Compare a judge's texts with each person's by meaning, and average over people.

    ``cosine(a, b) = a · b / (|a| |b|)`` of the embeddings of both texts, as they were written.

    Parameters
    ----------
    judge : rows of (item, label), or ``{item: label}``
    humans : rows of (item, human, label), or ``{human: {item: label}}``
        Of vectors of texts the cosines are averaged.
    embed : Embedder
        Asked once for each different text.
    best_match : bool
        Compare each item with the person whose text is most alike. An item of which one text could
        not be embedded is left out, since that one may have been the best.

    Raises
    ------
    ValueError
        When a label is no text, or the embedder returns something else than one row per text.

    Examples
    --------
    >>> class Stub:
    ...     model = "stub"
    ...
    ...     def __call__(self, texts):
    ...         return [{"cat": [1, 0], "dog": [0.8, 0.6]}.get(text) for text in texts]
    >>> found = semantic_similarity({"q": "cat"}, {"ann": {"q": "dog"}}, Stub())
    >>> found.figure.value, found.model
    (0.8, 'stub')
    >>> semantic_similarity({"q": "cat"}, {"ann": {"q": "cow"}}, Stub()).figure.left_out[0]
    LeftOut(what='labels', count=1, why='stub gave no embedding', names=('q',))
    """
    settings = resampling or Resampling()
    pairs = paired(judge, humans, free_text=True)
    return semantics(
        pairs, embed, best_match=best_match, resampling=settings, batch_size=batch_size
    )


def semantics(
    pairs: Paired, embed: Embedder, *, best_match: bool, resampling: Resampling, batch_size: int
) -> Semantic:
    """Compute the semantic similarity of pairs of labels, per rater and on average."""
    texts = [texts_of(label) for label in pairs.vocabulary.labels]
    used = {text for code in {*pairs.left, *pairs.right} for text in texts[code]}
    vectors, errors = _embedded(sorted(used), embed, batch_size)
    values, why = _cosines(pairs, texts, vectors, errors)
    failed = np.isnan(values)
    gaps = _gaps(pairs, why)
    if best_match:
        failed = np.isin(pairs.item, pairs.item[failed])
    pairs = replace(pairs.select(~failed), left_out=(*pairs.left_out, *gaps))
    values = values[~failed]
    if best_match:
        pairs, values = best_of_item(pairs, values)
    reason = f"{embed.model} could embed no pair of texts" if failed.any() else NOTHING_IN_COMMON
    found = mean_by_rater(pairs, values, resampling, why_not=lambda _: reason)
    return Semantic(found.figure, found.by_human, spread(values), embed.model)


def _embedded(
    texts: Sequence[str], embed: Embedder, batch_size: int
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    """Return the unit vectors of texts, and why the others have none."""
    vectors: dict[str, FloatArray] = {}
    errors: dict[str, str] = {}
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        try:
            rows = embed(batch)
        except EmbeddingFailed as error:
            errors |= dict.fromkeys(batch, f"{embed.model}: {error}")
            continue
        if len(rows) != len(batch):
            raise ValueError(f"{embed.model} gave {len(rows)} embeddings of {len(batch)} texts")
        for text, row in zip(batch, rows, strict=True):
            try:
                vectors[text] = _unit(row, size=len(next(iter(vectors.values()), ())))
            except EmbeddingFailed as error:
                told = error is row
                errors[text] = f"{embed.model}: {error}" if told else f"{embed.model} gave {error}"
    return vectors, errors


def _unit(row: npt.ArrayLike | EmbeddingFailed | None, size: int) -> FloatArray:
    """Return a vector of length 1, or say what is wrong with it; a size of 0 is any size."""
    if isinstance(row, EmbeddingFailed):
        raise row
    if row is None:
        raise EmbeddingFailed("no embedding")
    try:
        vector = np.asarray(row, np.float64)
    except (TypeError, ValueError):
        raise EmbeddingFailed("an embedding that is no list of numbers") from None
    if vector.ndim != 1 or len(vector) != (size or len(vector)):
        raise EmbeddingFailed("an embedding of another shape than those before")
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length):
        raise EmbeddingFailed("an embedding that is no number")
    if length == 0:
        raise EmbeddingFailed("an embedding of length zero, which has no direction")
    return vector / length


def _cosines(
    pairs: Paired,
    texts: Sequence[tuple[str, ...]],
    vectors: dict[str, FloatArray],
    errors: dict[str, str],
) -> tuple[FloatArray, dict[int, str]]:
    """Return the cosine of each pair of labels, NaN where there is none, and why not."""
    values, why = np.full(len(pairs), np.nan), {}
    for at, codes in enumerate(zip(pairs.left, pairs.right, strict=True)):
        one, other = (texts[code] for code in codes)
        wrong = [errors[text] for text in (*one, *other) if text in errors]
        if wrong:
            why[at] = wrong[0]
        elif len(one) != len(other):
            why[at] = f"{len(one)} texts cannot be compared with {len(other)}"
        else:
            both = zip(one, other, strict=True)
            values[at] = np.mean([np.clip(vectors[a] @ vectors[b], -1, 1) for a, b in both])
    return values, why


def _gaps(pairs: Paired, why: dict[int, str]) -> tuple[LeftOut, ...]:
    items: dict[str, list[object]] = defaultdict(list)
    for at, error in why.items():
        items[error].append(pairs.names[pairs.item[at]])
    return tuple(gap for error, names in items.items() for gap in left_out("labels", names, error))
