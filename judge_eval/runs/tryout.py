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
from typing import Any
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from humanjudge.enqueue import enqueue
from judge_eval.models import Call, Judge, Run, RunEvent, Verdict
from judge_eval.prompts.parse import VerdictUnreadable, parse
from judge_eval.providers.chat import ChatReply, chat
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import budget, limits, providers
from judge_eval.runs.demo import PROJECT as DEMO
from judge_eval.runs.lifecycle import LifecycleRefused, config_of
from judge_eval.runs.requests import Question, question_of
from voting.models import Item, Picture

ASKED, TOLD = "tryout", "tried"
PAIRS = 3
# As many of the latest pairs are there to choose from.
CHOICE_OF = 200
TAKEN_UP_WITHIN = timedelta(seconds=60)
# For its turn at the provider: an answer that comes later than this nobody waits for.
LONGEST_TURN_S = 30.0
LONGEST_RAW = 20_000


@dataclass(frozen=True)
class Tryout:
    """One judge on a few pairs, and what came of it so far."""

    asked: RunEvent
    judge: Judge
    pairs: Sequence[UUID]
    told: dict[int, dict[str, Any]]
    # Why nothing more will come, although something is missing.
    lost: str

    @property
    def is_over(self) -> bool:
        return len(self.told) == len(self.pairs) or bool(self.lost)


def ask(run_id: UUID, judge_id: UUID) -> None:
    """Let a worker try a judge of a draft on up to three pairs."""
    with transaction.atomic():
        run = _draft(run_id)
        judge = run.judges.filter(pk=judge_id).exclude(provider=Judge.BASELINE).first()
        if judge is None:
            raise LifecycleRefused("This run has no such judge that could be asked.")
        _refuse_unaskable(run, judge)
        last = latest(run)
        if last is not None and not last.is_over:
            raise LifecycleRefused(f"{last.judge.name} is being tried; wait for its answers.")
        pairs = pairs_for(run)
        if not pairs:
            raise LifecycleRefused("There are no pairs of this kind yet to try it on.")
        number = f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}"
        told = {"judge": str(judge.pk), "pairs": [str(pair) for pair in pairs]}
        run.record(ASKED, f"{judge.name} is tried on {number}.", **told)
        event = run.events.filter(kind=ASKED).latest("pk")
        enqueue("judge_eval.tasks.tryout", event.pk)


def _draft(run_id: UUID) -> Run:
    run = Run.objects.select_for_update(of=("self",), no_key=True).get(pk=run_id)
    if run.state != Run.State.DRAFT:
        raise LifecycleRefused(f"This run is {run.state}; judges are tried in a draft.")
    return run


def _refuse_unaskable(run: Run, judge: Judge) -> None:
    provider = providers.find(judge.provider)
    if provider is None:
        raise LifecycleRefused(f"There is no provider named {judge.provider}.")
    if run.budget_nano is not None and providers.price_of(provider, judge.model) is None:
        raise LifecycleRefused(providers.unpriced(judge.model))


def pairs_for(run: Run) -> list[UUID]:
    """Choose pairs of the kind that a run asks for, of its project or else of the demo."""
    of_kind = Q(a__kind=config_of(run).kind, unusable="", queue__run__isnull=False)
    drawn = Q(a__picture=None, b__picture=None) | Q(
        a__picture__state=Picture.State.DONE, b__picture__state=Picture.State.DONE
    )
    usable = Item.objects.filter(of_kind, drawn).values_list("pk", "a__prompt")
    demo = {"queue__project__name": DEMO}
    for where in ({"queue__project": run.queue.project_id}, demo):
        latest_first = usable.filter(**where).order_by("-queue__created_at", "position")
        if found := list(latest_first[:CHOICE_OF]):
            times = run.events.filter(kind=ASKED).count()
            return _different(found, Random(f"{run.pk} {times}"))  # noqa: S311  no secret
    return []


def _different(pairs: Sequence[tuple[UUID, str]], chance: Random) -> list[UUID]:
    """Choose pairs of different prompts as long as there are any."""
    shuffled = chance.sample(pairs, len(pairs))
    chosen = list({prompt: pair for pair, prompt in shuffled}.values())
    return (chosen + [pair for pair, _ in shuffled if pair not in chosen])[:PAIRS]


def latest(run: Run) -> Tryout | None:
    """Return the last tryout of a run."""
    asked = run.events.filter(kind=ASKED).order_by("pk").last()
    if asked is None:
        return None
    later = run.events.filter(kind=TOLD, pk__gt=asked.pk).order_by("pk")
    told = {event.data["item"]: event.data for event in later}
    judge = run.judges.get(pk=asked.data["judge"])
    return Tryout(
        asked=asked,
        judge=judge,
        pairs=[UUID(pair) for pair in asked.data["pairs"]],
        told=told,
        lost=_lost(asked, judge, timezone.now()),
    )


