"""Check a JSON object field by field, and go on after a mistake, so that all are found at once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeVar

from judge_eval.prompts.reply_text import excerpt

Option = TypeVar("Option", bound=str)

_ABSENT: Final = object()
_MOST_UNKNOWN: Final = 20
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (dict, "an object"),
    (list, "a list"),
    (str, "text"),
    (bool, "true or false"),
    (int, "a number"),
    (float, "a decimal number"),
)


@dataclass(frozen=True, slots=True)
class ConfigError:
    """One mistake: where it is, such as ``models[1].id``, and what it is."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Fields:
    """One object of a config: hands out its values checked, and writes down what is wrong.

    In place of a value that is wrong stands another: the caller raises when all is read.

    Parameters
    ----------
    value : object
        What should be an object.
    path : str
        Where it stands; empty for the config itself.
    errors : list of ConfigError
        Gets what is wrong.
    shorthand : str
        The key whose value may stand alone, as text, for the whole object.

    Examples
    --------
    >>> errors = []
    >>> model = Fields({"id": " ", "temprature": 1}, "models[0]", errors)
    >>> _ = model.text("id", most=9), model.number("temperature", 0.7, low=0, high=2)
    >>> model.close()
    >>> print(*errors, sep="\\n")
    models[0].id: is empty
    models[0].temprature: unknown; did you mean 'temperature'?
    """

    def __init__(
        self, value: object, path: str, errors: list[ConfigError], shorthand: str = ""
    ) -> None:
        self._path, self._errors = path, errors
        self._alone = shorthand if isinstance(value, str) else ""
        self._asked: list[str] = []
        whole = {shorthand: value} if self._alone else value
        self._values: dict[object, object] | None = whole if isinstance(whole, dict) else None
        if self._values is None:
            self._must_be("", "text or an object" if shorthand else "an object", value)

    def complain(self, key: str, message: str) -> None:
        """Write down what is wrong with a value, or, for an empty key, with the whole."""
        self._errors.append(ConfigError(self._path_of(key), message))

    def text(self, key: str, default: str | None = None, *, most: int, is_line: bool = True) -> str:
        """Return a text; a single line is stripped. Without a default it must be there."""
        value = self._take(key, is_required=default is None)
        return default or "" if value is _ABSENT else self._text(key, value, most, is_line)

    def texts(self, key: str, *, most: int, longest: int) -> tuple[str, ...]:
        """Return a list of single lines, empty where it is absent."""
        entries = self._entries(key, 0, most) or ()
        return tuple(self._text(path, value, longest, is_line=True) for path, value in entries)

    def choice(self, key: str, options: Sequence[Option], default: Option) -> Option:
        """Return one of the options."""
        value = self._take(key)
        return default if value is _ABSENT else self._option(key, options, value) or default

    def choices(self, key: str, options: Sequence[Option]) -> tuple[Option, ...] | None:
        """Return some of the options in the order of the options, None where it is absent."""
        entries = self._entries(key, 0, 2 * len(options))
        chosen: list[Option] = []
        for path, value in entries or ():
            option = self._option(path, options, value)
            if option in chosen:
                self.complain(path, "stands twice")
            chosen += [option] if option else []
        in_order = tuple(option for option in options if option in chosen)
        return None if entries is None else in_order

    def whole(self, key: str, default: int, *, low: int, high: int) -> int:
        """Return a whole number; both bounds are allowed."""
        value = self._take(key)
        if value is _ABSENT:
            return default
        if not isinstance(value, int) or isinstance(value, bool):
            self._must_be(key, "a whole number", value)
        elif not low <= value <= high:
            self.complain(key, f"must be from {low:,} to {high:,}")
        else:
            return value
        return default

    def number(
        self, key: str, default: float | None, *, low: float, high: float, is_above: bool = False
    ) -> float | None:
        """Return a finite number, or None for null; `is_above` shuts out the lower bound."""
        value = self._take(key)
        if value is _ABSENT or value is None:
            return default if value is _ABSENT else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            self._must_be(key, "a number", value)
        # NaN fails every comparison, and integers compare that are too large for a float.
        elif not low <= value <= high or (is_above and value == low):
            range_in_words = f"above {low:,} and at most" if is_above else f"from {low:,} to"
            self.complain(key, f"must be {range_in_words} {high:,}")
        else:
            return float(value)
        return default

    def part(self, key: str) -> Fields:
        """Return an object within this one, empty where it is absent; close it when it is read."""
        value = self._take(key)
        return Fields({} if value is _ABSENT else value, self._path_of(key), self._errors)

    def items(self, key: str, shorthand: str, *, least: int, most: int) -> Iterator[Fields]:
        """Go through a list of objects that must be there; each is closed when it is left."""
        for path, value in self._entries(key, least, most) or ():
            item = Fields(value, self._path_of(path), self._errors, shorthand)
            yield item
            item.close()

    def close(self) -> None:
        """Complain of every key that nobody asked for."""
        unknown = [str(key) for key in self._values or () if key not in self._asked]
        for key in unknown[:_MOST_UNKNOWN]:
            self.complain(excerpt(key, 60)[1:-1] or "''", f"unknown{meant(key, self._asked)}")
        if len(unknown) > _MOST_UNKNOWN:
            self.complain("", f"{len(unknown) - _MOST_UNKNOWN:,} more keys are unknown")

    def _path_of(self, key: str) -> str:
        if not key or key == self._alone:
            return self._path
        return f"{self._path}.{key}" if self._path else key

    def _take(self, key: str, *, is_required: bool = False) -> object:
        self._asked.append(key)
        if self._values is None:
            return _ABSENT
        if is_required and key not in self._values:
            self.complain(key, "is missing")
        return self._values.get(key, _ABSENT)

    def _entries(self, key: str, least: int, most: int) -> list[tuple[str, object]] | None:
        value = self._take(key, is_required=least > 0)
        if value is _ABSENT:
            return None
        if not isinstance(value, list | tuple):
            self._must_be(key, "a list", value)
            return None
        if len(value) < least:
            self.complain(key, f"has {len(value)}, the least is {least}")
        if len(value) > most:
            self.complain(key, f"has {len(value):,}, the most is {most:,}")
        return [(f"{key}[{n}]", each) for n, each in enumerate(value[:most])]

    def _text(self, key: str, value: object, most: int, is_line: bool) -> str:
        if not isinstance(value, str):
            self._must_be(key, "text", value)
            return ""
        text = value.strip() if is_line else value
        if problem := _problem_of(text, most, is_line=is_line):
            self.complain(key, problem)
        return text

    def _option(self, key: str, options: Sequence[Option], value: object) -> Option | None:
        if not isinstance(value, str):
            self._must_be(key, "text", value)
            return None
        found = next((option for option in options if option == value), None)
        if found is None:
            offered = ", ".join(options)
            said = excerpt(value, 60)
            self.complain(key, f"{said} is none of {offered}{meant(value, options)}")
        return found

    def _must_be(self, key: str, wanted: str, value: object) -> None:
        # The value is not quoted: the text of one nested deeply cannot even be made.
        given = next((name for type_, name in _TYPES if isinstance(value, type_)), None)
        given = "null" if value is None else given or type(value).__name__
        self.complain(key, f"must be {wanted}, not {given}")


def _problem_of(text: str, most: int, *, is_line: bool) -> str:
    if not text.strip():
        return "is empty"
    if len(text) > most:
        return f"has {len(text):,} characters, the most is {most:,}"
    if is_line and not text.isprintable():
        return "must be one line without control characters"
    # No database stores the one, and UTF-8 cannot write the other.
    return "holds a NUL or half a surrogate pair" if "\0" in text or _SURROGATE.search(text) else ""


def meant(word: str, known: Sequence[str]) -> str:
    """Return what follows an unknown word: the known one that is nearest, if one is near."""
    near = get_close_matches(word[:60], known, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
