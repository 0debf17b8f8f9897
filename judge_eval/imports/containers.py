"""Bytes only: what is packed is unpacked as it is read, and text in another encoding becomes UTF-8.

Nothing here looks at what the records say. Everything is bounded: a file that unpacks to more than
it may breaks off with an error, whatever its header claims.
"""

import codecs
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from datetime import date, datetime, time
from functools import partial, reduce
from gzip import BadGzipFile, GzipFile
from itertools import chain
from lzma import LZMAError
from pathlib import PurePath
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, Final, Literal, NamedTuple, cast, get_args
from zipfile import BadZipFile, ZipFile, ZipInfo

from humanjudge.core.archives import ENCRYPTED, UNREADABLE, read
from humanjudge.core.strict_json import MAX_RECORD, MOST_COLUMNS, JsonObject, loads
from judge_eval.imports.row_models import UnreadableFile

Format = Literal["csv", "json", "jsonl", "parquet", "xlsx", "eval"]
_SUFFIXES: Final[dict[str, Format]] = {
    **dict.fromkeys((".csv", ".tsv", ".tab", ".txt"), "csv"),
    ".json": "json",
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    ".xlsx": "xlsx",
    ".eval": "eval",
}
_PACKED: Final = (".gz", ".zip")
MOST_FILES: Final = 50
MOST_MEMBERS: Final = 20_000
# What a file may unpack to where nobody states it.
MOST_UNPACKED: Final = 1 << 30
# A workbook is read as a whole, by a library that takes twice what its members unpack to.
MOST_WORKBOOK: Final = 64 << 20
# Such a library holds every cell before the last one, also those that are empty.
MOST_CELLS: Final = 2_000_000
# A cell with something in it, by its column and row.
_CELL: Final = re.compile(
    rb"""<(?:\w+:)?c\s[^<>]*?\br\s*=\s*["']([A-Za-z]{1,3})(\d{1,7})["'][^<>]*(?<!/)>"""
)
_SAMPLE: Final = 1 << 16
_BLOCK: Final = 1 << 20
# What Excel writes in the West: single letters among plain ones, never whole words of others.
WESTERN: Final = "cp1252"
_FOREIGN: Final = re.compile(rb"[\x80-\xff]{4}")
# What people call the encodings that files have most often.
ENCODINGS: Final = {
    "utf-8": "Unicode (UTF-8)",
    "utf-16": "Unicode (UTF-16)",
    "utf-32": "Unicode (UTF-32)",
    WESTERN: "Western European (Windows)",
    "cp1250": "Central European (Windows)",
    "cp1251": "Cyrillic (Windows)",
    "cp1253": "Greek (Windows)",
    "cp1254": "Turkish (Windows)",
    "cp1255": "Hebrew (Windows)",
    "cp1256": "Arabic (Windows)",
    "cp1257": "Baltic (Windows)",
    "cp932": "Japanese (Shift JIS)",
    "gb18030": "Chinese (GB 18030)",
    "big5": "Chinese (Big5)",
    "cp949": "Korean (Windows)",
    "koi8_r": "Cyrillic (KOI8-R)",
    "mac_roman": "Western European (Mac)",
    "cp850": "Western European (DOS)",
}
SEPARATORS: Final = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
# Stands before a table whose separator somebody chose, with a line of its own.
CHOSEN_SEPARATOR: Final = "\x1fseparator="
DAMAGED: Final = (*UNREADABLE, BadGzipFile, LZMAError, ValueError)
# The longer ones first: one begins as the other does.
_MARKS: Final = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class UnknownFormat(UnreadableFile):
    """The file's format was not given and its name does not tell it."""


class SourceFile(NamedTuple):
    """A file, and what a person should know of how it is read.

    `likely` is the encoding that it may have, where that is not clear and it was left as it is.
    """

    name: str
    stream: BinaryIO
    note: str = ""
    encoding: str = "utf-8"
    likely: str = ""


class OpenedFiles(NamedTuple):
    """The files that hold records, ready to be read, and all members of zips by their names."""

    tables: list[SourceFile]
    members: dict[str, tuple[ZipFile, ZipInfo]]


def format_of(name: str, stated_format: str | None = None) -> Format:
    """Return what a file is read as; raises UnknownFormat.

    Examples
    --------
    >>> format_of("Votes.TSV"), format_of("upload", "jsonl")
    ('csv', 'jsonl')
    """
    if stated_format:
        if stated_format not in get_args(Format):
            raise UnknownFormat(f"{stated_format!r} is not one of {', '.join(get_args(Format))}")
        return cast(Format, stated_format)
    suffix = PurePath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        endings = ", ".join([*_SUFFIXES, *_PACKED])
        raise UnknownFormat(f"{name}: the name must end in one of {endings}")
    return _SUFFIXES[suffix]


