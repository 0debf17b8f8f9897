"""Records out of files of four formats, one at a time and in bounded memory."""

import csv
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO, Final, Literal, NamedTuple, TypeAlias, get_args

from humanjudge.lib.strict_json import MAX_RECORD, MOST_COLUMNS, Cursor, NotJson, loads
from judge_eval.exchange.row_models import Broken, RowError, Values

Format = Literal["csv", "json", "jsonl", "parquet"]
# Where the rows stand in a JSON file that is an object.
LISTS = ("rows", "tasks", "records", "items", "data", "pairs", "votes", "verdicts")

_SUFFIXES: Final[dict[str, Format]] = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_BOM: Final = b"\xef\xbb\xbf"

# The csv module has one limit for the whole process; its own is too small for a drawing.
csv.field_size_limit(MAX_RECORD)


class Record(NamedTuple):
    """One record: its line (CSV, JSON Lines) or number, from 1, and its values by column."""

    line: int
    values: Values


# The line or number of each record, and its values, or an error that says what is wrong with it.
Numbered: TypeAlias = Iterator[tuple[int, object]]


class UnknownFormat(ValueError):
    """The file's format was not given and its name does not tell it."""


def format_of(name: str) -> Format:
    suffix = PurePath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        raise UnknownFormat(f"{name}: the name must end in one of {', '.join(_SUFFIXES)}")
    return _SUFFIXES[suffix]


def records(
    stream: BinaryIO, name: str, file_format: str | None = None
) -> Iterator[Record | RowError]:
    """Read the records of a file, whatever its format.

    An error that is not about one record alone is fatal, and the last item. A record is at most
    2 MB. An empty cell of a CSV file is None. Only Parquet needs a seekable stream.

    Examples
    --------
    >>> from io import BytesIO
    >>> list(records(BytesIO(b"pair,vote\\n7,A\\n8\\n"), "votes.csv"))  # doctest: +ELLIPSIS
    [Record(line=2, values={'pair': '7', 'vote': 'A'}), RowError(file='votes.csv', row=3, ...)]
    """
    chosen = file_format or format_of(name)
    if chosen == "parquet":
        # Imported here: who reads no Parquet does not wait for it.
        from judge_eval.exchange.parquet import parquet_rows

        return _checked(parquet_rows(stream), name)
    readers = {"csv": _csv, "jsonl": _json_lines, "json": _json}
    if chosen not in readers:
        raise UnknownFormat(f"{chosen!r} is not one of {', '.join(get_args(Format))}")
    return _checked(readers[chosen](stream), name)


def _checked(numbered: Numbered, name: str) -> Iterator[Record | RowError]:
    number = 0
    try:
        for number, value in numbered:
            if isinstance(value, ValueError):
                yield RowError(name, number, None, str(value))
            elif not isinstance(value, dict):
                yield RowError(name, number, None, "not an object with named values")
            elif len(value) > MOST_COLUMNS:
                yield RowError(name, number, None, f"more than {MOST_COLUMNS:,} names of values")
            else:
                yield Record(number, value)
    except (Broken, NotJson) as error:
        line = getattr(error, "line", 0) or number + 1
        yield RowError(name, line, None, str(error), is_fatal=True)


class _CsvLines:
    """Decoded lines for the csv module, counted; one record may not grow without bound."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.number = 0
        self.reset()

    def reset(self) -> None:
        self.size = 0
        self.wrong = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(MAX_RECORD + 1)
        if not line:
            raise StopIteration
        self.number += 1
        self.size += len(line)
        if self.size > MAX_RECORD:
            raise Broken(f"a record of more than {MAX_RECORD:,} bytes: is a quote left open?")
        # A record that is not UTF-8 is read to its end all the same: its quotes say where the next
        # one begins.
        text, wrong = _decoded(line.removeprefix(_BOM) if self.number == 1 else line)
        self.wrong = self.wrong or wrong
        return text


def _decoded(line: bytes) -> tuple[str, str]:
    try:
        return line.decode(), ""
    except UnicodeDecodeError as error:
        where = f"byte 0x{line[error.start]:02x} at {error.start + 1}"
        return line.decode(errors="replace"), f"not UTF-8 ({where}): save the file as UTF-8"


def _csv(stream: BinaryIO) -> Numbered:
    lines = _CsvLines(stream)
    reader = csv.reader(lines, strict=True)
    header: list[str] = []
    try:
        while True:
            lines.reset()
            start = lines.number + 1
            cells = next(reader, None)
            if not header and (cells or cells is None):
                header = _header(cells or [], lines.wrong)
            elif cells is None:
                return
            elif lines.wrong:
                yield start, ValueError(lines.wrong)
            elif len(cells) == len(header):
                values = (cell or None for cell in cells)
                yield start, dict(zip(header, values, strict=True))
            elif cells:  # a blank line is no record
                why = f"{len(cells)} columns, the header has {len(header)}"
                yield start, ValueError(why)
    except (csv.Error, Broken) as error:
        why = f"not CSV: {error}" if isinstance(error, csv.Error) else str(error)
        raise Broken(why, max(lines.number, 1)) from error


def _header(header: list[str], wrong: str) -> list[str]:
    if wrong:
        raise Broken(wrong)
    if not header:
        raise Broken("the file is empty: its first line must name the columns")
    if len(header) > MOST_COLUMNS:
        raise Broken(f"{len(header):,} columns; at most {MOST_COLUMNS:,} are read")
    for number, column in enumerate(header, start=1):
        if not column.strip():
            raise Broken(f"column {number} has no name")
        if header.index(column) != number - 1:
            raise Broken(f"two columns are named {column!r}")
    return header


def _json_lines(stream: BinaryIO) -> Numbered:
    number = 0
    while line := stream.readline(MAX_RECORD + 1):
        number += 1
        if len(line) > MAX_RECORD:
            yield number, ValueError(f"a record of more than {MAX_RECORD:,} bytes")
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_RECORD + 1)
        elif not line.isspace():
            text, wrong = _decoded(line.removeprefix(_BOM) if number == 1 else line)
            try:
                value = ValueError(wrong) if wrong else loads(text.rstrip())
            except NotJson as error:
                value = error
            yield number, value


def _json(stream: BinaryIO) -> Numbered:
    cursor = Cursor(stream)
    return enumerate(_json_values(cursor), start=1)


def _json_values(cursor: Cursor) -> Iterator[object]:
    start, taken = cursor.peek(), ""
    if start not in ("[", "{"):
        raise NotJson("neither an array of objects nor an object that holds one")
    # An array stands for the one list of an object.
    for key in cursor.members() if start == "{" else [LISTS[0]]:
        if key not in LISTS or cursor.peek() != "[":
            cursor.skip()
            continue
        if taken:
            raise NotJson(f"two lists, {taken!r} and {key!r}: put each into a file of its own")
        taken = key
        for _ in cursor.elements():
            yield cursor.value()
    if not taken:
        raise NotJson(f"the object holds no list named {', '.join(LISTS)}")
    cursor.end()
