"""Judges tuned on votes that are there: variants, asked step by step, told by votes held out.

A run that was opened for tuning has two halves (`voting.ballot.tuning`). Judges that join while it
is open are variants: they are asked about nothing until somebody asks, first about a few items of
the tuning half, then about all of it, then about all items.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from uuid import UUID

from django.db.models import Avg, Count, Q, QuerySet
from django.db.models.functions import Coalesce, Length
from django.dispatch import Signal

from judge_eval.judging import provider_access
from judge_eval.judging.config.estimates import calls_per_verdict, cost
from judge_eval.judging.config.run_config import JoiningJudges, JudgeSpec
from judge_eval.models import Findings, Judge, Run, Verdict
from judge_eval.runs import lifecycle, state
from judge_eval.runs.lifecycle import JOINABLE, LifecycleRefused, config_of, locked_run
from voting.ballot import tuning
from voting.models import Item, Voter

Step: TypeAlias = Literal["first", "tuning", "all"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
FIRST_ITEMS: Final = 20
_NOTHING: Final = dict.fromkeys(STEPS, 0)
# Of an item's prompt and outputs.
_CHARACTERS: Final = Length("a__prompt") + Length("a__output") + Coalesce(Length("b__output"), 0)
_LATER: Final = "variants are asked once its items are open"
_STATES: Final = (*JOINABLE, Run.State.JUDGING)
# Sent with `run` before half of it is held out: reports keep what they say.
tuning_opens: Final = Signal()


def open_for_tuning(run: Run, actor: Voter | None = None) -> None:
    with locked_run(run.pk, *_STATES, otherwise=_LATER) as fresh_run:
        if fresh_run.queue.held_out_from is None:
            tuning_opens.send(Run, run=fresh_run)
        _change_tuning(partial(tuning.open_tuning, fresh_run.queue, actor))
        Findings.objects.filter(run=fresh_run).delete()  # they are of both halves
        fresh_run.record("tuning", "Opened for tuning: half of its prompts are held out.")


def end(run: Run, actor: Voter | None = None) -> None:
    """Show the half that was held out, to everybody and for good."""
    with locked_run(run.pk, *Run.State, otherwise="") as fresh_run:
        _change_tuning(partial(tuning.end_tuning, fresh_run.queue, actor))
        Findings.objects.filter(run=fresh_run).delete()  # they are of one half
        fresh_run.record("tuning", "Tuning has ended: the half held out is shown.")


def use(run: Run, judge: Judge, actor: Voter | None = None) -> None:
    """Make a judge the one in use: variants are held against it from now on."""
    _record_decision(
        run, partial(tuning.use_judge, run.queue, judge.pk, actor), f"{judge.name} is in use."
    )


def drop(run: Run, judge: Judge, actor: Voter | None = None) -> None:
    """Try a variant no further."""
    _record_decision(
        run, partial(tuning.drop_judge, run.queue, judge.pk, actor), f"{judge.name} is dropped."
    )


def _record_decision(run: Run, act: Callable[[], None], words: str) -> None:
    if not run.queue.is_tuning:
        raise LifecycleRefused("No tuning is open in this run.")
    act()
    run.record("tuning", words)


def _change_tuning(act: Callable[[], None]) -> None:
    try:
        act()
    except tuning.CannotTune as refusal:
        raise LifecycleRefused(str(refusal)) from refusal


def add(run: Run, joining: JoiningJudges) -> list[Judge]:
    """Let variants join; they are asked nothing yet."""
    if not run.queue.is_tuning:
        raise LifecycleRefused("Open this run for tuning first, or add a judge on its tab Run.")
    lifecycle.add_judges_to(run.pk, joining)
    names = [judge.id for judge in joining.judges]
    return list(run.judges.filter(name__in=names).order_by("position"))


def items_of(run: Run, step: Step) -> QuerySet[Item]:
    """Return the items that a variant is asked about by a step and by those before it."""
    return run.queue.items.filter(_step_filter(step, _first_items(run)))


def _first_items(run: Run) -> list[UUID]:
    # By their numbers, which were drawn: an order of a file may have to do with who is right.
    tuning_items = run.queue.items.filter(_step_filter("tuning")).order_by("pk")
    return list(tuning_items.values_list("pk", flat=True)[:FIRST_ITEMS])


def _step_filter(step: Step, first: Sequence[UUID] = (), item: str = "") -> Q:
    usable = {f"{item}unusable": "", f"{item}lacks_output": False}
    if step == "first":
        return Q(**usable, **{f"{item}pk__in": first})
    return Q(**usable) if step == "all" else Q(**usable, **{f"{item}is_held_out": False})


class NextStep(NamedTuple):
    """What a variant is asked next: how many items and calls, and what these cost at most."""

    step: Step
    items: int
    calls: int
    usd: Decimal | None


def next_step(run: Run, judge: Judge) -> NextStep | None:
    """Return the first step with items that a variant was not asked about; None after the last."""
    return next_steps(run, [judge]).get(judge.pk)


def next_steps(run: Run, judges: Sequence[Judge]) -> dict[UUID, NextStep]:
    """Return the next step of each variant that has one; it costs the same for any number."""
    judges = [judge for judge in judges if judge.is_tuned]
    if not judges:
        return {}
    first = _first_items(run)
    about = {step: Count("pk", filter=_step_filter(step, first)) for step in STEPS}
    totals = run.queue.items.aggregate(**about)
    about = {step: Count("pk", filter=_step_filter(step, first, "item__")) for step in STEPS}
    rows: Any = Verdict.objects.filter(judge__in=judges).order_by().values("judge")
    existing = {row.pop("judge"): row for row in rows.annotate(**about)}
    left: dict[Judge, tuple[Step, int]] = {}
    for judge in judges:
        number = {step: totals[step] - existing.get(judge.pk, _NOTHING)[step] for step in STEPS}
        if step := next((step for step in STEPS if number[step] > 0), None):
            left[judge] = step, number[step]
    most = cost_of_asking(run, {judge: number for judge, (_, number) in left.items()})
    return {judge.pk: NextStep(*left[judge], *most[judge]) for judge in left}


def cost_of_asking(run: Run, items: Mapping[Judge, int]) -> dict[Judge, tuple[int, Decimal | None]]:
    """Return the calls that judges make about so many items, and what these cost at most.

    By how many characters the run's items have in the mean.
    """
    if not items:
        return {}
    config = config_of(run)
    specs = {judge: config.spec_of(judge.name) or JudgeSpec(id=judge.name) for judge in items}
    prices = provider_access.prices({judge.provider for judge in items}, run.queue.project_id)
    examples = run.queue.items.filter(pk__in={e.item for s in specs.values() for e in s.examples})
    sizes = dict(examples.values_list("pk", _CHARACTERS))
    characters = int(run.queue.items.aggregate(mean=Avg(_CHARACTERS))["mean"] or 0)
    most = {}
    for judge, number in items.items():
        spec, price = specs[judge], prices.get((judge.provider, judge.model))
        calls = number * calls_per_verdict(config, spec)
        around = len(run.queue.rubric.text) + len(spec.instructions) + 2_000
        around += sum(sizes.get(example.item, 0) for example in spec.examples)
        longest = config.asking(judge.name, judge.provider, judge.model).max_tokens
        tokens = calls * (around + characters) // 4
        most[judge] = calls, cost(tokens, calls * longest, price) if price else None
    return most


def verdict_counts(run: Run) -> dict[UUID, tuple[int, int]]:
    """Return how many verdicts judges were asked for, and how many of them are to come."""
    rows = Verdict.objects.filter(judge__run=run).order_by().values_list("judge")
    waiting = Count("pk", filter=Q(state=Verdict.State.WAITING))
    counted = rows.annotate(wanted=Count("pk"), waiting=waiting)
    return {judge: (wanted_count, left) for judge, wanted_count, left in counted}


def first_try(run: Run, judge: Judge) -> NextStep:
    """Return how many items, calls and dollars the first step of another wording takes."""
    items = items_of(run, "first").count()
    return NextStep("first", items, *cost_of_asking(run, {judge: items})[judge])


def ask(run: Run, judge: Judge, step: Step) -> int:
    """Ask a variant about the items of a step; return how many verdicts are wanted."""
    with locked_run(run.pk, *_STATES, otherwise=_LATER) as fresh_run:
        verdict_count = state.want_verdicts(fresh_run, [judge], items_of(fresh_run, step))
        if not verdict_count:
            raise LifecycleRefused(f"{judge.name} was asked about these items already.")
        state.set_state(fresh_run, Run.State.JUDGING)
        text = f"{judge.name} is asked about {verdict_count:,} more {fresh_run.queue.noun}s."
        lifecycle.go_on(fresh_run, "asked", text)
    return verdict_count
