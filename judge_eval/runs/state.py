"""How a run gets on by itself: what can be done next is asked for, and it enters its next state."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.urls import reverse
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core.domain_events import Announcement, announce
from humanjudge.core.extensions import HookFailed, calling
from humanjudge.core.leases import free, renew
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import number_of
from judge_eval.judging import extension_check, leases, results, verdicts
from judge_eval.judging.config.modes import MODES, RunMode, modes_without_votes
from judge_eval.judging.config.run_config import JUDGE_EVAL, old_name
from judge_eval.judging.hook_api import RunHelpers, output_of
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import started_config
from judge_eval.models import REPEATED, TRIALS, Board, Call, Judge, Provider, Run, Verdict
from judge_eval.runs.queries import is_drawn, left_out, switched_off, used_pictures
from judge_eval.runs.services import add_items, combined_outputs
from voting.ballot.queries import queue_counts
from voting.items.kinds import kind_of
from voting.models import Inference, Item, Picture

# What the reason says of a pair that is left out because of a drawing.
COULD_NOT_BE_DRAWN = "could not be drawn:"
LEASE = timedelta(seconds=20)
MOST_AT_ONCE = 500
# The run is locked meanwhile, and those who write answers down may have to wait for it.
PROMPTS_AT_ONCE = 50
VERDICTS_AT_ONCE = 250
# The kind of event that counts votes and judged items.
PROGRESS = "progress"
# So many reasons for pairs that are left out are named in a note.
REASONS = 3


def locked(*, skip_locked: bool = False) -> QuerySet[Run]:
    runs = Run.objects.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
    return runs.select_related("queue")


def advance(run_id: UUID, *, unless_busy: bool = False) -> bool:
    """Ask for all that can be done next for a run. Safe to repeat, at any time, by anyone.

    False, with `unless_busy`, where somebody else does so at this moment.
    """
    with transaction.atomic():
        run = locked(skip_locked=unless_busy).filter(pk=run_id).first()
        if run is not None and run.state in Run.AT_WORK:
            if obstacle := extension_check.obstacle(run):
                stop(run, obstacle)
            else:
                _go_on(run)
    return run is not None


def _go_on(run: Run) -> None:
    try:
        there_is_more = _ask_for_calls(run) if run.config else False
    except HookFailed as failed:
        stop(run, str(failed))
        return
    _hand_out_drawings(run)
    _give_up_on_undrawable(run)
    if verdicts.answer_baselines(run) or there_is_more:
        enqueue("judge_eval.tasks.advance", str(run.pk))
    _open_items(run)
    _enter_next(run)


def stop(run: Run, note: str) -> None:
    """Make no more calls and take no more votes, and say why."""
    set_state(run, Run.State.STOPPED, note, is_open=False)
    run.record("stopped", note)


def mode_of(run: Run) -> RunMode:
    """Return the mode of a run that has a config, and whose extensions are here."""
    return MODES[_mode_name(run)]


def _mode_name(run: Run) -> str:
    return str(old_name((run.config or {}).get("mode", JUDGE_EVAL)))


def _ask_for_calls(run: Run) -> bool:
    """Let workers make the calls that can be made now; return whether there may be more."""
    _fail_without_provider(run)
    _hold_hopeless(run)
    there_is_more = pair_outputs(run)
    there_is_more |= ask_for_verdicts(run)
    if leases.waiting_calls([run.pk]).exists():
        left_out = results.hold_left_out(run)
        verdicts.settle({call.verdict_id for call in left_out if call.verdict_id is not None})
        enqueue("judge_eval.tasks.work")
    return there_is_more


def _fail_without_provider(run: Run) -> None:
    """Fail calls whose provider is gone: nobody would ever claim them."""
    gone = (
        run.calls.filter(free(timezone.now()), state=Call.State.WAITING)
        .exclude(provider__in=Provider.objects.values("name"))
        .select_for_update(no_key=True, skip_locked=True)
    )
    for call in gone.order_by("pk")[:VERDICTS_AT_ONCE]:
        results.give_up(call, CallFailed(f"there is no provider named {call.provider}"))


def _hold_hopeless(run: Run) -> None:
    """Hold calls that were asked for since their model was found to answer nothing."""
    failed = run.calls.filter(results.PERMANENTLY, state=Call.State.FAILED)
    models = failed.order_by().values_list("purpose", "provider", "model").distinct()
    for purpose, provider, model in models.exclude(purpose__in=TRIALS):
        held_calls = results.hold_hopeless(run, purpose, provider, model)
        verdicts.settle({call.verdict_id for call in held_calls if call.verdict_id is not None})


def pair_outputs(run: Run) -> bool:
    """Pair the outputs of prompts that every model has answered, or failed to; each pair once.

    Of single items each output is one. Drawings are drawn before: a mode may pair by what they
    show. Return whether there may be more to pair.
    """
    assert run.config  # it generates
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE)
    is_waiting = Q(state=Call.State.WAITING)
    if run.config["kind"] == "svg":
        is_waiting |= Q(inference__picture__state=Picture.State.WAITING)
    open_prompts = generating.filter(is_waiting, prompt=OuterRef("prompt"))
    fresh = generating.filter(~Exists(open_prompts), is_paired=False)
    prompts = fresh.order_by("prompt").values_list("prompt", flat=True).distinct()[:PROMPTS_AT_ONCE]
    if not prompts:
        return False
    of_prompts = generating.filter(prompt__in=list(prompts))
    items = add_items(run.queue, _new_items(run, of_prompts))
    judges = judges_of_new_items(run, run.config)
    Verdict.objects.bulk_create(
        [Verdict(judge=judge, item=item) for item in items for judge in judges], batch_size=1000
    )
    of_prompts.update(is_paired=True)
    return len(prompts) == PROMPTS_AT_ONCE


def judges_of_new_items(run: Run, config: JsonObject) -> QuerySet[Judge]:
    """Return the judges of a config and all baselines, in whatever orders these answer.

    Not those that a changed model became meanwhile.
    """
    is_named = Q(name__in=[judge["id"] for judge in config["judges"]])
    return run.judges.filter(is_named | Q(provider=Judge.BASELINE)).order_by("position")


def _new_items(run: Run, calls: QuerySet[Call]) -> list[Sequence[Inference]]:
    """Return the outputs of items, as they are shown together, that the queue does not have yet."""
    outputs: dict[int | None, dict[UUID, Inference]] = defaultdict(dict)
    for call in calls.filter(state=Call.State.DONE).select_related("inference").order_by("pk"):
        assert call.inference is not None  # it is done
        outputs[call.prompt][call.inference.pk] = call.inference
    output_ids = [pk for by_pk in outputs.values() for pk in by_pk]
    items = Item.objects.filter(queue=run.queue_id, a__in=output_ids).values_list("a", "b")
    existing = {frozenset(item) - {None} for item in items}
    mode, config = mode_of(run), started_config(run.pk)
    helpers = RunHelpers(run, mode)
    new: list[Sequence[Inference]] = []
    for by_pk in outputs.values():
        with calling(mode, "pair"):
            came = [output_of(output) for output in by_pk.values()]
            groups = [[out.id for out in item] for item in mode.pair(config, came, helpers)]
            together = [
                combined_outputs(kind_of(run.queue), item, settings.SECRET_KEY) for item in groups
            ]
            if any(len(item) != 1 for item in together):
                raise ValueError("an item must be of one output or two, as the queue has them")
        new += [
            [by_pk[pk] for pk in item] for [item] in together if frozenset(item) not in existing
        ]
    helpers.write()
    return new


def unasked_verdicts(run: Run) -> QuerySet[Verdict]:
    """Return the verdicts of models for which no call has been made."""
    calls = Call.objects.filter(verdict=OuterRef("pk"))
    waiting = Verdict.objects.filter(~Exists(calls), judge__run=run, state=Verdict.State.WAITING)
    return waiting.exclude(judge__provider=Judge.BASELINE)


def ask_for_verdicts(run: Run) -> bool:
    """Make the calls for verdicts on pairs that are drawn; return whether there may be more."""
    assert run.config  # models judge it
    ready = (
        unasked_verdicts(run)
        .filter(is_drawn("item__"))
        .select_related("judge", "item__a", "item__b")
        .defer("item__a__output", "item__b__output")
        .order_by("pk")[:VERDICTS_AT_ONCE]
    )
    calls: list[Call] = []
    # A judge that asks nobody decides at once.
    decided = []
    for verdict in ready:
        verdict.judge.run, verdict.item.queue = run, run.queue
        fields, new = verdicts.verdict_or_calls(verdict)
        calls += new
        decided += [(verdict, fields)] if fields else []
    Call.objects.bulk_create(calls, batch_size=1000)
    verdicts.decide(decided)
    return len(ready) == VERDICTS_AT_ONCE


def _hand_out_drawings(run: Run) -> None:
    waiting = used_pictures(run).filter(free(), state=Picture.State.WAITING)
    pictures = list(waiting.values_list("pk", flat=True)[:MOST_AT_ONCE])
    renew(Picture.objects.filter(pk__in=pictures), LEASE)
    for picture in pictures:
        enqueue("judge_eval.tasks.render", picture, str(run.pk))


def _give_up_on_undrawable(run: Run) -> None:
    """Leave out pairs with a drawing that cannot be rendered: no vote, no verdict, a reason.

    One that came with all its votes keeps them: nobody has to see it any more.
    """
    waiting = Verdict.objects.filter(item=OuterRef("pk"), state=Verdict.State.WAITING)
    wants_votes, changed = Q(votes__lt=F("votes_wanted")), set[UUID]()
    for side in ("a", "b"):
        failed = Item.objects.filter(
            wants_votes | Exists(waiting),
            queue=run.queue_id,
            unusable="",
            **{f"{side}__picture__state": Picture.State.FAILED},
        ).select_related(f"{side}__picture")
        for item in failed:
            changed.add(item.pk)
            picture = getattr(item, side).picture
            name = side.upper() if item.b_id else "The output"
            reason = f"{name} {COULD_NOT_BE_DRAWN} {picture.error}"
            if item.votes < item.votes_wanted:
                item.unusable = reason
                item.save(update_fields=["unusable"])
            Verdict.objects.filter(item=item, state=Verdict.State.WAITING).update(
                state=Verdict.State.FAILED, error=reason, decided_at=timezone.now()
            )
    verdicts.record_changed(changed)


def _closed_items(run: Run) -> QuerySet[Item]:
    return Item.objects.filter(queue=run.queue_id, opened_at__isnull=True, unusable="")


def _open_items(run: Run) -> None:
    # Not by the state that waits: before it has statistics, PostgreSQL would read the whole index
    # of those that do for each pair.
    final = (Verdict.State.DONE, Verdict.State.FAILED)
    undecided = Verdict.objects.exclude(state__in=final).filter(item=OuterRef("pk"))
    waits = Picture.State.WAITING
    undrawn = Q(a__picture__state=waits) | Q(b__picture__state=waits)
    unjudged = _closed_items(run).filter(~Exists(undecided), ~undrawn)
    verdicts.open_those_final(list(unjudged.values_list("pk", flat=True)[:MOST_AT_ONCE]))


def _enter_next(run: Run) -> None:
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE)
    if generating.filter(Q(state=Call.State.WAITING) | Q(is_paired=False)).exists():
        return
    waiting = Verdict.objects.filter(item__queue=run.queue_id, state=Verdict.State.WAITING)
    repeats = run.calls.filter(REPEATED, state=Call.State.WAITING)
    if _closed_items(run).exists() or waiting.exists() or repeats.exists():
        _enter(run, Run.State.JUDGING)
    elif run.queue.items.filter(unusable="").exists():
        votes = mode_of(run).wants_votes
        _enter(run, Run.State.VOTING if votes else Run.State.COMPLETE)
    elif run.queue.items.exists():
        reasons = [f"{pairs} × {reason}" for reason, pairs in left_out(run)[:REASONS]]  # noqa: RUF001
        note = f"No {kind_of(run.queue).noun} can be shown. {'; '.join(reasons)}."
        _enter(run, Run.State.FAILED, note)
    elif mode_of(run).wants_votes or len((run.config or {})["models"]) > 1:
        _enter(run, Run.State.FAILED, kind_of(run.queue).no_items_reason)
    elif generating.filter(state=Call.State.DONE).exists():
        _enter(run, Run.State.COMPLETE)
    else:
        _enter(run, Run.State.FAILED, "No output came.")


def _enter(run: Run, entered: str, note: str = "") -> None:
    if run.state != entered:
        set_state(run, entered, note)
        event = run.record("state", note or f"The run is {entered} now.", state=entered)
        if entered == Run.State.COMPLETE:
            _tell_of_complete(run, event.pk)
            _call_completed(run)


def _tell_of_complete(run: Run, event: int) -> None:
    """Tell those who wait for it; a run may be complete, take more votes, and be complete again."""
    words, votes = f"{run.name} is complete.", run.queue.items.aggregate(Sum("votes"))["votes__sum"]
    data = {"run": str(run.pk), "name": run.name, "votes": votes or 0}
    page, key = reverse("run", args=[run.pk]), f"run.complete:{event}"
    announce(Announcement("run.complete", run.queue.project_id, key, words, page, data))


def _call_completed(run: Run) -> None:
    """Call the last hook of the run's mode; what breaks there is told, and undoes nothing."""
    if not run.config:
        return
    name = _mode_name(run)
    if name not in MODES or name in switched_off():
        return
    helpers = RunHelpers(run, MODES[name])
    try:
        with calling(MODES[name], "completed"):
            MODES[name].completed(started_config(run.pk), helpers)
            helpers.write()
    except HookFailed as failed:
        run.record("extension", str(failed), extension=name)


