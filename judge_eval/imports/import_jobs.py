"""Imports that were asked for: done by a worker, one after another, and resumed if one dies.

The row says how far an import has come. Who works on it holds a lease, which every transaction that
writes renews or fails by; so what is written is written once, whoever goes on with it.
"""

import logging
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar, cast
from uuid import UUID, uuid4

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.db import Error, OperationalError, transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core import leases
from humanjudge.core.child_process import manage
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import ConfigInvalid, validated
from judge_eval.exports.bundle import BundleError, is_bundle
from judge_eval.imports import containers, mapping
from judge_eval.imports.containers import SourceFile, UnknownFormat, format_of
from judge_eval.imports.formats import read as read_file
from judge_eval.imports.guesses import ColumnFacts
from judge_eval.imports.import_pictures import Pictures
from judge_eval.imports.import_read import last_kind, read
from judge_eval.imports.import_report import (
    ImportOptions,
    ImportRefused,
    ImportReport,
    ImportTooLarge,
    RowsWrong,
    TooManyWait,
)
from judge_eval.imports.import_scratch import PICTURES, Scratch
from judge_eval.imports.import_steps import LEASE, LeaseLost, mine, note, remove
from judge_eval.imports.import_write import Writing
from judge_eval.imports.preview import PreviewRequest, preview
from judge_eval.imports.restore import Restoring
from judge_eval.imports.row_models import ITEMS, SHAPES, Item, Note, RowError, Shape, UnreadableFile
from judge_eval.models import UPLOADED, Import, Run
from judge_eval.runs.queries import switched_off
from voting.access.roles import projects_where
from voting.items.kinds import KINDS
from voting.models import Entry

MOST_ATTEMPTS: Final = 3
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)
# What no worker has taken up by then was lost on its way to the workers.
TAKEN_UP_WITHIN: Final = timedelta(seconds=5)
RETENTION: Final = timedelta(days=30)
# Files that were brought on the page and not imported.
FILES_KEPT: Final = timedelta(days=1)
# Of all projects, and of one: its queue does not use up that of the others.
MOST_WAITING: Final = 40
MOST_OF_A_PROJECT: Final = 10
# Of a processor; a megabyte may be packed, and hold ten.
_SECONDS_FOR_A_MB: Final = 10
_TASK: Final = "judge_eval.tasks.import_next"
_BLOCK: Final = 1 << 20
# What the process that reads a file dies of, and would die of again.
_TOO_MUCH_MEMORY: Final = "Reading it takes more memory than an import may use."
_DEADLY: Final[dict[int, str]] = {
    signal.SIGXCPU: "Reading it takes more time of a processor than an import may use.",
    signal.SIGABRT: _TOO_MUCH_MEMORY,
    signal.SIGSEGV: "Reading it ends the process that reads files.",
}
# While an import waits for another one, or for the database.
PAUSE_SECONDS: Final = 0.5
Result = TypeVar("Result")

_starting = threading.Lock()
logger = logging.getLogger(__name__)


# --- asking ---------------------------------------------------------------------------------------


def form_of(
    sources: Sequence[SourceFile], options: object, columns: object, file_format: str | None
) -> JsonObject:
    """Return what is stated beside files, checked, as an import keeps it; raises ConfigInvalid."""
    import_options = validated(ImportOptions, options)
    if columns is not None:
        mapping.parse(columns, _shape_of(import_options.vote_kind))
    try:
        for source in sources:
            # What a zip holds is looked at by a worker.
            if not source.name.lower().endswith(".zip"):
                format_of(source.name.removesuffix(".gz"), file_format)
    except UnknownFormat as error:
        raise ConfigInvalid.at("format", str(error)) from error
    return {"options": options, "mapping": columns, "format": file_format}


def sources_of(files: Sequence["UploadedFile[bytes]"]) -> list[SourceFile]:
    """Return files that were posted, if they are not too many or too large."""
    number, most = settings.IMPORT_MAX_FILES, settings.IMPORT_MAX_MB
    if not 0 < len(files) <= number:
        raise ConfigInvalid.at("file", f"1 to {number} files are needed, in a multipart form")
    for file in files:
        if (file.size or 0) > most << 20:
            raise ImportTooLarge(f"{file.name} has more than {most} MB")
    return [SourceFile(file.name or "file", cast(BinaryIO, file.file)) for file in files]


def check_length(length: str) -> None:
    """Refuse a request by its length, before its files are written to the disk."""
    if int(length or 0) > settings.IMPORT_MAX_TOTAL_MB << 20:
        raise ImportTooLarge(f"at most {settings.IMPORT_MAX_TOTAL_MB:,} MB at once")


