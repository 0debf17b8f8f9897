"""What imports and bundles are written with: short steps with room for votes between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q

from judge_eval.exchange import import_scratch
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from voting.models import Entry, Flag, Inference, Item, Picture, Project, Queue
from voting.pictures.store import source_address

# SQLite lets one write at a time, and whoever waits looks again every tenth of a second.
LEAST_PAUSE: Final = 0.12


@contextmanager
def step(project: UUID) -> Iterator[Project]:
    """Hold the project, which all who write to it take first, and then let others in."""
    began = time.monotonic()
    with transaction.atomic():
        yield Project.objects.select_for_update(no_key=True).get(pk=project)
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        time.sleep(max(time.monotonic() - began, LEAST_PAUSE))


def remove(run: Run, on_step: Callable[[], None]) -> None:
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
            on_step()
    with step(project):
        Judge.objects.filter(run=run).delete()
        run.delete()
        run.queue.delete()
        on_step()


def remove_unused(outputs: Collection[UUID]) -> None:
    """Remove those of these outputs that nothing refers to."""
    users = (
        Item.objects.filter(a=OuterRef("pk")),
        Item.objects.filter(b=OuterRef("pk")),
        Entry.objects.filter(inference=OuterRef("pk")),
        Call.objects.filter(inference=OuterRef("pk")),
    )
    unused = [~Exists(rows) for rows in users]
    Inference.objects.filter(*unused, pk__in=outputs).delete()


def give_pictures(outputs: dict[UUID, Inference]) -> None:
    """Give each drawing the picture of its source, made where there is none yet."""
    drawings = {
        pk: source_address(row.output)
        for pk, row in outputs.items()
        if row.kind == Inference.Kind.SVG and OUTPUT_ABSENT not in row.metadata
    }
    addresses = set(drawings.values())
    rows = [Picture(source_sha256=address) for address in sorted(addresses)]
    Picture.objects.bulk_create(rows, ignore_conflicts=True)
    stored = Picture.objects.filter(source_sha256__in=addresses)
    pictures = dict(stored.values_list("source_sha256", "pk"))
    for pk, address in drawings.items():
        outputs[pk].picture_id = pictures[address]


def close_undrawn(queue: Queue) -> None:
    """Let pairs whose drawings came with an import wait until they are drawn here."""
    waiting = Picture.State.WAITING
    undrawn = Q(a__picture__state=waiting) | Q(b__picture__state=waiting)
    Item.objects.filter(undrawn, queue=queue, unusable="").update(opened_at=None)
