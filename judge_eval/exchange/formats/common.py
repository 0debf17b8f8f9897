"""What the readers of public formats share: facts of their records into our own fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from judge_eval.exchange import fields
from judge_eval.exchange.assemble import Misfit
from judge_eval.exchange.mapping import OWN_NAMES
from judge_eval.exchange.rows import Row, RowError
from judge_eval.exchange.sources import Record


def own_row(file: str, line: int, values: Mapping[str, object]) -> Row | RowError:
    """Build a row from raw values by field, with every check that a file of ours gets."""
    [row] = OWN_NAMES.rows(file, Record(line, dict(values)))
    return row


def need(record: Record, *columns: str) -> list[object]:
    """Return the values of columns that every record of a format has.

    Raises
    ------
    Misfit

    Examples
    --------
    >>> need(Record(1, {"idx": 7, "more": 1}), "idx")
    [7]
    """
    for column in columns:
        if record.values.get(column) is None:
            raise Misfit(column, "missing")
    return [record.values[column] for column in columns]


def one_of(field: str, raw: object, known: Mapping[str, str]) -> str:
    """Return what a word of the format stands for.

    Raises
    ------
    Misfit
    """
    if not isinstance(raw, str) or raw not in known:
        raise Misfit(field, f"{raw!r} is not one of {', '.join(known)}")
    return known[raw]


def plain(field: str, raw: object) -> str:
    """Return the text that stands for a text, a whole number or a truth value.

    Raises
    ------
    Misfit
    """
    try:
        return fields.plain(raw)
    except ValueError as error:
        raise Misfit(field, str(error)) from error


def holds(record: Mapping[str, object], columns: Iterable[str]) -> bool:
    """Say whether a record has all these columns."""
    return all(column in record for column in columns)
