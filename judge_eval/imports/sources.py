"""Records out of files of six formats, one at a time and in bounded memory."""

import csv
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from humanjudge.core.strict_json import MAX_RECORD, MOST_COLUMNS, Cursor, NotJson, loads
from humanjudge.core.text import UNSTORABLE, number_of
from judge_eval.imports import containers
from judge_eval.imports.fields import is_encodable
from judge_eval.imports.row_models import Note, RowError, UnreadableFile, Values

# Where the rows stand in a JSON file that is an object: in one of these, or in one within these.
LISTS = (
    *("rows", "tasks", "records", "items", "data", "pairs", "votes", "verdicts"),
    *("results", "samples", "examples", "test_cases", "testCases", "annotations"),
    *("testRunData", "test_results", "comparisons"),
)
# What an object says before its list and every record needs: the settings of an Inspect log.
_OF_ALL: Final = "eval"

_BOM: Final = b"\xef\xbb\xbf"
_DELIMITERS: Final = ",;\t|"
_DECLARED_DELIMITER: Final = re.compile(r"sep=(.)\s*")

# The csv module has one limit for the whole process; its own is too small for a drawing.
csv.field_size_limit(MAX_RECORD)


class Record(NamedTuple):
    """One record: its line (CSV, JSON Lines) or number, from 1, and its values by column."""

    line: int
    values: Values


# The line or number of each record, and its values, or an error that says what is wrong with it.
Numbered: TypeAlias = Iterator[tuple[int, object]]


def records(
    stream: BinaryIO, name: str, file_format: str | None = None
) -> Iterator[Record | RowError | Note]:
    """Read the records of a file, whatever its format.

    An error that is not about one record alone is fatal, and the last item. A record is at most
    2 MB. An empty cell of a table is None; a character that no database holds becomes U+FFFD, and
    a note behind the last record counts them. CSV and JSON need no seekable stream.

    Examples
    --------
    >>> from io import BytesIO
    >>> list(records(BytesIO(b"pair,vote\\n7,A\\n8\\n"), "votes.csv"))  # doctest: +ELLIPSIS
    [Record(line=2, values={'pair': '7', 'vote': 'A'}), RowError(file='votes.csv', row=3, ...)]
    """
    readers: dict[str, Callable[[BinaryIO], Numbered]] = {
        "csv": _csv,
        "jsonl": _json_lines,
        "json": lambda file: enumerate(_json_values(file), start=1),
        "xlsx": _workbook,
        "eval": containers.log_records,
        "parquet": _parquet,
    }
    return _checked(readers[containers.format_of(name, file_format)](stream), name)


def _checked(numbered: Numbered, name: str) -> Iterator[Record | RowError | Note]:
    number, storable = 0, _Storable()
    try:
        for number, value in numbered:
            if isinstance(value, Note):
                yield Note(name, value.text)
            else:
                yield _record(name, number, value, storable)
    except (UnreadableFile, NotJson) as error:
        line = getattr(error, "line", 0) or number + 1
        yield RowError(name, line, None, str(error), is_fatal=True)
    if storable.replaced:
        yield Note(name, f"{storable.replaced:,} characters that cannot be stored became \ufffd")


def _record(name: str, number: int, value: object, storable: "_Storable") -> Record | RowError:
    if isinstance(value, ValueError):
        return RowError(name, number, None, str(value))
    if not isinstance(value, dict):
        return RowError(name, number, None, "not an object with named values")
    if len(value) > MOST_COLUMNS:
        return RowError(name, number, None, f"more than {MOST_COLUMNS:,} names of values")
    try:
        return Record(number, storable.clean(value))
    except RecursionError:
        return RowError(name, number, None, "nested too deeply")


class _Storable:
    """Replaces what no database holds, and counts it."""

    def __init__(self) -> None:
        self.replaced = 0

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            if "\0" in value or not is_encodable(value):
                value, number = UNSTORABLE.subn("\ufffd", value)
                self.replaced += number
            return value
        if isinstance(value, dict):
            return {self.clean(key): self.clean(inner) for key, inner in value.items()}
        return [self.clean(inner) for inner in value] if isinstance(value, list) else value


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
            raise UnreadableFile(
                f"a record of more than {MAX_RECORD:,} bytes: is a quote left open?"
            )
        # A record that is not UTF-8 is read to its end all the same: its quotes say where the next
        # one begins.
        text, wrong = _decode_line(line.removeprefix(_BOM) if self.number == 1 else line)
        self.wrong = self.wrong or wrong
        return text

    def header(self) -> tuple[str, str]:
        """Return the first line that is not blank, and what stands between its columns."""
        line, separator = next(self, ""), ""
        if line.startswith(containers.CHOSEN_SEPARATOR):
            # That line is none of the file's.
            self.number = 0
            line, separator = next(self, ""), line[len(containers.CHOSEN_SEPARATOR)]
        if declared := _DECLARED_DELIMITER.fullmatch(line):
            return next(self, ""), separator or declared[1]
        while line.isspace():
            line = next(self, "")
        bare = re.sub(r'"[^"]*"', "", line)
        return line, separator or max(_DELIMITERS, key=bare.count)


def _decode_line(line: bytes) -> tuple[str, str]:
    try:
        return line.decode(), ""
    except UnicodeDecodeError as error:
        position = f"byte 0x{line[error.start]:02x} at {error.start + 1}"
        return line.decode(errors="replace"), f"not UTF-8 ({position}): save the file as UTF-8"


