"""Why a call to a model failed: in plain words, whether to try again, and when."""

import json
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import UNSTORABLE

RAW_LIMIT = 20_000
LONGEST_WAIT_S = 600.0
_WORDS_LIMIT = 300
# Shorter keys are the placeholders of local servers ("ollama", "EMPTY"): words of the language.
_SECRET_LENGTH = 8

_RETRYABLE = {408, 409, 425, 429}
# A model that answers nothing but these is not called again and again.
PERMANENT = (
    HTTPStatus.UNAUTHORIZED.value,
    HTTPStatus.FORBIDDEN.value,
    HTTPStatus.NOT_FOUND.value,
)
# So begins what is written of them.
PERMANENT_BEGINNINGS = tuple(f"{status} " for status in PERMANENT)
# The error of calls that are not made while their judge is left out.
LEFT_OUT = "not asked: its judge is left out"
_NO_CREDIT = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_MEANINGS = {
    400: "the request was refused",
    401: "the key was refused",
    403: "the key may not do this",
    404: "no such model or address",
    408: "the provider gave up waiting",
    413: "the request is too large",
    422: "the request was refused",
    429: "rate limit reached",
    503: "the provider is overloaded or down",
}


class CallFailed(Exception):
    """A call that brought no reply. The reason is one line without key, headers or request."""

    def __init__(
        self,
        reason: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        raw: str = "",
        parameter: str = "",
        was_sent: bool = True,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        self.status = status
        self.raw = raw[:RAW_LIMIT]
        # What the provider says is wrong, as the protocol names it.
        self.parameter = parameter
        self.was_sent = was_sent

    @property
    def may_be_billed(self) -> bool:
        """Say whether the work may have been done: the line or the reply broke, no error came."""
        return self.was_sent and (self.status or 0) < HTTPStatus.BAD_REQUEST

    @property
    def is_permanent(self) -> bool:
        """Say whether every call like it fails: there is no such model, or the key is refused."""
        return self.status in PERMANENT

    @property
    def is_limit(self) -> bool:
        """Say whether too much was asked at once, or in a minute: another time it may be well."""
        return self.status == HTTPStatus.TOO_MANY_REQUESTS and self.retryable


def refusal_of(status: int, headers: Mapping[str, str], data: object) -> CallFailed:
    """Classify a reply that is an error; `data` is its body as `readable` returns it.

    Routers before several models send errors inside a reply 200: its own status is in there.
    """
    error = error_in(data)
    codes = _codes(error or data)
    if status < HTTPStatus.MULTIPLE_CHOICES:
        inner = [int(c) for c in codes if c.isdecimal() and len(c) == 3 and c[0] in "45"]
        status = inner[0] if inner else 429 if "rate_limit_exceeded" in codes else 200
        data = {"error": error}
    no_credit = status == HTTPStatus.PAYMENT_REQUIRED or bool(codes & _NO_CREDIT)
    retryable = not no_credit and (status == 200 or status in _RETRYABLE or status >= 500)
    wait = retry_seconds(headers) if retryable else None
    meaning = "the account has no credit" if no_credit else _MEANINGS.get(status, "")
    words = _words(error or data)
    description = (
        f"{meaning} ({words})" if meaning and words else meaning or words or "no reason given"
    )
    wait_note = "" if wait is None else f"; asked to wait {round(wait, 1):g} s"
    reason = f"{_status_line(status)}: {description}{wait_note}"
    parameter = error.get("param") if isinstance(error, dict) else None
    return CallFailed(
        reason,
        retryable=retryable,
        retry_after=wait,
        status=status,
        raw=as_text(data),
        parameter=parameter if isinstance(parameter, str) else "",
    )


def short_reason(reason: str) -> str:
    """Return a reason in a few words, without the name of its status and the provider's words.

    >>> short_reason("404 Not Found: no such model or address (The model `x` does not exist)")
    '404 no such model or address'
    """
    status, _, description = reason.partition(": ")
    number, meaning = status.split(" ")[0], description.partition(" (")[0]
    return f"{number} {meaning}" if number.isdecimal() and meaning else reason


def malformed(status: int, problem: str, data: object) -> CallFailed:
    """Tell of a reply that is not what was asked for; another try may bring it."""
    reason = f"{_status_line(status)}: {problem}"
    return CallFailed(reason, retryable=True, status=status, raw=as_text(data))


def error_in(data: object) -> object:
    """Return what a reply says went wrong: of the whole of it or of its first choice."""
    if not isinstance(data, dict):
        return None
    choices = data.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return data.get("error") or (first.get("error") if isinstance(first, dict) else None)


def retry_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for, at most ten minutes; nonsense is None."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "")
        try:
            seconds = float(value) * scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, LONGEST_WAIT_S)
    return None


def readable(content: bytes, secret: str) -> Any:
    """Return a body as JSON, or as text where it is none; the secret is gone from it.

    What no database can store becomes U+FFFD, and NaN becomes null.
    """
    try:
        return _clean(json.loads(content, parse_constant=lambda _: None), secret)
    except (ValueError, RecursionError):
        return _clean(content.decode("utf-8", "replace"), secret)


def as_text(data: object) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


def _clean(value: Any, secret: str) -> Any:
    if isinstance(value, str):
        text = UNSTORABLE.sub("\ufffd", value)
        return text.replace(secret, "[key]") if len(secret) >= _SECRET_LENGTH else text
    if isinstance(value, list):
        return [_clean(item, secret) for item in value]
    if isinstance(value, dict):
        return {_clean(name, secret): _clean(item, secret) for name, item in value.items()}
    return value


def _status_line(status: int) -> str:
    is_standard = status in HTTPStatus.__members__.values()
    return f"{status} {HTTPStatus(status).phrase}" if is_standard else str(status)


def _codes(error: object) -> set[str]:
    if not isinstance(error, dict):
        return set()
    return {str(error[name]) for name in ("code", "type", "status") if error.get(name)}


def _words(error: object) -> str:
    """Return the provider's own words in one line, and only words: no echo of a request."""
    words = error
    if isinstance(error, dict):
        words = error.get("message") or error.get("detail") or error.get("msg") or ""
    if isinstance(words, list):
        words = "; ".join(_finding(item) for item in words if isinstance(item, dict))
    if not isinstance(words, str) or words.lstrip().startswith("<"):
        return ""  # a page for browsers
    line = " ".join("".join(c if c.isprintable() else " " for c in words).split())
    return line if len(line) <= _WORDS_LIMIT else f"{line[:_WORDS_LIMIT]}…"


def _finding(item: JsonObject) -> str:
    """Return where and what a validator found, without the input it quotes."""
    place = item.get("loc")
    location = ".".join(str(step) for step in place) if isinstance(place, list) else ""
    return f"{location}: {item.get('msg', '')}".removeprefix(": ")
