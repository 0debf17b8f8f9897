"""Try a judge on a few pairs that are there already, before paying for a run.

What a judge is asked is word for word what the run would ask it, in the stored order. The pairs
come from earlier runs, so what is said of them is no verdict of any run: it is kept in events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from humanjudge.celery import enqueue
from judge_eval.models import Call, Judge, Run, RunEvent, Verdict
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import budget, limits, providers, results, state
from judge_eval.runs.demo import PROJECT as DEMO
from judge_eval.runs.lifecycle import LifecycleRefused, config_of
from judge_eval.runs.pool import ask as ask_provider
from judge_eval.runs.requests import Question, question_of
from judge_eval.runs.results import Fields
from voting.models import Item, Picture

ASKED, TOLD = "tryout", "tried"
PAIRS = 3
# As many of the latest pairs are there to choose from.
CHOICE_OF = 200
TAKEN_UP_WITHIN = timedelta(seconds=60)
# For its turn at the provider: an answer that comes later than this nobody waits for.
LONGEST_TURN_S = 30.0


@dataclass(frozen=True)
class Tryout:
    """One judge on a few pairs, and what came of it so far."""

    asked: RunEvent
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
        judge = run.judges.filter(pk=judge_id).exclude(provider=Judge.BASELINE).first()
        if refusal := _refusal(run, judge):
            raise LifecycleRefused(refusal)
        assert judge is not None
        pairs = pairs_for(run)
        if not pairs:
            raise LifecycleRefused("There are no pairs of this kind yet to try it on.")
        number = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}"
        chosen = {"judge": str(judge.pk), "pairs": [str(pair) for pair in pairs]}
        run.record(ASKED, f"{judge.name} is tried on {number}.", **chosen)
        enqueue("judge_eval.tasks.tryout", run.events.filter(kind=ASKED).latest("pk").pk)


def _refusal(run: Run, judge: Judge | None) -> str:
    """Say why a judge cannot be tried now; empty where it can."""
    if run.state != Run.State.DRAFT:
        return f"This run is {run.state}; judges are tried in a draft."
    if judge is None:
        return "This run has no such judge that could be asked."
    provider = providers.find(judge.provider)
    if provider is None:
        return f"There is no provider named {judge.provider}."
    if run.budget_nano is not None and providers.price_of(provider, judge.model) is None:
        return providers.unpriced(judge.model)
    last = latest(run)
    if last is not None and not last.is_over:
        return f"{last.judge.name} is being tried; wait for its answers."
    return ""


def pairs_for(run: Run) -> list[UUID]:
    """Choose pairs of the kind that a run asks for, of its project or else of the demo.

    They are of different prompts as long as there are any.
    """
    of_kind = Q(a__kind=config_of(run).kind, unusable="", queue__run__isnull=False)
    drawn = Q(a__picture=None, b__picture=None) | Q(
        a__picture__state=Picture.State.DONE, b__picture__state=Picture.State.DONE
    )
    usable = Item.objects.filter(of_kind, drawn).order_by("-queue__created_at", "position")
    for where in ({"queue__project": run.queue.project_id}, {"queue__project__name": DEMO}):
        pairs = list(usable.filter(**where).values_list("pk", "a__prompt")[:CHOICE_OF])
        if pairs:
            times = run.events.filter(kind=ASKED).count()
            Random(f"{run.pk} {times}").shuffle(pairs)  # noqa: S311  no secret
            different = list({prompt: pair for pair, prompt in pairs}.values())
            return (different + [pair for pair, _ in pairs if pair not in different])[:PAIRS]
    return []


def latest(run: Run) -> Tryout | None:
    """Return the last tryout of a run."""
    asked = run.events.filter(kind=ASKED).order_by("pk").last()
    if asked is None:
        return None
    later = run.events.filter(kind=TOLD, pk__gt=asked.pk).order_by("pk")
    judge = run.judges.get(pk=asked.data["judge"])
    return Tryout(
        asked=asked,
        judge=judge,
        pairs=[UUID(pair) for pair in asked.data["pairs"]],
        told={event.data["item"]: event.data for event in later},
        lost=_lost(asked, judge),
    )


def _lost(asked: RunEvent, judge: Judge) -> str:
    now, begun = timezone.now(), asked.data.get("begun")
    if begun is None:
        late = now - asked.at > TAKEN_UP_WITHIN
        return "No worker has taken this up. Is one running?" if late else ""
    provider = providers.find(judge.provider)
    seconds = (provider.timeout_s if provider else 0) + LONGEST_TURN_S + 30
    late = now > datetime.fromisoformat(begun) + timedelta(seconds=PAIRS * seconds)
    return "The worker was lost before all answers were in." if late else ""


def try_out(event_id: int) -> None:
    """Ask the judge about each pair, once; whoever comes second finds it taken and leaves."""
    with transaction.atomic():
        events = RunEvent.objects.select_for_update(of=("self",), no_key=True)
        asked = events.filter(pk=event_id, kind=ASKED).first()
        if asked is None or "begun" in asked.data:
            return
        asked.data = {**asked.data, "begun": timezone.now().isoformat()}
        asked.save(update_fields=["data"])
    run = Run.objects.select_related("queue__rubric").get(pk=asked.run_id)
    judge = Judge.objects.get(pk=asked.data["judge"])
    pairs = asked.data["pairs"]
    for item, pair in enumerate(pairs):
        opinion = _opinion(run, judge, UUID(pair))
        with transaction.atomic():
            if not state.locked().filter(pk=run.pk).exists():
                return  # the draft is no more
            text = f"{judge.name} was tried on pair {item + 1} of {len(pairs)}."
            run.record(TOLD, text, tryout=asked.pk, item=item, **opinion)


def _opinion(run: Run, judge: Judge, pair: UUID) -> Fields:
    """Ask about one pair and return what came, to be read as JSON."""
    item = Item.objects.select_related("a__picture", "b__picture").get(pk=pair)
    # Never saved: it says what the run would ask.
    call = Call(
        run=run,
        purpose=Call.Purpose.JUDGE,
        provider=judge.provider,
        model=judge.model,
        verdict=Verdict(judge=judge, item=item),
        order=Verdict.Order.STORED,
    )
    try:
        question = question_of(call, providers.find(judge.provider))
    except CallFailed as failed:
        return {"error": failed.reason}
    if question.lacks_price:
        return {"error": providers.unpriced(judge.model)}
    guest = str(uuid4())
    try:
        refusal = _wait_for_turn(question, guest)
        return {"error": refusal} if refusal else _answer(run, question)
    finally:
        limits.end(judge.provider, guest)


def _wait_for_turn(question: Question, guest: str) -> str:
    """Wait until a provider may be asked; say why it is not, if that takes too long."""
    provider, model = question.model
    patience = LONGEST_TURN_S
    while wait := limits.begin(provider, model, guest):
        seconds = wait.total_seconds()
        if seconds > LONGEST_TURN_S:
            return f"{provider} takes no call to {model} for another {seconds:.0f} s."
        if seconds > patience:
            return f"{provider} was busy with other calls for {LONGEST_TURN_S:.0f} s."
        patience -= seconds
        time.sleep(seconds)
    return ""


def _answer(run: Run, question: Question) -> Fields:
    reserved = question.call.reserved_nano = question.reservation_nano
    if not budget.spend(run.pk, reserved):
        return {"error": "This call could pass the budget, so it was not made."}
    answer = ask_provider(question)
    budget.settle({}, {run.pk: (answer.cost or 0) - reserved})
    if (failure := answer.failure) is not None:
        if failure.retry_after is not None:
            seconds = min(failure.retry_after, limits.LONGEST_AT_FIRST)
            limits.pause(*question.model, seconds, failure.reason)
        return {"error": failure.reason, "reply": failure.raw, "cost_nano": answer.cost}
    reply = answer.reply
    assert reply is not None
    try:
        opinion = results.read(question, reply)
    except results.NoAnswer as problem:
        opinion = {"error": str(problem)}
    return opinion | {
        "reply": reply.text[: results.MOST_RAW],
        "model": reply.model,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "latency_ms": round(reply.latency_ms),
        "cost_nano": answer.cost,
    }
