"""Judges tuned on votes that are there: variants, asked step by step, told by votes held out.

A run that was opened for tuning has two halves (`voting.tuning`). Judges that join while it is open
are variants: they are asked about nothing until somebody asks, first about a few items of the
tuning half, then about all of it, then about all items.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from django.db.models import QuerySet, Sum
from django.db.models.functions import Length

from judge_eval.config.estimates import calls_per_verdict, cost
from judge_eval.config.run_config import JoiningJudges, JudgeSpec
from judge_eval.models import Findings, Judge, Run, Verdict
from judge_eval.runs import lifecycle, providers, state
from judge_eval.runs.lifecycle import JOINABLE, LifecycleRefused, config_of, locked_run
from voting import tuning
from voting.models import Item, Voter

Step: TypeAlias = Literal["first", "tuning", "all"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
FIRST_ITEMS: Final = 20
_LATER: Final = "variants are asked once its items are open"
_STATES: Final = (*JOINABLE, Run.State.JUDGING)


def open_for_tuning(run: Run, by: Voter | None = None) -> None:
    with locked_run(run.pk, *_STATES, otherwise=_LATER) as held:
        _change(partial(tuning.open_tuning, held.queue, by))
        Findings.objects.filter(run=held).delete()  # they are of both halves
        held.record("tuning", "Opened for tuning: half of its prompts are held out.")


def end(run: Run, by: Voter | None = None) -> None:
    """Show the half that was held out, to everybody and for good."""
    with locked_run(run.pk, *Run.State, otherwise="") as held:
        _change(partial(tuning.end_tuning, held.queue, by))
        Findings.objects.filter(run=held).delete()  # they are of one half
        held.record("tuning", "Tuning has ended: the half held out is shown.")


def _change(act: Callable[[], None]) -> None:
    try:
        act()
    except tuning.CannotTune as why:
        raise LifecycleRefused(str(why)) from why


def add(run: Run, joining: JoiningJudges) -> list[Judge]:
    """Let variants join; they are asked nothing yet."""
    if not run.queue.is_tuning:
        raise LifecycleRefused("Open this run for tuning first, or add a judge on its tab Run.")
    lifecycle.add_judges_to(run.pk, joining)
    names = [judge.id for judge in joining.judges]
    return list(run.judges.filter(name__in=names).order_by("position"))


def items_of(run: Run, step: Step) -> QuerySet[Item]:
    """Return the items that a variant is asked about by a step and by those before it."""
    items = run.queue.items.filter(unusable="")
    if step == "all":
        return items
    own = items.filter(is_held_out=False)
    if step == "tuning":
        return own
    # By their numbers, which were drawn: an order of a file may have to do with who is right.
    first = own.order_by("pk").values_list("pk", flat=True)[:FIRST_ITEMS]
    return items.filter(pk__in=list(first))


class NextStep(NamedTuple):
    """What a variant is asked next: how many items and calls, and what these cost at most."""

    step: Step
    items: int
    calls: int
    usd: Decimal | None


def next_step(run: Run, judge: Judge) -> NextStep | None:
    """Return the first step with items that a variant was not asked about; None after the last."""
    asked = Verdict.objects.filter(judge=judge).values("item")
    for step in STEPS:
        left = items_of(run, step).exclude(pk__in=asked)
        if number := left.count():
            return _estimated(run, judge, step, left, number)
    return None


def _estimated(run: Run, judge: Judge, step: Step, left: QuerySet[Item], number: int) -> NextStep:
    config = config_of(run)
    spec = config.spec_of(judge.name) or JudgeSpec(id=judge.name)
    each = calls_per_verdict(config, spec)
    prices = providers.prices([judge.provider], run.queue.project_id)
    price = prices.get((judge.provider, judge.model))
    if price is None:
        return NextStep(step, number, number * each, None)
    around = len(run.queue.rubric.text) + len(spec.instructions) + 2_000
    around += _characters(run.queue.items.filter(pk__in=[each.item for each in spec.examples]))
    characters = number * around + _characters(left)
    most = config.asking(judge.name, judge.provider, judge.model).max_tokens
    usd = cost(characters // 4 * each, number * each * most, price)
    return NextStep(step, number, number * each, usd)


def _characters(items: QuerySet[Item]) -> int:
    """Return how many characters the prompts and outputs of items have."""
    fields = ("a__prompt", "a__output", "b__output")
    sizes = items.order_by().aggregate(**{field: Sum(Length(field)) for field in fields})
    return sum(size or 0 for size in sizes.values())


def ask(run: Run, judge: Judge, step: Step) -> int:
    """Ask a variant about the items of a step; return how many verdicts are wanted."""
    with locked_run(run.pk, *_STATES, otherwise=_LATER) as held:
        wanted = state.want_verdicts(held, [judge], items_of(held, step))
        if not wanted:
            raise LifecycleRefused(f"{judge.name} was asked about these items already.")
        state.set_state(held, Run.State.JUDGING)
        text = f"{judge.name} is asked about {wanted:,} more {held.queue.noun}s."
        lifecycle.go_on(held, "asked", text)
    return wanted
