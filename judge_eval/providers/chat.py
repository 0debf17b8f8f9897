"""Ask a model behind an OpenAI-compatible endpoint, once: who calls decides about another try."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from judge_eval.providers.errors import (
    CallFailed,
    error_in,
    malformed,
    readable,
    refused,
    refused_within,
)

if TYPE_CHECKING:
    from judge_eval.providers.transport import Line

RAW_REPLY_LIMIT = 100_000
CLIENTS = 32
_LARGEST_COUNT = 2**31 - 1


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
    messages: Sequence[Mapping[str, Any]]
    temperature: float | None
    max_tokens: int
    schema: dict[str, Any] | None = None
    seed: int | None = None


@dataclass(frozen=True)
class ChatReply:
    """What a model said. An empty text is a reply too: who reads the verdict names the fault."""

    text: str
    model: str
    finish_reason: str
    prompt_tokens: int | None
    completion_tokens: int | None
    latency_ms: float
    refusal: str | None
    raw: dict[str, Any]
    structured: bool
    """Whether the endpoint was held to the schema."""


def chat(endpoint: Endpoint, request: ChatRequest) -> ChatReply:
    """Ask once and return the reply, or raise CallFailed.

    An endpoint that refuses a field which has another form is asked again in that form, within
    the same time; the process remembers it. That repairs no reply: there was none.
    """
    check(endpoint)
    line = line_to(endpoint)
    ends = time.monotonic() + endpoint.timeout_s
    known = (endpoint.base_url, request.model)
    avoided = _avoided.get(known, frozenset())
    while True:
        body = _body(endpoint, request, avoided)
        try:
            return _ask(line, endpoint.api_key, body, ends)
        except CallFailed as failed:
            refusal = _refused_field(failed, body)
            if refusal is None:
                raise
        avoided |= {refusal}
        _avoided[known] = _avoided.get(known, frozenset()) | avoided


# A field that endpoints refuse, and the word in their refusal that says so.
_REFUSALS = {"response_format": "response_format", "max_tokens": "max_completion_tokens"}
_avoided: dict[tuple[str, str], frozenset[str]] = {}


def _refused_field(failed: CallFailed, body: dict[str, Any]) -> str | None:
    if failed.status not in {400, 422}:
        return None
    named = (name for name, word in _REFUSALS.items() if name in body and word in failed.raw)
    return next(named, None)


def _body(endpoint: Endpoint, request: ChatRequest, avoided: frozenset[str]) -> dict[str, Any]:
    renamed = "max_completion_tokens" if "max_tokens" in avoided else "max_tokens"
    body: dict[str, Any] = {
        "model": request.model,
        "messages": request.messages,
        "temperature": request.temperature,
        renamed: request.max_tokens,
        "seed": request.seed,
    }
    if request.schema and endpoint.structured_output and "response_format" not in avoided:
        shape = {"name": "verdict", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    return {name: value for name, value in body.items() if value is not None}


def _ask(line: Line, api_key: str, body: dict[str, Any], ends: float) -> ChatReply:
    started = time.monotonic()
    response = line.send(body, ends - started)
    latency_ms = (time.monotonic() - started) * 1000
    data = readable(response.content, api_key)
    if not response.is_success:
        raise refused(response.status_code, response.headers, data)
    if error := error_in(data):
        raise refused_within(response.headers, error)
    if not isinstance(data, dict):
        raise malformed(response.status_code, "the reply is not a JSON object", data)
    if not isinstance(data.get("choices"), list):
        raise malformed(response.status_code, "the reply is not a chat completion", data)
    return _reply(data, body, latency_ms)


def _reply(data: dict[str, Any], body: dict[str, Any], latency_ms: float) -> ChatReply:
    choice = _mapping(next(iter(data["choices"]), None))
    message = _mapping(choice.get("message"))
    usage = _mapping(data.get("usage"))
    return ChatReply(
        text=_joined(message.get("content"), "text"),
        model=_text(data.get("model")) or body["model"],
        finish_reason=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_ms=latency_ms,
        refusal=_text(message.get("refusal")) or _joined(message.get("content"), "refusal") or None,
        raw=_capped(data),
        structured="response_format" in body,
    )


def _joined(content: object, kind: str) -> str:
    """Return the parts of one kind as one text; a plain string is the text and no refusal."""
    if isinstance(content, str):
        return content if kind == "text" else ""
    parts = [_mapping(part) for part in content] if isinstance(content, list) else []
    return "".join(_text(part.get(kind)) for part in parts if part.get("type", kind) == kind)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_COUNT else None


def _capped(data: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(data, ensure_ascii=False)
    return data if len(text) <= RAW_REPLY_LIMIT else {"truncated": text[:RAW_REPLY_LIMIT]}


def check(endpoint: Endpoint) -> None:
    """Refuse here what a library would refuse in words that show the key."""
    if not (endpoint.api_key.isascii() and endpoint.api_key.isprintable()):
        unsendable = f"the key of {endpoint.name} holds characters that no header may carry"
        raise CallFailed(unsendable, was_sent=False)
    try:
        parts = urlsplit(endpoint.base_url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        unusable_url = f"the base URL of {endpoint.name} is not an http or https address"
        raise CallFailed(unusable_url, was_sent=False)


def line_to(endpoint: Endpoint) -> Line:
    """Return the line to an endpoint, which all calls to it share."""
    return _line(endpoint.base_url, endpoint.api_key)


def prepare() -> None:
    """Import what the first call would: while it holds a lease is no time for that."""
    import judge_eval.providers.transport  # noqa: F401


@functools.lru_cache(maxsize=CLIENTS)
def _line(base_url: str, api_key: str) -> Line:
    # Half a second to import, which a web process that calls no model need not pay.
    from judge_eval.providers.transport import Line

    return Line(base_url, api_key)
