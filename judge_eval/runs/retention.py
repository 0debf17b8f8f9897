"""Raw replies of models are kept for as long as their project says, once a run is over.

What was made of a reply stays: outputs, verdicts with their reasons, scores, hashes and costs; and
why a call failed, which may quote some words.
"""

from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from humanjudge.lib.text import number_of
from judge_eval.models import Call, Run
from judge_eval.runs.results import FORMER_REPLY
from voting.changes import note_change
from voting.models import Project
from voting.selectors import chunks

OVER: Final = (Run.State.COMPLETE, Run.State.STOPPED, Run.State.FAILED)
AT_ONCE: Final = 500
REMOVED: Final = "removed by the project's retention"


def set_retention(project: Project, days: int | None, by: User | None = None) -> None:
    """Keep raw replies for so many days from now on, or for good."""
    if project.keep_replies_days == days:
        return
    with transaction.atomic():
        Project.objects.filter(pk=project.pk).update(keep_replies_days=days)
        kept = "for good" if days is None else f"for {number_of(days, 'day')}"
        note_change(project, by, f"Raw replies are kept {kept}.")
    project.keep_replies_days = days


def replies_older_than(project: Project, moment: datetime) -> QuerySet[Call]:
    """Return the calls of runs that are over whose replies came before and are still here."""
    return Call.objects.filter(
        ~Q(reply=""),
        run__queue__project=project,
        run__state__in=OVER,
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
            call.changes = [_without_reply(change) for change in call.changes]
        Call.objects.bulk_update([call for call in batch if call.changes], ["changes"])
        # Who retries a call meanwhile will have a new reply.
        removed += old.filter(pk__in=[call.pk for call in batch]).update(
            reply="", reply_removed_at=now
        )
    return removed


def _without_reply(change: str) -> str:
    # What was wrong with it stands before that, and may quote it.
    return f"asked once more; what it had said was {REMOVED}" if FORMER_REPLY in change else change
