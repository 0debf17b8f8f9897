"""The bundle: everything of a run, or of a project, as JSON Lines of typed records.

One record a line, in this order: a header; the rubrics; then the runs, each with its judges,
outputs, pairs and verdicts; the voters by pseudonym; the flags; what the ledger holds, in its
order; and an end that counts the lines, so that a file that was cut is found out. No names, no
addresses, no keys and no invites are in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, BinaryIO, Final

from pydantic import Field, TypeAdapter, ValidationError

from humanjudge.lib.strict_json import NotJson, loads
from judge_eval.exchange.bundle_records import End, EntryPart, Header, Record, Vote

FORMAT: Final = "humanjudge"
# A run's config holds all its prompts in one line.
MOST_BYTES: Final = 32_000_000
_HEADER_BYTES: Final = 1_000_000
# The escape of the one character that a database cannot hold, not behind a backslash.
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")

_record: TypeAdapter[Record] = TypeAdapter(Annotated[Record, Field(discriminator="type")])


class BundleError(Exception):
    """A bundle that cannot be read or written into the database.

    Parameters
    ----------
    line : int
        From 1; 0 when it is not about one line.
    field : str or None
    why : str
    """

    def __init__(self, line: int, field: str | None, why: str) -> None:
        super().__init__(f"line {line}: {field}: {why}" if field else f"line {line}: {why}")
        self.line, self.field, self.why = line, field, why


def is_bundle(stream: BinaryIO) -> bool:
    """Say whether a seekable file is a bundle, of whatever version, and go back to its start.

    Examples
    --------
    >>> from io import BytesIO
    >>> is_bundle(BytesIO(b'{"type":"header","format":"humanjudge","version":2}'))
    True
    >>> is_bundle(BytesIO(b'{"pair": 7, "voter": "ann", "vote": "A"}'))
    False
    """
    first = stream.readline(_HEADER_BYTES)
    stream.seek(0)
    try:
        header = loads(first.decode())
    except (NotJson, UnicodeDecodeError):
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def read(stream: BinaryIO) -> Iterator[tuple[int, Record]]:
    """Read a bundle, line by line.

    Yields
    ------
    (int, Record)
        The number of the line, from 1, and what it holds; the header first, the end not.

    Raises
    ------
    BundleError
        At the first line that is not as it must be, or where the end is missing.
    """
    number, ended, is_ledger = 0, False, False
    while line := stream.readline(MOST_BYTES + 1):
        number += 1
        record = _parsed(number, line)
        is_behind = is_ledger and not (is_of_ledger(record) or isinstance(record, End))
        is_ledger = is_ledger or is_of_ledger(record)
        if ended or is_behind or (number == 1) != isinstance(record, Header):
            raise BundleError(number, "type", f"{record.type!r} cannot stand here")
        if isinstance(record, End):
            if record.lines != number - 1:
                raise BundleError(number, "lines", f"{record.lines}, but there are {number - 1}")
            ended = True
        else:
            yield number, record
    if not ended:
        raise BundleError(number, None, "the file was cut: its last line must be of type 'end'")


def is_of_ledger(record: Record) -> bool:
    return isinstance(record, Vote | EntryPart)


def _parsed(number: int, line: bytes) -> Record:
    if len(line) > MOST_BYTES:
        raise BundleError(number, None, f"more than {MOST_BYTES:,} bytes")
    if _NUL.search(line):
        raise BundleError(number, None, "holds a NUL character")
    try:
        return _record.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # The first part of the path is the record's type.
        path = ".".join(str(part) for part in first["loc"][1:])
        raise BundleError(number, path or None, first["msg"]) from error


def line(record: Record) -> str:
    """Write a record as its line, without the line's end.

    Examples
    --------
    >>> line(End(lines=7))
    '{"type":"end","lines":7}'
    """
    return record.model_dump_json()
