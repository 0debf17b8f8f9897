"""Trials before a run is paid for: one small call to a provider, or a judge on a few items.

Both are calls of the purpose TRIAL, and what came of them is what their rows say. A provider's call
belongs to no run: one worker makes it at once or says why not. A judge's calls belong to its draft
until that is started. Workers make them like those of a run, word for word as the run would, in the
stored order; they become no verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.core.text import excerpt, latency, number_of, usd
from judge_eval.demo.load import PROJECT as DEMO
from judge_eval.judging import leases, provider_access
from judge_eval.judging.config.estimates import cost
from judge_eval.judging.providers import protocols
from judge_eval.judging.providers.chat import ChatRequest
from judge_eval.judging.providers.errors import CallFailed, short_reason
from judge_eval.models import Call, Judge, Provider, Run, RunEvent, Verdict
from judge_eval.runs import state
from judge_eval.runs.lifecycle import LifecycleRefused, config_of, forget_trials
from judge_eval.runs.queries import is_drawn
from voting.items.kinds import kind_of
from voting.models import Item

NOT_TAKEN_UP = "No worker has taken this up. Is one running?"

# --- a provider

QUESTION = "Reply with the one word: ready"
MOST_TOKENS = 64
LONGEST_S = 30.0
# A call that no worker has taken up by then is given up.
TAKEN_UP_WITHIN = timedelta(seconds=10)
LONGEST_ANSWER = 80


def try_provider(name: str, model: str) -> None:
    """Let a worker make one call to a model of a provider; one at a time."""
    with leases.locked(name) as provider:
        if provider is None:
            raise LifecycleRefused(provider_access.no_such(name))
        former = provider.trial
        if is_waiting(former) and not why_lost(former):
            raise LifecycleRefused(f"{name} is being tried; wait for its answer.")
        call = Call.objects.create(purpose=Call.Purpose.TRIAL, provider=name, model=model)
        provider.trial = call
        provider.save(update_fields=["trial"])
        if former is not None:
            former.delete()
        enqueue("judge_eval.tasks.try_provider", call.pk)


def is_waiting(call: Call | None) -> bool:
    return call is not None and call.state == Call.State.WAITING


def why_lost(call: Call | None) -> str:
    """Say why a provider's trial gets no answer, where it takes too long; nothing where it may."""
    if call is None or call.state != Call.State.WAITING:
        return ""
    now = timezone.now()
    if call.leased_until is None:
        return NOT_TAKEN_UP if now > call.not_before + TAKEN_UP_WITHIN else ""
    return "The worker was lost before an answer came." if now > call.leased_until else ""


def make_call(number: int) -> None:
    """Make a provider's call, once however often this is delivered, and write down the answer."""
    provider = _take_place(number)
    if provider is None or provider.trial is None:
        return
    fields = _ask_model(provider, provider.trial.model)
    waiting = Call.objects.filter(pk=number, state=Call.State.WAITING)
    waiting.update(leased_until=None, lease=None, done_at=timezone.now(), **fields)


def _take_place(number: int) -> Provider | None:
    """Take a place among the calls of a provider; say at once where there is none."""
    call = Call.objects.filter(pk=number, state=Call.State.WAITING, attempts=0).first()
    if call is None:
        return None
    with leases.locked(call.provider) as provider:
        if provider is None or provider.trial is None or provider.trial.pk != number:
            return None
        call, now, lease = provider.trial, timezone.now(), uuid4()
        if call.attempts:
            return None
        refused = provider_access.lacks_key(provider)
        if not refused and (until := leases.paused(provider, now).get(call.model)):
            refused = f"{call.model} is rate limited for another {(until - now).seconds} s"
        out = leases.calls_out(now).filter(provider=provider.name).count()
        if not refused and leases.allowed(provider, now, out, lease) < 1:
            refused = f"{provider.name} takes no more calls at this moment; try again"
        if refused:
            call.state, call.error, call.done_at = Call.State.FAILED, refused, now
        else:
            call.lease, call.leased_until = lease, now + timedelta(seconds=LONGEST_S)
            leases.count_starts(provider, now, 1)
        call.attempts = 1
        call.save()
    return None if refused else provider


def _ask_model(provider: Provider, model: str) -> dict[str, str | int | float | None]:
    endpoint = provider_access.endpoint_of(provider)
    endpoint = replace(endpoint, timeout_s=min(endpoint.timeout_s, LONGEST_S))
    messages = [{"role": "user", "content": QUESTION}]
    try:
        request = ChatRequest(model, messages, None, MOST_TOKENS)
        reply = protocols.ask(provider.protocol, endpoint, request)
    except CallFailed as failed:
        return {"state": Call.State.FAILED, "error": failed.reason}
    return {
        "state": Call.State.DONE,
        "reply": reply.text,
        "reported_model": reply.model[:200],
        "latency_ms": reply.latency_ms,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
    }


def answer_in_words(call: Call) -> str:
    text = excerpt(call.reply, LONGEST_ANSWER) if call.reply.strip() else "without a text"
    return f"{call.reported_model} answered {text} in {latency(call.latency_ms)}."


def price_in_words(provider: Provider, call: Call) -> str:
    price = provider_access.price_of(provider, call.model)
    if price is None:
        return f"Nobody has said what {call.model} costs; a run with a budget needs its price."
    rates = f"${price.input:f} in and ${price.output:f} out for a million tokens"
    if call.prompt_tokens is None or call.completion_tokens is None:
        return f"Its price is known: {rates}. The reply does not say how many it took."
    paid = usd(cost(call.prompt_tokens, call.completion_tokens, price))
    return f"Its price is known: {rates}. This call cost {paid}."


