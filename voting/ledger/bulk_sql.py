"""Statements that run all the time, or on many rows, made once and not by each call."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from itertools import chain
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import JSONField, Model
from django.db.models.expressions import DatabaseDefault

# Every database takes them as they are, if they are no JSON.
_PLAIN = frozenset({str, int, bool, type(None)})


class LedgerConflict(RuntimeError):
    """A row was not as the lock promised; the transaction is rolled back and nothing is lost."""


def insist(changed: int, expected: int, change: str) -> None:
    if changed != expected:
        raise LedgerConflict(f"{changed} rows changed, {expected} expected: {change}")


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


@contextmanager
def pipelined() -> Iterator[None]:
    """Run statements as one transaction that costs a single round trip to the database.

    What is wrong with one is raised at the end, so nothing may be asked of a cursor before that.
    """
    if connection.vendor != "postgresql":
        with transaction.atomic():
            yield
        return
    connection.ensure_connection()
    raw: Any = connection.connection
    # By itself a pipeline is a transaction, whose locks are held until the server has done the
    # last statement; a COMMIT from here would come a round trip later.
    around = transaction.atomic() if connection.in_atomic_block else nullcontext()
    with around, connection.wrap_database_errors, raw.pipeline():
        yield


def insert(cursor: CursorWrapper, *rows: Model, **expressions: tuple[str, object]) -> None:
    """Insert rows as `save` does, at a tenth of its cost, and in one statement where that can be.

    `expressions` are columns of the last row that the database computes, each of one value.
    """
    database = connections[connection.alias]  # not looked up for each value
    statements: list[str] = []
    sent: list[list[Any]] = []
    for row in rows:
        computed = expressions if row is rows[-1] else {}
        values = {
            field.column: computed.get(field.name)
            or ("%s", field.get_db_prep_save(value, database))
            for field in _fields(type(row))
            if not isinstance(value := field.pre_save(row, add=True), DatabaseDefault)
        }
        columns = tuple((column, expression) for column, (expression, _) in values.items())
        statements.append(_insert_into(row._meta.db_table, columns))
        sent.append([value for _, value in values.values()])
    if database.vendor == "postgresql":
        *first, last = statements
        also = ", ".join(f"row{number} AS ({sql})" for number, sql in enumerate(first))
        statements, sent = [f"WITH {also} {last}" if also else last], [[*chain(*sent)]]
    for sql, row_values in zip(statements, sent, strict=True):
        cursor.execute(sql, row_values)


def insert_many(rows: Sequence[Model]) -> None:
    """Insert rows whose keys nobody asks for; on SQLite at a third of what `bulk_create` costs."""
    if not rows:
        return
    model, database = type(rows[0]), connections[connection.alias]
    if database.vendor == "postgresql":
        # It takes all rows with one statement that it plans once.
        model._default_manager.bulk_create(rows)
    else:
        _insert_all(model, [_values(row, _fields(model), database) for row in rows])


def insert_copies(column: str, copies: Sequence[tuple[Model, object]]) -> None:
    """Insert copies of rows, each with its own value in one column; a row is prepared once."""
    if not copies:
        return
    model, database = type(copies[0][0]), connections[connection.alias]
    fields = _fields(model)
    place = [field.column for field in fields].index(column)
    originals = {id(row): row for row, _ in copies}
    prepared = {key: _values(row, fields, database) for key, row in originals.items()}
    rows = [[*prepared[id(row)]] for row, _ in copies]
    for values, (_, value) in zip(rows, copies, strict=True):
        values[place] = fields[place].get_db_prep_save(value, database)
    _insert_all(model, rows)


def _values(row: Model, fields: Sequence[Any], database: Any) -> list[Any]:
    values = [field.pre_save(row, add=True) for field in fields]
    return [
        value
        if type(value) in _PLAIN and not isinstance(field, JSONField)
        else field.get_db_prep_save(value, database)
        for field, value in zip(fields, values, strict=True)
    ]


def _insert_all(model: type[Model], rows: Sequence[Sequence[Any]]) -> None:
    columns = tuple((field.column, "%s") for field in _fields(model))
    executemany(_insert_into(model._meta.db_table, columns), rows)


@cache
def _fields(model: type[Model]) -> list[Any]:
    return [
        field
        for field in model._meta.concrete_fields
        if not (field.generated or field is model._meta.auto_field)
    ]


@cache
def _insert_into(table: str, columns: tuple[tuple[str, str], ...]) -> str:
    names = ", ".join(connection.ops.quote_name(name) for name, _ in columns)
    values = ", ".join(expression for _, expression in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({values})"  # noqa: S608  our names


def executemany(sql: str, rows: Sequence[Sequence[Any]]) -> None:
    """Run one statement per row in one round trip, and insist that each changed one row."""
    if rows:
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
    if not rows:
        return
    guard = f" AND old.{while_null} IS NULL" if while_null else ""
    quote = connection.ops.quote_name  # a field may be called `order`
    table, pk = model._meta.db_table, quote(model._meta.pk.name)
    if connection.vendor != "postgresql":
        values = ", ".join(f"{quote(name)} = %s" for name in names)
        executemany(f"UPDATE {table} AS old SET {values} WHERE {pk} = %s{guard}", rows)  # noqa: S608
        return
    columns = [*names, model._meta.pk.name]
    types = {name: model._meta.get_field(name).db_type(connection) for name in columns}
    values = ", ".join(f"{quote(name)} = new.{quote(name)}::{types[name]}" for name in names)
    # Binary: an array as text is written, escaped and parsed value by value.
    sent = (f"%b::{'text' if kind == 'jsonb' else kind}[]" for kind in types.values())
    sql = (
        f"UPDATE {table} AS old SET {values} FROM unnest({', '.join(sent)}) "  # noqa: S608  our names
        f"AS new ({', '.join(map(quote, columns))}) WHERE old.{pk} = new.{pk}{guard}"
    )
    with prepared() as cursor:
        cursor.execute(sql, [list(column) for column in zip(*rows, strict=True)])
        insist(cursor.rowcount, len(rows), sql)


@contextmanager
def one_moment() -> Iterator[None]:
    """Read everything as of one moment, and hold nobody up; inside a transaction, as it reads."""
    if connection.in_atomic_block:
        yield
        return
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    with connection.cursor() as cursor:
        # Not `atomic`: that would begin as a writer, and keep every voter waiting.
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
