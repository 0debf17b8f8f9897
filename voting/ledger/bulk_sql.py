"""Hand-written updates of many rows, each of which must change exactly the rows it names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import UUID

import psycopg
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.db.models import Model, QuerySet


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


@dataclass
class Answer:
    """What a statement came back with; it is there once the block of `sent` is left."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    changed: int = -1


@contextmanager
def sent(sql: str, values: Sequence[Any]) -> Iterator[Answer]:
    """Let PostgreSQL work on one statement while the block computes: they are two processes.

    The block must not ask the database anything, and is refused. SQLite has answered before it
    begins.
    """
    answer = Answer()
    with prepared() as cursor:
        with connection.wrap_database_errors, _on_its_way():
            cursor.execute(sql, values)
            with connection.execute_wrapper(_refuse):
                yield answer
        answer.changed = cursor.rowcount
        if cursor.description:
            answer.rows = list(cursor.fetchall())


@contextmanager
def asked(rows: QuerySet[Any, tuple[Any, ...]]) -> Iterator[Answer]:
    """Read rows of values while the block computes; see `sent`."""
    if connection.vendor != "postgresql":
        yield Answer(list(rows))  # what it keeps as text must be read by Django
        return
    with sent(*rows.query.sql_with_params()) as answer:
        yield answer


def _on_its_way() -> AbstractContextManager[object]:
    if connection.vendor != "postgresql":
        return nullcontext()
    driver: psycopg.Connection[Any] = connection.connection
    return driver.pipeline()


def _refuse(execute: object, sql: str, *_: object) -> NoReturn:
    raise RuntimeError(f"a statement is on its way, its answer comes first: {sql}")


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
    with updating(model, names, rows, while_null=while_null):
        pass


@contextmanager
def updating(
    model: type[Model],
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    while_null: str | None = None,
) -> Iterator[None]:
    """Do as `update_many` does, at the latest when the block is left; see `sent`."""
    if not rows:
        yield
        return
    table, pk = model._meta.db_table, model._meta.pk.name
    guard = f" AND old.{while_null} IS NULL" if while_null else ""
    quote = connection.ops.quote_name  # a field may be called `order`
    if connection.vendor != "postgresql":
        values = ", ".join(f"{quote(name)} = %s" for name in names)
        executemany(f"UPDATE {table} AS old SET {values} WHERE {pk} = %s{guard}", rows)  # noqa: S608
        yield
        return
    fields = {quote(name): model._meta.get_field(name) for name in (*names, pk)}
    types = {name: str(field.db_type(connection)) for name, field in fields.items()}
    values = ", ".join(f"{name} = new.{name}::{types[name]}" for name in map(quote, names))
    # Binary: an array as text is written, escaped and parsed value by value.
    arrays = ", ".join(f"%b::{_sent_as(kind)}[]" for kind in types.values())
    sql = (
        f"UPDATE {table} AS old SET {values} "  # noqa: S608  names of our own fields, no values
        f"FROM unnest({arrays}) AS new ({', '.join(types)}) "
        f"WHERE old.{quote(pk)} = new.{quote(pk)}{guard}"
    )
    with sent(sql, [list(column) for column in zip(*rows, strict=True)]) as answer:
        yield
    insist(answer.changed, len(rows), sql)


@contextmanager
def adding(
    model: type[Model],
    names: Sequence[str],
    rows: Sequence[Sequence[Any]],
    returning: Sequence[str],
) -> Iterator[Answer]:
    """Add to the named whole numbers of many rows; each of `rows` is what to add, then the key.

    Answer, when the block is left, with the key and the columns asked for of each row, as they
    are then; see `sent`.
    """
    if not rows:
        yield Answer()
        return
    table, pk = model._meta.db_table, model._meta.pk.name
    wanted = ", ".join(f"old.{column}" for column in (pk, *returning))
    if connection.vendor != "postgresql":
        values = ", ".join(f"{name} = {name} + %s" for name in names)
        executemany(f"UPDATE {table} SET {values} WHERE {pk} = %s", rows)  # noqa: S608  our own names
        keys = [row[-1] for row in rows]
        places = ", ".join(["%s"] * len(keys))
        found = f"SELECT {wanted} FROM {table} AS old WHERE {pk} IN ({places})"  # noqa: S608
        with sent(found, keys) as answer:
            yield answer
        return
    values = ", ".join(f"{name} = old.{name} + new.{name}" for name in names)
    kinds = ["int"] * len(names) + [str(model._meta.pk.db_type(connection))]
    arrays = ", ".join(f"%b::{kind}[]" for kind in kinds)
    sql = (
        f"UPDATE {table} AS old SET {values} "  # noqa: S608  names of our own fields, no values
        f"FROM unnest({arrays}) AS new ({', '.join((*names, pk))}) WHERE old.{pk} = new.{pk} "
        f"RETURNING {wanted}"
    )
    with sent(sql, [list(column) for column in zip(*rows, strict=True)]) as answer:
        yield answer
    insist(answer.changed, len(rows), sql)


def _sent_as(kind: str) -> str:
    return "text" if kind == "jsonb" else kind


def insist(changed: int, expected: int, what: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {what}")
