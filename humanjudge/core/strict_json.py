"""JSON that is what it says it is: no key twice, no NaN; and large files read piece by piece."""

import codecs
import json
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TypeAlias

# An object of JSON whose shape is checked where it is used, or decided elsewhere.
JsonObject: TypeAlias = dict[str, Any]

MAX_RECORD = 2_000_000
MOST_COLUMNS = 1000
_CHUNK = 1 << 16
_BLANK = " \t\n\r"


class NotJson(ValueError):
    """The text is not the JSON it must be; the message says what is wrong."""


def _without_duplicates(pairs: list[tuple[str, object]]) -> object:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        raise NotJson(f"the key {next(k for k in keys if keys.count(k) > 1)!r} is given twice")
    return record


def _no_constant(word: str) -> object:
    raise NotJson(f"{word} is not a JSON value")


def _decoder(constant: Callable[[str], object]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=constant)


_STRICT = _decoder(_no_constant)
# Of the files that Python's json module writes, where no number is nothing.
_LENIENT = _decoder(lambda word: None)


def loads(text: str | bytes, *, has_nan: bool = False) -> object:
    """Read one JSON text; bytes are UTF-8. With `has_nan`, NaN and Infinity are read as null.

    Raises
    ------
    NotJson
        Also for a key that is given twice, NaN and Infinity, which the json module lets through.

    Examples
    --------
    >>> loads('{"a": [1, null]}'), loads('{"a": NaN}', has_nan=True)
    ({'a': [1, None]}, {'a': None})
    """
    decoder = _LENIENT if has_nan else _STRICT
    try:
        return decoder.decode(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise NotJson(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except (ValueError, RecursionError) as error:
        raise _not_json(error) from None


def _not_json(error: Exception) -> NotJson:
    if isinstance(error, NotJson):
        return error
    if isinstance(error, RecursionError):
        return NotJson("nested too deeply")
    return NotJson(f"not JSON: {error}")  # a number of thousands of digits


class Cursor:
    """Walks through one JSON text in bounded memory: only the current value is held.

    The stream is UTF-8, with or without a byte order mark. Our own because no streaming library is
    as strict: ijson, the nearest, hardly refuses a key that is given twice, and bounds no record.

    Examples
    --------
    >>> from io import BytesIO
    >>> cursor = Cursor(BytesIO(b'{"rows": [1, [2]]}'))
    >>> [(key, [cursor.value() for _ in cursor.elements()]) for key in cursor.members()]
    [('rows', [1, [2]])]
    """

    def __init__(self, stream: BinaryIO, *, has_nan: bool = False) -> None:
        self._stream = stream
        self._decoder = _LENIENT if has_nan else _STRICT
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self._text = ""
        self._position = 0
        self._ended = False

    def peek(self) -> str:
        """Return the next character that is not blank, and stay before it; "" at the end."""
        while True:
            while self._position < len(self._text):
                if self._text[self._position] not in _BLANK:
                    return self._text[self._position]
                self._position += 1
            if self._ended:
                return ""
            self._fill()

    def elements(self, opening: str = "[", closing: str = "]") -> Iterator[None]:
        """Stop before each element of an array; the caller takes or skips it."""
        self._take(opening)
        if self.peek() != closing:
            yield
            while self.peek() != closing:
                self._take(",")
                yield
        self._position += 1

    def members(self) -> Iterator[str]:
        """Stop behind each key of an object; the caller takes or skips its value."""
        for _ in self.elements("{", "}"):
            key = self.value()
            if not isinstance(key, str):
                raise NotJson("a key of an object must be text")
            self._take(":")
            yield key

    def value(self) -> object:
        """Take the next value, which may be at most `MAX_RECORD` characters long."""
        self.peek()
        size = _CHUNK
        while isinstance(result := self._attempt(), str):
            if len(self._text) - self._position > MAX_RECORD:
                raise NotJson(f"{result}, or a record of more than {MAX_RECORD:,} characters")
            if self._ended:
                raise NotJson(result)
            self._fill(size)
            size *= 2
        value, end = result
        if end - self._position > MAX_RECORD:
            raise NotJson(f"a record of more than {MAX_RECORD:,} characters")
        self._position = end
        return value

    def _attempt(self) -> tuple[object, int] | str:
        """Return the next value and where it ends, or why there is none in what was read yet."""
        try:
            value, end = self._decoder.raw_decode(self._text, self._position)
        except json.JSONDecodeError as error:
            return f"not JSON: {error.msg}"
        except (ValueError, RecursionError) as error:
            raise _not_json(error) from None
        # A number may go on behind what was read so far.
        return (value, end) if end < len(self._text) or self._ended else "not JSON: it breaks off"

    def skip(self) -> None:
        """Pass over the next value without holding all of it."""
        start = self.peek()
        if start in ("[", "{"):
            for _ in self.elements() if start == "[" else self.members():
                self.value()
        else:
            self.value()

    def end(self) -> None:
        if self.peek():
            raise NotJson("something follows where the JSON ends: is this JSON Lines (.jsonl)?")

    def _take(self, expected: str) -> None:
        next_one = self.peek()
        if next_one != expected:
            place = repr(next_one) if next_one else "the file's end"
            raise NotJson(f"not JSON: {expected!r} expected, found {place}")
        self._position += 1

    def _fill(self, size: int = _CHUNK) -> None:
        data = self._stream.read(size)
        self._ended = not data
        try:
            more = self._decode(data, self._ended)
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise NotJson(f"not UTF-8 (byte 0x{byte:02x}): save the file as UTF-8") from error
        self._text = self._text[self._position :] + more
        self._position = 0