def set_state(run: Run, entered: str, note: str = "", *, is_open: bool | None = None) -> None:
    """Save a run in a state, and tell the voting page whether it may still bring more pairs."""
    run.state, run.note = entered, note
    run.save(update_fields=["state", "note", "started_at", "budget_nano"])
    changes = {"more_may_come": entered in (Run.State.DRAFT, *Run.AT_WORK)}
    # Not whether it is open in any case: somebody else may have closed it at this moment.
    changes |= {} if is_open is None else {"is_open": is_open}
    for name, value in changes.items():
        setattr(run.queue, name, value)
    run.queue.save(update_fields=changes)


def want_verdicts(run: Run, judges: Sequence[Judge], subset: QuerySet[Item] | None = None) -> int:
    """Let judges be asked about the items of a run that they were not asked about; count these.

    `subset` are items of the run, where not all are wanted. Baselines alone need no outputs.
    """
    new = []
    for judge in judges:
        existing = Verdict.objects.filter(judge=judge, item=OuterRef("pk"))
        candidates = run.queue.items.all() if subset is None else subset
        items = candidates.filter(~Exists(existing), unusable="").order_by("position")
        items = items if judge.is_baseline else items.filter(lacks_output=False)
        new += [Verdict(judge=judge, item_id=pk) for pk in items.values_list("pk", flat=True)]
    Verdict.objects.bulk_create(new, batch_size=1000)
    return len(new)


