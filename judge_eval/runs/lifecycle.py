"""A run's life: drafted, started, stopped, resumed, tried again, copied."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q, QuerySet, Sum
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval.config.estimates import estimate
from judge_eval.config.run_config import RunConfig, parse
from judge_eval.models import Board, Call, Judge, Run, Verdict
from judge_eval.runs import providers, state
from judge_eval.runs.progress import RETRIED
from judge_eval.runs.requests import answered_by_another
from judge_eval.selectors import used_pictures
from judge_eval.services import add_judges, create_queue, judge_of
from voting.models import Item, Picture, Project

AT_ONCE = 1000
# What an import notes in the metadata of an output that its source does not hold.
OUTPUT_ABSENT = "output_absent"
# What is known of a call or a verdict before anybody was asked. What a call has cost stays, and so
# does the name of the model that answered it: it wants another reply than the one in storage.
_UNASKED: dict[str, Any] = {
    "state": Call.State.WAITING,
    "attempts": 0,
    "lease": None,
    "leased_until": None,
    "is_paired": False,
    "reused": None,
    "reply": "",
    "changes": [],
    "is_repaired": False,
    "error": "",
    "winner": "",
    "score_a": None,
    "score_b": None,
    "reason": "",
    "done_at": None,
}
_UNDECIDED: dict[str, Any] = {
    "state": Verdict.State.WAITING,
    "leased_until": None,
    "winner": "",
    "consistent": None,
    "picks": [],
    "first_picks": None,
    "sample_consistency": None,
    "score_a": None,
    "score_b": None,
    "feedback": "",
    "error": "",
    "latency_ms": None,
    "decided_at": None,
}


class LifecycleRefused(Exception):
    """The run cannot do that in its state; the text says why."""


def create_draft(project: Project, config: RunConfig) -> Run:
    """Write a run that waits to be started, with its judges and its queue of votes."""
    with transaction.atomic():
        queue = create_queue(
            project,
            config.name,
            config.rubric,
            ballot=list(config.ballot),
            votes_per_item=config.votes_per_pair,
            overlap_share=config.overlap.share,
            overlap_votes=config.overlap.votes,
            reveal=config.reveal,
            more_may_come=True,
        )
        budget = None if config.budget_usd is None else providers.nano(config.budget_usd)
        run = Run.objects.create(
            queue=queue, name=config.name, config=config.as_dict(), budget_nano=budget
        )
        Board.objects.create(run=run)
        add_judges(run, [judge_of(run, config, spec) for spec in config.judges])
        run.record("created", f"{run.name} was drafted.")
    return run


def config_of(run: Run) -> RunConfig:
    if run.config is None:
        raise LifecycleRefused("The outputs of this run were given; it has no config.")
    return parse(run.config)


def _locked(run_id: UUID) -> Run:
    runs = Run.objects.select_for_update(of=("self",), no_key=True).select_related("queue")
    return runs.get(pk=run_id)


def start(run_id: UUID) -> Run:
    """Ask for every output; what follows is asked for as they come."""
    with transaction.atomic():
        run = _locked(run_id)
        if run.state != Run.State.DRAFT:
            raise LifecycleRefused(f"This run is {run.state}; only a draft can be started.")
        config = config_of(run)
        _refuse_unaskable(config)
        Call.objects.bulk_create(
            [
                Call(
                    run=run,
                    purpose=Call.Purpose.GENERATE,
                    provider=config.provider,
                    model=model.id,
                    prompt=place,
                )
                for place in range(len(config.prompts))
                for model in config.models
            ],
            batch_size=AT_ONCE,
        )
        run.started_at = timezone.now()
        _go_on(run, Run.State.GENERATING, "started", "Outputs are being asked for.")
    return run


def _refuse_unaskable(config: RunConfig) -> None:
    missing = sorted(name for name in _provider_names(config) if providers.find(name) is None)
    if missing:
        raise LifecycleRefused(f"There is no provider named {', '.join(missing)}.")
    if config.budget_usd is not None:
        _refuse_unpriced(config)


def _provider_names(config: RunConfig) -> set[str]:
    return {config.provider} | {j.provider for j in config.judges if not j.is_baseline}


def _refuse_unpriced(config: RunConfig) -> None:
    unpriced = estimate(config, providers.prices(_provider_names(config))).unpriced
    if unpriced:
        raise LifecycleRefused(providers.unpriced(*unpriced))


def _go_on(run: Run, entered: str, kind: str, text: str, **data: Any) -> None:
    run.state, run.note = entered, ""
    run.save(update_fields=["state", "note", "started_at", "budget_nano"])
    state.tell_voters(run)
    run.record(kind, text, **data)
    enqueue("judge_eval.tasks.advance", str(run.pk))
    enqueue("judge_eval.tasks.work")


def stop(run_id: UUID, note: str = "Stopped by hand.") -> Run:
    """Make no more calls and take no more votes. Calls that are out are still written down."""
    with transaction.atomic():
        run = _locked(run_id)
        if run.state not in (*Run.AT_WORK, Run.State.VOTING):
            raise LifecycleRefused(f"This run is {run.state}; there is nothing to stop.")
        run.state, run.note = Run.State.STOPPED, note
        run.save(update_fields=["state", "note"])
        run.queue.is_open = False
        run.queue.save(update_fields=["is_open"])
        state.tell_voters(run)
        run.record("stopped", note)
    return run


def resume(run_id: UUID, budget_usd: Decimal | None = None) -> Run:
    """Go on where the run was stopped, with a larger budget if one is given."""
    with transaction.atomic():
        run = _locked(run_id)
        if run.state != Run.State.STOPPED:
            raise LifecycleRefused(f"This run is {run.state}; only a stopped one can be resumed.")
        if budget_usd is not None:
            run.budget_nano = providers.nano(budget_usd)
        if run.budget_nano is not None:
            _refuse_unpriced(config_of(run))
            _refuse_spent(run, run.budget_nano)
        run.queue.is_open = not _lacks_outputs(run)
        run.queue.save(update_fields=["is_open"])
        _go_on(run, _state_with_work(run), "resumed", "The run goes on.")
    return run


def _refuse_spent(run: Run, budget_nano: int) -> None:
    if budget_nano <= run.spent_nano:
        spent = providers.dollars(run.spent_nano)
        raise LifecycleRefused(f"{spent} are spent: give a larger budget to go on.")


def _lacks_outputs(run: Run) -> bool:
    """Say whether outputs were not given with the pairs: nobody can vote on what is not there."""
    a, b = (Q(**{f"{side}__metadata__{OUTPUT_ABSENT}": True}) for side in "ab")
    return run.config is None and run.queue.items.filter(a | b).exists()


def _state_with_work(run: Run) -> str:
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE, state=Call.State.WAITING)
    return Run.State.GENERATING if generating.exists() else Run.State.JUDGING


def retry_failed(run_id: UUID) -> int:
    """Ask again for everything that failed for good; return how many calls and drawings that is.

    Pairs that are open stay open: a verdict that comes after all is a new entry of the ledger.
    """
    with transaction.atomic():
        run = _locked(run_id)
        if run.state in (Run.State.DRAFT, Run.State.STOPPED):
            raise LifecycleRefused(f"This run is {run.state}; start or resume it first.")
        # Verdicts first, those too that stand on a part of their samples: what is to be decided
        # anew, the calls tell only as long as they have failed.
        failed = Call.objects.filter(_has_failed(), verdict=OuterRef("pk"))
        Verdict.objects.filter(Exists(failed), judge__run=run).update(**_UNDECIDED)
        # Each begins its tries anew; how many were made is still to be told.
        attempts = run.calls.filter(_has_failed()).aggregate(made=Sum("attempts"))["made"]
        calls = run.calls.filter(_has_failed()).update(**_UNASKED, not_before=timezone.now())
        drawings = _draw_again(run)
        if calls or drawings:
            text = _again_in_words(calls, drawings)
            _go_on(run, _state_with_work(run), RETRIED, text, attempts=attempts or 0)
    return calls + drawings


def _draw_again(run: Run) -> int:
    """Let failed drawings be tried once more; return how many there are.

    Their pairs are wanted again, and so are those of drawings that another run had drawn since.
    """
    fields = {"state": Picture.State.WAITING, "error": "", "leased_until": None}
    pictures = _undrawn(run).update(**fields)
    back = list(_left_out_for_nothing(run).values_list("pk", flat=True))
    Verdict.objects.filter(item__in=back, state=Verdict.State.FAILED, calls__isnull=True).update(
        **_UNDECIDED
    )
    Item.objects.filter(pk__in=back).update(unusable="")
    return pictures or len(back)


def _undrawn(run: Run) -> QuerySet[Picture]:
    """Return a run's drawings that failed and may yet be drawn: screening let them through."""
    return used_pictures(run).filter(state=Picture.State.FAILED, is_refused=False)


