"""Embed texts at an OpenAI-compatible endpoint: in batches, with bounded patience.

A text that has no usable vector gets the reason in its place; nothing is ever made up for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from judge_eval.providers.chat import Endpoint, exchange
from judge_eval.providers.errors import CallFailed, Json, malformed
from judge_eval.stats.similarity import EmbeddingFailed

FloatArray = npt.NDArray[np.float64]
Row: TypeAlias = FloatArray | EmbeddingFailed

BATCH_SIZE: Final = 64
ATTEMPTS: Final = 4
PATIENCE_S: Final = 60.0
FIRST_WAIT_S: Final = 1.0
# What a provider says where one text of a batch is at fault: it is found by halving the batch.
_ABOUT_A_TEXT: Final = {400, 413, 422}


class EmbeddingReply(NamedTuple):
    """One reply: a vector or a reason for each text, in their order, by the model that reported."""

    model: str
    rows: tuple[Row, ...]


def embeddings(endpoint: Endpoint, model: str, texts: Sequence[str]) -> EmbeddingReply:
    """Ask once for the vectors of some texts.

    Raises
    ------
    CallFailed
        When no reply came, or one in which it is not clear which vector is whose.
    """
    body = {"model": model, "input": list(texts)}
    status, data, _ = exchange(endpoint, body, endpoint.timeout_s, "/embeddings")
    if not isinstance(data, dict) or not isinstance(data.get("data"), list):
        raise malformed(status, "the reply holds no embeddings", "")
    reported = data.get("model")
    items = _in_order(status, data["data"], len(texts))
    named = reported if isinstance(reported, str) and reported else model
    return EmbeddingReply(named, tuple(_row(item.get("embedding")) for item in items))


def _in_order(status: int, items: list[Any], number: int) -> list[Json]:
    """Return the items by their index: where one is missing, all might be someone else's."""
    if len(items) != number:
        raise malformed(status, f"{len(items)} embeddings came for {number} texts", "")
    given = [item for item in items if isinstance(item, dict)]
    placed = {str(item.get("index", place)): item for place, item in enumerate(given)}
    places = [str(place) for place in range(number)]
    if placed.keys() != set(places):
        raise malformed(status, "it cannot be told which embedding is of which text", "")
    return [placed[place] for place in places]


def _row(values: object) -> Row:
    if not isinstance(values, list) or not values:
        return EmbeddingFailed("the embedding is no list of numbers")
    try:
        numbers = all(type(value) in (int, float) and math.isfinite(value) for value in values)
    except OverflowError:  # an integer beyond every float
        numbers = False
    if not numbers:
        return EmbeddingFailed("the embedding holds something that is no number")
    vector = np.array(values, np.float64)
    if not vector.any():
        return EmbeddingFailed("the embedding is all zeros: it has no direction")
    return vector


class EmbeddingClient:
    """Embeds any number of texts with one model; a `stats.similarity.Embedder`.

    A batch is asked for so many times at most, where another try may help (429, 5xx, no reply); all
    waits between attempts together take `patience_s` at most, over the client's life.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        batch_size: int = BATCH_SIZE,
        attempts: int = ATTEMPTS,
        patience_s: float = PATIENCE_S,
    ) -> None:
        if batch_size < 1 or attempts < 1:
            raise ValueError("a batch has at least one text, and is asked for at least once")
        self.endpoint, self.asked_model = endpoint, model
        self.batch_size, self.attempts = batch_size, attempts
        self._patience_s = patience_s
        self._reported = ""
        self._size = 0

    @property
    def model(self) -> str:
        """The model as it called itself in its first reply, before that as it is asked for."""
        return self._reported or self.asked_model

    def __call__(self, texts: Sequence[str], /) -> list[Row]:
        """Return a vector, or why there is none, for each text."""
        starts = range(0, len(texts), self.batch_size)
        batches = (texts[start : start + self.batch_size] for start in starts)
        return [row for batch in batches for row in self._batch(batch)]

    def _batch(self, texts: Sequence[str]) -> Iterator[Row]:
        try:
            reply = self._patiently(texts)
        except CallFailed as failed:
            if failed.status in _ABOUT_A_TEXT and len(texts) > 1:
                half = len(texts) // 2
                yield from self._batch(texts[:half])
                yield from self._batch(texts[half:])
            else:
                yield from (EmbeddingFailed(failed.reason) for _ in texts)
            return
        yield from (self._comparable(row, reply.model) for row in reply.rows)
        self._reported = self._reported or reply.model

    def _patiently(self, texts: Sequence[str]) -> EmbeddingReply:
        wait_s = FIRST_WAIT_S
        for _ in range(self.attempts - 1):
            try:
                return embeddings(self.endpoint, self.asked_model, texts)
            except CallFailed as failed:
                asked_s = wait_s if failed.retry_after is None else failed.retry_after
                if not failed.retryable or asked_s > self._patience_s:
                    raise
                self._patience_s -= asked_s
                time.sleep(asked_s)
                wait_s *= 2
        return embeddings(self.endpoint, self.asked_model, texts)

    def _comparable(self, row: Row, model: str) -> Row:
        """Return a vector unless it cannot be compared with those that came before."""
        if self._reported not in {"", model}:
            return EmbeddingFailed(f"the model called itself {model}, and {self._reported} before")
        if isinstance(row, EmbeddingFailed):
            return row
        self._size = self._size or len(row)
        if len(row) == self._size:
            return row
        return EmbeddingFailed(
            f"the embedding has {len(row)} numbers, those before have {self._size}"
        )