class _Unpacking:
    """A stream that breaks off with an error behind so many bytes."""

    def __init__(self, stream: IO[bytes], most: int) -> None:
        self._stream, self._most = stream, most

    def read(self, size: int = -1) -> bytes:
        return self._bounded(self._stream.read, size)

    def readline(self, size: int = -1) -> bytes:
        return self._bounded(self._stream.readline, size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def _bounded(self, read: Any, size: int) -> bytes:
        try:
            data: bytes = read(size)
            position = self._stream.tell()
        except DAMAGED as error:
            raise UnreadableFile(f"cannot be unpacked: {error}") from error
        if position > self._most:
            raise UnreadableFile(f"unpacks to more than {self._most >> 20:,} MB")
        return data


# --- files within files ---------------------------------------------------------------------------


def unpacked(
    files: Iterable[SourceFile],
    copies: ExitStack,
    stated_format: str | None = None,
    encoding: str | None = None,
    most: int = MOST_UNPACKED,
    separator: str | None = None,
) -> OpenedFiles:
    """Open files: unpacked, and text as UTF-8.

    `separator`, one of `SEPARATORS`, stands between the columns of tables, whatever their headers
    tell.

    What has to be copied for that is closed with `copies`. A member of a zip whose name tells no
    format is left where it is: it may be a picture. Raises UnreadableFile where a file cannot be
    opened or there are too many.
    """
    packed, opened = list[SourceFile](), OpenedFiles([], {})
    for name, stream, *_ in files:
        suffix = PurePath(name).suffix.lower()
        if suffix == ".gz":
            gz = _Unpacking(cast("IO[bytes]", GzipFile(fileobj=stream)), most)
            packed.append(SourceFile(PurePath(name).stem, cast(BinaryIO, gz)))
        elif suffix == ".zip":
            packed += _tables_in(name, stream, most, opened)
        else:
            packed.append(SourceFile(name, stream))
    if not packed:
        raise UnreadableFile("no file holds rows: one is needed beside a zip of pictures")
    if len(packed) > MOST_FILES:
        raise UnreadableFile(
            f"{len(packed)} files with records; at most {MOST_FILES} are read at once"
        )
    for name, stream, *_ in packed:
        if (form := format_of(name, stated_format)) in ("csv", "json", "jsonl"):
            table_separator = separator if form == "csv" else None
            opened.tables.append(
                _with_separator(_as_utf8(name, stream, encoding, copies), table_separator, copies)
            )
        else:
            # A library of its own reads it back and forth.
            is_packed = isinstance(stream, _Unpacking)
            opened.tables.append(
                SourceFile(name, _copy(_blocks(stream), copies) if is_packed else stream)
            )
    return opened


def _tables_in(name: str, stream: BinaryIO, most: int, opened: OpenedFiles) -> Iterator[SourceFile]:
    try:
        archive = ZipFile(stream)
        members = [
            member for member in archive.infolist() if member.filename and not member.is_dir()
        ]
        if len(opened.members) + len(members) > MOST_MEMBERS:
            raise UnreadableFile(f"more than {MOST_MEMBERS:,} files", file=name)
        opened.members.update((member.filename, (archive, member)) for member in members)
        for member in members:
            path = PurePath(member.filename)
            # What macOS puts beside each file holds no records.
            is_hidden = any(part.startswith((".", "__MACOSX")) for part in path.parts)
            if is_hidden or path.suffix.lower() not in _SUFFIXES:
                continue
            if member.flag_bits & ENCRYPTED:
                raise UnreadableFile(f"{member.filename!r} is encrypted")
            yield SourceFile(path.name, cast(BinaryIO, _Unpacking(archive.open(member), most)))
    except DAMAGED as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"no zip that can be read: {error}", file=name) from error


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(partial(stream.read, _BLOCK), b"")


def _copy(blocks: Iterable[bytes], copies: ExitStack) -> BinaryIO:
    copy = copies.enter_context(TemporaryFile())  # noqa: SIM115  closed with all copies
    copy.writelines(blocks)
    copy.seek(0)
    return cast(BinaryIO, copy)


def _with_separator(source: SourceFile, separator: str | None, copies: ExitStack) -> SourceFile:
    if separator is None:
        return source
    line = f"{CHOSEN_SEPARATOR}{SEPARATORS[separator]}\n"
    blocks = chain([line.encode()], _blocks(source.stream))
    return source._replace(stream=_copy(blocks, copies))


# --- text -----------------------------------------------------------------------------------------


