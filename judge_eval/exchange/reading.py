"""The way in: a file, and what is known of it, into a stream of items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from judge_eval.exchange.formats import READERS, PublicFormat, alttest, detect
from judge_eval.exchange.mapping import OWN_NAMES, ColumnMapping, rows
from judge_eval.exchange.rows import Item
from judge_eval.exchange.sources import Record, records

_LOOKED_AT = 5


def read(
    stream: BinaryIO,
    name: str,
    mapping: ColumnMapping | None = None,
    file_format: str | None = None,
) -> Iterator[Item]:
    """Read a file of pairs, verdicts, votes or labels.

    Parameters
    ----------
    stream : seekable binary file
        At its start. (With a mapping, only Parquet needs it to be seekable.)
    name : str
        The file's name: what errors call it, and what its format is told from.
    mapping : ColumnMapping, optional
        Which column is what. Without it a public format is recognised, and any other file must
        call its columns as our fields are called.
    file_format : str, optional
        ``csv``, ``json``, ``jsonl`` or ``parquet``; from the name where it is not given.

    Yields
    ------
    Row, LabelRow, JudgeOrder, LeftOut, Note or RowError
        What is wrong with the file comes as errors; the caller decides what they mean.

    Raises
    ------
    UnknownFormat

    Examples
    --------
    >>> from io import BytesIO
    >>> [row] = read(BytesIO(b"pair,voter,vote\\n7,ann,tie\\n"), "votes.csv")
    >>> row.pair.id, row.vote.voter, row.vote.choice
    ('7', 'ann', 'tie')
    """
    if mapping is not None:
        return rows(records(stream, name, file_format), mapping, name)
    public = recognised(stream, name, file_format)
    if public is None:
        return rows(records(stream, name, file_format), OWN_NAMES, name)
    if public == "alttest":
        return alttest.rows(stream, name)
    return READERS[public](stream, name)


def recognised(stream: BinaryIO, name: str, file_format: str | None = None) -> PublicFormat | None:
    """Tell which public format a seekable file has, and go back to its start."""
    first = islice(records(stream, name, file_format), _LOOKED_AT)
    found = detect(name, [record.values for record in first if isinstance(record, Record)])
    stream.seek(0)
    return found
