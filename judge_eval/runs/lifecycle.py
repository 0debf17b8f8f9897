"""What people do with a run: they draft, start, stop, resume, retry, copy and delete it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, ProtectedError, Q, QuerySet, Sum
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core.extensions import HookFailed, calling
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import listed, number_of
from judge_eval.judging import extension_check, leases, provider_access, verdicts
from judge_eval.judging.baselines import is_baseline
from judge_eval.judging.config.estimates import Estimate, estimate
from judge_eval.judging.config.run_config import (
    KINDS,
    ONE_MODEL,
    ConfigInvalid,
    JoiningJudges,
    RunConfig,
    parse,
)
from judge_eval.judging.hook_api import RunPlanHelpers
from judge_eval.judging.providers.errors import LEFT_OUT
from judge_eval.judging.requests import ModelQuestion, answered_by_another
from judge_eval.ledger.objects import record_objects
from judge_eval.models import REPEATED, TRIALS, Board, Call, Judge, Provider, Run, Verdict
from judge_eval.runs import state
from judge_eval.runs.progress import RETRIED
from judge_eval.runs.queries import same_failure, used_pictures
from judge_eval.runs.services import (
    add_judges,
    create_queue,
    floor_of,
    judge_of,
    missing_baselines,
    recipe_of,
    ways_of_judges,
)
from judge_eval.workshop.examples import OF_VARIANTS, with_examples
from voting.access.roles import make_project
from voting.ballot.queries import unusable_pairs
from voting.items.kinds import kind_of
from voting.models import Item, Picture, Project, Queue

AT_ONCE = 1000
# All items are there, so judges can join.
JOINABLE = (Run.State.VOTING, Run.State.COMPLETE)
# What an import notes in the metadata of an output that its source does not hold.
OUTPUT_ABSENT = "output_absent"
# What is asked again is as if it had never been asked. What a call has cost stays, and so does the
# name of the model that answered it: it wants another reply than the one in storage.
_FIELDS_NOT_RESET = {
    Call: "id run purpose provider model prompt inference verdict order sample not_before "
    "request_hash reported_model prompt_tokens completion_tokens cost_nano reserved_nano "
    "latency_ms",
    Verdict: "id judge item order labels cost_nano unpriced",
}


class LifecycleRefused(Exception):
    """The run cannot do that in its state; the text says why."""


@contextmanager
def locked_run(run_id: UUID, *states: str, otherwise: str) -> Iterator[Run]:
    """Lock a run in one of some states, or refuse what was asked of it."""
    with transaction.atomic():
        run = state.locked().get(pk=run_id)
        if run.state not in states:
            raise LifecycleRefused(f"This run is {run.state}; {otherwise}.")
        yield run


def create(project: Project | str, config: RunConfig, actor: User | None = None) -> Run:
    """Draft a run in a project, or in a new one of this name, with its judges and its queue.

    Who makes a project becomes its owner. ConfigInvalid where an extension that the config names is
    not here, or turned off.
    """
    if wrong := extension_check.absent_from(config.as_dict()):
        raise ConfigInvalid(wrong)
    if any(judge.examples for judge in config.judges):
        raise ConfigInvalid.at("judges", f"examples {OF_VARIANTS}")
    with transaction.atomic():
        if isinstance(project, str):
            project = make_project(project, actor)
        items = config.items
        queue = create_queue(
            project,
            config.name,
            config.rubric,
            kind=config.judge_question.kind,
            options=items.options if items else {},
            ballot=list(config.judge_question.ballot),
            votes_per_item=config.votes_per_pair,
            overlap_share=config.overlap.share,
            overlap_votes=config.overlap.votes,
            reveal=config.reveal,
            more_may_come=True,
        )
        budget = None if config.budget_usd is None else provider_access.nano(config.budget_usd)
        run = Run.objects.create(
            queue=queue,
            name=config.name,
            question=config.question,
            config=config.as_dict(),
            budget_nano=budget,
            epsilon=config.epsilon,
        )
        Board.objects.create(run=run)
        add_judges(run, [judge_of(run, config, spec) for spec in config.judges])
        add_judges(run, missing_baselines(run, config.floor, config.ways))
        run.record("created", f"{run.name} was drafted.")
    return run


def config_of(run: Run) -> RunConfig:
    if run.config is None:
        raise LifecycleRefused("This run did not generate its outputs; it has no config.")
    return parse(run.config)


def copied_config(run: Run) -> RunConfig:
    """Return the config of a run for a copy of it, with a name that says so."""
    config = config_of(run)
    if run.is_given:
        raise LifecycleRefused("This run did not generate its outputs; it cannot be copied.")
    longest = Run._meta.get_field("name").max_length or 0
    # Examples are of this run's items, and of its tuning half.
    judges = tuple(judge for judge in config.judges if not judge.examples)
    return config.model_copy(update={"name": f"{run.name[: longest - 7]} (copy)", "judges": judges})


def start(run_id: UUID) -> Run:
    """Ask for every output; what follows is asked for as they come."""
    with locked_run(run_id, Run.State.DRAFT, otherwise="only a draft can be started") as run:
        config = config_of(run)
        _refuse_obstacles(run, config)
        for spec in config.judges:
            if spec.type != ONE_MODEL:  # a draft that a bundle brought has its config alone
                run.judges.filter(name=spec.id, recipe__isnull=True).update(recipe=recipe_of(spec))
        forget_trials(run)
        Call.objects.bulk_create(_planned_calls(run, config), batch_size=AT_ONCE)
        run.started_at = timezone.now()
        state.set_state(run, Run.State.GENERATING)
        record_objects(run)
        go_on(run, "started", "Outputs are being asked for.")
    return run


def forget_trials(run: Run) -> None:
    """Delete the calls by which something was tried; one that is out may cost what it may.

    No answer is written down that comes after this.
    """
    calls = run.calls.filter(purpose__in=TRIALS).select_for_update(no_key=True)
    leases.write_off([(call.pk, run.pk, call.reserved_nano) for call in calls.order_by("pk")])
    calls.delete()


def _planned_calls(run: Run, config: RunConfig) -> list[Call]:
    mode = state.mode_of(run)
    helpers = RunPlanHelpers(run, mode)
    try:
        with calling(mode, "plan"):
            mode.plan(config, helpers)
    except HookFailed as failed:
        raise LifecycleRefused(str(failed)) from failed
    helpers.write()
    return list(helpers.calls.values())


def cost_of(config: RunConfig, project: UUID | None) -> Estimate:
    return estimate(config, provider_access.prices(config.providers, project))


def _refuse_obstacles(run: Run, config: RunConfig) -> None:
    project = run.queue.project_id
    if in_the_way := obstacles(config, cost_of(config, project), project):
        raise LifecycleRefused(" ".join(in_the_way))


def obstacles(config: RunConfig, cost: Estimate, project: UUID) -> list[str]:
    names = [
        name for name in sorted(config.providers) if provider_access.find(name, project) is None
    ]
    reasons = [f"{wrong}." for wrong in extension_check.absent_from(config.as_dict())]
    reasons += [provider_access.no_such(name) for name in names]
    if config.budget_usd is not None and cost.unpriced:
        reasons.append(provider_access.unpriced(*cost.unpriced))
    return reasons


def go_on(run: Run, kind: str, text: str, **data: int) -> None:
    run.record(kind, text, **data)
    enqueue("judge_eval.tasks.advance", str(run.pk))
    enqueue("judge_eval.tasks.work")


def stop(run_id: UUID) -> Run:
    """Stop calls and voting. Answers under way are kept."""
    running = (*Run.AT_WORK, Run.State.VOTING)
    with locked_run(run_id, *running, otherwise="there is nothing to stop") as run:
        state.stop(run, "Stopped by hand.")
    return run


def stop_if_over_budget(question: ModelQuestion) -> bool:
    """Stop a run whose next call has no price, or no room though no other call holds money.

    False where others do: once they are paid it may fit.
    """
    run_id, note = question.run.pk, provider_access.unpriced(question.call.model)
    with transaction.atomic():
        # Nobody reserves money while this is held.
        run = state.locked().defer("config").get(pk=run_id)
        if not question.lacks_price:
            budget = run.budget_nano
            if run.reserved_nano or leases.calls_out(timezone.now()).filter(run=run).exists():
                return False
            if budget is None or run.spent_nano + question.reservation_nano <= budget:
                return False
            note = f"The next call could pass the budget of {provider_access.dollars(budget)}."
        # It may have been stopped since.
        if run.state in Run.AT_WORK:
            state.stop(run, note)
    return True


def resume(run_id: UUID, budget_usd: Decimal | None = None) -> Run:
    otherwise = "only a stopped one can be resumed"
    with locked_run(run_id, Run.State.STOPPED, otherwise=otherwise) as run:
        if obstacle := extension_check.obstacle(run):
            raise LifecycleRefused(obstacle)
        if budget_usd is not None:
            run.budget_nano = provider_access.nano(budget_usd)
        _refuse_lost_providers(run)
        if run.budget_nano is not None:
            if unpriced := cost_of(config_of(run), run.queue.project_id).unpriced:
                raise LifecycleRefused(provider_access.unpriced(*unpriced))
            if run.budget_nano <= run.spent_nano:
                spent = provider_access.dollars(run.spent_nano)
                raise LifecycleRefused(f"{spent} are spent: enter a larger budget to continue.")
        # Nobody can vote on outputs that were not given with their pairs.
        state.set_state(run, _state_with_work(run), is_open=has_outputs(run.queue))
        go_on(run, "resumed", "The run goes on.")
    return run


def _refuse_lost_providers(run: Run) -> None:
    waiting = run.calls.filter(state=Call.State.WAITING)
    lost = Provider.objects.exclude(pk__in=provider_access.usable_in(run.queue.project_id))
    names = lost.filter(name__in=waiting.values("provider")).values_list("name", flat=True)
    if names:
        raise LifecycleRefused(f"Runs of this project may not use {listed(sorted(names))}.")


def _state_with_work(run: Run) -> str:
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE, state=Call.State.WAITING)
    return Run.State.GENERATING if generating.exists() else Run.State.JUDGING


def add_judges_to(run_id: UUID, joining: JoiningJudges, items: QuerySet[Item] | None = None) -> int:
    """Ask more judges about the items that a run has, or some; return how many verdicts are wanted.

    Its outputs may have been imported, or logged by a client. Items that are open stay open: the
    verdicts that come are new entries of the ledger.
    """
    with locked_run(run_id, *JOINABLE, otherwise="judges join it once its items are open") as run:
        config = _joined_config(run, with_examples(run, joining))
        are_baselines = all(is_baseline(judge.id) for judge in joining.judges)
        if not are_baselines and not has_outputs(run.queue):
            raise LifecycleRefused("This run was imported without outputs: judges cannot be asked.")
        _refuse_obstacles(run, config)
        names = set(run.judges.values_list("name", flat=True))
        new = config.judges[len(run.config["judges"]) if run.config else 0 :]
        if twice := [spec.id for spec in new if spec.id in names]:
            raise LifecycleRefused(f"{listed(twice)} judged this run already.")
        run.config = config.as_dict()
        if joining.budget_usd is not None:
            run.budget_nano = provider_access.nano(joining.budget_usd)
        run.save(update_fields=["config"])
        judges = [judge_of(run, config, spec) for spec in new if not spec.is_baseline]
        name_by_fingerprint = dict(run.judges.values_list("fingerprint", "name"))
        for judge in judges:
            if same_judge := name_by_fingerprint.get(judge.fingerprint):
                raise LifecycleRefused(f"{judge.name} would be asked exactly as {same_judge} is.")
            name_by_fingerprint[judge.fingerprint] = judge.name
            # Whoever adds it has seen the votes on the tuning half.
            judge.is_tuned = run.queue.is_tuning and not judge.is_baseline
        judges = add_judges(run, judges)
        # Those that join, and all others in the orders in which these judges are asked.
        floor = [*floor_of(run), *(spec.id for spec in new if spec.is_baseline)]
        if run.judges.exclude(provider=Judge.BASELINE).exists():
            floor = config.whole_floor(floor)
        ways = [*ways_of_judges(run), *config.ways] or [config.verdict_orders]
        judges += add_judges(run, missing_baselines(run, floor, ways))
        record_objects(run)
        at_once = [judge for judge in judges if not judge.is_tuned]
        named = {spec.id for spec in new}
        beside = [judge for judge in at_once if judge.name not in named]
        verdict_count = state.want_verdicts(run, at_once, items)
        verdict_count -= Verdict.objects.filter(judge__in=beside).count()
        if at_once:
            state.set_state(run, Run.State.JUDGING)
        text = f"{listed(judge.name for judge in judges)} joined the judges of this run."
        go_on(run, "judges_added", text)
    return verdict_count


def _joined_config(run: Run, joining: JoiningJudges) -> RunConfig:
    """Return the config of a run with the judges that join it; of given outputs it is the first."""
    joins = joining.model_dump(mode="json")
    usual = joining.provider
    budget = joins["budget_usd"] or (run.budget_usd and float(run.budget_usd))
    config = run.config or _config_of_given(run) | {"judging": joins["judging"], "judges": []}
    new = [
        judge.model_dump(mode="json")
        | ({} if is_baseline(judge.id) else {"provider": judge.provider or usual})
        for judge in joining.judges
    ]
    new = [{key: value for key, value in judge.items() if value != ""} for judge in new]
    judges = {"judges": [*config["judges"], *new], "budget_usd": budget}
    return extension_check.new_config(config | judges)


def _config_of_given(run: Run) -> JsonObject:
    queue = run.queue
    kinds = set(queue.items.values_list("a__kind", flat=True).distinct())
    if queue.kind == Queue.Kind.TEXT or not kinds or not kinds <= {*KINDS}:
        raise LifecycleRefused(
            "Judges cannot be used on free-text questions, or before the run has items."
        )
    return {
        **kind_of(queue).config(queue.ballot, queue.options),
        "name": run.name,
        "outputs": "given",
        "kind": min(kinds),
        "models": [],
        "prompts": [],
        "rubric": queue.rubric.text,
        "votes_per_pair": queue.votes_per_item,
        "overlap": {"share": queue.overlap_share, "votes": queue.overlap_votes},
        "reveal": queue.reveal,
    }


def has_outputs(queue: Queue) -> bool:
    """Say whether judges can be asked here, and people shown something; items may come yet."""
    return queue.items.filter(lacks_output=False).exists() or not queue.items.exists()


def lacking_outputs(queue: Queue) -> QuerySet[Item]:
    """Return the items whose outputs, or one of them, were not given."""
    a, b = (Q(**{f"{side}__metadata__{OUTPUT_ABSENT}": True}) for side in "ab")
    return queue.items.filter(a | b)


def mark_lacking(queue: Queue) -> int:
    """Keep items without outputs from voters and judges; return how many there are."""
    items = lacking_outputs(queue)
    queue.items.filter(lacks_output=True).exclude(pk__in=items).update(lacks_output=False)
    return items.update(lacks_output=True)


def retry_failed(run_id: UUID, like: Call | None = None) -> int:
    """Ask again for everything that failed for good; return how many calls and drawings that is.

    Pairs that are open stay open: a verdict that comes after all is a new entry of the ledger. With
    `like` only the calls to its model that failed in the same role and for the same reason.
    """
    others = set(Run.State) - {Run.State.DRAFT, Run.State.STOPPED}
    with locked_run(run_id, *others, otherwise="start or resume it first") as run:
        failed = run.calls.filter(_can_be_retried() if like is None else same_failure(like))
        _, calls, attempts = _reset_failed(run, failed)
        drawings = 0 if like else _draw_again(run)
        if calls or drawings:
            done = [f"{calls} failed calls are made again."] if calls else []
            if drawings:
                done.append(f"{drawings} drawing{' is' if drawings == 1 else 's are'} tried again.")
            state.set_state(run, _state_with_work(run))
            go_on(run, RETRIED, " ".join(done), attempts=attempts)
    return calls + drawings


def ask_held(judge: Judge) -> None:
    """Make the calls that were held while a judge was left out; those of a stopped run wait."""
    with locked_run(judge.run_id, *Run.State, otherwise="it has no state") as run:
        held_calls = run.calls.filter(error=LEFT_OUT, verdict__judge=judge)
        _, calls, attempts = _reset_failed(run, held_calls)
        if calls and run.state != Run.State.STOPPED:
            state.set_state(run, _state_with_work(run))
            text = f"{judge.name} is back: {number_of(calls, 'call')} on hold will be made."
            go_on(run, RETRIED, text, attempts=attempts)


def ask_missing(run_id: UUID, judge: Judge, items: QuerySet[Item]) -> int:
    """Ask a judge about some items on which it has no verdict; return how many these are.

    None where its verdicts were imported.
    """
    with locked_run(
        run_id, *JOINABLE, Run.State.JUDGING, otherwise="judges are asked once its items are open"
    ) as run:
        if judge.name not in [spec["id"] for spec in (run.config or {}).get("judges", ())]:
            return 0
        failed = run.calls.filter(_can_be_retried(), verdict__judge=judge, verdict__item__in=items)
        again, _, attempts = _reset_failed(run, failed)
        missing = again + state.want_verdicts(run, [judge], items)
        if missing:
            state.set_state(run, Run.State.JUDGING)
            text = f"{judge.name} is asked about {number_of(missing, run.queue.noun)}."
            go_on(run, RETRIED, text, attempts=attempts)
    return missing


def _reset_failed(run: Run, failed: QuerySet[Call]) -> tuple[int, int, int]:
    # Verdicts first, those too that stand on a part of their samples: what is to be decided anew,
    # the calls tell only as long as they have failed.
    verdict_calls = failed.exclude(REPEATED).filter(verdict=OuterRef("pk"))
    verdicts_reset = _reset(Verdict.objects.filter(Exists(verdict_calls), judge__run=run))
    # Each starts its tries anew; how many were made is still to be counted.
    attempts = failed.aggregate(made=Sum("attempts"))["made"] or 0
    return verdicts_reset, _reset(failed, not_before=timezone.now()), attempts


def _reset(rows: QuerySet[Call] | QuerySet[Verdict], **changes: object) -> int:
    """Let rows be as they were before anybody was asked; return how many there are."""
    kept_fields = _FIELDS_NOT_RESET[rows.model].split()
    fields = (field for field in rows.model._meta.concrete_fields if field.name not in kept_fields)
    return rows.update(**{field.name: field.get_default() for field in fields}, **changes)


def _draw_again(run: Run) -> int:
    """Let failed drawings be tried once more; return how many there are.

    Their pairs are wanted again, and so are those of drawings that another run had drawn since.
    """
    fields = {"state": Picture.State.WAITING, "error": "", "leased_until": None}
    pictures = _undrawn_pictures(run).update(**fields)
    back = list(_drawable_pairs(run).values_list("pk", flat=True))
    failed = Verdict.objects.filter(item__in=back, state=Verdict.State.FAILED)
    _reset(failed.filter(calls__isnull=True))
    Item.objects.filter(pk__in=back).update(unusable="")
    verdicts.record_changed(back)
    return pictures or len(back)


def _undrawn_pictures(run: Run) -> QuerySet[Picture]:
    """Return a run's drawings that failed and may yet be drawn: screening let them through."""
    return used_pictures(run).filter(state=Picture.State.FAILED, is_refused=False)


