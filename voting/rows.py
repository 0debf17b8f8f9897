"""Hand-written updates of many rows, each of which must change exactly the rows it names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Model


class LedgerConflict(RuntimeError):
    """A row was not as the lock promised; the transaction is rolled back and nothing is lost."""


def key(identifier: UUID) -> UUID | str:
    """Return a UUID as the database at hand takes it in hand-written SQL."""
    return identifier if connection.features.has_native_uuid_field else identifier.hex


def executemany(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run one statement per row in one round trip, and insist that each changed one row."""
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.executemany(sql, rows)
        insist(cursor.rowcount, len(rows), sql)


def update_many(
    model: type[Model],
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    while_null: str | None = None,
) -> None:
    """Set the named fields of many rows; each of `rows` is their new values, then the key.

    `while_null` names a field that must still be empty. PostgreSQL is sent one statement with one
    JSON document: a statement per row costs it more than twice as much, arrays cost more here.
    """
    if not rows:
        return
    table, pk = model._meta.db_table, model._meta.pk.name
    guard = f" AND old.{while_null} IS NULL" if while_null else ""
    if connection.vendor != "postgresql":
        values = ", ".join(f"{name} = %s" for name in names)
        executemany(
            f"UPDATE {table} AS old SET {values} WHERE {pk} = %s{guard}",  # noqa: S608
            [[json.dumps(v) if isinstance(v, dict) else v for v in row] for row in rows],
        )
        return
    columns = (*names, pk)
    values = ", ".join(f"{name} = new.{name}" for name in names)
    types = ", ".join(f"{name} {_type(model, name)}" for name in columns)
    sql = (
        f"UPDATE {table} AS old SET {values} "  # noqa: S608  names of our own fields, no values
        f"FROM json_to_recordset(%s) AS new ({types}) WHERE old.{pk} = new.{pk}{guard}"
    )
    document = [dict(zip(columns, row, strict=True)) for row in rows]
    with connection.cursor() as cursor:
        cursor.execute(sql, [json.dumps(document, default=_as_text)])
        insist(cursor.rowcount, len(rows), sql)


def insist(changed: int, expected: int, what: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {what}")


def _type(model: type[Model], name: str) -> str:
    return str(model._meta.get_field(name).db_type(connection))


def _as_text(value: object) -> str:
    """Write what JSON has no word for as PostgreSQL reads it."""
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)
