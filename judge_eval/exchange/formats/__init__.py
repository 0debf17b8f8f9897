"""The way in: a file, and what is known of it, into a stream of items.

A public format is a module with `fits`, which knows a record of it, and `rows`; it is named here.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import ModuleType
from typing import BinaryIO, Final

from judge_eval.exchange.formats import (
    alttest,
    metaevaluator,
    mtbench,
    pandalm,
    pathscore,
    table,
)
from judge_eval.exchange.mapping import OWN_ITEM_NAMES, OWN_NAMES, ColumnMapping, rows
from judge_eval.exchange.rows import ITEMS, PAIRS, Item, Shape, Values, shape_of
from judge_eval.exchange.sources import Record, records

READERS: Final[Mapping[str, ModuleType]] = {
    "table": table,
    "mtbench": mtbench,
    "pandalm": pandalm,
    "pathscore": pathscore,
    "alttest": alttest,
    "metaevaluator": metaevaluator,
}
LOOKED_AT_FIRST: Final = 5


def read(
    stream: BinaryIO,
    name: str,
    mapping: ColumnMapping | None = None,
    file_format: str | None = None,
    shape: Shape | None = None,
) -> Iterator[Item]:
    """Read a seekable file of items, verdicts, votes or labels, at its start.

    Without a mapping a public format is recognised, and any other file must call its columns as our
    fields are called; whether these are those of pairs or of single items, `shape` or else the
    first records say. What is wrong with the file comes as errors among the rows; raises
    UnknownFormat where neither `file_format` nor the name says what it is.

    Examples
    --------
    >>> from io import BytesIO
    >>> [row] = read(BytesIO(b"pair,voter,vote\\n7,ann,tie\\n"), "votes.csv")
    >>> row.item, row.voter, row.vote
    ('7', 'ann', 'tie')
    """
    if mapping is None:
        first = _first_records(stream, name, file_format)
        if public := detect(name, first):
            items: Iterator[Item] = READERS[public].rows(stream, name, file_format)
            return items
        shape = shape_of({column for record in first for column in record}) or shape or PAIRS
        own = OWN_ITEM_NAMES if shape is ITEMS else OWN_NAMES
        return rows(records(stream, name, file_format), own, name)
    return rows(records(stream, name, file_format), mapping, name)


def recognised(stream: BinaryIO, name: str, file_format: str | None = None) -> str | None:
    """Tell which public format a seekable file has, and go back to its start."""
    return detect(name, _first_records(stream, name, file_format))


def _first_records(stream: BinaryIO, name: str, file_format: str | None) -> list[Values]:
    first = islice(records(stream, name, file_format), LOOKED_AT_FIRST)
    values = [record.values for record in first if isinstance(record, Record)]
    stream.seek(0)
    return values


def detect(name: str, first_records: Sequence[Values]) -> str | None:
    """Tell which public format a file has: a key of `READERS` that all its first records fit.

    Alt-Test files, which are not made of records, are known by their names.

    Examples
    --------
    >>> detect("human.jsonl", [dict.fromkeys(mtbench.COLUMNS, "")])
    'mtbench'
    """
    if not first_records:
        return "alttest" if alttest.by_judges(name) is not None else None
    readers = READERS.items()
    return next((key for key, reader in readers if all(map(reader.fits, first_records))), None)