def _drawable_pairs(run: Run) -> QuerySet[Item]:
    """Return pairs that are left out because of a drawing that has not failed any more."""
    failed = Picture.objects.filter(state=Picture.State.FAILED)
    a, b = (Exists(failed.filter(inferences=OuterRef(side))) for side in ("a", "b"))
    left_out = unusable_pairs(run.queue).filter(unusable__contains=state.COULD_NOT_BE_DRAWN)
    return left_out.exclude(a | b)


def can_retry(run: Run) -> bool:
    again = (run.calls.filter(_can_be_retried()), _undrawn_pictures(run), _drawable_pairs(run))
    is_ready = run.state not in (Run.State.DRAFT, Run.State.STOPPED)
    return is_ready and any(rows.exists() for rows in again)


def _can_be_retried() -> Q:
    """Say it of calls without an answer, and of those that two models have answered together."""
    is_failed = Q(state=Call.State.FAILED) & ~Q(purpose__in=TRIALS) & ~Q(error=LEFT_OUT)
    return is_failed | Q(answered_by_another(), state=Call.State.DONE)


def duplicate(run_id: UUID) -> Run:
    """Draft a run with the same config: calls that are the same are answered from storage."""
    run = Run.objects.select_related("queue__project").get(pk=run_id)
    try:
        return create(run.queue.project, copied_config(run))
    except ConfigInvalid as invalid:
        raise LifecycleRefused("; ".join(map(str, invalid.errors)) + ".") from invalid


def archive(run_id: UUID) -> Run:
    """Leave a run out of lists; it can still be read, and voted on."""
    return _set_archived(run_id, timezone.now())


def unarchive(run_id: UUID) -> Run:
    return _set_archived(run_id, None)


def _set_archived(run_id: UUID, since: datetime | None) -> Run:
    Run.objects.filter(pk=run_id).update(archived_at=since)
    return Run.objects.get(pk=run_id)


def delete(run_id: UUID) -> None:
    """Delete a draft with its judges and its queue; its project and its rubric stay."""
    try:
        with locked_run(run_id, Run.State.DRAFT, otherwise="only a draft can be deleted") as run:
            forget_trials(run)
            Judge.objects.filter(run=run).delete()
            run.delete()
            run.queue.delete()
    except ProtectedError as error:
        raise LifecycleRefused("This draft is in use and cannot be deleted.") from error
