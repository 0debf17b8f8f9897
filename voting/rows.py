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
    model: type[Model], names: Sequence[str], rows: Sequence[Sequence[Any]], *, guard: str = ""
) -> None:
    """Set the named fields of many rows; each of `rows` is their new values, then the key.

    `guard` is a condition that every row must still meet. PostgreSQL takes it as one statement,
    in less than half the time of one statement per row.
    """
    table, pk = model._meta.db_table, model._meta.pk.name
    if connection.vendor != "postgresql":
        assignments = ", ".join(f"{name} = %s" for name in names)
        executemany(f"UPDATE {table} SET {assignments} WHERE {pk} = %s{_and(guard)}", rows)
        return
    if not rows:
        return
    assignments = ", ".join(f"{name} = new.{name}" for name in names)
    arrays = ", ".join(f"%s::{_type(model, name)}[]" for name in (*names, pk))
    sql = (
        f"UPDATE {table} AS old SET {assignments} "
        f"FROM unnest({arrays}) AS new({', '.join((*names, pk))}) "
        f"WHERE old.{pk} = new.{pk}{_and(guard and f'old.{guard}')}"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        insist(cursor.rowcount, len(rows), sql)


def insist(changed: int, expected: int, what: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {what}")


def _and(condition: str) -> str:
    return f" AND {condition}" if condition else ""


def _type(model: type[Model], name: str) -> str:
    return str(model._meta.get_field(name).db_type(connection))
