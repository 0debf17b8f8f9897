"""How alike two texts are: their letters, or their meaning by embeddings."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from judge_eval.stats.averages import NOTHING_IN_COMMON, Averaged, mean_by_rater
from judge_eval.stats.bootstrap import Resampling
from judge_eval.stats.estimate import LeftOut, left_out
from judge_eval.stats.labels import BoolArray, FloatArray, HumanData, JudgeData, LabelsUnfit
from judge_eval.stats.pairs import Paired, paired

BEST_MATCH = "best match"


@dataclass(frozen=True)
class Spread:
    """All similarities together, whoever they are with; null where there are none.

    Attributes
    ----------
    mean, median, std : float or None
        `std` is that of these values, not an estimate for others (divided by n).
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
    """A semantic similarity, and by which model."""

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
    gaps = _not_embedded(pairs, why)
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
                says = ":" if error is row else " gave"
                errors[text] = f"{embed.model}{says} {error}"
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


def _not_embedded(pairs: Paired, why: dict[int, str]) -> tuple[LeftOut, ...]:
    items: dict[str, list[object]] = defaultdict(list)
    for at, error in why.items():
        items[error].append(pairs.names[pairs.item[at]])
    return tuple(gap for error, names in items.items() for gap in left_out("labels", names, error))


EXTRA: Final = "requirements-local-embeddings.txt"
_WEIGHTS: Final = ("model.safetensors", "0_StaticEmbedding/model.safetensors")


class EncoderMissing(ValueError):
    """The folder holds no model, or the library that reads it is not installed."""


class LocalEncoder:
    """A static sentence encoder (model2vec, also of sentence-transformers) in a local folder.

    Parameters
    ----------
    folder : path
        Where ``model.safetensors``, ``tokenizer.json`` and ``config.json`` are. It is never taken
        for the name of a model to fetch.

    Attributes
    ----------
    model : str
        The folder's name and the beginning of the SHA-256 of its weights, which name the model
        wherever it lies.

    Raises
    ------
    EncoderMissing
        When the library is not installed, or the folder holds no model that it can read.

    Examples
    --------
    >>> LocalEncoder("no/such/folder")
    Traceback (most recent call last):
        ...
    judge_eval.stats.similarity.EncoderMissing: no/such/folder is no folder
    """

    def __init__(self, folder: str | Path) -> None:
        place = Path(folder)
        if not place.is_dir():
            raise EncoderMissing(f"{folder} is no folder")
        weights = next((place / name for name in _WEIGHTS if (place / name).is_file()), None)
        if weights is None:
            raise EncoderMissing(f"{folder} holds no {_WEIGHTS[0]}")
        # Read when the library is imported: it must not even look for a newer version.
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
        try:
            from model2vec import StaticModel
        except ImportError:
            raise EncoderMissing(
                f"a local encoder needs model2vec: pip install -r {EXTRA}"
            ) from None
        try:
            self._encoder = StaticModel.from_pretrained(place.resolve(), force_download=False)
        except Exception as error:  # the library, its tokenizer and its weights each have their own
            raise EncoderMissing(f"{folder} holds no model that can be read: {error}") from error
        with weights.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.model = f"{place.resolve().name} ({digest[:12]})"

    def __call__(self, texts: Sequence[str], /) -> list[FloatArray | EmbeddingFailed]:
        """Embed some texts; one without any word that the model knows has no embedding."""
        if not texts:
            return []
        rows = self._encoder.encode(list(texts), use_multiprocessing=False)
        return [
            row if row.any() else EmbeddingFailed("it knows no word of this text")
            for row in rows.astype(np.float64)
        ]
