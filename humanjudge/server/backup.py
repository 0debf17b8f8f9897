"""The whole installation as one file: every table as JSON Lines, every picture, and a manifest.

The file is a zip that is written and read piece by piece. Values are written as no database has
them, so what one of SQLite and PostgreSQL wrote the other can read. A restore is one transaction,
which ends only when every ledger verifies and every figure is what its ledger says: until then
nothing is there, however it ends. Only pictures are stored before that; they are named by what is
in them, so those of a restore that was killed are used by the next.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, TypeAlias
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from django.apps import apps
from django.core.files.storage import default_storage
from django.core.management.color import no_style
from django.db import DatabaseError, connection, models, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone
from pydantic import BaseModel

from humanjudge.core.archives import UNREADABLE, check, read
from voting.ledger import chain, ledger
from voting.ledger.bulk_sql import one_moment
from voting.models import Picture, Project
from voting.pictures.store import store, stored_path

FORMAT: Final = "humanjudge-backup"
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
BATCH: Final = 2000
MOST_OF_MANIFEST: Final = 1_000_000
MOST_OF_PICTURE: Final = 100_000_000
# A row may hold the config of a run with all its prompts.
MOST_OF_LINE: Final = 100_000_000
# Every migration makes these anew.
MADE_BY_DJANGO: Final = {"contenttypes.contenttype", "auth.permission"}
# What a server that runs writes by itself.
WRITTEN_BY_SERVERS: Final = {"sessions.session"}

_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "UUIDField": UUID,
    "DateTimeField": datetime.fromisoformat,
    "BinaryField": bytes.fromhex,
    "DecimalField": Decimal,
}
# What a backup has as every database takes it.
_PLAIN: Final[dict[str, type]] = {
    "CharField": str,
    "TextField": str,
    "BigAutoField": int,
    "IntegerField": int,
    "BigIntegerField": int,
    "PositiveIntegerField": int,
    "BooleanField": bool,
}

AnyField: TypeAlias = "models.Field[Any, Any]"
Say: TypeAlias = Callable[[str], object]


class BackupRefused(Exception):
    """It cannot be done; the text is one line for whoever asked for it."""


@dataclass(frozen=True)
class BackupTable:
    """A model, with the fields that are written: what the database computes is left to it."""

    model: type[models.Model]

    @property
    def label(self) -> str:
        return self.model._meta.label_lower

    @property
    def member(self) -> str:
        return f"tables/{self.label}.jsonl"

    @property
    def fields(self) -> list[AnyField]:
        return [field for field in self.model._meta.concrete_fields if not field.generated]

    @property
    def rows(self) -> models.QuerySet[Any]:
        return self.model._base_manager.order_by("pk")


def tables() -> list[BackupTable]:
    models = apps.get_models(include_auto_created=True)
    return [BackupTable(model) for model in models if model._meta.managed and not model._meta.proxy]


def applied() -> list[str]:
    return sorted(
        f"{app}.{name}" for app, name in MigrationRecorder(connection).applied_migrations()
    )


# --- backup -------------------------------------------------------------------------------------


def backup(path: Path, say: Say) -> None:
    """Write everything as it is at one moment; people may vote meanwhile."""
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file, ZipFile(file, "w", ZIP_DEFLATED) as into, one_moment():
            manifest = {
                "format": FORMAT,
                "version": VERSION,
                "made_at": timezone.now().isoformat(),
                "database": connection.vendor,
                "migrations": applied(),
                "tables": {t.label: _write_table(into, t, say).model_dump() for t in tables()},
                "pictures": _write_pictures(into, say),
            }
            into.writestr(MANIFEST, json.dumps(manifest, indent=1))
        part.chmod(0o600)
        part.replace(path)
    except DatabaseError as error:
        raise BackupRefused(f"the database cannot be read: {error}".strip()) from error
    finally:
        part.unlink(missing_ok=True)


class TableSummary(BaseModel):
    rows: int
    sha256: str


class Manifest(BaseModel):
    format: str
    version: int
    migrations: list[str] = []
    tables: dict[str, TableSummary] = {}
    pictures: dict[str, int] = {}


def _write_table(into: ZipFile, table: BackupTable, say: Say) -> TableSummary:
    names = [field.attname for field in table.fields]
    digest, rows = hashlib.sha256(), 0
    with into.open(table.member, "w", force_zip64=True) as file:
        _write_line(file, digest, names)
        for values in table.rows.values_list(*names).iterator(BATCH):
            _write_line(file, digest, values)
            rows += 1
    say(f"{table.label}: {rows:,} rows")
    return TableSummary(rows=rows, sha256=digest.hexdigest())


def _write_line(file: IO[bytes], digest: Any, values: Sequence[object]) -> None:
    # One database keeps the order of keys, the other does not.
    line = json.dumps(values, default=_plain, sort_keys=True, separators=(",", ":"))
    data = line.encode() + b"\n"
    digest.update(data)
    file.write(data)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError(f"no backup has a value of the type {type(value).__name__}")


def _write_pictures(into: ZipFile, say: Say) -> dict[str, int]:
    """Write each picture once; thumbnails are made anew."""
    drawn = Picture.objects.exclude(png_sha256="").order_by("png_sha256")
    picture_count = lost_count = 0
    for address in drawn.values_list("png_sha256", flat=True).distinct().iterator(BATCH):
        try:
            with default_storage.open(stored_path(address)) as picture:
                into.writestr(f"pictures/{address}.png", picture.read(), ZIP_STORED)
        except FileNotFoundError:
            say(f"WARNING: the picture {address} is named by a row and is not there")
            lost_count += 1
        else:
            picture_count += 1
    say(f"pictures: {picture_count:,}")
    return {"files": picture_count, "lost": lost_count}


# --- restore ------------------------------------------------------------------------------------


def restore(path: Path, say: Say) -> None:
    """Read a backup into an empty database, or leave it empty."""
    try:
        with ZipFile(path) as source:
            check(source)
            manifest = _manifest(source)
            for table in tables():
                if table.label not in MADE_BY_DJANGO | WRITTEN_BY_SERVERS and table.rows.exists():
                    words = f"there are rows of {table.label}"
                    raise BackupRefused(f"the database is not empty: {words}")
            with transaction.atomic(durable=True):
                _empty_filled_tables()
                for table in tables():
                    _read_table(source, table, manifest.tables[table.label], say)
                _read_pictures(source, manifest.pictures["files"], say)
                _reset_sequences()
                _verify(say)
    except UNREADABLE as error:
        raise BackupRefused(f"{path} is damaged, or no backup: {error}") from error
    except KeyError as error:
        raise BackupRefused(f"the manifest or the file says nothing of {error}") from error
    except DatabaseError as error:
        raise BackupRefused(f"the database refuses it: {error}".strip()) from error


def _manifest(source: ZipFile) -> Manifest:
    try:
        manifest = Manifest.model_validate_json(read(source, MANIFEST, MOST_OF_MANIFEST))
    except (KeyError, ValueError) as error:
        raise BackupRefused("this is no backup of HumanJudge: it has no manifest") from error
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise BackupRefused("this is no backup that this version can read")
    if manifest.migrations != applied():
        raise BackupRefused(
            "another version made this backup: restore it with that one, upgrade then"
        )
    return manifest


def _empty_filled_tables() -> None:
    for table in reversed(tables()):
        if table.label in MADE_BY_DJANGO | WRITTEN_BY_SERVERS:
            table.rows.all()._raw_delete(using=connection.alias)


def _read_table(source: ZipFile, table: BackupTable, expected: TableSummary, say: Say) -> None:
    digest, fields = hashlib.sha256(), table.fields
    quoted = ", ".join(connection.ops.quote_name(str(field.column)) for field in fields)
    places = ", ".join(["%s"] * len(fields))
    into = connection.ops.quote_name(table.model._meta.db_table)
    statement = f"INSERT INTO {into} ({quoted}) VALUES ({places})"  # noqa: S608  our own names
    rows = 0
    with source.open(table.member) as file, connection.cursor() as cursor:
        lines = _lines(file, digest, table.label)
        if next(lines, None) != [field.attname for field in fields]:
            raise BackupRefused(f"{table.label} has other columns here")
        writers = [_writer(field) for field in fields]
        while batch := _batch(lines, writers, f"{table.label}, rows from {rows + 1:,}"):
            cursor.executemany(statement, batch)
            rows += len(batch)
    if (rows, digest.hexdigest()) != (expected.rows, expected.sha256):
        raise BackupRefused(f"{table.label} is not what the manifest says: the file was changed")
    say(f"{table.label}: {rows:,} rows")


def _batch(
    lines: Iterator[Any], writers: Sequence[Callable[[Any], Any]], place: str
) -> list[list[Any]]:
    try:
        return [
            [write(value) for write, value in zip(writers, line, strict=True)]
            for line in islice(lines, BATCH)
        ]
    except (ValueError, TypeError, AttributeError) as error:
        raise BackupRefused(f"{place}: {error}") from error


def _lines(file: IO[bytes], digest: Any, label: str) -> Iterator[Any]:
    while line := file.readline(MOST_OF_LINE + 1):
        if len(line) > MOST_OF_LINE:
            raise BackupRefused(f"{label}: a row has more than {MOST_OF_LINE:,} bytes")
        digest.update(line)
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise BackupRefused(f"{label}: a row is not JSON: {error}") from error


def _writer(field: AnyField) -> Callable[[Any], Any]:
    """Return what makes a value of a backup one that this database takes."""
    target = field.target_field if isinstance(field, models.ForeignKey) else field
    kind = target.get_internal_type()
    read, plain = _READERS.get(kind, lambda value: value), _PLAIN.get(kind)

    def write(value: Any) -> Any:
        # Most values of most rows; a restore took a quarter longer without.
        if value is None or type(value) is plain:
            return value
        return field.get_db_prep_save(read(value), connection=connection)

    return write


def _read_pictures(source: ZipFile, expected: int, say: Say) -> None:
    names = [name for name in source.namelist() if name.startswith("pictures/")]
    if len(names) != expected:
        raise BackupRefused(f"{len(names):,} pictures are here, {expected:,} were written")
    for name in names:
        png = read(source, name, MOST_OF_PICTURE)
        if hashlib.sha256(png).hexdigest() != Path(name).stem:
            raise BackupRefused(f"{name} is not the picture that was written")
        store(png)
    say(f"pictures: {len(names):,}")


def _reset_sequences() -> None:
    numbered = [table.model for table in tables()]
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), numbered):
            cursor.execute(statement)
        if connection.vendor == "postgresql":
            # It knows nothing of these rows yet, and what verifies them asks for them in order.
            cursor.execute("ANALYZE")


def _verify(say: Say) -> None:
    for project in Project.objects.order_by("created_at"):
        try:
            verified = chain.verify(ledger.export(project), head=project.ledger_head)
        except chain.ChainBroken as error:
            raise BackupRefused(f"the ledger of {project.name} does not verify: {error}") from error
        if differences := ledger.replay(project, write=False):
            first = f"{len(differences)} figures of {project.name} are not what its ledger says"
            raise BackupRefused(f"{first}: {differences[0]}")
        say(
            f"{project.name}: the chain of {verified.entries:,} entries verifies, figures are equal"
        )