def recognise(job: Import, sources: Sequence[SourceFile]) -> None:
    """Note whether files are a bundle, which comes alone and is a run of its own."""
    job.is_bundle, job.form = is_bundle(sources[0].stream), {}
    if job.is_bundle and len(sources) > 1:
        raise ConfigInvalid.at("file", "a bundle comes alone")
    if job.is_bundle and job.run:
        raise ConfigInvalid.at("file", "a bundle is a run of its own: import it as a new run")


def save_upload(job: Import, sources: Sequence[SourceFile]) -> Import:
    """Keep files as a draft, with what their beginning tells."""
    words = "uploads wait to be imported or discarded"
    drafts = Import.objects.filter(state=Import.State.DRAFT)
    # They are in no project yet.
    if drafts.filter(user=job.user_id).count() >= MOST_OF_A_PROJECT:
        raise TooManyWait(f"{MOST_OF_A_PROJECT} of your {words}")
    if drafts.count() >= MOST_WAITING:
        raise TooManyWait(f"{MOST_WAITING} {words}")
    recognise(job, sources)
    job.state, job.form = Import.State.DRAFT, form_of(sources, {}, None, None)
    submit(job, sources)
    preview = _preview(job, None)
    if likely := next(
        (reading["likely"] for reading in preview["readings"] if reading["likely"]), ""
    ):
        # The page shows it with its letters, to be changed.
        job.form["options"] = {"encoding": likely}
        preview = _preview(job, None)
    # By its columns' names, and as it is read at last.
    job.form |= {"found": preview, "preview": preview}
    _propose(job, preview)
    if job.form["mapping"]:
        job.form["preview"] = _preview(job, job.form["mapping"])
    job.save(update_fields=["form"])
    return job


def _propose(job: Import, preview: JsonObject) -> None:
    """Note the mapping of an earlier import, or else one that may fit; or the likelier shape."""
    if earlier := _earlier_import(job):
        job.form |= {"mapping": earlier.form["mapping"], "known": earlier.form["files"][0]}
    elif preview["proposed"] and preview["faults"]:
        job.form["mapping"] = preview["proposed"]
        preview["shape"] = ITEMS.name
    elif not preview["formats"]:
        shape = SHAPES[preview["shape"]]
        facts = {name: ColumnFacts(**facts) for name, facts in preview["facts"].items()}
        roles, of_items = (
            mapping.guessed_roles(facts, candidate_shape) for candidate_shape in (shape, ITEMS)
        )
        if "output" in of_items.values() and not {shape.name, *shape.outputs} & {*roles.values()}:
            # In other words than ours.
            preview["shape"] = ITEMS.name


def _earlier_import(job: Import) -> Import | None:
    """Return the last import of the same person's whose mapping fits the files of a draft."""
    if job.user is None or job.is_bundle:
        return None
    done = Import.objects.filter(project__in=projects_where(job.user, "run"), run__isnull=False)
    mapped = done.filter(state=Import.State.DONE).exclude(form__mapping=None)
    columns = job.form["found"]["columns"].keys()
    recent = mapped.order_by("-done_at")[:MOST_WAITING]
    return next(
        (
            earlier_job
            for earlier_job in recent
            if mapping.fits(earlier_job.form["mapping"], columns)
        ),
        None,
    )


def _preview(job: Import, columns: JsonObject | None) -> JsonObject:
    shape = _shape(job)
    request = PreviewRequest(
        files=[(_folder(job) / str(n), name) for n, name in enumerate(job.form["files"])],
        encoding=job.form["options"].get("encoding"),
        separator=job.form["options"].get("separator"),
        mapping=columns,
        shape=None if shape is None else shape.name,
        is_bundle=job.is_bundle,
        extensions=settings.HUMANJUDGE_EXTENSIONS,
        off=sorted(switched_off()),
    )
    return preview(request).model_dump(mode="json")


def change(job: Import, form: JsonObject, **facts: Any) -> bool:
    """Note what is chosen for a draft, or for what was refused: it is a draft again."""
    preview_keys = ("files", "found", "preview", "known")
    new_form = {name: job.form[name] for name in preview_keys if name in job.form} | form
    is_decoded_anew = _text_options(form) != _text_options(job.form)
    if is_decoded_anew or form["mapping"] != job.form["mapping"]:
        job.form |= form
        new_form["preview"] = _preview(job, form["mapping"])
        if is_decoded_anew:
            new_form["found"] = _preview(job, None)
    draft_state = {"state": Import.State.DRAFT, "status": None, "detail": "", "report": None}
    changed = _idle_imports(job).update(
        form=new_form, rows_read=0, done_at=None, **draft_state, **facts
    )
    job.refresh_from_db()
    return bool(changed)


