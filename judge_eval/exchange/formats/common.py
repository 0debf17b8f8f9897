"""What the readers of public formats share: records of theirs into rows of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from judge_eval.exchange import fields
from judge_eval.exchange.mapping import OWN_NAMES
from judge_eval.exchange.rows import Item, Misfit, Row, RowError, Values
from judge_eval.exchange.sources import Record, records


def rows_of(
    stream: BinaryIO,
    name: str,
    file_format: str | None,
    make: Callable[[Record], Iterator[Item]],
) -> Iterator[Item]:
    """Yield what `make` makes of each record, and an error where it raises Misfit."""
    for record in records(stream, name, file_format):
        if isinstance(record, RowError):
            yield record
            continue
        try:
            yield from make(record)
        except Misfit as error:
            yield RowError(name, record.line, error.field, error.why)


def own_row(file: str, line: int, values: Values) -> Row | RowError:
    """Build a row from raw values by field, with every check that a file of ours gets."""
    [row] = OWN_NAMES.rows(file, Record(line, dict(values)))
    return row


def need(record: Record, *columns: str) -> list[object]:
    """Return the values of columns that every record of a format has; raises Misfit."""
    for column in columns:
        if record.values.get(column) is None:
            raise Misfit(column, "missing")
    return [record.values[column] for column in columns]


def one_of(field: str, raw: object, meanings: Mapping[str, str]) -> str:
    if not isinstance(raw, str) or raw not in meanings:
        raise Misfit(field, f"{raw!r} is not one of {', '.join(meanings)}")
    return meanings[raw]


def plain(field: str, raw: object) -> str:
    try:
        return fields.plain(raw)
    except ValueError as error:
        raise Misfit(field, str(error)) from error