# --- a judge

# The kind of event that says which judge is tried, and on what.
TRIED = "tryout"
MOST_ITEMS = 3
# As many of the latest items are there to choose from.
CHOICE_OF = 200
# Somebody waits for these calls: none of a run is made before them.
BEFORE_ALL = datetime.fromtimestamp(0, UTC)
# Whoever waits gives up on a call that starts later than this.
PATIENCE = timedelta(seconds=60)


@dataclass(frozen=True)
class JudgeTrial:
    """One judge on a few items: its calls in their order, and why those waiting get no answer."""

    judge: Judge
    calls: Sequence[Call]
    lost: str

    @property
    def answered(self) -> list[Call]:
        return [call for call in self.calls if call.state != Call.State.WAITING]

    @property
    def failure(self) -> str:
        """What became of it where every answer failed, each for the same reason as the last."""
        if any(call.state != Call.State.FAILED for call in self.calls):
            return ""
        number = len(self.calls)
        times = f"all {('two', 'three')[number - 2]}" if number > 1 else "the only one"
        return f"failed on {times}: {short_reason(self.calls[-1].error)}"

    @property
    def is_over(self) -> bool:
        return len(self.answered) == len(self.calls) or bool(self.lost)


def try_judge(run_id: UUID, judge_id: UUID) -> None:
    """Let workers try a judge of a draft on up to three items."""
    with transaction.atomic():
        run = state.locked().get(pk=run_id)
        judge = _judge_to_try(run, judge_id)
        noun = kind_of(run.queue).noun
        items = items_for(run)
        if not items:
            raise LifecycleRefused(f"There are no {noun}s of this kind yet to try it on.")
        forget_trials(run)
        Call.objects.bulk_create(
            Call(
                run=run,
                purpose=Call.Purpose.TRIAL,
                provider=judge.provider,
                model=judge.model,
                item_id=item,
                order=Verdict.Order.STORED,
                sample=place,
                not_before=BEFORE_ALL,
            )
            for place, item in enumerate(items)
        )
        text = f"{judge.name} is tried on {number_of(len(items), noun)}."
        run.record(TRIED, text, judge=str(judge.pk))
        enqueue("judge_eval.tasks.work")


def _judge_to_try(run: Run, judge_id: UUID) -> Judge:
    if run.state != Run.State.DRAFT:
        raise LifecycleRefused(f"This run is {run.state}; judges are tried in a draft.")
    judge = run.judges.filter(pk=judge_id).exclude(provider=Judge.BASELINE).first()
    if judge is None:
        raise LifecycleRefused("This run has no such judge that could be asked.")
    if judge.recipe:
        raise LifecycleRefused(f"{judge.name} is made of several models: only one can be tried.")
    provider = provider_access.find(judge.provider, run.queue.project_id)
    if provider is None:
        raise LifecycleRefused(provider_access.no_such(judge.provider))
    if run.budget_nano is not None and provider_access.price_of(provider, judge.model) is None:
        raise LifecycleRefused(provider_access.unpriced(judge.model))
    last = latest(run)
    if last is not None and not last.is_over:
        raise LifecycleRefused(f"{last.judge.name} is being tried; wait for its answers.")
    return judge


def items_for(run: Run) -> list[UUID]:
    """Choose items of the kind that a run asks for, of its project or else of the demo.

    They are of different prompts as long as there are any.
    """
    config = config_of(run)
    of_kind = {"a__kind": config.kind, "b__isnull": config.items is not None}
    usable = Item.objects.filter(is_drawn(), unusable="", queue__run__isnull=False, **of_kind)
    usable = usable.order_by("-queue__created_at", "position")
    for scope in ({"queue__project": run.queue.project_id}, {"queue__project__name": DEMO}):
        items = list(usable.filter(**scope).values_list("pk", "a__prompt")[:CHOICE_OF])
        if items:
            times = run.events.filter(kind=TRIED).count()
            Random(f"{run.pk} {times}").shuffle(items)  # noqa: S311  no secret
            different = list({prompt: item for item, prompt in items}.values())
            return (different + [item for item, _ in items if item not in different])[:MOST_ITEMS]
    return []


def latest(run: Run) -> JudgeTrial | None:
    """Return the last trial of a draft, while its calls are there."""
    event = run.events.filter(kind=TRIED).order_by("pk").last()
    calls = list(run.calls.filter(purpose=Call.Purpose.TRIAL).order_by("sample"))
    if event is None or not calls:
        return None
    judge = run.judges.get(pk=event.data["judge"])
    is_waiting = any(call.state == Call.State.WAITING for call in calls)
    return JudgeTrial(judge, calls, _why_judge_is_lost(event, judge) if is_waiting else "")


def _why_judge_is_lost(event: RunEvent, judge: Judge) -> str:
    """Say why answers do not come, where it takes too long; empty where they may."""
    now = timezone.now()
    provider = provider_access.find(judge.provider, event.run.queue.project_id)
    left = leases.paused(provider, now).get(judge.model, now) - now if provider else timedelta(0)
    if left > PATIENCE / 2:
        return f"{provider} takes no call to {judge.model} for another {left.seconds} s."
    calls = event.run.calls.filter(purpose=Call.Purpose.TRIAL)
    dates = calls.aggregate(leased=Max("leased_until"), done=Max("done_at"))
    if max(filter(None, (event.at, *dates.values()))) > now - PATIENCE:
        return ""
    if dates["leased"]:
        return "The worker was lost before all answers were in."
    out = leases.calls_out(now).filter(provider=judge.provider).count()
    if provider and out >= provider.concurrency:
        return f"{provider} is busy with other calls."
    return NOT_TAKEN_UP
