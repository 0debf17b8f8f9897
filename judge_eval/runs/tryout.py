"""Try a judge on a few pairs that are there already, before paying for a run.

What a judge is asked is word for word what the run would ask it, in the stored order. The pairs
come from earlier runs, so what is said of them is no verdict of any run: each call is asked once
among all others, and becomes an event.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.lib.leases import free
from humanjudge.lib.text import number_of
from judge_eval.models import Call, Judge, Run, RunEvent, Verdict
from judge_eval.runs import leases, providers, state
from judge_eval.runs.demo import PROJECT as DEMO
from judge_eval.runs.lifecycle import LifecycleRefused, config_of
from judge_eval.runs.results import TRIED, Fields
from judge_eval.selectors import is_drawn
from voting.kinds import kind_of
from voting.models import Item

ASKED = "tryout"
PAIRS = 3
# As many of the latest pairs are there to choose from.
CHOICE_OF = 200
# Somebody waits for these calls: none of a run is made before them.
BEFORE_ALL = datetime.fromtimestamp(0, UTC)
# An answer that begins to come later than this nobody waits for.
PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class Tryout:
    """One judge on a few pairs, and what came of it so far."""

    judge: Judge
    pairs: Sequence[UUID]
    # What was said, by the place of the pair.
    told: dict[int, Fields]
    # Why nothing more will come, although something is missing.
    lost: str

    @property
    def is_over(self) -> bool:
        return len(self.told) == len(self.pairs) or bool(self.lost)


def ask(run_id: UUID, judge_id: UUID) -> None:
    """Let a worker try a judge of a draft on up to three pairs."""
    with transaction.atomic():
        run = state.locked().get(pk=run_id)
        judge = _judge_to_try(run, judge_id)
        pairs = pairs_for(run)
        if not pairs:
            noun = kind_of(run.queue).noun
            raise LifecycleRefused(f"There are no {noun}s of this kind yet to try it on.")
        # Of an earlier one, what nobody has asked yet.
        run.calls.filter(free()).delete()
        Call.objects.bulk_create(
            Call(
                run=run,
                purpose=Call.Purpose.TRYOUT,
                provider=judge.provider,
                model=judge.model,
                item_id=pair,
                order=Verdict.Order.STORED,
                sample=place,
                not_before=BEFORE_ALL,
            )
            for place, pair in enumerate(pairs)
        )
        number = number_of(len(pairs), kind_of(run.queue).noun)
        chosen = {"judge": str(judge.pk), "pairs": [str(pair) for pair in pairs]}
        run.record(ASKED, f"{judge.name} is tried on {number}.", **chosen)
        enqueue("judge_eval.tasks.work")


def _judge_to_try(run: Run, judge_id: UUID) -> Judge:
    """Return a judge of a run, or refuse to try it now."""
    if run.state != Run.State.DRAFT:
        raise LifecycleRefused(f"This run is {run.state}; judges are tried in a draft.")
    judge = run.judges.filter(pk=judge_id).exclude(provider=Judge.BASELINE).first()
    if judge is None:
        raise LifecycleRefused("This run has no such judge that could be asked.")
    if judge.recipe:
        raise LifecycleRefused(f"{judge.name} is made of several models: only one can be tried.")
    provider = providers.find(judge.provider, run.queue.project_id)
    if provider is None:
        raise LifecycleRefused(providers.no_such(judge.provider))
    if run.budget_nano is not None and providers.price_of(provider, judge.model) is None:
        raise LifecycleRefused(providers.unpriced(judge.model))
    last = latest(run)
    if last is not None and not last.is_over:
        raise LifecycleRefused(f"{last.judge.name} is being tried; wait for its answers.")
    return judge


def pairs_for(run: Run) -> list[UUID]:
    """Choose pairs of the kind that a run asks for, of its project or else of the demo.

    They are of different prompts as long as there are any.
    """
    config = config_of(run)
    of_kind = {"a__kind": config.kind, "b__isnull": config.items is not None}
    usable = Item.objects.filter(is_drawn(), unusable="", queue__run__isnull=False, **of_kind)
    usable = usable.order_by("-queue__created_at", "position")
    for where in ({"queue__project": run.queue.project_id}, {"queue__project__name": DEMO}):
        pairs = list(usable.filter(**where).values_list("pk", "a__prompt")[:CHOICE_OF])
        if pairs:
            times = run.events.filter(kind=ASKED).count()
            Random(f"{run.pk} {times}").shuffle(pairs)  # noqa: S311  no secret
            different = list({prompt: pair for pair, prompt in pairs}.values())
            return (different + [pair for pair, _ in pairs if pair not in different])[:PAIRS]
    return []


def latest(run: Run) -> Tryout | None:
    asked = run.events.filter(kind=ASKED).order_by("pk").last()
    if asked is None:
        return None
    later = run.events.filter(kind=TRIED, pk__gt=asked.pk).order_by("pk")
    judge = run.judges.get(pk=asked.data["judge"])
    pairs = [UUID(pair) for pair in asked.data["pairs"]]
    told = {event.data["item"]: event.data for event in later}
    lost = "" if len(told) == len(pairs) else _lost(asked, judge)
    return Tryout(judge=judge, pairs=pairs, told=told, lost=lost)


def _lost(asked: RunEvent, judge: Judge) -> str:
    """Say why answers do not come, where it takes too long; empty where they may."""
    now = timezone.now()
    provider = providers.find(judge.provider, asked.run.queue.project_id)
    left = leases.paused(provider, now).get(judge.model, now) - now if provider else timedelta(0)
    if left > PATIENCE / 2:
        return f"{provider} takes no call to {judge.model} for another {left.seconds} s."
    calls = asked.run.calls.filter(purpose=Call.Purpose.TRYOUT)
    begun = calls.aggregate(until=Max("leased_until"))["until"]
    if max(begun or asked.at, asked.at) > now - PATIENCE:
        return ""
    if begun:
        return "The worker was lost before all answers were in."
    out = leases.calls_out(now).filter(provider=judge.provider).count()
    if provider and out >= provider.concurrency:
        return f"{provider} is busy with other calls."
    return providers.NOT_TAKEN_UP
