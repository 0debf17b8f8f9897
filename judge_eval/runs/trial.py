"""Try a provider with one small call, to see that its address, key and model are right.

A worker makes it, as workers have the keys. It takes a place among the provider's calls, waits for
nothing, and belongs to no run.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.utils import timezone

from humanjudge.celery import enqueue
from humanjudge.lib.text import excerpt, latency, usd
from judge_eval.config.estimates import cost
from judge_eval.models import Provider
from judge_eval.providers import protocols
from judge_eval.providers.chat import ChatReply, ChatRequest
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import leases, providers
from judge_eval.runs.lifecycle import LifecycleRefused

QUESTION = "Reply with the one word: ready"
MOST_TOKENS = 64
LONGEST_S = 30.0
# What a worker has not taken up by then, none will.
TAKEN_UP_WITHIN = timedelta(seconds=10)
LONGEST_ANSWER = 80


def ask(name: str, model: str) -> None:
    """Let a worker make one call to a model of a provider; one at a time."""
    with leases.locked(name) as provider:
        if provider is None:
            raise LifecycleRefused(providers.no_such(name))
        if is_under_way(provider, timezone.now()):
            raise LifecycleRefused(f"{name} is being tried; wait for its answer.")
        number = str(uuid4())
        provider.trial = {"id": number, "model": model, "at": timezone.now().timestamp()}
        provider.save(update_fields=["trial"])
        enqueue("judge_eval.tasks.try_provider", name, number)


def is_under_way(provider: Provider, now: datetime) -> bool:
    """Say whether an answer may still come."""
    return bool(provider.trial) and "words" not in provider.trial and not lost(provider, now)


def lost(provider: Provider, now: datetime) -> str:
    """Say why no answer will come, where it takes too long; nothing where it may."""
    trial = provider.trial
    if not trial or "words" in trial:
        return ""
    waited = timedelta(seconds=now.timestamp() - trial["at"])
    if "taken" not in trial:
        return providers.NOT_TAKEN_UP if waited > TAKEN_UP_WITHIN else ""
    is_late = waited > TAKEN_UP_WITHIN + timedelta(seconds=LONGEST_S)
    return "The worker was lost before an answer came." if is_late else ""


def make(name: str, number: str) -> None:
    """Make the call, once however often this is delivered, and write down what came of it."""
    place = uuid4()
    taken = _take(name, number, place)
    if taken is None:
        return
    try:
        found = _asked(taken)
    except CallFailed as failed:
        found = {"words": failed.reason, "ok": False}
    with leases.locked(name) as provider:
        if provider is not None:
            leases.wait_for_share(provider, timezone.now(), place, is_waiting=False)
            if provider.trial.get("id") == number:
                provider.trial |= found
                provider.save(update_fields=["trial"])


def _take(name: str, number: str, place: UUID) -> Provider | None:
    """Take a place among the calls of a provider; say at once where there is none."""
    with leases.locked(name) as provider:
        if provider is None or provider.trial.get("id") != number or "taken" in provider.trial:
            return None
        now, model = timezone.now(), provider.trial["model"]
        refused = providers.lacks_key(provider)
        if not refused and (until := leases.paused(provider, now).get(model)):
            refused = f"{model} is left alone for another {(until - now).seconds} s"
        lasts = timedelta(seconds=LONGEST_S)
        if not refused and not leases.take_place(provider, now, place, lasts):
            refused = f"{name} takes no more calls at this moment; try again"
        provider.trial["taken"] = True
        if refused:
            provider.trial |= {"words": refused, "ok": False}
        provider.save(update_fields=["trial"])
    return None if refused else provider


def _asked(provider: Provider) -> dict[str, str | bool]:
    endpoint = providers.endpoint_of(provider)
    messages = [{"role": "user", "content": QUESTION}]
    request = ChatRequest(provider.trial["model"], messages, None, MOST_TOKENS)
    endpoint = replace(endpoint, timeout_s=min(endpoint.timeout_s, LONGEST_S))
    reply = protocols.ask(provider.protocol, endpoint, request)
    said = excerpt(reply.text, LONGEST_ANSWER) if reply.text.strip() else "without a text"
    words = f"{reply.model} answered {said} in {latency(reply.latency_ms)}."
    return {"words": words, "ok": True, "price": _price(provider, reply)}


def _price(provider: Provider, reply: ChatReply) -> str:
    model = provider.trial["model"]
    price = providers.price_of(provider, model)
    if price is None:
        return f"Nobody has said what {model} costs; a run with a budget needs its price."
    rates = f"${price.input:f} in and ${price.output:f} out for a million tokens"
    if reply.prompt_tokens is None or reply.completion_tokens is None:
        return f"Its price is known: {rates}. The reply does not say how many it took."
    paid = usd(cost(reply.prompt_tokens, reply.completion_tokens, price))
    return f"Its price is known: {rates}. This call cost {paid}."
