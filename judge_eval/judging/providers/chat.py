"""Ask a model behind an OpenAI-compatible endpoint, once: who calls decides about another try."""

import functools
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from humanjudge.core.strict_json import JsonObject
from judge_eval.judging.providers.errors import (
    RAW_LIMIT,
    CallFailed,
    as_text,
    error_in,
    malformed,
    readable,
    refusal_of,
)
from judge_eval.judging.providers.transport import ConnectionLine

CLIENTS = 32
# What is refused and is no field: a message of the role, and a reply that comes whole.
SYSTEM, STREAM = "system role", "whole reply"
# What is sent where an endpoint wants no key, as the protocol wants one.
NO_KEY = "none"
_LARGEST_COUNT = 2**31 - 1
# The lines to endpoints, each shared by all calls to it.
_line = functools.lru_cache(maxsize=CLIENTS)(ConnectionLine)
# How refusals speak of what can be left out, where they do not name it as the protocol does.
_SPOKEN_OF = {
    # Some name no field, but a word of the schema that they do not know.
    "response_format": re.compile(
        r"response.?format|schema|structured.?output|guided.?(?:json|decoding)|grammar"
        r"|additional.?properties|['\"`](?:enum|strict|anyOf|minimum|maximum)['\"`]",
        re.IGNORECASE,
    ),
    "max_tokens": re.compile("max_tokens|max_completion_tokens"),
    SYSTEM: re.compile(r"system|developer.instruct|\broles?\b", re.IGNORECASE),
    STREAM: re.compile("stream", re.IGNORECASE),
}
_NEWER_NAME = {"max_tokens": "max_completion_tokens"}
_NEVER_LEFT_OUT = {"model", "messages", "stream", "stream_options"}
_MOST_ADAPTATIONS = 8


@dataclass(frozen=True)
class Endpoint:
    """Where a provider answers. `timeout_s` is for a whole call, however slowly it comes."""

    name: str
    base_url: str
    api_key: str = field(repr=False)
    timeout_s: float = 60
    structured_output: bool = True
    refused: Mapping[str, Collection[str]] = field(default_factory=dict)
    """By model, what it refused before and is asked without."""


@dataclass(frozen=True)
class ChatRequest:
    """One question. What is None is not sent: some models refuse to be given a temperature."""

    model: str
    messages: Sequence[JsonObject]
    temperature: float | None
    max_tokens: int
    schema: JsonObject | None = None
    reasoning_effort: str | None = None


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
    refused: frozenset[str] = frozenset()
    """What the model refused, now or before: it was asked without."""


def chat(endpoint: Endpoint, request: ChatRequest) -> ChatReply:
    """Ask once and return the reply, or raise CallFailed.

    A model that refuses a parameter, a system role or a reply in one piece is asked again without
    it, within the same time, and the reply says so. That repairs no reply: there was none.
    """
    ends = time.monotonic() + endpoint.timeout_s
    refused = frozenset(endpoint.refused.get(request.model, ()))
    while True:
        body = _body(endpoint, request, refused)
        try:
            return replace(_ask(endpoint, body, ends), refused=refused)
        except CallFailed as failed:
            more = _refused_fields(failed, body) - refused
            if not more or len(refused) > _MOST_ADAPTATIONS:
                raise
            refused |= more


def left_out(refused: Collection[str]) -> list[str]:
    """Return what of it makes a model another one to ask: not a new name, nor how a reply comes.

    >>> left_out(["whole reply", "temperature", "max_tokens"])
    ['temperature']
    """
    renamed = {old for old, new in _NEWER_NAME.items() if new not in refused}
    return sorted({*refused} - {STREAM, *renamed, *_NEWER_NAME.values()})


def _refused_fields(failed: CallFailed, body: JsonObject) -> frozenset[str]:
    """Return what a refusal names of a request, and what it can be asked without."""
    if failed.status not in {400, 422}:
        return frozenset()
    fields = body.keys() - _NEVER_LEFT_OUT
    if failed.parameter in fields:
        return frozenset({failed.parameter})
    others = {STREAM} if "stream" not in body else set()
    if any(message["role"] == "system" for message in body["messages"]):
        others.add(SYSTEM)
    for names in (fields, others):
        if named := {name for name in names if _names_field(name, failed.raw)}:
            return frozenset(named)
    return frozenset()


def _names_field(name: str, text: str) -> bool:
    spoken = _SPOKEN_OF.get(name)
    return bool(spoken.search(text)) if spoken else name in text


