"""What imports and bundles are written with: short steps with room for votes between them."""

import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.core import leases
from judge_eval.imports import import_scratch
from judge_eval.imports.import_report import ImportReport
from judge_eval.models import Call, Import, Judge, Run, Verdict
from judge_eval.runs.access import note_runs_seen
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from voting.models import Flag, Inference, Item, Picture, Project, Queue
from voting.pictures.images import address_of, png_in, reader_id, size_of
from voting.pictures.store import source_address

LEASE: Final = timedelta(seconds=60)
# While rows are read: how often the lease is renewed and progress is told.
RENEWED_EVERY: Final = 2.0
# SQLite lets one write at a time, and whoever waits looks again every tenth of a second.
LEAST_PAUSE: Final = 0.12
AnyItem = TypeVar("AnyItem")


# How long others wait for what is written in one transaction: the first rows are few, since nobody
# knows yet how long they take here.
SECONDS_AT_ONCE: Final = 0.1
FIRST_ROWS: Final = 20
LEAST_ROWS: Final = 10


class ImportPace:
    """How many rows are written at once: as many as take little time, never many more than did."""

    def __init__(self) -> None:
        self.rows = FIRST_ROWS

    def note(self, rows: int, seconds: float) -> None:
        self.rows = int(max(rows * SECONDS_AT_ONCE / max(seconds, SECONDS_AT_ONCE / 2), LEAST_ROWS))


class LeaseLost(Exception):
    """Somebody else goes on with the import by now, or it was stopped."""


def mine(job: Import) -> QuerySet[Import]:
    return Import.objects.filter(pk=job.pk, lease=job.lease, state__in=Import.UNFINISHED)


def note(job: Import, **facts: Any) -> None:
    """Renew the lease and note how far the import is, in the transaction that got it there."""
    if not leases.renew(mine(job), LEASE, **facts):
        raise LeaseLost
    for name, value in facts.items():
        setattr(job, name, value)
    if job.on_progress:
        job.on_progress()


def counted(job: Import, items: Iterable[AnyItem]) -> Iterator[AnyItem]:
    """Note now and then how many rows were read, all at last, and notice a lost lease."""
    due, rows = 0.0, 0
    for rows, item in enumerate(items, start=1):
        if time.monotonic() > due:
            due = time.monotonic() + RENEWED_EVERY
            # A bundle is read more than once.
            note(job, rows_read=max(rows, job.rows_read))
        yield item
    if rows > job.rows_read:
        mine(job).update(rows_read=rows)
        job.rows_read = rows


def finish(job: Import, report: ImportReport) -> None:
    """Note the result in the transaction that ends it; the key has seen what judges said."""
    if report.new["verdicts"] or report.already["verdicts"]:
        reader = job.api_key or job.user
        if reader is not None:
            note_runs_seen(reader, Run.every.filter(pk__in=report.runs))
    ended = {"state": Import.State.DONE, "run_id": report.run_id, "done_at": timezone.now()}
    note(job, report=report.model_dump(mode="json"), **ended)


@contextmanager
def step(project: UUID) -> Iterator[Project]:
    """Hold the project, which all who write to it take first, and then let others in."""
    began = time.monotonic()
    with transaction.atomic():
        yield Project.objects.select_for_update(no_key=True).get(pk=project)
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        time.sleep(max(time.monotonic() - began, LEAST_PAUSE))


def remove(run: Run, job: Import) -> None:
    """Remove a run that was not imported to its end, as long as nothing of it is in the ledger."""
    project = run.queue.project_id
    pairs = run.queue.items.values_list("pk", "a", "b")
    while chunk := list(pairs[: import_scratch.MOST_ROWS]):
        with step(project):
            numbers = [pk for pk, _, _ in chunk]
            Verdict.objects.filter(item__in=numbers).delete()
            Flag.objects.filter(item__in=numbers).delete()
            run.queue.items.filter(pk__in=numbers).delete()
            remove_unused([pk for _, *ab in chunk for pk in ab])
            note(job)
    with step(project):
        Judge.objects.filter(run=run).delete()
        run.delete()
        run.queue.delete()
        note(job)


def remove_unused(outputs: Collection[UUID]) -> None:
    users = (
        Item.objects.filter(a=OuterRef("pk")),
        Item.objects.filter(b=OuterRef("pk")),
        Call.objects.filter(inference=OuterRef("pk")),
    )
    unused = [~Exists(rows) for rows in users]
    Inference.objects.filter(*unused, pk__in=outputs).delete()


def give_pictures(outputs: dict[UUID, Inference]) -> None:
    """Give drawings, and pictures that were brought and are stored, their rows."""
    rows: dict[str, Picture] = {}
    addresses: dict[UUID, str] = {}
    for pk, output in outputs.items():
        png = png_in(output.output) if output.kind == Inference.Kind.IMAGE else ""
        is_drawing = output.kind == Inference.Kind.SVG and OUTPUT_ABSENT not in output.metadata
        if png or is_drawing:
            address = addresses[pk] = source_address(address_of(png) if png else output.output)
            if address not in rows:
                rows[address] = _stored(address, png) if png else Picture(source_sha256=address)
    Picture.objects.bulk_create([rows[address] for address in sorted(rows)], ignore_conflicts=True)
    existing = Picture.objects.filter(source_sha256__in=rows)
    pictures = dict(existing.values_list("source_sha256", "pk"))
    for pk, address in addresses.items():
        outputs[pk].picture_id = pictures[address]


def _stored(address: str, png: str) -> Picture:
    facts = {"state": Picture.State.DONE, "png_sha256": png, "renderer": reader_id()}
    return Picture(source_sha256=address, **facts, **size_of(png)._asdict())


def close_undrawn(queue: Queue) -> None:
    """Let pairs whose drawings came with an import wait until they are drawn here."""
    waiting = Picture.State.WAITING
    undrawn = Q(a__picture__state=waiting) | Q(b__picture__state=waiting)
    Item.objects.filter(undrawn, queue=queue, unusable="").update(opened_at=None)
