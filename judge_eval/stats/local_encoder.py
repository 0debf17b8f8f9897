"""A sentence encoder on this machine: static embeddings from a folder, and never a network.

The library is an optional extra (requirements-local-embeddings.txt) and is imported when an
encoder is made, so that nobody else pays for it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from judge_eval.stats.semantic import EmbeddingFailed
from judge_eval.stats.vocabulary import FloatArray

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
    judge_eval.stats.local_encoder.EncoderMissing: no/such/folder is no folder
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