def separator_of(stream: BinaryIO) -> str:
    """Return what stands between the columns of a seekable CSV file; go back to its start.

    Examples
    --------
    >>> from io import BytesIO
    >>> separator_of(BytesIO(b"Frage;Antwort\\n"))
    ';'
    """
    try:
        return _CsvLines(stream).header()[1]
    except UnreadableFile:
        return ""
    finally:
        stream.seek(0)


def _csv(stream: BinaryIO) -> Numbered:
    lines = _CsvLines(stream)
    try:
        first, delimiter = lines.header()
        # The header may go on behind its first line.
        reader = csv.reader(chain([first], lines), strict=True, delimiter=delimiter)
        yield from _table(_csv_rows(lines, reader))
    except (csv.Error, UnreadableFile) as error:
        reason = f"not CSV: {error}" if isinstance(error, csv.Error) else str(error)
        raise UnreadableFile(reason, max(lines.number, 1)) from error


def _csv_rows(lines: _CsvLines, reader: Iterator[list[str]]) -> Iterator[tuple[int, object]]:
    start = lines.number
    for cells in reader:
        yield start, ValueError(lines.wrong) if lines.wrong else cells
        lines.reset()
        start = lines.number + 1


def _parquet(stream: BinaryIO) -> Numbered:
    # Imported here: who reads no Parquet neither waits for it nor needs it.
    from judge_eval.imports.parquet import parquet_rows

    yield from parquet_rows(stream)


def _workbook(stream: BinaryIO) -> Numbered:
    sheets, rows = containers.workbook_rows(stream)
    yield from _table(rows)
    if len(sheets) > 1:
        yield 0, Note("", f"only the first sheet is read, {sheets[0]!r}")


def _table(rows: Iterator[tuple[int, Any]]) -> Numbered:
    """Yield the rows below a header as records; a column without a name is not read."""
    rows = (row for row in rows if isinstance(row[1], ValueError) or any(row[1]))
    start, first = next(rows, (1, None))
    if first is None:
        raise UnreadableFile("the file is empty: its first line must name the columns")
    header = _header(first)
    if number := sum(not name.strip() for name in header):
        yield start, Note("", f"{number_of(number, 'column')} without a name: not read")
    for start, cells in rows:
        if isinstance(cells, ValueError):
            yield start, cells
        elif len(cells) >= len(header) and not any(cells[len(header) :]):
            named = zip(header, cells, strict=False)
            yield start, {name: cell or None for name, cell in named if name.strip()}
        else:
            yield start, ValueError(f"{len(cells)} columns, the header has {len(header)}")


def _header(header: Any) -> list[str]:
    if isinstance(header, ValueError):
        raise UnreadableFile(str(header))
    if len(header) > MOST_COLUMNS:
        raise UnreadableFile(f"{len(header):,} columns; at most {MOST_COLUMNS:,} are read")
    for number, column in enumerate(header, start=1):
        if column.strip() and header.index(column) != number - 1:
            raise UnreadableFile(f"two columns are named {column!r}")
    return list(header)


def _json_lines(stream: BinaryIO) -> Numbered:
    number = 0
    while line := stream.readline(MAX_RECORD + 1):
        number += 1
        if len(line) > MAX_RECORD:
            yield number, ValueError(f"a record of more than {MAX_RECORD:,} bytes")
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_RECORD + 1)
        elif not line.isspace():
            text, wrong = _decode_line(line.removeprefix(_BOM) if number == 1 else line)
            try:
                value = ValueError(wrong) if wrong else loads(text.rstrip(), has_nan=True)
            except NotJson as error:
                value = error
            yield number, value


def _json_values(stream: BinaryIO, lists: Sequence[str] = LISTS) -> Iterator[object]:
    cursor, other_lists = Cursor(stream, has_nan=True), list[str]()
    start = cursor.peek()
    if start == "[":
        for _ in cursor.elements():
            yield cursor.value()
    elif start == "{":
        if not (yield from _object_records(cursor, {}, lists, other_lists)):
            if len(other_lists) != 1:
                named = f"; its lists are {', '.join(other_lists)}" if other_lists else ""
                raise NotJson(f"the object holds no list named {', '.join(LISTS)}{named}")
            # Called as somebody likes, it can be nothing but the records.
            stream.seek(0)
            yield from _json_values(stream, other_lists)
            return
    else:
        raise NotJson("neither an array of objects nor an object that holds one")
    cursor.end()


def _object_records(
    cursor: Cursor, of_all: Values, lists: Sequence[str], other_lists: list[str] | None
) -> Generator[object, None, str]:
    """Yield the records of the one list of an object; return what the list is called.

    `other_lists` takes the names of all other lists, of the outermost object alone.
    """
    list_name = ""
    for key in cursor.members():
        start = cursor.peek()
        name = ""
        if key == _OF_ALL and start == "{":
            of_all[key] = cursor.value()
        elif key in lists and start == "[" and not list_name:
            name = key
            for _ in cursor.elements():
                record = cursor.value()
                yield of_all | record if isinstance(record, dict) else record
        elif key in lists and start == "[":
            raise NotJson(f"two lists, {list_name!r} and {key!r}: put each into a file of its own")
        elif key in lists and start == "{" and other_lists is not None and not list_name:
            name = yield from _object_records(cursor, of_all, lists, None)
        else:
            if start == "[" and other_lists is not None:
                other_lists.append(key)
            cursor.skip()
        list_name = list_name or name
    return list_name
