"""Imports that were asked for: done by a worker, one after another, and resumed if one dies.

The row says how far an import has come. Who works on it holds a lease, which every transaction that
writes renews or fails by; so what is written is written once, whoever goes on with it.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, get_args
from uuid import UUID, uuid4

from django.conf import settings
from django.db import Error, OperationalError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.lib import leases
from humanjudge.lib.validation import ConfigError, ConfigInvalid, validated
from judge_eval.exchange import bundle, mapping
from judge_eval.exchange.formats import read as read_file
from judge_eval.exchange.import_read import read
from judge_eval.exchange.import_report import (
    GONE,
    ImportOptions,
    ImportRefused,
    ImportReport,
    ImportTooLarge,
)
from judge_eval.exchange.import_scratch import WRITTEN, Scratch
from judge_eval.exchange.import_write import Target, Writing
from judge_eval.exchange.restore import Restoring, refusal
from judge_eval.exchange.restore_rows import Start
from judge_eval.exchange.rows import Broken, Item
from judge_eval.exchange.sources import Format, UnknownFormat, format_of
from judge_eval.exchange.writing import remove
from judge_eval.models import Import, Run
from voting.models import ApiKey, Entry
from voting.services import record_exposure
from voting.voters import voter_of_key

LEASE: Final = timedelta(seconds=60)
# While rows are read: how often the lease is renewed and progress is told.
RENEWED_EVERY: Final = 2.0
MOST_ATTEMPTS: Final = 3
# What no worker has taken up by then was lost on its way to the workers.
TAKEN_UP_WITHIN: Final = timedelta(seconds=5)
KEPT: Final = timedelta(days=30)
_TASK: Final = "judge_eval.tasks.import_next"
_BLOCK: Final = 1 << 20
_PAIRS_AT_ONCE: Final = 1000

_starting = threading.Lock()
logger = logging.getLogger(__name__)


class Source(NamedTuple):
    name: str
    stream: BinaryIO


class _LeaseLost(Exception):
    """Somebody else goes on with it by now, or it was stopped."""


# --- asking ---------------------------------------------------------------------------------------


def form_of(
    sources: Sequence[Source], options: object, columns: object, file_format: str | None
) -> dict[str, Any]:
    """Return what is stated beside files, checked, as an import keeps it; raises ConfigInvalid."""
    validated(ImportOptions, options)
    if columns is not None:
        mapping.parse(columns)
    if file_format not in (None, *get_args(Format)):
        why = f"{file_format!r} is not one of {', '.join(get_args(Format))}"
        raise ConfigInvalid([ConfigError("format", why)])
    try:
        for source in () if file_format else sources:
            format_of(source.name)
    except UnknownFormat as error:
        raise ConfigInvalid([ConfigError("format", str(error))]) from error
    return {"options": options, "mapping": columns, "format": file_format}


def ask(job: Import, sources: Sequence[Source]) -> Import:
    """Store files, and let a worker import them, unless this process is about to (`is_local`)."""
    _folder(job).mkdir(parents=True)
    try:
        for number, source in enumerate(sources):
            with (_folder(job) / str(number)).open("wb") as file:
                shutil.copyfileobj(source.stream, file, _BLOCK)
        job.form["files"] = [source.name for source in sources]
        with transaction.atomic():
            job.save(force_insert=True)
            if not job.is_local:
                enqueue(_TASK)
    except BaseException:
        shutil.rmtree(_folder(job), ignore_errors=True)
        raise
    return job


def ask_again_for_lost() -> None:
    """Publish again what no worker does, and forget what was done long ago."""
    now = timezone.now()
    if unfinished().filter(asked_at__lt=now - TAKEN_UP_WITHIN).exists() and not _is_at_work():
        enqueue(_TASK)
    old = Import.objects.filter(done_at__lt=now - KEPT)
    # Looked at first: nearly always there is nothing, and a write would take SQLite's lock for it.
    if old.exists():
        old.delete()


def cancel(job: Import) -> None:
    """End an import of which nothing is written yet; its worker notices."""
    idle = Import.objects.filter(pk=job.pk, state__in=(Import.State.WAITING, Import.State.READING))
    ended = {"state": Import.State.FAILED, "detail": "It was stopped.", "done_at": timezone.now()}
    if idle.update(lease=None, **ended):
        shutil.rmtree(_folder(job), ignore_errors=True)


def unfinished() -> QuerySet[Import]:
    return Import.objects.filter(state__in=Import.UNFINISHED).order_by("asked_at")


def _is_at_work() -> bool:
    return unfinished().filter(leases.held()).exists()


def _folder(job: Import) -> Path:
    return settings.DATA / "imports" / str(job.pk)


# --- doing ----------------------------------------------------------------------------------------


def do_in_a_process() -> None:
    """Do what waits, unless another does, in a process of its own (`import_waiting`).

    So its memory is bounded and given back, and reading a file, which keeps a processor busy, takes
    no time from the calls and the drawings of this one.
    """
    # It is asked for again while that process starts: one of this worker's threads is enough.
    if not _starting.acquire(blocking=False):
        return
    try:
        if unfinished().exists() and not _is_at_work():
            command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "import_waiting"]
            subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    finally:
        _starting.release()


def claim(only: UUID | None = None) -> Import | None:
    """Lease the import whose turn it is; None while another is at work.

    One at a time: two that are read before either is written could contradict each other, and each
    takes a processor for as long as it lasts.
    """
    with transaction.atomic():
        # All rows are locked, so that nobody else finds that it is their turn.
        list(unfinished().select_for_update(no_key=True).values_list("pk"))
        job = (unfinished().filter(pk=only) if only else unfinished()).first()
        if job is None or _is_at_work():
            return None
        job.lease, job.leased_until = uuid4(), timezone.now() + LEASE
        job.attempts += 1
        job.save(update_fields=["lease", "leased_until", "attempts"])
        return job


def perform(job: Import) -> Import:
    """Do an import that was claimed; the row says what became of it."""
    try:
        _do_or_give_up(job)
    except _LeaseLost:
        logger.warning("import %s: another worker goes on with it", job.pk)
    except (OperationalError, SystemExit, KeyboardInterrupt):
        # The database is locked, full or away, or this process is to stop: a sweep goes on with it.
        with suppress(Error):
            leases.release(_mine(job), attempts=0)
        raise
    job.refresh_from_db()
    if job.state not in Import.UNFINISHED:
        shutil.rmtree(_folder(job), ignore_errors=True)
        if unfinished().exists():
            enqueue(_TASK)
    return job


def _do_or_give_up(job: Import) -> None:
    if job.status:
        # It was given up by a worker that died while what was written was removed.
        _give_up(job, job.status, job.detail)
        return
    try:
        _do(job)
    except (OperationalError, _LeaseLost):
        raise
    except MemoryError:
        _give_up(job, 413, "Reading it takes more memory than an import may use.")
    except ImportRefused as error:
        _give_up(job, 413 if isinstance(error, ImportTooLarge) else 409, str(error))
    except Exception as error:
        logger.exception("import %s", job.pk)
        _give_up(job, 422, f"It cannot be stored: {type(error).__name__}.")


def _do(job: Import) -> None:
    if job.attempts > MOST_ATTEMPTS:
        raise ImportRefused(f"It broke off {MOST_ATTEMPTS} times.")
    with _files(job) as files:
        _restore(job, files[0]) if job.is_bundle else _import(job, files)


@contextmanager
def _files(job: Import) -> Iterator[Sequence[Source]]:
    with ExitStack() as stack:
        yield [
            Source(name, stack.enter_context((_folder(job) / str(number)).open("rb")))
            for number, name in enumerate(job.form["files"])
        ]


def _import(job: Import, files: Sequence[Source]) -> None:
    options = validated(ImportOptions, job.form["options"])
    if not job.run_id and not job.name:
        raise ImportRefused(GONE)
    assert job.project_id is not None  # only a bundle brings its own
    target = Target(job.project_id, job.run_id, job.name)
    path = _folder(job) / "rows"
    if job.state != Import.State.WRITING:
        _note(job, state=Import.State.READING, rows_read=0)
        with closing(Scratch(path, is_new=True)) as scratch:
            report = read(
                target,
                _items(job, files),
                options,
                scratch,
                most_rows=inf if job.is_local else settings.IMPORT_MAX_ROWS,
                most_text=inf if job.is_local else settings.IMPORT_MAX_UNPACKED_MB << 20,
                on_chunk=_progress(job),
            )
            if report.is_refused:
                _end(job, Import.State.REFUSED, report, status=422, detail=report.refusal())
                return
            _note(job, state=Import.State.WRITING, to_write=sum(map(scratch.count, WRITTEN)))
    with closing(Scratch(path)) as scratch:
        Writing(
            target,
            options,
            scratch,
            done=job.written,
            on_chunk=lambda run, done: _note(job, run=run, written=done, attempts=0),
            on_end=lambda run, report: _finished(job, report),
        ).write()


def _items(job: Import, files: Sequence[Source]) -> Iterator[Item]:
    stated, file_format = job.form["mapping"], job.form["format"]
    columns = mapping.parse(stated) if stated is not None else None
    for source in () if job.is_local else files:
        if (file_format or format_of(source.name)) == "parquet":
            with suppress(Broken):  # which reading will tell as it tells every fault
                _refuse_large(source)
            source.stream.seek(0)
    return chain.from_iterable(
        [read_file(source.stream, source.name, columns, file_format) for source in files]
    )


def _refuse_large(source: Source) -> None:
    from judge_eval.exchange.parquet import size_of

    rows, size = size_of(source.stream)
    most, megabytes = settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_UNPACKED_MB
    if rows > most:
        why = f"{source.name} has {rows:,} rows; at most {most:,} are taken at once."
        raise ImportTooLarge(why)
    if size > megabytes << 20:
        raise ImportTooLarge(f"{source.name} is more than {megabytes:,} MB when it is unpacked.")


def _restore(job: Import, source: Source) -> None:
    try:
        if job.state != Import.State.WRITING:
            # All of it is looked at before anything is written: nobody waits for that.
            _note(job, state=Import.State.READING, rows_read=0)
            progress, lines = _progress(job), 0
            for lines, _ in bundle.read(source.stream):
                progress(lines)
            _note(job, state=Import.State.WRITING, to_write=lines)
        _restoring(job, source).write()
    except bundle.BundleError as error:
        report = refusal(source.name, error)
        _give_up(job, 422, report.refusal(), report)


def _restoring(job: Import, source: Source) -> Restoring:
    start = job.form.get("start")
    return Restoring(
        source.stream,
        job.project,
        start=Start.model_validate(start) if start else None,
        done=job.written,
        on_read=_progress(job),
        on_step=lambda start, done: _note(
            job, form=job.form | {"start": start.model_dump(mode="json")}, written=done, attempts=0
        ),
        on_end=lambda report: _finished(job, report),
    )


def _progress(job: Import) -> Callable[[int], None]:
    """Return what notes now and then how many rows were read, and notices a lost lease."""
    due = 0.0

    def note(rows: int) -> None:
        nonlocal due
        if time.monotonic() > due:
            due = time.monotonic() + RENEWED_EVERY
            # A bundle is read more than once.
            _note(job, rows_read=max(rows, job.rows_read))

    return note


def _mine(job: Import) -> QuerySet[Import]:
    return Import.objects.filter(pk=job.pk, lease=job.lease, state__in=Import.UNFINISHED)


def _note(job: Import, **facts: Any) -> None:
    if not leases.renew(_mine(job), LEASE, **facts):
        raise _LeaseLost
    for name, value in facts.items():
        setattr(job, name, value)
    if job.on_progress:
        job.on_progress()


def _finished(job: Import, report: ImportReport) -> None:
    """Note the result in the transaction that ends it; the key has seen what judges said."""
    if job.api_key and (report.new["verdicts"] or report.already["verdicts"]):
        remember_seen(job.api_key, Run.every.filter(pk__in=report.runs))
    _end(job, Import.State.DONE, report, run_id=report.run)


def _end(job: Import, state: str, report: ImportReport, **facts: Any) -> None:
    _note(job, state=state, report=report.as_dict(), done_at=timezone.now(), **facts)


def _give_up(job: Import, status: int, detail: str, report: ImportReport | None = None) -> None:
    """Leave nothing of a run that is not whole; what a run had added to it stays, row by row."""
    facts = {"report": report.as_dict()} if report else {}
    # From here on nobody goes on writing it.
    _note(job, status=status, detail=detail, **facts)
    try:
        detail += _taken_back(job)
    except (OperationalError, _LeaseLost):
        raise
    except Exception:
        logger.exception("import %s", job.pk)
        detail += " Not all that was written could be removed."
    is_fault = status == 422 and job.report is None
    state = Import.State.FAILED if is_fault else Import.State.REFUSED
    _note(job, state=state, detail=detail, done_at=timezone.now())


def _taken_back(job: Import) -> str:
    """Remove what was written of runs that are not whole; say what is left."""
    run, is_gone = job.run if job.name else None, True
    if job.is_bundle and job.written:
        with _files(job) as files:
            is_gone = _restoring(job, files[0]).take_back()
    elif run and run.state == Run.State.IMPORTING:
        is_gone = not Entry.objects.filter(queue=run.queue_id).exists()
        if is_gone:
            remove(run, lambda: _note(job))
    elif job.written:
        return f" {job.written:,} of {job.to_write:,} were written; the same files again go on."
    return "" if is_gone else " Its votes are in the ledger, so its rows are kept, but not shown."


def remember_seen(api_key: ApiKey, runs: Iterable[Run]) -> None:
    """Note that the key's voter knows what judges say, if the key may vote at all."""
    if ApiKey.Scope.VOTE not in api_key.scopes:
        return
    for run in runs:
        voter, position = voter_of_key(run.queue.project_id, api_key), -1
        pairs = run.queue.items.order_by("position").values_list("position", "pk")
        while chunk := list(pairs.filter(position__gt=position)[:_PAIRS_AT_ONCE]):
            record_exposure(voter.pk, [pk for _, pk in chunk], timezone.now())
            position = chunk[-1][0]
