"""Hand-written updates of many rows, each of which must change exactly the rows it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model


class LedgerConflict(RuntimeError):
    """A row was not as the lock promised; the transaction is rolled back and nothing is lost."""


def key(identifier: UUID) -> UUID | str:
    """Return a UUID as the database at hand takes it in hand-written SQL."""
    return identifier if connection.features.has_native_uuid_field else identifier.hex


@contextmanager
def prepared() -> Iterator[CursorWrapper]:
    """Open a cursor for statements that run all the time.

    Django writes the values into the statement; here they travel beside it, so PostgreSQL plans it
    once for each connection instead of each time (unless `DATABASE_PREPARE` is off).
    """
    if connection.vendor != "postgresql":
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    wrap = connection.make_debug_cursor if connection.queries_logged else connection.make_cursor
    raw: Any = psycopg.Cursor(connection.connection)
    with wrap(raw) as cursor:
        yield cursor


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
    """Set the named columns of many rows; each of `rows` is their new values, then the key.

    `while_null` names a field that must still be empty. One statement does it on PostgreSQL,
    which takes a statement per row three times as long to plan and run.
    """
    guard = f" AND old.{while_null} IS NULL" if while_null else ""
    quote = connection.ops.quote_name  # a field may be called `order`
    if connection.vendor == "postgresql":
        types = [_type(model, name) for name in names]
        values = ", ".join(
            f"{quote(n)} = new.{quote(n)}::{kind}" for n, kind in zip(names, types, strict=True)
        )
        _update_all(model, names, types, rows, values, guard)
        return
    values = ", ".join(f"{quote(name)} = %s" for name in names)
    table, pk = model._meta.db_table, model._meta.pk.name
    executemany(f"UPDATE {table} AS old SET {values} WHERE {pk} = %s{guard}", rows)  # noqa: S608


def add_many(
    model: type[Model],
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    returning: Sequence[str],
) -> list[tuple[Any, ...]]:
    """Add to the named whole numbers of many rows; each of `rows` is what to add, then the key.

    Return the key and the columns asked for of each row, as they are then.
    """
    if not rows:
        return []
    table, pk = model._meta.db_table, model._meta.pk.name
    wanted = ", ".join(f"old.{column}" for column in (pk, *returning))
    if connection.vendor == "postgresql":
        values = ", ".join(f"{name} = old.{name} + new.{name}" for name in names)
        return _update_all(model, names, ["int"] * len(names), rows, values, f" RETURNING {wanted}")
    values = ", ".join(f"{name} = {name} + %s" for name in names)
    executemany(f"UPDATE {table} SET {values} WHERE {pk} = %s", rows)  # noqa: S608  our own names
    places = ", ".join(["%s"] * len(rows))
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {wanted} FROM {table} AS old WHERE {pk} IN ({places})",  # noqa: S608
            [row[-1] for row in rows],
        )
        return list(cursor.fetchall())


def _update_all(
    model: type[Model],
    names: Sequence[str],
    types: Sequence[str],
    rows: Sequence[Sequence[Any]],
    values: str,
    rest: str,
) -> list[tuple[Any, ...]]:
    """Join the table with the rows, one array per column; return what `rest` asks for."""
    if not rows:
        return []
    quote, pk = connection.ops.quote_name, model._meta.pk.name
    # Binary: an array as text is written, escaped and parsed value by value.
    arrays = ", ".join(f"%b::{_sent_as(kind)}[]" for kind in (*types, _type(model, pk)))
    sql = (
        f"UPDATE {model._meta.db_table} AS old SET {values} "  # noqa: S608  our own names, no values
        f"FROM unnest({arrays}) AS new ({', '.join(map(quote, (*names, pk)))}) "
        f"WHERE old.{quote(pk)} = new.{quote(pk)}{rest}"
    )
    with prepared() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        insist(cursor.rowcount, len(rows), sql)
        return list(cursor.fetchall()) if cursor.description else []


def _type(model: type[Model], name: str) -> str:
    return str(model._meta.get_field(name).db_type(connection))


def _sent_as(kind: str) -> str:
    return "text" if kind == "jsonb" else kind


def insist(changed: int, expected: int, what: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {what}")
