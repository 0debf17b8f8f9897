"""The table of a run: what is exported here as CSV (`export.run_csv`), read back as it was.

Its columns are those of docs/importing.md. One more, ``humanjudge``, is filled in the first row
alone, with what is true of the whole run. What is a list or an object is JSON. A text that a
spreadsheet would calculate, an empty one, and one that begins with an apostrophe stand behind an
apostrophe, which is taken off here.
"""

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, BinaryIO, Final
from uuid import UUID

from pydantic import Field

from humanjudge.lib.strict_json import NotJson, loads
from humanjudge.lib.text import harmless
from humanjudge.lib.validation import ConfigInvalid, Part, Storable, StorableJson, validated
from judge_eval.exchange.mapping import OWN_ITEM_NAMES, OWN_NAMES, rows_of
from judge_eval.exchange.row_models import Item, JudgeOrder, Misfit, RunFacts, Values
from judge_eval.exchange.sources import Record

MARK: Final = "humanjudge"
AS_JSON: Final = ("tags", "labels", "metadata")
_QUOTE: Final = "'"


class About(Part):
    """What the first row says: the run's numbers, its judges in their order, and its options."""

    run: Annotated[UUID, Field(strict=False)]
    queue: Annotated[UUID, Field(strict=False)]
    judges: list[Storable]
    baselines: list[Storable]
    options: StorableJson


def quoted(text: str) -> str:
    """Return the text of a cell so that nothing calculates it and `unquoted` gives it back.

    Examples
    --------
    >>> [quoted(text) for text in ("=1", "'=1", "", "so")]
    ["'=1", "''=1", "'", 'so']
    """
    needs = not text or text.startswith(_QUOTE) or harmless(text) != text
    return f"{_QUOTE}{text}" if needs else text


def unquoted(cell: str) -> str:
    return cell.removeprefix(_QUOTE)


def fits(record: Values) -> bool:
    return MARK in record


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    return rows_of(stream, name, file_format, partial(_items, name))


def _items(name: str, record: Record) -> Iterator[Item]:
    values: Values = {
        column: unquoted(value) if isinstance(value, str) else value
        for column, value in record.values.items()
        if value is not None
    }
    if MARK in values:
        try:
            about = validated(About, _json(MARK, values[MARK]))
        except ConfigInvalid as invalid:
            raise Misfit(MARK, str(invalid.errors[0])) from invalid
        yield RunFacts(name, record.line, about.run, about.queue, about.options)
        yield JudgeOrder(name, tuple(about.judges), frozenset(about.baselines))
        return
    values |= {column: _json(column, values[column]) for column in AS_JSON if column in values}
    own = OWN_ITEM_NAMES if "item" in record.values else OWN_NAMES
    yield from own.rows(name, Record(record.line, values))


def _json(column: str, cell: Any) -> Any:
    try:
        return loads(cell) if isinstance(cell, str) else cell
    except NotJson as error:
        raise Misfit(column, str(error)) from error