def _body(endpoint: Endpoint, request: ChatRequest, refused: frozenset[str]) -> JsonObject:
    longest = "max_tokens"
    if longest in refused:
        longest = _NEWER_NAME[longest]
    body: JsonObject = {
        "model": request.model,
        "messages": _without_system(request.messages) if SYSTEM in refused else request.messages,
        "temperature": request.temperature,
        longest: request.max_tokens,
        "reasoning_effort": request.reasoning_effort,
    }
    if request.schema and endpoint.structured_output:
        shape = {"name": "verdict", "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": shape}
    if STREAM in refused:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return {n: value for n, value in body.items() if value is not None and n not in refused}


def _without_system(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Put what a system message says at the beginning of the first message after it."""
    system_texts = [message["content"] for message in messages if message["role"] == "system"]
    first, *rest = [message for message in messages if message["role"] != "system"]
    parts = first["content"]
    if isinstance(parts, str):
        content: object = "\n\n".join([*system_texts, parts])
    else:
        content = [*({"type": "text", "text": text} for text in system_texts), *parts]
    return [{**first, "content": content}, *rest]


def _ask(endpoint: Endpoint, body: JsonObject, ends: float) -> ChatReply:
    started = time.monotonic()
    status, data, ended = exchange(endpoint, body, ends - started, "/chat/completions")
    if isinstance(data, str) and data.lstrip().startswith(("data:", "event:", ":")):
        data = _join_chunks(data)
    if not isinstance(data, dict):
        raise malformed(status, "the reply is not a JSON object", data)
    if not isinstance(data.get("choices"), list):
        raise malformed(status, "the reply is not a chat completion", data)
    if error_in(data):
        raise refusal_of(status, {}, data)
    choice = _mapping(next(iter(data["choices"]), None))
    message, usage = _mapping(choice.get("message")), _mapping(data.get("usage"))
    content = message.get("content")
    text = _joined_text(content, "text")
    refusal = _text(message.get("refusal")) or _joined_text(content, "refusal")
    return ChatReply(
        text=text,
        model=_text(data.get("model")) or body["model"],
        finish_reason=_text(choice.get("finish_reason")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        latency_ms=(ended - started) * 1000,
        refusal=refusal or ("" if text.strip() else _answer_elsewhere(message)) or None,
        raw=as_text(data)[:RAW_LIMIT],
    )


def _answer_elsewhere(message: JsonObject) -> str:
    """Say where an answer stands that is not in the content, and what to do about it."""
    if message.get("tool_calls") or message.get("function_call"):
        return "it answered with a tool call; ask a model that answers in text"
    if message.get("reasoning_content") or message.get("reasoning"):
        return (
            "its answer stands only in its reasoning: raise max_tokens, lower its reasoning effort "
            "or turn its thinking off"
        )
    return ""


def _join_chunks(stream: str) -> JsonObject:
    """Return the chunks of a stream as the reply that would have come in one piece."""
    data: JsonObject = {}
    message: JsonObject = {}
    choice: JsonObject = {"message": message}
    for line in stream.splitlines():
        chunk = _mapping(readable(line.removeprefix("data:").encode(), ""))
        if not line.startswith("data:") or not chunk:
            continue
        data |= {name: value for name, value in chunk.items() if value and name != "choices"}
        for part in map(_mapping, chunk.get("choices") or ()):
            for name, value in _mapping(part.get("delta")).items():
                is_more = isinstance(value, str) and isinstance(message.get(name), str)
                message[name] = message[name] + value if is_more else value or message.get(name)
            choice["finish_reason"] = part.get("finish_reason") or choice.get("finish_reason")
    if not (choice.get("finish_reason") or data.get("error")):
        raise CallFailed("the stream ended before the reply was complete", retryable=True)
    return {**data, "choices": [choice]}


def exchange(
    endpoint: Endpoint, body: JsonObject, seconds: float, address: str
) -> tuple[int, Any, float]:
    """Return a reply's status, its data without the key, and when it was there; or CallFailed."""
    line = _line(endpoint.name, endpoint.base_url, endpoint.api_key)
    status, headers, content = line.send(body, seconds, address)
    ended = time.monotonic()
    data = readable(content, endpoint.api_key)
    if not 200 <= status < 300 or error_in(data):
        raise refusal_of(status, headers, data)
    return status, data, ended


def _joined_text(content: object, kind: str) -> str:
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
