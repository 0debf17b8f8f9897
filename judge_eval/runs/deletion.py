"""What is deleted: a run for good, and raw replies of models once their project's days are over.

Votes and verdicts are facts of the project, chained to those of its other runs. So the queue and
the items of a deleted run stay, closed and without a text, and an entry of the ledger says that
this was done. What was made of a reply stays too: outputs, verdicts with their reasons, scores,
hashes and costs; and why a call failed, which may quote some words.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from humanjudge.core.text import number_of
from judge_eval.judging import leases
from judge_eval.judging.results import FORMER_REPLY
from judge_eval.models import Call, Import, Judge, Run, Verdict
from judge_eval.runs import state
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.queries import verdicts_of
from voting.access.changes import note_change
from voting.ballot.queries import chunks
from voting.ledger import ledger
from voting.models import (
    NO_VOTE,
    Assignment,
    Entry,
    Flag,
    Inference,
    Invite,
    Item,
    Picture,
    Project,
    Queue,
)
from voting.people.voters import forget_texts
from voting.pictures.store import forget

RESTING = (Run.State.COMPLETE, Run.State.STOPPED, Run.State.FAILED)
AT_ONCE = 500
_NO_TEXT = {"prompt": "", "output": "", "generator": "", "metadata": {}, "tags": []}


class WrongName(ValueError):
    """What was typed is not the name of the run."""


class Extent(NamedTuple):
    """How much goes with a run, and how many entries of the ledger stay."""

    outputs: int
    verdicts: int
    calls: int
    invites: int
    entries: int


def extent(run: Run) -> Extent:
    return Extent(
        outputs=outputs_of(run).count(),
        verdicts=verdicts_of(run).count(),
        calls=run.calls.count(),
        invites=run.queue.invites.count(),
        # Each by an index of its own.
        entries=sum(
            Entry.objects.filter(of_kind, queue=run.queue_id).count()
            for of_kind in (NO_VOTE, Q(kind=Entry.Kind.VOTE, seq__isnull=False))
        ),
    )


def in_the_way(run: Run) -> str:
    """Say why a run cannot be deleted now and what to do about it; nothing where it can."""
    if run.state == Run.State.DRAFT:
        return "This run is a draft: delete it on the page of the draft."
    if run.state not in RESTING:
        return f"This run is {run.state}. Stop it first, then delete it."
    if out := leases.calls_out(timezone.now()).filter(run=run).count():
        return (
            f"{number_of(out, 'call')} of this run must still be answered. Try again in a minute."
        )
    if run.imports.filter(state__in=Import.UNFINISHED).exists():
        return "A file is being imported into this run. Wait until that is done."
    obstacle: str = import_string(settings.RUN_IN_USE)(run)
    return obstacle


def delete(run_id: UUID, typed: str) -> None:
    """Delete a run that rests, given its name; refused while anything is under way."""
    with transaction.atomic():
        # In the order in which sealing locks them, which counts the votes of this run.
        project = Project.objects.filter(queues__run=run_id)
        Project.objects.select_for_update(no_key=True).get(pk__in=project.values("pk"))
        run = state.locked().get(pk=run_id)
        if obstacle := in_the_way(run):
            raise LifecycleRefused(obstacle)
        if typed.strip() != run.name.strip():
            raise WrongName("That is not the name of this run, so nothing was deleted.")
        words = Entry.objects.filter(Q(queue=run.queue_id) | Q(item__queue=run.queue_id))
        forget_texts(words)
        _close(run.queue)
        forget_texts(words)
        _forget_outputs(run)
        _forget_rows(run)


def _close(queue: Queue) -> None:
    # Not no_key: votes that are being cast are waited for, and those that follow are refused.
    Queue.objects.select_for_update().get(pk=queue.pk)
    now, closed = timezone.now(), {"is_open": False, "more_may_come": False}
    Queue.objects.filter(pk=queue.pk).update(name="Deleted run", deleted_at=now, **closed)
    about = {"project_id": queue.project_id, "queue": queue, "payload": {"queue": str(queue.pk)}}
    ledger.record(Entry(kind=Entry.Kind.ERASURE, at=now, **about))


def outputs_of(run: Run) -> QuerySet[Inference]:
    """Return the outputs of a run that no other one shows."""
    items = Item.objects.filter(queue=run.queue_id)
    generated_outputs = run.calls.filter(inference__isnull=False).values("inference")
    outputs = items.filter(b__isnull=False).values("b").union(items.values("a"), generated_outputs)
    either = Q(a=OuterRef("pk")) | Q(b=OuterRef("pk"))
    elsewhere = Item.objects.exclude(queue=run.queue_id).filter(either)
    return Inference.objects.filter(~Exists(elsewhere), pk__in=outputs)


def _forget_outputs(run: Run) -> None:
    outputs = outputs_of(run)
    pictures = list(outputs.filter(picture__isnull=False).values_list("picture", flat=True))
    outputs.update(picture=None, **_NO_TEXT)
    Item.objects.filter(queue=run.queue_id).update(external_id="")
    Flag.objects.filter(item__queue=run.queue_id).delete()
    for first in range(0, len(pictures), AT_ONCE):
        _forget_pictures(pictures[first : first + AT_ONCE])


def _forget_pictures(keys: list[int]) -> None:
    unused = Picture.objects.filter(pk__in=keys, inferences__isnull=True)
    addresses = set(unused.values_list("png_sha256", flat=True)) - {""}
    unused.delete()
    transaction.on_commit(lambda: forget(addresses))


def _forget_rows(run: Run) -> None:
    queue = run.queue
    Call.objects.filter(run=run).delete()
    Verdict.objects.filter(judge__run=run).delete()
    Judge.objects.filter(run=run).delete()
    Import.objects.filter(run=run, is_bundle=False).delete()
    Invite.objects.filter(queue=queue).delete()
    Assignment.objects.filter(item__queue=queue).delete()
    items = Item.objects.filter(Q(a=OuterRef("pk")) | Q(b=OuterRef("pk")))
    Inference.objects.filter(~Exists(items), project=queue.project_id, **_NO_TEXT).delete()
    run.delete()


REMOVED: Final = "removed by the project's retention"


def set_retention(project: Project, days: int | None, actor: User | None = None) -> None:
    """Keep raw replies for so many days from now on, or for good."""
    if project.keep_replies_days == days:
        return
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(keep_replies_days=days)
        retention_text = "for good" if days is None else f"for {number_of(days, 'day')}"
        note_change(project, actor, f"Raw replies are kept {retention_text}.")
    project.keep_replies_days = days


def replies_older_than(project: Project, moment: datetime) -> QuerySet[Call]:
    """Return the calls of runs that are over whose replies came before and are still here."""
    return Call.objects.filter(
        ~Q(reply=""),
        run__queue__project=project,
        run__state__in=RESTING,
        state__in=(Call.State.DONE, Call.State.FAILED),
        done_at__lt=moment,
    )


def remove_old_replies(now: datetime) -> int:
    """Empty what is older than its project keeps it; return how many replies that was."""
    removed = 0
    for project in Project.objects.filter(keep_replies_days__isnull=False):
        moment = now - timedelta(days=project.keep_replies_days or 0)
        removed += _remove(replies_older_than(project, moment), now)
    return removed


def _remove(old: QuerySet[Call], now: datetime) -> int:
    """Empty replies batch by batch, each in a statement of its own: nobody waits for long."""
    removed = 0
    for batch in chunks(old.only("changes"), "pk", AT_ONCE):
        for call in batch:
            # What was wrong with a reply stands before it, and may quote it.
            call.changes = [
                f"asked once more; what it had said was {REMOVED}"
                if FORMER_REPLY in change
                else change
                for change in call.changes
            ]
        Call.objects.bulk_update([call for call in batch if call.changes], ["changes"])
        # Who retries a call meanwhile will have a new reply.
        removed += old.filter(pk__in=[call.pk for call in batch]).update(
            reply="", reply_removed_at=now
        )
    return removed
