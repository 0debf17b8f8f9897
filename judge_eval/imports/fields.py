"""One raw value of a file into one checked value of a row; what cannot be is `Unfit`."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from math import isfinite
from typing import Final, TypeAlias

from humanjudge.core.validation import LONGEST_NAME
from voting.items.choices import CHOICES, SIDES
from voting.items.conversations import conversation, messages_of
from voting.ledger.decisions import group_name

MAX_NAME = 200
SEPARATOR = ";"
_LARGEST = 2**63 - 1

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_SINCE_1970 = re.compile(r"[1-9]\d{8,18}(\.\d+)?", re.ASCII)
# In seconds since 1970: the year 1973, and 5138.
_EARLIEST, _LATEST = 10**8, 10**11
_OFFSET = re.compile(r"([+-])(\d\d):(\d\d)", re.ASCII)

_KINDS_OF: Final[dict[type, str]] = {
    type(None): "nothing",
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}

Label: TypeAlias = str | int | float | bool | tuple[str, ...]
Converter: TypeAlias = Callable[[object], object]


class Unfit(ValueError):
    """A value that its field cannot have; the message says why."""


def text(raw: object) -> str | None:
    """Return a text that a database can hold; an empty one is none."""
    return output(raw) or None


def output(raw: object) -> str:
    """Return a text that a database can hold, also an empty one."""
    if isinstance(raw, list):
        raw = _conversation(raw)
    if not isinstance(raw, str):
        raise Unfit(f"must be text, not {_kind_of(raw)}")
    if not is_encodable(raw):
        raise Unfit("holds half a surrogate pair, which is no character")
    if "\0" in raw:
        raise Unfit("holds a NUL character")
    return raw


def is_encodable(text: str) -> bool:
    if text.isascii():
        return True  # nearly always, and quick
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _conversation(raw: list[object]) -> object:
    """Return a list of messages, or the parts of one, as text; a single one is its content."""
    for value in (raw, [{"role": "user", "content": raw}]):
        if text := conversation(value):
            messages = messages_of(text) or ()
            return messages[0].content if len(messages) == 1 else text
    return raw


def plain(raw: object) -> str:
    """Return the text that stands for a text, a whole number or a truth value."""
    if isinstance(raw, str):
        return output(raw)
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int):
        return str(raw)
    # A column of whole numbers with gaps comes out of data frames as fractions.
    if isinstance(raw, float) and raw.is_integer() and abs(raw) < 2**53:
        return str(int(raw))
    raise Unfit(f"must be text or a whole number, not {_kind_of(raw)}")


def name(raw: object) -> str | None:
    """Return the name of a pair, a generator, a judge or a voter; a blank one is none."""
    if isinstance(raw, bool):
        raise Unfit("must be text or a whole number, not a truth value")
    value = plain(raw)
    if len(value) > MAX_NAME:
        raise Unfit(f"longer than {MAX_NAME} characters")
    return value if value.strip() else None


def caption(raw: object) -> str | None:
    """Return what is said in one line about a run or a judge; a blank one is none."""
    line = " ".join((text(raw) or "").split())
    if len(line) > LONGEST_NAME:
        raise Unfit(f"longer than {LONGEST_NAME} characters")
    return line or None


def group(raw: object) -> str | None:
    """Return the name of a group of voters; a blank one is none."""
    try:
        return group_name(name(raw) or "") or None
    except ValueError as odd:
        raise Unfit(str(odd)) from odd


def _word_converter(meanings: dict[str, object], **also: str) -> Converter:
    """Return what takes one of some words, whatever its case, or what another stands for."""
    synonyms = {word.lower(): meaning for word, meaning in (meanings | also).items()}

    def convert(raw: object) -> object:
        word = plain(raw).strip()
        if word and word.lower() not in synonyms:
            raise Unfit(f"{shorten(word)!r} is not one of {', '.join(meanings)}")
        return synonyms.get(word.lower())

    return convert


# What else is written for a choice; left and right are none: they say where something stood.
_SPELLINGS: Final = {
    "A": "model_a, model a, assistant a, response a, [[a]], a>b, a>>b, a > b",
    "B": "model_b, model b, assistant b, response b, [[b]], b>a, b>>a, b > a",
    "tie": "draw, equal, same, =, a=b, b=a, c, [[c]]",
    "both_bad": "tie (bothbad), bothbad, both bad, both are bad, neither",
}
choice: Final = _word_converter(
    {choice: choice for choice in CHOICES},
    **{word: choice for choice, words in _SPELLINGS.items() for word in words.split(", ")},
)


def winner_of(a: float | None, b: float | None, within: float = 0) -> str | None:
    """Return which of two scores is higher; None where one is missing.

    Examples
    --------
    >>> winner_of(8, 5), winner_of(7, 7), winner_of(6.5, 6, within=1), winner_of(1, None)
    ('A', 'tie', 'tie', None)
    """
    if a is None or b is None:
        return None
    return "tie" if abs(a - b) <= within else "A" if a > b else "B"


side: Final = _word_converter({side: side for side in SIDES})
kind: Final = _word_converter({"svg": "svg", "text": "text", "code": "code", "image": "image"})
flag: Final = _word_converter({"true": True, "false": False})


def number(raw: object) -> int | float | None:
    if isinstance(raw, str):
        bare = raw.strip()
        if not bare:
            return None
        if _THOUSANDS.fullmatch(bare):
            raise Unfit(f"{bare!r} may be a thousand or a decimal comma: write a point")
        bare = bare.replace(",", ".", 1)
        if not _DECIMAL.fullmatch(bare):
            raise Unfit(f"{shorten(raw)!r} is not a number")
        raw = float(bare) if set(bare) & set(".eE") else int(bare)
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise Unfit(f"must be a number, not {_kind_of(raw)}")
    if isinstance(raw, int) and not -_LARGEST <= raw <= _LARGEST:
        raise Unfit("is too large a number")
    if isinstance(raw, float) and not isfinite(raw):
        raise Unfit("is not a finite number")
    return raw


def within(most: int, *, is_whole: bool = False) -> Converter:
    """Return what takes a number from 0 to `most`."""

    def convert(raw: object) -> int | float | None:
        value = number(raw)
        if value is None:
            return None
        if is_whole and value != int(value):
            raise Unfit(f"{value} is not a whole number")
        if not 0 <= value <= most:
            raise Unfit(f"{value} is not within 0..{most}")
        return int(value) if is_whole else float(value)

    return convert


score: Final = within(10)
share: Final = within(1)


def moment(raw: object, zone: tzinfo | None = None) -> datetime | None:
    """Return in UTC an ISO 8601 time of a day; `zone` is that of times that name none."""
    parsed_time = _parse_time(raw) if isinstance(raw, str) else raw
    if isinstance(parsed_time, int | float) and not isinstance(parsed_time, bool):
        parsed_time = _time_since_1970(number(parsed_time) or 0)
    if parsed_time is None:
        return None
    if not isinstance(parsed_time, datetime):
        raise Unfit(f"must be an ISO 8601 time, not {_kind_of(raw)}")
    if parsed_time.utcoffset() is None:
        if zone is None:
            raise Unfit(f"{parsed_time.isoformat()} names no time zone")
        parsed_time = parsed_time.replace(tzinfo=zone)
    try:
        return parsed_time.astimezone(UTC)
    except OverflowError as error:
        raise Unfit(f"{parsed_time.isoformat()} is out of range in UTC") from error


def _time_since_1970(number: float) -> datetime:
    seconds = number
    while seconds >= _LATEST:
        seconds /= 1000
    if seconds < _EARLIEST:
        raise Unfit(f"{number} is no time since 1970")
    return datetime.fromtimestamp(seconds, UTC)


def _parse_time(raw: str) -> datetime | float | None:
    bare = raw.strip()
    if not bare:
        return None
    if _SINCE_1970.fullmatch(bare):
        return float(bare)
    try:
        parsed_time = datetime.fromisoformat(bare)
    except ValueError as error:
        raise Unfit(f"{shorten(raw)!r} is not an ISO 8601 time") from error
    if len(bare) <= len("2026-11-21"):
        raise Unfit(f"{shorten(raw)!r} has no time of day")
    return parsed_time


def zone_of(raw: object) -> tzinfo:
    """Return the zone that ``UTC`` or an offset such as ``+01:00`` names."""
    if raw == "UTC":
        return UTC
    match = _OFFSET.fullmatch(raw) if isinstance(raw, str) else None
    if not match or int(match[2]) > 23 or int(match[3]) > 59:
        raise Unfit("must be UTC or an offset such as +01:00")
    offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return timezone(-offset if match[1] == "-" else offset)


def words(raw: object, separator: str = SEPARATOR) -> tuple[str, ...]:
    """Return the texts of a list, or those between the separators of one text."""
    if isinstance(raw, str):
        return tuple(word.strip() for word in output(raw).split(separator) if word.strip())
    if not isinstance(raw, list | tuple):
        raise Unfit(f"must be a list of texts, not {_kind_of(raw)}")
    return tuple(output(word) for word in raw)


def label(raw: object) -> Label | None:
    if isinstance(raw, str):
        return text(raw)
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, int | float):
        return number(raw)
    if isinstance(raw, list | tuple):
        return words(raw)
    raise Unfit(f"must be a text, a number, a truth value or a list, not {_kind_of(raw)}")


def fact(raw: object) -> object:
    """Return a value as JSON and a database can hold it."""
    try:
        return _fact(raw)
    except RecursionError as error:
        raise Unfit("is nested too deeply") from error


def _fact(raw: object) -> object:
    if isinstance(raw, dict):
        return {output(name): _fact(value) for name, value in raw.items()}
    if isinstance(raw, list):
        return [_fact(value) for value in raw]
    if isinstance(raw, bool) or raw is None:
        return raw
    if isinstance(raw, int | float):
        return number(raw)
    return raw.isoformat() if isinstance(raw, date) else output(raw)


def shorten(raw: str) -> str:
    return raw if len(raw) <= 40 else raw[:39] + "…"


def _kind_of(raw: object) -> str:
    return _KINDS_OF.get(type(raw), f"a {type(raw).__name__}")