def _as_utf8(name: str, stream: BinaryIO, encoding: str | None, copies: ExitStack) -> SourceFile:
    """Return the text of a seekable stream as UTF-8: by its mark, or as it is said to be encoded.

    Where nobody says it, it is read as it must be meant if that is clear, and is left as it is
    else: its reader says where it is not UTF-8.
    """
    sample = stream.read(_SAMPLE)
    stream.seek(0)
    codec = next((code for mark, code in _MARKS if sample.startswith(mark)), encoding)
    note = ""
    if codec is None and (guesses := guessed_encodings(sample)):
        if len(guesses) > 1:
            near = ", ".join(guesses)
            note = f"not UTF-8; as `encoding` say which it is: {near} …"
            return SourceFile(name, stream, note, likely=guesses[0])
        [codec] = guesses
        named = ENCODINGS.get(codec, codec)
        note = f"read as {named}; if that is wrong, say its `encoding`"
    if codec is None or codecs.lookup(codec).name == "utf-8":
        return SourceFile(name, stream)
    texts = codecs.iterdecode(_blocks(stream), codec, "replace")
    utf8 = (text.encode("utf-8", "replace") for text in texts)
    return SourceFile(name, _copy(utf8, copies), note, codec)


def guessed_encodings(sample: bytes) -> list[str]:
    """Return the encodings that a text may have, the likeliest first; none where it is UTF-8.

    Windows-1252 is tried first: short texts in it look like many others to whoever counts letters.

    Examples
    --------
    >>> guessed_encodings("Grüße".encode()), guessed_encodings("Grüße".encode("cp1252"))
    ([], ['cp1252'])
    """
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(sample)
    wrong = text.count("\ufffd")
    # UTF-8, perhaps damaged, where more of it is right than wrong.
    if not wrong or sum(not character.isascii() for character in text) > 2 * wrong:
        return []
    with suppress(UnicodeDecodeError):
        if not _FOREIGN.search(sample):
            return [WESTERN] if sample.decode(WESTERN) else []
    # Imported here: it takes long, and nearly every file is UTF-8.
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample))
    return [match.encoding for match in matches if match.chaos < matches[0].chaos + 0.1][:3]


# --- workbooks and logs ---------------------------------------------------------------------------


def workbook_rows(stream: BinaryIO) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the names of all sheets, and the rows of the first, as CSV would hold their cells.

    Raises UnreadableFile.
    """
    from python_calamine import CalamineError, load_workbook  # compiled, and seldom used

    try:
        with ZipFile(stream) as archive:
            size = 0
            for member in archive.infolist():
                with archive.open(member) as inner:
                    size = _check_sheet(inner, size)
        stream.seek(0)
        book = load_workbook(stream)
        sheet = book.get_sheet_by_index(0)
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows())
        return book.sheet_names, enumerate(rows, start=1)
    except (*DAMAGED, CalamineError) as error:
        if isinstance(error, UnreadableFile):
            raise
        raise UnreadableFile(f"no workbook that can be read: {error}") from error


def _check_sheet(member: IO[bytes], size: int) -> int:
    """Refuse a workbook that is too large, or of which a sheet has cells that lie far out.

    Return its size with this member of it.
    """
    tail, row, column = b"", 0, b""
    while block := member.read(_BLOCK):
        size += len(block)
        if size > MOST_WORKBOOK:
            raise UnreadableFile(
                f"a workbook of more than {MOST_WORKBOOK >> 20} MB: save it as CSV"
            )
        text = tail + block
        if cells := _CELL.findall(text):
            columns, rows = map(set, zip(*cells, strict=True))
            row = max(row, *map(int, rows))
            column = max(column, *(letters.rjust(3).upper() for letters in columns))
        # The tag at its end may go on in the next block.
        tail = text[text.rfind(b"<") :][:_SAMPLE]
    width = reduce(lambda number, letter: 26 * number + letter - 64, column.strip(), 0)
    if row * width > MOST_CELLS:
        raise UnreadableFile(
            f"its last cell is {column.decode().strip()}{row}, so {row * width:,} cells would be"
            f" read, and at most {MOST_CELLS:,} are: delete what lies far out, or save it as CSV"
        )
    return size


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return str(value)


def log_records(stream: BinaryIO) -> Iterator[tuple[int, object]]:
    """Yield the samples of an Inspect log (``.eval``, a zip), each with the log's ``eval``."""
    try:
        with ZipFile(stream) as archive:
            head = _json_member(archive, "header.json")
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            for number, name in enumerate(names, start=1):
                try:
                    yield number, {"eval": head.get("eval")} | _json_member(archive, name)
                except (ValueError, BadZipFile) as error:
                    yield number, ValueError(f"{name}: {error}")
    except (*DAMAGED, KeyError) as error:
        raise UnreadableFile(f"no log that can be read: {error}") from error


def _json_member(archive: ZipFile, name: str) -> JsonObject:
    value = loads(read(archive, name, MAX_RECORD), has_nan=True)
    if not isinstance(value, dict) or len(value) > MOST_COLUMNS:
        raise ValueError("not an object with named values")
    return value