def _text_options(form: JsonObject) -> list[str | None]:
    return [form["options"].get(name) for name in ("encoding", "separator")]


def start(job: Import) -> None:
    check_room(job.project_id)
    waiting = {"state": Import.State.WAITING, "requested_at": timezone.now(), "attempts": 0}
    with transaction.atomic():
        if _idle_imports(job).update(to_write=0, lease=None, leased_until=None, **waiting):
            enqueue(_TASK)


def check_room(project: UUID | None) -> None:
    """Refuse an import where too many wait, of its project or of all.

    Without a project it makes one: then only all of them count.
    """
    words = "are waiting; try again when some are done"
    waiting = unfinished()
    if project and waiting.filter(project=project).count() >= MOST_OF_A_PROJECT:
        raise TooManyWait(f"{MOST_OF_A_PROJECT} imports of this project {words}")
    if waiting.count() >= MOST_WAITING:
        raise TooManyWait(f"{MOST_WAITING} imports {words}")


def discard(job: Import) -> None:
    if _idle_imports(job).delete()[0]:
        shutil.rmtree(_folder(job), ignore_errors=True)


def _idle_imports(job: Import) -> QuerySet[Import]:
    return Import.objects.filter(UPLOADED, pk=job.pk)


def submit(job: Import, sources: Sequence[SourceFile]) -> Import:
    """Store files, and let a worker import them.

    Not where they are a draft, or this process is about to do it (`is_local`).
    """
    _folder(job).mkdir(parents=True)
    try:
        for number, source in enumerate(sources):
            with (_folder(job) / str(number)).open("wb") as file:
                shutil.copyfileobj(source.stream, file, _BLOCK)
        job.form["files"] = [source.name for source in sources]
        with transaction.atomic():
            job.save(force_insert=True)
            if job.state == Import.State.WAITING and not job.is_local:
                enqueue(_TASK)
    except BaseException:
        shutil.rmtree(_folder(job), ignore_errors=True)
        raise
    return job


def submit_lost() -> None:
    now = timezone.now()
    if unfinished().filter(requested_at__lt=now - TAKEN_UP_WITHIN).exists() and not _is_at_work():
        enqueue(_TASK)
    # A mapping is kept with its run.
    is_needed = Q(state=Import.State.DONE, run__isnull=False) & ~Q(form__mapping=None)
    old = Import.objects.filter(~is_needed, done_at__lt=now - RETENTION)
    # Looked at first: nearly always there is nothing, and a write would take SQLite's lock for it.
    if old.exists():
        old.delete()
    for job in Import.objects.filter(UPLOADED, requested_at__lt=now - FILES_KEPT):
        discard(job)


def cancel(job: Import) -> None:
    """End an import of which nothing is written yet; its worker notices."""
    idle = Import.objects.filter(pk=job.pk, state__in=(Import.State.WAITING, Import.State.READING))
    ended = {"state": Import.State.FAILED, "detail": "It was stopped.", "done_at": timezone.now()}
    if idle.update(lease=None, **ended) and not job.user_id:
        shutil.rmtree(_folder(job), ignore_errors=True)


def unfinished() -> QuerySet[Import]:
    return Import.objects.filter(state__in=Import.UNFINISHED).order_by("requested_at")


def _is_at_work() -> bool:
    return unfinished().filter(leases.active()).exists()


def seconds_to_read(job: Import) -> int:
    """Return how long a processor may be at reading an import, by the size of its files."""
    size = sum(file.stat().st_size for file in _folder(job).iterdir())
    return settings.IMPORT_MAX_SECONDS + (size >> 20) * _SECONDS_FOR_A_MB


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
            lease = uuid4()
            reading = Import.objects.filter(lease=lease, state=Import.State.READING)

            def keep_lease() -> None:
                # A reader may pass over much that is no row, and tells nothing meanwhile.
                with suppress(OperationalError):
                    leases.renew(reading, LEASE)

            ended = manage("import_waiting", "--lease", str(lease), still_running=keep_lease)
            if ended.code:
                _note_death(lease, *ended)
    finally:
        _starting.release()


