"""Many rows of one model, each with values of its own, written in one round trip."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, JSONField, Model

from voting.rows import executemany, insist, prepared

Changes = Sequence[tuple[Model, Mapping[str, Any]]]


def update_rows(names: Collection[str], changes: Changes) -> None:
    """Set the named fields of rows of one model, each to its new value or else to its old one.

    The rows are locked, and there: one that is not raises LedgerConflict.
    """
    if not changes:
        return
    meta = changes[0][0]._meta
    fields = [field for field in meta.concrete_fields if field.name in names]
    rows = [
        [_prepared(field, new.get(field.name, getattr(old, field.attname))) for field in fields]
        for old, new in changes
    ]
    pks = [old.pk for old, _ in changes]
    table, key = meta.db_table, meta.pk
    columns = {connection.ops.quote_name(str(field.column)): field for field in fields}
    if connection.vendor != "postgresql":
        values = ", ".join(f"{column} = %s" for column in columns)
        sql = f"UPDATE {table} SET {values} WHERE {key.column} = %s"  # noqa: S608  our own names
        executemany(sql, [[*row, pk] for row, pk in zip(rows, pks, strict=True)])
        return
    # Arrays, in binary: a statement a row takes three times as long to plan and run.
    kinds = [str(field.db_type(connection)) for field in fields]
    values = ", ".join(
        f"{column} = new.{column}::{kind}" for column, kind in zip(columns, kinds, strict=True)
    )
    arrays = ", ".join(f"%b::{'text' if kind == 'jsonb' else kind}[]" for kind in kinds)
    sql = (
        f"UPDATE {table} AS old SET {values} FROM unnest({arrays}, %b::{key.db_type(connection)}[])"  # noqa: S608  our own names
        f" AS new ({', '.join(columns)}, its_key) WHERE old.{key.column} = new.its_key"
    )
    with prepared() as cursor:
        cursor.execute(sql, [*map(list, zip(*rows, strict=True)), pks])
        insist(cursor.rowcount, len(rows), sql)


def _prepared(field: Field[Any, Any], value: Any) -> Any:
    if isinstance(field, JSONField):
        return None if value is None else json.dumps(value)
    return field.get_db_prep_save(value.pk if isinstance(value, Model) else value, connection)
