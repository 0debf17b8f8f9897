"""Many rows of one model, each with values of its own, written in one round trip."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, JSONField, Model

from voting.ledger.bulk_sql import executemany, prepared, update_many

Changes = Sequence[tuple[Model, Mapping[str, Any]]]


def update_rows(names: Collection[str], changes: Changes) -> None:
    """Set the named fields of rows of one model, each to its new value or else to its old one.

    The rows are locked, and there: one that is not raises LedgerConflict.
    """
    if not changes:
        return
    model = type(changes[0][0])
    fields = [field for field in model._meta.concrete_fields if field.name in names]
    rows = [
        [*(_prepared(f, new.get(f.name, getattr(old, f.attname))) for f in fields), old.pk]
        for old, new in changes
    ]
    update_many(model, [str(field.column) for field in fields], rows)


def add_rows(
    model: type[Model], names: Sequence[str], rows: Sequence[Sequence[Any]], **same: Any
) -> None:
    """Insert rows: the named fields differ, those in `same` do not, all others are as by default.

    To make an object of each, only to write it down, takes ten times as long.
    """
    if not rows:
        return
    fields = {field.name: field for field in model._meta.concrete_fields if not field.primary_key}
    differ = [fields.pop(name) for name in names]
    values = [_prepared(f, same.get(f.name, f.get_default())) for f in fields.values()]
    given = [[_prepared(f, value) for f, value in zip(differ, row, strict=True)] for row in rows]
    quote = connection.ops.quote_name  # a field may be called `order`
    columns = [quote(str(field.column)) for field in (*differ, *fields.values())]
    into = f"INSERT INTO {model._meta.db_table} ({', '.join(columns)})"
    if connection.vendor != "postgresql":
        places = ", ".join(["%s"] * len(columns))
        sql = f"{into} VALUES ({places})"
        executemany(sql, [[*row, *values] for row in given])
        return
    arrays = ", ".join(f"%b::{field.db_type(connection)}[]" for field in differ)
    places = ", ".join(f"%s::{field.db_type(connection)}" for field in fields.values())
    sql = f"{into} SELECT new.*, {places} FROM unnest({arrays}) AS new"  # noqa: S608
    with prepared() as cursor:
        cursor.execute(sql, [*values, *(list(column) for column in zip(*given, strict=True))])


def _prepared(field: Field[Any, Any], value: Any) -> Any:
    if isinstance(field, JSONField):
        return None if value is None else json.dumps(value)
    return field.get_db_prep_save(value.pk if isinstance(value, Model) else value, connection)
