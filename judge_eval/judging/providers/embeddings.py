"""Embed texts at an OpenAI-compatible endpoint, with bounded patience.

A text that has no usable vector gets the reason in its place; nothing is ever made up for it.
"""

import time
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import Field, Strict, TypeAdapter, ValidationError

from humanjudge.core.strict_json import JsonObject
from judge_eval.judging.providers.chat import Endpoint, exchange
from judge_eval.judging.providers.errors import CallFailed, malformed
from judge_eval.stats.similarity import EmbeddingFailed

Row: TypeAlias = npt.NDArray[np.float64] | EmbeddingFailed

# Seconds before each further attempt, and the longest that all waits take together.
WAITS_S: Final = (1.0, 2.0, 4.0)
PATIENCE_S: Final = 60.0
# What a provider says where one text of several is at fault: it is found by halving them.
_ABOUT_A_TEXT: Final = {400, 413, 422}
_NUMBER = Annotated[float, Strict(), Field(allow_inf_nan=False)]
_VECTOR: Final = TypeAdapter(Annotated[list[_NUMBER], Field(min_length=1)])


def embeddings(endpoint: Endpoint, model: str, texts: Sequence[str]) -> tuple[str, list[Row]]:
    """Ask once: return the model as it reported, and a vector or a reason for each text.

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
    return named, [_row(item.get("embedding")) for item in items]


def _in_order(status: int, items: list[Any], number: int) -> list[JsonObject]:
    """Return the items by their index: where one is missing, all might be someone else's."""
    if len(items) != number:
        raise malformed(status, f"{len(items)} embeddings came for {number} texts", "")
    embeddings = [item for item in items if isinstance(item, dict)]
    placed = {str(item.get("index", place)): item for place, item in enumerate(embeddings)}
    places = [str(place) for place in range(number)]
    if placed.keys() != set(places):
        raise malformed(status, "it cannot be told which embedding is of which text", "")
    return [placed[place] for place in places]


def _row(values: object) -> Row:
    try:
        return np.array(_VECTOR.validate_python(values), np.float64)
    except ValidationError:
        return EmbeddingFailed("the embedding is no list of numbers")


class EmbeddingClient:
    """Embeds texts with one model; a `stats.similarity.Embedder`.

    They are asked for four times at most, where another try may help (429, 5xx, no reply); all
    waits between attempts together take a minute at most, over the client's life.
    """

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint, self.requested_model = endpoint, model
        # As it called itself in its first reply, before that as it is asked for.
        self.model = model
        self._has_answered = False
        self._patience_s = PATIENCE_S

    def __call__(self, texts: Sequence[str], /) -> list[Row]:
        if not texts:
            return []
        try:
            model, rows = self._patiently(texts)
        except CallFailed as failed:
            if failed.status in _ABOUT_A_TEXT and len(texts) > 1:
                half = len(texts) // 2
                return self(texts[:half]) + self(texts[half:])
            return [EmbeddingFailed(failed.reason) for _ in texts]
        if not self._has_answered:
            self.model, self._has_answered = model, True
        if model == self.model:
            return rows
        reason = f"the model called itself {model}, and {self.model} before"
        return [EmbeddingFailed(reason) for _ in texts]

    def _patiently(self, texts: Sequence[str]) -> tuple[str, list[Row]]:
        for wait_s in WAITS_S:
            try:
                return embeddings(self.endpoint, self.requested_model, texts)
            except CallFailed as failed:
                seconds = wait_s if failed.retry_after is None else failed.retry_after
                if not failed.retryable or seconds > self._patience_s:
                    raise
                self._patience_s -= seconds
                time.sleep(seconds)
        return embeddings(self.endpoint, self.requested_model, texts)