def want_verdicts_on_new_items() -> None:
    """Let the judges of runs whose items come one by one be asked about those that came since."""
    usable = Item.objects.filter(queue=OuterRef("queue"), unusable="", lacks_output=False)
    usable = usable.order_by("-position")
    runs = Run.objects.filter(config__outputs="given", state=Run.State.VOTING)
    growing = runs.annotate(newest=Subquery(usable.values("pk")[:1])).exclude(newest=None)
    left_alone = Q(judge__provider="imported") | Q(judge__is_tuned=True)
    judged = Verdict.objects.filter(item=OuterRef("newest")).exclude(left_alone)
    for run in growing.filter(~Exists(judged)):
        with transaction.atomic():
            fresh_run = locked().get(pk=run.pk)
            judges = fresh_run.judges.exclude(Q(provider="imported") | Q(is_tuned=True))
            judges = judges.order_by("position")
            if fresh_run.state == Run.State.VOTING and want_verdicts(fresh_run, list(judges)):
                _enter(fresh_run, Run.State.JUDGING)


def boards_to_handle() -> list[Board]:
    """Return boards of which it was not seen to yet what follows from their last entry."""
    unhandled = Board.objects.filter(seq__gt=F("handled_seq"))
    with_runs = unhandled.select_related("run__queue").defer("run__config")
    return list(with_runs[:MOST_AT_ONCE])