def _lost(asked: RunEvent, judge: Judge, now: datetime) -> str:
    begun = asked.data.get("begun")
    if begun is None:
        late = now - asked.at > TAKEN_UP_WITHIN
        return "No worker has taken this up. Is one running?" if late else ""
    provider = providers.find(judge.provider)
    seconds = (provider.timeout_s if provider else 0) + LONGEST_TURN_S + 30
    late = now > datetime.fromisoformat(begun) + timedelta(seconds=PAIRS * seconds)
    return "The worker was lost before all answers were in." if late else ""


def try_out(event_id: int) -> None:
    """Ask the judge about each pair, once; whoever comes second finds it taken and leaves."""
    asked = _taken(event_id)
    if asked is None:
        return
    run = Run.objects.select_related("queue__rubric").get(pk=asked.run_id)
    judge = Judge.objects.get(pk=asked.data["judge"])
    for item, pair in enumerate(asked.data["pairs"]):
        if not _tell(run, judge, asked, item, _opinion(run, judge, UUID(pair))):
            return


def _taken(event_id: int) -> RunEvent | None:
    with transaction.atomic():
        events_here = RunEvent.objects.select_for_update(of=("self",), no_key=True)
        asked = events_here.filter(pk=event_id, kind=ASKED).first()
        if asked is None or "begun" in asked.data:
            return None
        asked.data = {**asked.data, "begun": timezone.now().isoformat()}
        asked.save(update_fields=["data"])
    return asked


def _tell(run: Run, judge: Judge, asked: RunEvent, item: int, said: dict[str, Any]) -> bool:
    """Write down what came of one pair; False when the draft is no more."""
    with transaction.atomic():
        if not Run.objects.select_for_update(of=("self",), no_key=True).filter(pk=run.pk).exists():
            return False
        text = f"{judge.name} was tried on pair {item + 1} of {len(asked.data['pairs'])}."
        run.record(TOLD, text, tryout=asked.pk, item=item, **said)
    return True


def _opinion(run: Run, judge: Judge, pair: UUID) -> dict[str, Any]:
    """Ask about one pair and return what came, to be read as JSON."""
    provider = providers.find(judge.provider)
    if provider is None:
        return {"error": f"There is no provider named {judge.provider}."}
    item = Item.objects.select_related("a__picture", "b__picture").get(pk=pair)
    try:
        question = question_of(_call(run, judge, item), provider)
    except CallFailed as failed:
        return {"error": failed.reason}
    if budget.lacks_price(question):
        return {"error": providers.unpriced(judge.model)}
    guest = str(uuid4())
    try:
        if refusal := _wait_for_turn(provider.name, judge.model, guest):
            return {"error": refusal}
        return _answer(run, question)
    finally:
        limits.end(provider.name, guest)


def _wait_for_turn(provider: str, model: str, guest: str) -> str:
    """Wait until a provider may be asked; say why it is not, if that takes too long."""
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


def _answer(run: Run, question: Question) -> dict[str, Any]:
    reserved = question.reservation_nano
    if not budget.spend(run.pk, reserved):
        return {"error": "This call could pass the budget, so it was not made."}
    try:
        reply = chat(providers.endpoint_of(question.provider), question.request)
    except CallFailed as failed:
        if failed.retry_after is not None:
            seconds = min(failed.retry_after, limits.LONGEST_AT_FIRST)
            limits.pause(*question.asked, seconds, failed.reason)
        cost = reserved if failed.may_be_billed else 0
        budget.settle(run.pk, reserved, cost)
        return {"error": failed.reason, "reply": failed.raw, "cost_nano": cost}
    cost_nano = question.cost_nano(reply.prompt_tokens, reply.completion_tokens)
    budget.settle(run.pk, reserved, cost_nano or 0)
    return _read(question, reply) | {"cost_nano": cost_nano}


def _call(run: Run, judge: Judge, item: Item) -> Call:
    """Return a call that is never saved: it says what the run would ask."""
    return Call(
        run=run,
        purpose=Call.Purpose.JUDGE,
        provider=judge.provider,
        model=judge.model,
        verdict=Verdict(judge=judge, item=item),
        order=Verdict.Order.STORED,
    )


def _read(question: Question, reply: ChatReply) -> dict[str, Any]:
    told = {
        "reply": reply.text[:LONGEST_RAW],
        "model": reply.model,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "latency_ms": round(reply.latency_ms),
    }
    if reply.refusal:
        return told | {"error": f"refused: {reply.refusal[:300]}"}
    try:
        said = parse(reply.text, question.call.run.queue.ballot)
    except VerdictUnreadable as unreadable:
        return told | {"error": unreadable.reason}
    scores = {"score_a": said.score_a, "score_b": said.score_b}
    return told | scores | {"winner": said.winner, "reason": said.reason}
