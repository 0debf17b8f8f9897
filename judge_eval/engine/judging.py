"""Verdicts come in; when the last one of a comparison is final it opens for voting."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval import events
from judge_eval.config.run_config import parse
from judge_eval.engine import claims, providers, stages
from judge_eval.models import Call, Run, Verdict
from judge_eval.selectors import ready_verdicts, waiting_pictures
from voting.models import Comparison, Entry, Picture
from voting.nudge import nudge

LEASE = timedelta(seconds=20)
MOST_AT_ONCE = 500


def advance(run_id: UUID) -> None:
    """Ask for all that can be done next for a run. Safe to repeat, at any time, by anyone."""
    with transaction.atomic():
        run = (
            Run.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue")
            .get(pk=run_id)
        )
        if run.state not in Run.AT_WORK:
            return
        if run.config:
            _next_calls(run)
        _render(run)
        _give_up_on_undrawable(run)
        _ask_baselines(run)
        _move_on(run)


def _next_calls(run: Run) -> None:
    config = parse(run.config)
    stages.fail_without_provider(run)
    more_pairs = stages.pair_outputs(run, config)
    more_calls = stages.ask_for_verdicts(run, config)
    if more_pairs or more_calls:
        enqueue("judge_eval.tasks.advance", str(run.pk))
    if claims.waiting_calls([run.pk]).exists():
        enqueue("judge_eval.tasks.work")


def _render(run: Run) -> None:
    pictures = list(waiting_pictures(run).values_list("pk", flat=True)[:MOST_AT_ONCE])
    Picture.objects.filter(pk__in=pictures).update(leased_until=timezone.now() + LEASE)
    for picture in pictures:
        enqueue("judge_eval.tasks.render", picture, str(run.pk))


def _ask_baselines(run: Run) -> None:
    verdicts = list(ready_verdicts(run).values_list("pk", flat=True)[:MOST_AT_ONCE])
    Verdict.objects.filter(pk__in=verdicts).update(leased_until=timezone.now() + LEASE)
    for verdict in verdicts:
        enqueue("judge_eval.tasks.judge", verdict)


def _give_up_on_undrawable(run: Run) -> None:
    """Leave out pairs with a drawing that cannot be rendered: no vote, no verdict, a reason.

    One that came with all its votes keeps them: nobody has to see it any more.
    """
    waiting = Verdict.objects.filter(comparison=OuterRef("pk"), state=Verdict.State.WAITING)
    wants_votes = Q(votes__lt=F("votes_wanted"))
    for side in ("a", "b"):
        failed = Comparison.objects.filter(
            wants_votes | Exists(waiting),
            queue=run.queue_id,
            unusable="",
            **{f"{side}__picture__state": Picture.State.FAILED},
        ).select_related(f"{side}__picture")
        for comparison in failed:
            picture = getattr(comparison, side).picture
            reason = f"{side.upper()} could not be drawn: {picture.error}"
            if comparison.votes < comparison.votes_wanted:
                comparison.unusable = reason
                comparison.save(update_fields=["unusable"])
            Verdict.objects.filter(comparison=comparison, state=Verdict.State.WAITING).update(
                state=Verdict.State.FAILED, error=reason, decided_at=timezone.now()
            )


def _move_on(run: Run) -> None:
    """Open what can be opened, and go over to the next state once nothing is left in this one."""
    closed = Comparison.objects.filter(queue=run.queue_id, opened_at__isnull=True, unusable="")
    unjudged = closed.exclude(verdicts__state=Verdict.State.WAITING).filter(
        pk__in=closed.exclude(a__picture__state="waiting").exclude(b__picture__state="waiting")
    )
    for comparison in unjudged.values_list("pk", flat=True)[:MOST_AT_ONCE]:
        open_if_final(comparison)
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE)
    if generating.filter(Q(state=Call.State.WAITING) | Q(is_paired=False)).exists():
        return
    waiting = Verdict.objects.filter(comparison__queue=run.queue_id, state=Verdict.State.WAITING)
    if closed.exists() or waiting.exists():
        _enter(run, Run.State.JUDGING)
    elif not run.queue.comparisons.filter(unusable="").exists():
        _end_without_pairs(run)
    elif (run.config or {}).get("mode") == "standard":
        _enter(run, Run.State.COMPLETE)
    else:
        _enter(run, Run.State.VOTING)


def _end_without_pairs(run: Run) -> None:
    config = run.config or {}
    if config.get("mode") != "standard" or len(config["models"]) > 1:
        _enter(run, Run.State.FAILED, "No two outputs of a prompt came, so there is no pair.")
    elif run.calls.filter(purpose=Call.Purpose.GENERATE, state=Call.State.DONE).exists():
        _enter(run, Run.State.COMPLETE)
    else:
        _enter(run, Run.State.FAILED, "No output came.")


def _enter(run: Run, state: str, note: str = "") -> None:
    if run.state == state:
        return
    run.state, run.note = state, note
    run.save(update_fields=["state", "note"])
    events.record(run, "state", note or f"The run is {state} now.", state=state)


def complete_voted_runs() -> None:
    """Say of runs whose pairs all have enough votes that they are complete, and of others not."""
    usable = Comparison.objects.filter(queue=OuterRef("queue"), unusable="")
    wanting = Exists(usable.filter(votes__lt=F("votes_wanted")))
    voting = Run.objects.filter(~wanting, Exists(usable), state=Run.State.VOTING)
    undone = Run.objects.filter(wanting, state=Run.State.COMPLETE, queue__is_open=True).exclude(
        config__mode="standard"
    )
    for runs, state in ((voting, Run.State.COMPLETE), (undone, Run.State.VOTING)):
        for pk in runs.values_list("pk", flat=True):
            with transaction.atomic():
                # It may have been stopped since, or a vote taken back.
                locked = runs.select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
                if locked is not None:
                    _enter(locked, state)


def decide(verdict_id: int) -> None:
    """Ask one judge about one comparison, once; a repeat finds the verdict and does nothing."""
    verdict = Verdict.objects.select_related(
        "judge", "comparison__a__picture", "comparison__b__picture"
    ).get(pk=verdict_id)
    if verdict.state == Verdict.State.WAITING:
        Verdict.objects.filter(pk=verdict_id, state=Verdict.State.WAITING).update(
            decided_at=timezone.now(), **answer_of_baseline(verdict)
        )
    open_if_final(verdict.comparison_id)


def go_on_after(verdict_id: int) -> None:
    """Advance the run of a baseline's verdict when it was the last of those that were handed out.

    The sweep would too, but some seconds later.
    """
    run_id = Verdict.objects.values_list("judge__run", flat=True).get(pk=verdict_id)
    handed_out = Verdict.objects.filter(
        judge__run=run_id, state=Verdict.State.WAITING, leased_until__gt=timezone.now()
    )
    if not handed_out.exists():
        advance(run_id)


def answer_of_baseline(verdict: Verdict) -> dict[str, Any]:
    """Return the fields of a verdict that is asked for here; its pair has its outputs."""
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


def open_if_final(comparison_id: UUID, *, amend: bool = False) -> None:
    """Open a comparison whose verdicts are all final, and put them into the ledger, once.

    With `amend`, those of an open one are put there again if one is another than before.
    """
    # No savepoint: who has begun a transaction wants all of it or none.
    with transaction.atomic(savepoint=False):
        comparison = (
            Comparison.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue__run")
            .get(pk=comparison_id)
        )
        if comparison.unusable or (comparison.opened_at is not None and not amend):
            return
        verdicts = list(comparison.verdicts.select_related("judge").order_by("judge__position"))
        if any(verdict.state == Verdict.State.WAITING for verdict in verdicts):
            return
        if comparison.opened_at is None:
            comparison.opened_at = timezone.now()
            comparison.save(update_fields=["opened_at"])
        # An import has put them there already.
        if _differ(comparison, verdicts):
            write_verdicts(comparison, verdicts)


def _differ(comparison: Comparison, verdicts: list[Verdict]) -> bool:
    """Say whether the ledger's last word on a comparison is not what its verdicts are now."""
    entries = Entry.objects.filter(comparison=comparison, kind=Entry.Kind.VERDICTS)
    last = entries.order_by("-pk").values_list("payload", flat=True).first()
    return last != verdicts_entry(comparison, verdicts).payload


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