def _left_out_for_nothing(run: Run) -> QuerySet[Item]:
    """Return pairs that are left out because of a drawing that has not failed any more."""
    failed = Picture.objects.filter(state=Picture.State.FAILED)
    left_out = run.queue.items.filter(unusable__contains=state.COULD_NOT_BE_DRAWN)
    return left_out.exclude(Q(a__picture__in=failed) | Q(b__picture__in=failed))


def can_retry(run: Run) -> bool:
    """Say whether anything failed that can be asked, or drawn, again."""
    if run.state in (Run.State.DRAFT, Run.State.STOPPED):
        return False
    return (
        run.calls.filter(_has_failed()).exists()
        or _undrawn(run).exists()
        or _left_out_for_nothing(run).exists()
    )


def _again_in_words(calls: int, drawings: int) -> str:
    said = [f"{calls} failed calls are made again."] if calls else []
    if drawings:
        said.append(f"{drawings} drawing{' is' if drawings == 1 else 's are'} tried again.")
    return " ".join(said)


def _has_failed() -> Q:
    """Say it of calls without an answer, and of those that two models have answered together."""
    return Q(state=Call.State.FAILED) | Q(answered_by_another(), state=Call.State.DONE)


def duplicate(run_id: UUID) -> Run:
    """Draft a run with the same config: calls that are the same are answered from storage."""
    run = Run.objects.select_related("queue__project").get(pk=run_id)
    data = config_of(run).as_dict()
    longest = Run._meta.get_field("name").max_length or 0
    data["name"] = f"{run.name[: longest - 7]} (copy)"
    return create_draft(run.queue.project, parse(data))


def create(project: Project | str, config: RunConfig) -> Run:
    """Draft a run in a project, or in a new one of this name."""
    with transaction.atomic():
        if isinstance(project, str):
            project = Project.objects.create(name=project)
        return create_draft(project, config)


def delete(run_id: UUID) -> None:
    """Delete a draft with its judges and its queue; its project and its rubric stay."""
    try:
        with transaction.atomic():
            runs = Run.objects.select_for_update(of=("self",), no_key=True)
            run = runs.select_related("queue").get(pk=run_id)
            if run.state != Run.State.DRAFT:
                raise LifecycleRefused(f"This run is {run.state}; only a draft can be deleted.")
            Judge.objects.filter(run=run).delete()
            run.delete()
            run.queue.delete()
    except ProtectedError as error:
        raise LifecycleRefused("Something refers to this draft already, so it stays.") from error