def _note_death(lease: UUID, code: int, last_line: str) -> None:
    """Give up what a process died of, or what several processes could not even start for."""
    if Import.objects.filter(lease=lease).exists():
        job, reason = unfinished().filter(lease=lease).first(), _DEADLY.get(-code)
        may_try_again = job is not None and job.attempts <= MOST_ATTEMPTS
    else:
        job, reason = claim(), None
        may_try_again = job is not None and job.attempts < MOST_ATTEMPTS
    status = 413 if reason else 503
    if not may_try_again:
        reason = reason or f"The process that reads files cannot start: {last_line}"
    if job and reason:
        note(job, status=status, detail=reason)
        run(job)
    elif job:
        # Tried again by the next sweep.
        leases.release(mine(job))


def when_unlocked(do: Callable[[], Result], tell: Callable[[str], object]) -> Result:
    """Do it, again from the start while another process holds the lock of SQLite for too long."""
    is_reported = False
    while True:
        try:
            return do()
        except OperationalError as error:
            # The lower byte of a code is its kind.
            kind = getattr(error.__cause__, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF
            if kind not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        if not is_reported:
            tell("Another process is writing to the database; the import waits for it.")
        is_reported = True
        time.sleep(PAUSE_SECONDS)


def claim(only: UUID | None = None, lease: UUID | None = None) -> Import | None:
    """Lease the import whose turn it is; None while another is at work.

    One at a time: two that are read before either is written could contradict each other, and each
    takes a processor for as long as it lasts. Projects take turns: the one whose last import ended
    longest ago comes first.
    """
    with transaction.atomic():
        # All rows are locked, so that nobody else finds that it is their turn.
        jobs = list(unfinished().select_for_update(no_key=True))
        jobs = [job for job in jobs if only in (None, job.pk)]
        if not jobs or _is_at_work():
            return None
        job = _next_in_turn(jobs, _last_ends())
        job.lease, job.leased_until = lease or uuid4(), timezone.now() + LEASE
        job.attempts += 1
        job.save(update_fields=["lease", "leased_until", "attempts"])
        return job


def _last_ends() -> dict[UUID | None, datetime]:
    of_projects = Import.objects.exclude(done_at=None).order_by().values_list("project")
    return dict(of_projects.annotate(Max("done_at")))


def _next_in_turn(jobs: Sequence[Import], last: Mapping[UUID | None, datetime]) -> Import:
    """Return the first import of the project whose last one ended longest ago."""
    # `min` takes the first of several: within a project, what was asked for first.
    return min(jobs, key=lambda job: last.get(job.project_id) or _LONG_AGO)


def in_order_of_turns() -> list[Import]:
    """Return what is not done in the order in which it comes to its turn, by what is known now."""
    jobs, last = list(unfinished()), _last_ends()
    order = [job for job in jobs if job.state != Import.State.WAITING]
    waiting = [job for job in jobs if job.state == Import.State.WAITING]
    ends = timezone.now()
    last |= dict.fromkeys((job.project_id for job in order), ends)
    while waiting:
        job = _next_in_turn(waiting, last)
        waiting.remove(job)
        order.append(job)
        ends += timedelta(seconds=1)
        last[job.project_id] = ends
    return order


def run(job: Import) -> Import:
    try:
        _do_or_give_up(job)
    except LeaseLost:
        logger.warning("import %s: another worker goes on with it", job.pk)
    except (OperationalError, SystemExit, KeyboardInterrupt):
        # The database is locked, full or away, or this process is to stop: a sweep goes on with it.
        with suppress(Error):
            leases.release(mine(job), attempts=0)
        raise
    job.refresh_from_db()
    if job.state not in Import.UNFINISHED and not job.can_be_changed:
        shutil.rmtree(_folder(job), ignore_errors=True)
        if unfinished().exists():
            enqueue(_TASK)
    return job


def _do_or_give_up(job: Import) -> None:
    if job.status:
        # It was given up by a worker that died while what was written was removed.
        _fail(job)
        return
    try:
        _import(job)
    except (OperationalError, LeaseLost, sqlite3.OperationalError):
        # The last is the scratch file's, on a full disk: tried anew when the lease is over.
        raise
    except MemoryError:
        _fail(job, status=413, detail=_TOO_MUCH_MEMORY)
    except (BundleError, ImportRefused) as error:
        report = ImportReport()
        if isinstance(error, BundleError):
            report.fail(RowError(job.form["files"][0], error.line, error.field, error.reason))
        refused = RowsWrong(report) if isinstance(error, BundleError) else error
        facts = {"report": refused.report.model_dump(mode="json")} if refused.report else {}
        _fail(job, status=refused.status, detail=str(refused), **facts)
    except Exception as error:
        logger.exception("import %s", job.pk)
        _fail(job, status=422, detail=f"It cannot be stored: {type(error).__name__}.")


def _import(job: Import) -> None:
    if job.attempts > MOST_ATTEMPTS:
        raise ImportRefused(f"The import failed {MOST_ATTEMPTS} times.")
    with _files(job) as files:
        if job.state != Import.State.WRITING:
            note(job, state=Import.State.READING, rows_read=0)
            if job.is_bundle:
                facts = Restoring(job, files[0].stream).read()
            else:
                with (
                    closing(Scratch(_folder(job) / "rows", is_new=True)) as scratch,
                    ExitStack() as copies,
                ):
                    facts = read(job, _items(job, files, copies), scratch)
            note(job, state=Import.State.WRITING, **facts)
        if job.is_bundle:
            Restoring(job, files[0].stream).write()
        else:
            with closing(Scratch(_folder(job) / "rows")) as scratch:
                Writing(job, scratch).write()


@contextmanager
def _files(job: Import) -> Iterator[Sequence[SourceFile]]:
    with ExitStack() as stack:
        yield [
            SourceFile(name, stack.enter_context((_folder(job) / str(number)).open("rb")))
            for number, name in enumerate(job.form["files"])
        ]


def _items(job: Import, files: Sequence[SourceFile], copies: ExitStack) -> Iterator[Item]:
    config, file_format, shape = job.form["mapping"], job.form["format"], _shape(job)
    columns = None if config is None else mapping.parse(config, shape)
    most = settings.IMPORT_MAX_UNPACKED_MB << 20
    encoding, separator = _text_options(job.form)
    try:
        opened = containers.unpacked(files, copies, file_format, encoding, most, separator)
    except UnreadableFile as error:
        return iter([RowError(error.file, 0, None, str(error), is_fatal=True)])
    for source in () if job.is_local else opened.tables:
        if format_of(source.name, file_format) == "parquet":
            with suppress(UnreadableFile):  # which reading will tell as it tells every fault
                _refuse_large(source)
            source.stream.seek(0)
    off = switched_off()
    rows = chain.from_iterable(
        chain(
            [Note(source.name, source.note)] if source.note else [],
            read_file(source.stream, source.name, columns, file_format, shape, off),
        )
        for source in opened.tables
    )
    # The kind of outputs whose rows do not say, where the run or an option does.
    kind = job.form["options"].get("kind") or (last_kind(job.run.queue) if job.run else "")
    return Pictures(_folder(job) / PICTURES, opened.members, kind, most).placed(rows)


def _shape(job: Import) -> Shape | None:
    return _shape_of(job.run.queue.kind if job.run else job.form["options"].get("vote_kind"))


def _shape_of(vote_kind: str | None) -> Shape | None:
    return None if vote_kind is None else SHAPES[KINDS[vote_kind].noun]


def _refuse_large(source: SourceFile) -> None:
    from judge_eval.imports.parquet import size_of

    rows, size = size_of(source.stream)
    most, megabytes = settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_UNPACKED_MB
    if rows > most:
        reason = f"{source.name} has {rows:,} rows; at most {most:,} are taken at once."
        raise ImportTooLarge(reason)
    if size > megabytes << 20:
        raise ImportTooLarge(f"{source.name} is more than {megabytes:,} MB when it is unpacked.")


def _fail(job: Import, **facts: Any) -> None:
    """Leave nothing of a run that is not whole; what a run had added to it stays, row by row."""
    # From here on nobody goes on writing it.
    note(job, **facts)
    try:
        left = _taken_back(job)
    except (OperationalError, LeaseLost):
        raise
    except Exception:
        logger.exception("import %s", job.pk)
        left = " Not all that was written could be removed."
    is_fault = job.status in (422, 503) and job.report is None
    state = Import.State.FAILED if is_fault else Import.State.REFUSED
    note(job, state=state, detail=job.detail + left, done_at=timezone.now())


def _taken_back(job: Import) -> str:
    run, is_gone = job.run if job.name else None, True
    if job.is_bundle and job.written:
        with _files(job) as files:
            is_gone = Restoring(job, files[0].stream).take_back()
    elif run and run.state == Run.State.IMPORTING:
        is_gone = not Entry.objects.filter(queue=run.queue_id).exists()
        if is_gone:
            remove(run, job)
    elif job.written:
        return f" {job.written:,} of {job.to_write:,} were written; the same files again go on."
    return "" if is_gone else " Its votes are in the ledger, so its rows are kept, but not shown."
