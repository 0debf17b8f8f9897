"""Verdicts come in; when the last one of a comparison is final it opens for voting."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval.config.run_config import parse
from judge_eval.models import Call, Run, Verdict
from judge_eval.runs import events, leases, lifecycle, providers, state
from judge_eval.selectors import left_out, ready_verdicts, waiting_pictures
from voting.ledger.scheduler import nudge
from voting.models import Comparison, Entry, Picture

LEASE = timedelta(seconds=20)
MOST_AT_ONCE = 500
# So many reasons for pairs that are left out are named in a note.
REASONS = 3


def advance(run_id: UUID) -> None:
    """Ask for all that can be done next for a run. Safe to repeat, at any time, by anyone."""
    with transaction.atomic():
        _go_on(_locked().get(pk=run_id))


def advance_unless_busy(run_id: UUID) -> bool:
    """Advance a run unless somebody else does so at this moment; return whether it was advanced."""
    with transaction.atomic():
        run = _locked(skip_locked=True).filter(pk=run_id).first()
        if run is not None:
            _go_on(run)
    return run is not None


def _locked(*, skip_locked: bool = False) -> QuerySet[Run]:
    runs = Run.objects.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
    return runs.select_related("queue")


def _go_on(run: Run) -> None:
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
    state.fail_without_provider(run)
    more_pairs = state.pair_outputs(run, config)
    more_calls = state.ask_for_verdicts(run, config)
    if more_pairs or more_calls:
        enqueue("judge_eval.tasks.advance", str(run.pk))
    if leases.waiting_calls([run.pk]).exists():
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
            reason = f"{side.upper()} {lifecycle.COULD_NOT_BE_DRAWN} {picture.error}"
            if comparison.votes < comparison.votes_wanted:
                comparison.unusable = reason
                comparison.save(update_fields=["unusable"])
            Verdict.objects.filter(comparison=comparison, state=Verdict.State.WAITING).update(
                state=Verdict.State.FAILED, error=reason, decided_at=timezone.now()
            )


def _move_on(run: Run) -> None:
    """Open what can be opened, and go over to the next state once nothing is left in this one."""
    closed = Comparison.objects.filter(queue=run.queue_id, opened_at__isnull=True, unusable="")
    # Not by the state that waits: before it has statistics, PostgreSQL would read the whole index
    # of those that do for each pair.
    final = (Verdict.State.DONE, Verdict.State.FAILED)
    undecided = Verdict.objects.exclude(state__in=final).filter(comparison=OuterRef("pk"))
    undrawn = Q(a__picture__state=Picture.State.WAITING) | Q(
        b__picture__state=Picture.State.WAITING
    )
    unjudged = closed.filter(~Exists(undecided), ~undrawn)
    open_those_final(list(unjudged.values_list("pk", flat=True)[:MOST_AT_ONCE]))
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
    if run.queue.comparisons.exists():
        _enter(run, Run.State.FAILED, _why_unusable(run))
    elif config.get("mode") != "standard" or len(config["models"]) > 1:
        _enter(run, Run.State.FAILED, "No two outputs of a prompt came, so there is no pair.")
    elif run.calls.filter(purpose=Call.Purpose.GENERATE, state=Call.State.DONE).exists():
        _enter(run, Run.State.COMPLETE)
    else:
        _enter(run, Run.State.FAILED, "No output came.")


def _why_unusable(run: Run) -> str:
    """Say why no pair can be shown: the most frequent reasons, each with its number of pairs."""
    reasons = "; ".join(f"{pairs} × {why}" for why, pairs in left_out(run)[:REASONS])  # noqa: RUF001
    return f"No pair can be shown. {reasons}."


def _enter(run: Run, entered: str, note: str = "") -> None:
    if run.state == entered:
        return
    run.state, run.note = entered, note
    run.save(update_fields=["state", "note"])
    lifecycle.tell_voters(run)
    events.record(run, "state", note or f"The run is {entered} now.", state=entered)


def complete_voted_runs() -> None:
    """Say of runs whose pairs all have enough votes that they are complete, and of others not."""
    usable = Comparison.objects.filter(queue=OuterRef("queue"), unusable="")
    wanting = Exists(usable.filter(votes__lt=F("votes_wanted")))
    voting = Run.objects.filter(~wanting, Exists(usable), state=Run.State.VOTING)
    undone = Run.objects.filter(wanting, state=Run.State.COMPLETE, queue__is_open=True).exclude(
        config__mode="standard"
    )
    for runs, next_state in ((voting, Run.State.COMPLETE), (undone, Run.State.VOTING)):
        for pk in runs.values_list("pk", flat=True):
            with transaction.atomic():
                # It may have been stopped since, or a vote taken back.
                locked = runs.select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
                if locked is not None:
                    _enter(locked, next_state)


def decide(verdict_id: int) -> None:
    """Ask one judge about one comparison, once; a repeat finds the verdict and does nothing."""
    verdict = (
        Verdict.objects.select_related("judge", "comparison__a__picture", "comparison__b__picture")
        # The whole config may be long.
        .annotate(verdict_orders=F("judge__run__config__verdict_orders"))
        .get(pk=verdict_id)
    )
    if verdict.state == Verdict.State.WAITING:
        Verdict.objects.filter(pk=verdict_id, state=Verdict.State.WAITING).update(
            decided_at=timezone.now(), **answer_of_baseline(verdict, verdict.verdict_orders)
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


def answer_of_baseline(verdict: Verdict, verdict_orders: str | None) -> dict[str, Any]:
    """Return the fields of a verdict that is asked for here; its pair has its outputs.

    `verdict_orders` is the run's, by which its judges are asked; an imported run states none.
    """
    orders = ("AB", "BA") if verdict_orders in (None, "both") else (state.toss(verdict),)
    try:
        return providers.ask_baseline(verdict.judge, verdict.comparison, orders)
    except providers.ProviderFailed as failure:
        return {"state": Verdict.State.FAILED, "error": str(failure)}


def open_if_final(comparison_id: UUID) -> None:
    """Open a comparison whose verdicts are all final, and put them into the ledger, once."""
    open_those_final([comparison_id])


def open_those_final(pairs: Collection[UUID], *, amend: bool = False) -> None:
    """Open comparisons whose verdicts are all final, and put them into the ledger, once.

    With `amend`, those of open ones are put there again if one is another than before.
    """
    wanted = Q(unusable="") if amend else Q(unusable="", opened_at__isnull=True)
    # No savepoint: who has begun a transaction wants all of it or none.
    with transaction.atomic(savepoint=False):
        comparisons = (
            Comparison.objects.select_for_update(of=("self",), no_key=True)
            .select_related("queue__run")
            .defer("queue__run__config")
            .filter(wanted, pk__in=pairs)
            .order_by("pk")
        )
        final = _final(list(comparisons))
        opened = [pair.pk for pair, _ in final if pair.opened_at is None]
        Comparison.objects.filter(pk__in=opened).update(opened_at=timezone.now())
        last = _last_words([pair.pk for pair, _ in final])
        entries = [verdicts_entry(pair, verdicts) for pair, verdicts in final]
        # An import has put them there already.
        _append([entry for entry in entries if entry.payload != last.get(entry.comparison_id)])


def _final(comparisons: list[Comparison]) -> list[tuple[Comparison, list[Verdict]]]:
    """Return those of which no verdict is missing, with all their verdicts."""
    verdicts: dict[UUID, list[Verdict]] = {pair.pk: [] for pair in comparisons}
    about = Verdict.objects.filter(comparison__in=verdicts).select_related("judge")
    for verdict in about.order_by("judge__position"):
        verdicts[verdict.comparison_id].append(verdict)
    return [
        (pair, verdicts[pair.pk])
        for pair in comparisons
        if all(verdict.state != Verdict.State.WAITING for verdict in verdicts[pair.pk])
    ]


def _last_words(pairs: Collection[UUID]) -> dict[UUID | None, Any]:
    """Return what the ledger says last of the verdicts on each of some comparisons."""
    entries = Entry.objects.filter(comparison__in=pairs, kind=Entry.Kind.VERDICTS)
    return dict(entries.order_by("pk").values_list("comparison", "payload"))


def write_verdicts(comparison: Comparison, verdicts: list[Verdict]) -> None:
    """Append all judges' final verdicts on a comparison to the ledger."""
    _append([verdicts_entry(comparison, verdicts)])


def _append(entries: list[Entry]) -> None:
    Entry.objects.bulk_create(entries)
    for project in {entry.project_id for entry in entries}:
        transaction.on_commit(partial(nudge, project))


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
