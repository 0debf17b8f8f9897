"""How the local model provider behaves and misbehaves: a pure function of request and settings."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.provider_models import (
    Answer,
    Request,
    chat,
    completion,
    embeddings,
    error,
    reply,
    verdict,
)
from tests.provider_oddities import ODD


@dataclass
class Conduct:
    """How the provider behaves; `POST /_control` sets any of these by name."""

    mode: str = "ok"
    latency_ms: float = 0.0
    # Share of requests that meet another mode, for example {"429": 0.02, "500": 0.01}.
    rates: dict = field(default_factory=dict)
    seed: int = 0
    # What a 429 sends as Retry-After: seconds, a date, anything; None sends none.
    retry_after: str | float | None = None
    # How many requests meet `mode` before all is well again; None: every one.
    times: int | None = None
    # Only requests for these models meet `mode` and `rates`; empty: all.
    models: list = field(default_factory=list)
    # The reply of the mode "canned": status, headers, body (text, or anything else as JSON).
    canned: dict = field(default_factory=dict)
    # How long "slow" waits with its reply, and the pause between two bytes of "drip".
    slow_ms: float = 30_000
    drip_ms: float = 50


def fate(conduct: Conduct, model: str, digest: str, occurrence: int) -> str:
    """Return the mode that this request meets: the same for the same seed, body and turn."""
    if conduct.models and model not in conduct.models:
        return "ok"
    if conduct.rates:
        drawn = Random(f"{conduct.seed} {digest} {occurrence}").random()
        for mode, share in conduct.rates.items():
            drawn -= share
            if drawn < 0:
                return mode
    return conduct.mode


def answer(request: Request, conduct: Conduct, mode: str) -> Answer:
    """Return the reply to a request on one of the protocol's paths."""
    path = request.path.partition("?")[0]
    if path.endswith("/models"):
        names = ("judge-hash", "judge-long", "judge-first", "judge-second", "painter-1")
        return reply({"object": "list", "data": [{"id": n, "object": "model"} for n in names]})
    if path.endswith("/chat/completions"):
        return MODES[mode](request, conduct, completion)
    if path.endswith("/embeddings"):
        return MODES[mode](request, conduct, embeddings)
    return error(404, f"no such address: {request.path}")


Make = Callable[[Request], Answer]


def _too_many(request: Request, conduct: Conduct, make: Make) -> Answer:
    asked = {} if conduct.retry_after is None else {"Retry-After": str(conduct.retry_after)}
    return error(429, "Rate limit reached.", "rate_limit_exceeded", headers=asked)


def _slow(request: Request, conduct: Conduct, make: Make) -> Answer:
    made = make(request)
    made.wait_ms = conduct.slow_ms
    return made


def _sent(how: str) -> Callable:
    def mode(request: Request, conduct: Conduct, make: Make) -> Answer:
        made = make(request)
        made.how = how
        return made

    return mode


def _content(text: str) -> Callable:
    def mode(request: Request, conduct: Conduct, make: Make) -> Answer:
        return chat(request, text)

    return mode


def _without_usage(request: Request, conduct: Conduct, make: Make) -> Answer:
    data = json.loads(make(request).content)
    del data["usage"]
    return reply(data)


def _refusing(name: str, message: str) -> Callable:
    """Refuse requests that carry a field."""

    def mode(request: Request, conduct: Conduct, make: Make) -> Answer:
        if name in request.body:
            return error(400, message, "unsupported_parameter")
        return make(request)

    return mode


def _echoing(request: Request, conduct: Conduct, make: Make) -> Answer:
    seen = request.authorization
    told = {"x-request-id": seen, "Retry-After": seen}
    return error(401, f"Not allowed with Authorization: {seen}", headers=told, phrase=seen)


def _vectors(change: Callable[[list], object]) -> Callable:
    """Spoil the list of embeddings; other replies stay as they are."""

    def mode(request: Request, conduct: Conduct, make: Make) -> Answer:
        made = make(request)
        data = json.loads(made.content)
        if isinstance(data.get("data"), list):
            change(data["data"])
            return reply(data)
        return made

    return mode


def _first_vector(change: Callable[[list], object]) -> Callable:
    """Spoil the embedding of the first text of each request."""
    return _vectors(lambda items: items[0].update(embedding=change(items[0]["embedding"])))


def _refusing_text(request: Request, conduct: Conduct, make: Make) -> Answer:
    """Refuse a whole batch for one text in it, as endpoints do for one that is too long."""
    if "unembeddable" in json.dumps(request.body.get("input", "")):
        return error(400, "One input is too long.", "invalid_request_error")
    return make(request)


def _canned(request: Request, conduct: Conduct, make: Make) -> Answer:
    status, headers, body = (conduct.canned.get(name) for name in ("status", "headers", "body"))
    text = body if isinstance(body, str) else json.dumps(body)
    return Answer(status or 200, text.encode(), headers or {})


MODES: dict[str, Callable[[Request, Conduct, Make], Answer]] = {
    "ok": lambda request, conduct, make: make(request),
    "429": _too_many,
    "500": lambda *_: error(500, "The server had an error.", "server_error"),
    "503": lambda *_: error(503, "Overloaded.", "overloaded"),
    "slow": _slow,
    "drip": _sent("drip"),
    "drip_head": _sent("drip_head"),
    "disconnect": _sent("cut"),
    "malformed": lambda *_: Answer(200, b'{"id": "broken", "choices": [{"message": {"cont'),
    "refuse": lambda request, *_: chat(request, None, refusal="I cannot help with that."),
    "empty": _content(""),
    "prose": _content("Both have their merits; on balance I could not say which is better."),
    "out_of_range": lambda request, *_: chat(request, verdict(request, "A", 47, -3)),
    "usage_missing": _without_usage,
    "no_structured": _refusing("response_format", "'response_format' is not supported here."),
    "insufficient_quota": lambda *_: error(429, "You exceeded your quota.", "insufficient_quota"),
    "unknown_model": lambda *_: error(404, "There is no such model.", "model_not_found"),
    "error_200": lambda *_: reply({"error": {"code": 502, "message": "Upstream failed."}}),
    "echo_key": _echoing,
    "too_few_vectors": _vectors(list.pop),
    "turned_vectors": _vectors(list.reverse),
    "same_index": _vectors(lambda items: [item.update(index=0) for item in items]),
    "nan_vector": _first_vector(lambda vector: [math.nan, *vector[1:]]),
    "short_vector": _first_vector(lambda vector: vector[:-1]),
    "zero_vector": _first_vector(lambda vector: [0.0] * len(vector)),
    "no_vector": _first_vector(lambda _: None),
    "one_text_refused": _refusing_text,
    "huge": lambda *_: Answer(200, b" " * (11 * 1024 * 1024)),
    "canned": _canned,
    **ODD,
}
