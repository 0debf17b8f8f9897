"""How alike two texts are: their letters, or their meaning by embeddings."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache, partial
from pathlib import Path
from typing import Final, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from judge_eval.stats.bootstrap import DEFAULT, FloatArray, Resampling
from judge_eval.stats.estimate import left_out, require
from judge_eval.stats.labels import HumanData, LabelsUnfit
from judge_eval.stats.pairs import (
    NOTHING_IN_COMMON,
    Averaged,
    JudgeOrPairs,
    Paired,
    mean_by_rater,
    paired,
)

BEST_MATCH: Final = "best match"
BATCH_SIZE: Final = 100
EXTRA: Final = "requirements-local-embeddings.txt"
_WEIGHTS: Final = ("model.safetensors", "0_StaticEmbedding/model.safetensors")
Texts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """All similarities together, whoever they are with; null where there are none.

    `std` is that of these values, not an estimate for others (divided by n).
    """

    mean: float | None
    median: float | None
    std: float | None
    count: int


@dataclass(frozen=True)
class Similarity(Averaged):
    """A similarity per person and on average, how single ones are spread, and by which model."""

    spread: Spread
    model: str = ""


def text_similarity(
    judge: JudgeOrPairs,
    humans: HumanData = (),
    *,
    best_match: bool = False,
    resampling: Resampling = DEFAULT,
) -> Similarity:
    """Compare a judge's texts with each person's by letters, and average over people; see `paired`.

    ``2 M / T`` with the letters M that match and all letters T of both texts, lower-cased and
    without spaces at the ends (``difflib.SequenceMatcher.ratio``). Two empty texts are alike; of
    vectors of texts the ratios are averaged. With `best_match` each item is compared with the
    person whose text is most alike, instead of with everybody.

    Examples
    --------
    >>> text_similarity({"q": "abcd"}, {"ann": {"q": " BCDE"}}).figure.value
    0.75
    """
    pairs = paired(judge, humans, free_text=True)
    return _averaged(pairs, _all_texts(pairs), _ratio, best_match, resampling)


def _ratio(left: Texts, right: Texts) -> float:
    unequal = f"{len(left)} texts cannot be compared with {len(right)}"
    require(len(left) == len(right), unequal, LabelsUnfit)
    parts = [
        SequenceMatcher(None, a.lower().strip(), b.lower().strip()).ratio()
        for a, b in zip(left, right, strict=True)
    ]
    return sum(parts) / len(parts)


def texts_of(label: object) -> Texts:
    if isinstance(label, str):
        return (label,)
    is_texts = isinstance(label, tuple) and all(isinstance(part, str) for part in label)
    return cast("Texts", label) if is_texts else ()


def _all_texts(pairs: Paired) -> list[Texts]:
    for label in pairs.vocabulary.labels:
        if not texts_of(label):
            raise LabelsUnfit(f"{label!r} is no text")
    return [texts_of(label) for label in pairs.vocabulary.labels]


def _averaged(
    pairs: Paired,
    texts: Sequence[Texts],
    alike: Callable[[Texts, Texts], float | str],
    best_match: bool,
    resampling: Resampling,
    model: str = "",
) -> Similarity:
    """Average how alike the texts of pairs are, or say why; the best ones only of `best_match`."""
    compare = cache(alike)
    values, failed = np.full(len(pairs), np.nan), defaultdict(list)
    for row, (left, right) in enumerate(zip(pairs.left, pairs.right, strict=True)):
        value = compare(texts[left], texts[right])
        if isinstance(value, str):
            failed[value].append(pairs.names[pairs.item[row]])
        else:
            values[row] = value
    gaps = [gap for failure, names in failed.items() for gap in left_out("labels", names, failure)]
    keep = ~np.isnan(values)
    if best_match:  # what could not be compared may have been the best
        keep = ~np.isin(pairs.item, pairs.item[~keep])
    pairs, values = pairs.select(keep), values[keep]
    if best_match and len(pairs):
        order = np.lexsort((-pairs.rater, values, pairs.item))
        best = np.sort(order[np.append(np.diff(pairs.item[order]) > 0, True)])
        pairs, values = pairs.select(best).pooled(BEST_MATCH), values[best]
    pairs = replace(pairs, left_out=(*pairs.left_out, *gaps))
    reason = f"{model} could embed no pair of texts" if gaps else NOTHING_IN_COMMON
    means = mean_by_rater(pairs, values, resampling, why_not=reason)
    spread = Spread(None, None, None, 0)
    if len(values):
        mean, median = float(values.mean()), float(np.median(values))
        spread = Spread(mean, median, float(values.std()), len(values))
    return Similarity(means.figure, means.by_human, spread, model)


class EmbeddingFailed(Exception):
    """Why a text has no embedding; raised where none of the texts given has one."""


class Embedder(Protocol):
    """Turns texts into vectors; `model` names what does, and stands in every result."""

    @property
    def model(self) -> str: ...

    def __call__(self, texts: Sequence[str], /) -> Sequence[npt.ArrayLike | EmbeddingFailed | None]:
        """Embed some texts, one row each; an array will do.

        An EmbeddingFailed that says why (or None, or a row with NaN) stands for a text that could
        not be embedded, and is raised when all of them could not.
        """


def semantic_similarity(
    judge: JudgeOrPairs,
    humans: HumanData,
    embed: Embedder,
    *,
    best_match: bool = False,
    resampling: Resampling = DEFAULT,
    batch_size: int = BATCH_SIZE,
) -> Similarity:
    """Compare a judge's texts with each person's by meaning, and average over people; see `paired`.

    ``cosine(a, b) = a · b / (|a| |b|)`` of the embeddings of both texts, as they were written; of
    vectors of texts the cosines are averaged. With `best_match` an item of which one text could not
    be embedded is left out, since that one may have been the best.

    Examples
    --------
    >>> class Stub:
    ...     model = "stub"
    ...
    ...     def __call__(self, texts):
    ...         return [{"cat": [1, 0], "dog": [0.8, 0.6]}.get(text) for text in texts]
    >>> result = semantic_similarity({"q": "cat"}, {"ann": {"q": "dog"}}, Stub())
    >>> result.figure.value, result.model
    (0.8, 'stub')
    """
    pairs = paired(judge, humans, free_text=True)
    texts = _all_texts(pairs)
    compared_texts = {text for code in {*pairs.left, *pairs.right} for text in texts[code]}
    alike = partial(_cosine, *_embedded(sorted(compared_texts), embed, batch_size))
    return _averaged(pairs, texts, alike, best_match, resampling, embed.model)


def _embedded(
    texts: Sequence[str], embed: Embedder, batch_size: int
) -> tuple[dict[str, FloatArray], dict[str, str]]:
    vectors: dict[str, FloatArray] = {}
    failed: dict[str, str] = {}
    size = 0
    for start in range(0, len(texts), batch_size):
        batch = texts[start : start + batch_size]
        try:
            rows = embed(batch)
        except EmbeddingFailed as error:
            rows = [error] * len(batch)
        message = f"{embed.model} gave {len(rows)} embeddings of {len(batch)} texts"
        require(len(rows) == len(batch), message)
        for text, row in zip(batch, rows, strict=True):
            if isinstance(row, EmbeddingFailed):
                failed[text] = f"{embed.model}: {row}"
            elif isinstance(vector := _unit(row, size), str):
                failed[text] = f"{embed.model} gave {vector}"
            else:
                vectors[text], size = vector, len(vector)
    return vectors, failed


def _unit(row: npt.ArrayLike | None, size: int) -> FloatArray | str:
    """Return a vector of length 1, or say what is wrong with it; a size of 0 is any size."""
    if row is None:
        return "no embedding"
    try:
        vector = np.asarray(row, np.float64)
    except (TypeError, ValueError):
        return "an embedding that is no list of numbers"
    if vector.ndim != 1 or len(vector) != (size or len(vector)):
        return "an embedding of another shape than those before"
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length):
        return "an embedding that is no number"
    if length == 0:
        return "an embedding of length zero, which has no direction"
    return np.asarray(vector / length)


def _cosine(
    vectors: Mapping[str, FloatArray], failed: Mapping[str, str], left: Texts, right: Texts
) -> float | str:
    reasons = [failed[text] for text in (*left, *right) if text in failed]
    if reasons:
        return reasons[0]
    if len(left) != len(right):
        return f"{len(left)} texts cannot be compared with {len(right)}"
    either = zip(left, right, strict=True)
    return float(np.mean([np.clip(vectors[a] @ vectors[b], -1, 1) for a, b in either]))


class EncoderMissing(ValueError):
    """The folder holds no model, or the library that reads it is not installed."""


class LocalEncoder:
    """A static sentence encoder (model2vec, also of sentence-transformers) in a local folder.

    The folder holds ``model.safetensors``, ``tokenizer.json`` and ``config.json``; it is never
    taken for the name of a model to fetch. `model` is its name and the beginning of the SHA-256 of
    its weights, which name the model wherever it lies.
    """

    def __init__(self, folder: str | Path) -> None:
        place = Path(folder)
        require(place.is_dir(), f"{folder} is no folder", EncoderMissing)
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
