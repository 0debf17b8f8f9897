"""Verdicts come in; when the last one of a comparison is final it opens for voting."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval import providers
from judge_eval.models import Run, Verdict
from judge_eval.selectors import ready_verdicts, waiting_pictures
from voting.models import Comparison, Entry, Picture
from voting.nudge import nudge

LEASE = timedelta(seconds=20)
MOST_AT_ONCE = 500


def advance(run_id: UUID) -> None:
    """Ask for all that can be done next for a run. Safe to repeat, at any time, by anyone."""
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",), no_key=True).get(pk=run_id)
        if run.state != Run.State.JUDGING:
            return
        until = timezone.now() + LEASE
        pictures = list(waiting_pictures(run).values_list("pk", flat=True)[:MOST_AT_ONCE])
        Picture.objects.filter(pk__in=pictures).update(leased_until=until)
        for picture in pictures:
            enqueue("judge_eval.tasks.render", picture, str(run_id))
        _give_up_on_undrawable(run)
        verdicts = list(ready_verdicts(run).values_list("pk", flat=True)[:MOST_AT_ONCE])
        Verdict.objects.filter(pk__in=verdicts).update(leased_until=until)
        for verdict in verdicts:
            enqueue("judge_eval.tasks.judge", verdict)
        _open_for_voting(run)


def _give_up_on_undrawable(run: Run) -> None:
    """Leave out pairs with a drawing that cannot be rendered: no vote, no verdict, a reason."""
    for side in ("a", "b"):
        failed = Comparison.objects.filter(
            queue=run.queue_id, unusable="", **{f"{side}__picture__state": Picture.State.FAILED}
        ).select_related(f"{side}__picture")
        for comparison in failed:
            picture = getattr(comparison, side).picture
            comparison.unusable = f"{side.upper()} could not be drawn: {picture.error}"
            comparison.save(update_fields=["unusable"])
            Verdict.objects.filter(comparison=comparison, state=Verdict.State.WAITING).update(
                state=Verdict.State.FAILED, error=comparison.unusable, decided_at=timezone.now()
            )


def _open_for_voting(run: Run) -> None:
    """Go over to voting once every usable pair is open."""
    closed = Comparison.objects.filter(queue=run.queue_id, opened_at__isnull=True, unusable="")
    unjudged = closed.exclude(verdicts__state=Verdict.State.WAITING).filter(
        pk__in=closed.exclude(a__picture__state="waiting").exclude(b__picture__state="waiting")
    )
    for comparison in unjudged.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        open_if_final(comparison)
    if not closed.exists():
        run.state = Run.State.VOTING
        run.save(update_fields=["state"])


def decide(verdict_id: int) -> None:
    """Ask one judge about one comparison, once; a repeat finds the verdict and does nothing."""
    verdict = Verdict.objects.select_related(
        "judge", "comparison__a__picture", "comparison__b__picture"
    ).get(pk=verdict_id)
    if verdict.state == Verdict.State.WAITING:
        Verdict.objects.filter(pk=verdict_id, state=Verdict.State.WAITING).update(
            decided_at=timezone.now(), **_answer(verdict)
        )
    open_if_final(verdict.comparison_id)


def _answer(verdict: Verdict) -> dict[str, Any]:
    try:
        reply = providers.ask_baseline(verdict.judge, verdict.comparison)
    except providers.ProviderFailed as failure:
        return {"state": Verdict.State.FAILED, "error": str(failure)}
    return {
        "state": Verdict.State.DONE,
        "winner": reply.winner,
        "score_a": reply.score_a,
        "score_b": reply.score_b,
        "feedback": reply.feedback,
        "latency_ms": reply.latency_ms,
    }


def open_if_final(comparison_id: UUID) -> None:
    """Open a comparison whose verdicts are all final, and put them into the ledger, once."""
    with transaction.atomic():
        comparison = (
            Comparison.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue__run")
            .get(pk=comparison_id)
        )
        if comparison.opened_at is not None or comparison.unusable:
            return
        verdicts = list(comparison.verdicts.select_related("judge").order_by("judge__position"))
        if any(verdict.state == Verdict.State.WAITING for verdict in verdicts):
            return
        comparison.opened_at = timezone.now()
        comparison.save(update_fields=["opened_at"])
        write_verdicts(comparison, verdicts)


def write_verdicts(comparison: Comparison, verdicts: list[Verdict]) -> None:
    """Append all judges' final verdicts on a comparison to the ledger."""
    entry = verdicts_entry(comparison, verdicts)
    entry.save()
    transaction.on_commit(partial(nudge, entry.project_id))


def verdicts_entry(comparison: Comparison, verdicts: list[Verdict]) -> Entry:
    """Return the entry, not saved yet, that puts final verdicts into the ledger."""
    queue = comparison.queue
    return Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.VERDICTS,
        at=timezone.now(),
        queue=queue,
        comparison=comparison,
        payload={
            "run": str(queue.run.pk),
            "verdicts": [
                {
                    "judge": str(verdict.judge_id),
                    "position": verdict.judge.position,
                    "fingerprint": verdict.judge.fingerprint,
                    "winner": verdict.winner or None,
                    "consistent": verdict.consistent,
                }
                for verdict in verdicts
            ],
        },
    )
