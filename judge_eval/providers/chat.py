"""Ask a model behind an OpenAI-compatible endpoint, once: who calls decides about another try."""

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from humanjudge.lib.strict_json import JsonObject
from judge_eval.providers.errors import (
    RAW_LIMIT,
    CallFailed,
    as_text,
    error_in,
    malformed,
    readable,
    refused,
)
from judge_eval.providers.transport import Line

CLIENTS = 32
# What is sent where an endpoint wants no key, as the protocol wants one.
NO_KEY = "none"
_LARGEST_COUNT = 2**31 - 1
# The lines to endpoints, each shared by all calls to it.
_line = functools.lru_cache(maxsize=CLIENTS)(Line)
# A field that endpoints refuse, and the word in their refusal that says so.
_REFUSALS = {"response_format": "response_format", "max_tokens": "max_completion_tokens"}
# By address and model, the fields that were refused.
_avoided: dict[tuple[str, str], frozenset[str]] = {}


@dataclass(frozen=True)
class Endpoint:
    """Where a provider answers. `timeout_s` is for a whole call, however slowly it comes."""

    name: str
    base_url: str
    api_key: str = field(repr=False)
    timeout_s: float = 60
    structured_output: bool = True


@dataclass(frozen=True)
class ChatRequest:
    """One question. A temperature of None is not sent: some models refuse to be given one."""

    model: str
    messages: Sequence[JsonObject]
    temperature: float | None
    max_tokens: int
    schema: JsonObject | None = None


@dataclass(frozen=True)
class ChatReply:
    """What a model said. An empty text is a reply too: who reads the verdict names the fault."""

    text: str
    model: str
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    latency_ms: float = 0.0
    refusal: str | None = None
    raw: str = ""
    """The whole reply, as JSON of a length that can be stored."""


def chat(endpoint: Endpoint, request: ChatRequest) -> ChatReply:
    """Ask once and return the reply, or raise CallFailed.

    An endpoint that refuses a field which has another form is asked again in that form, within
    the same time; the process remembers it. That repairs no reply: there was none.
    """
    ends = time.monotonic() + endpoint.timeout_s
    about = (endpoint.base_url, request.model)
    avoided = _avoided.get(about, frozenset())
    while True:
        body = _body(endpoint, request, avoided)
        try:
            return _ask(endpoint, body, ends)
        except CallFailed as failed:
            named = [n for n, word in _REFUSALS.items() if n in body and word in failed.raw]
            if failed.status not in {400, 422} or not named:
                raise
        avoided |= {named[0]}
        _avoided[about] = _avoided.get(about, frozenset()) | avoided


def _body(endpoint: Endpoint, request: ChatRequest, avoided: frozenset[str]) -> JsonObject:
    body: JsonObject = {
        "model": request.model,
        "messages": request.messages,
        "temperature": request.temperature,
        _REFUSALS["max_tokens"] if "max_tokens" in avoided else "max_tokens": request.max_tokens,
    }
    if request.schema and endpoint.structured_output and "response_format" not in avoided:
        shape = {"name": "verdict", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return {name: value for name, value in body.items() if value is not None}


def _ask(endpoint: Endpoint, body: JsonObject, ends: float) -> ChatReply:
    started = time.monotonic()
    status, data, ended = exchange(endpoint, body, ends - started, "/chat/completions")
    if not isinstance(data, dict):
        raise malformed(status, "the reply is not a JSON object", data)
    if not isinstance(data.get("choices"), list):
        raise malformed(status, "the reply is not a chat completion", data)
    choice = _mapping(next(iter(data["choices"]), None))
    message, usage = _mapping(choice.get("message")), _mapping(data.get("usage"))
    content = message.get("content")
    return ChatReply(
        text=_joined(content, "text"),
        model=_text(data.get("model")) or body["model"],
        finish_reason=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_ms=(ended - started) * 1000,
        refusal=_text(message.get("refusal")) or _joined(content, "refusal") or None,
        raw=as_text(data)[:RAW_LIMIT],
    )


def exchange(
    endpoint: Endpoint, body: JsonObject, seconds: float, address: str
) -> tuple[int, Any, float]:
    """Return a reply's status, its data without the key, and when it was there; or CallFailed."""
    line = _line(endpoint.name, endpoint.base_url, endpoint.api_key)
    status, headers, content = line.send(body, seconds, address)
    ended = time.monotonic()
    data = readable(content, endpoint.api_key)
    if not 200 <= status < 300 or error_in(data):
        raise refused(status, headers, data)
    return status, data, ended


def _joined(content: object, kind: str) -> str:
    """Return the parts of one kind as one text; a plain string is the text and no refusal."""
    if isinstance(content, str):
        return content if kind == "text" else ""
    parts = [_mapping(part) for part in content] if isinstance(content, list) else []
    return "".join(_text(part.get(kind)) for part in parts if part.get("type", kind) == kind)


def _mapping(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_COUNT else None