def record_progress(boards: Iterable[Board]) -> None:
    """Tell who follows a run how many votes count and how many items are judged, as these grow."""
    for board in boards:
        run = board.run
        if run.state in (Run.State.DRAFT, Run.State.IMPORTING):
            continue
        _, items, preparing = queue_counts(run.queue)
        counts = {"votes": board.votes, "judged": items - preparing, "items": items}
        before = run.events.filter(kind=PROGRESS)
        if counts != before.values_list("data", flat=True).first():
            # Only the newest is of interest, and it comes behind all that was read.
            before.delete()
            votes, noun = number_of(board.votes, "vote"), run.queue.noun
            judged = f"{items - preparing:,} of {number_of(items, noun)} judged"
            run.record(PROGRESS, f"{votes}; {judged}.", **counts)


def note_handled(boards: Iterable[Board]) -> None:
    """Note that it was, unless their runs have entered another state meanwhile."""
    for board in boards:
        as_read = Board.objects.filter(pk=board.pk, handled_seq=board.handled_seq)
        as_read.update(handled_seq=board.seq)


def complete_voted_runs(runs: Collection[UUID]) -> None:
    """Say of runs whose pairs all have enough votes that they are complete, and of others not."""
    usable = Item.objects.filter(queue=OuterRef("queue"), unusable="")
    wanting = Exists(usable.filter(votes__lt=F("votes_wanted"), lacks_output=False))
    candidates = Run.objects.filter(pk__in=runs)
    voting = candidates.filter(~wanting, Exists(usable), state=Run.State.VOTING)
    undone = candidates.filter(wanting, state=Run.State.COMPLETE, queue__is_open=True).exclude(
        config__mode__in=list(modes_without_votes())
    )
    for ended, next_state in ((voting, Run.State.COMPLETE), (undone, Run.State.VOTING)):
        for pk in ended.values_list("pk", flat=True):
            with transaction.atomic():
                # It may have been stopped since, or a vote taken back.
                run = ended.select_for_update(of=("self",), no_key=True).filter(pk=pk).first()
                if run is not None:
                    _enter(run, next_state)
