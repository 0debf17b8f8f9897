"""Hand-written updates of many rows, each of which must change exactly the rows it names."""

from __future__ import annotations

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

    `while_null` names a field that must still be empty. One statement does it on PostgreSQL,
    which takes a statement per row three times as long to plan and run.
    """
    if not rows:
        return
    table, pk = model._meta.db_table, model._meta.pk.name
    guard = f" AND old.{while_null} IS NULL" if while_null else ""
    if connection.vendor != "postgresql":
        values = ", ".join(f"{name} = %s" for name in names)
        executemany(f"UPDATE {table} AS old SET {values} WHERE {pk} = %s{guard}", rows)  # noqa: S608
        return
    values = ", ".join(f"{name} = new.{name}" for name in names)
    arrays = ", ".join(f"%s::{_type(model, name)}[]" for name in (*names, pk))
    sql = (
        f"UPDATE {table} AS old SET {values} "  # noqa: S608  names of our own fields, no values
        f"FROM unnest({arrays}) AS new ({', '.join((*names, pk))}) WHERE old.{pk} = new.{pk}{guard}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        insist(cursor.rowcount, len(rows), sql)


def insist(changed: int, expected: int, what: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {what}")


def _type(model: type[Model], name: str) -> str:
    return str(model._meta.get_field(name).db_type(connection))
