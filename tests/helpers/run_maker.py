"""Runs against the local provider, gone through in this process: the tasks, without a broker."""

import json
from datetime import timedelta
from uuid import uuid4

from django.utils import timezone

from judge_eval.judging import leases, provider_access, results, verdicts, worker
from judge_eval.judging.config.run_config import parse
from judge_eval.judging.providers.chat import chat
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.judging.requests import question_of
from judge_eval.judging.results import CallAnswer
from judge_eval.models import Call, Provider, Run
from judge_eval.runs import lifecycle, state
from judge_eval.runs.queries import used_pictures
from tests.helpers.model_calls import completion
from tests.makers import make_project
from voting.pictures.store import render_picture

PRICES = {"input": "2.50", "output": "10"}


class OverBudget(Exception):
    """A call could not be asked: what it may cost does not fit."""


def make_provider(at, **fields):
    """The endpoint of a local provider, as the admin would hold it."""
    values = {"base_url": at.base_url, "concurrency": 8} | fields
    name = values.pop("name", "default")
    return Provider.objects.update_or_create(name=name, defaults=values)[0]


def make_config(**changes):
    return parse(
        {
            "name": "A study",
            "kind": "text",
            "models": ["model-a", "model-b"],
            "judges": ["judge-long", "judge-hash", "longer-wins"],
            "prompts": ["Say hello.", "Say goodbye."],
        }
        | changes
    )


def make_draft(at, provider=(), /, **changes):
    make_provider(at, **dict(provider))
    return lifecycle.create(make_project(), make_config(**changes))


def make_started(at, provider=(), /, **changes):
    """A run that was just started on a local provider."""
    return lifecycle.start(make_draft(at, provider, **changes).pk)


def make_judging(at, provider=(), /, **changes):
    """A run with one judge whose outputs are there, and whose calls for verdicts wait."""
    run = make_started(at, provider, **{"judges": ["judge-long"], "prompts": ["Say hi."]} | changes)
    while Call.objects.filter(purpose="generate", state="waiting").exists():
        attempt()
    state.advance(run.pk)
    return Run.objects.get(pk=run.pk)


def go_on(run, rounds=20):
    """Do what the workers would until the run is not at work any more; return it."""
    for _ in range(rounds):
        verdicts.settle_left(run.pk)
        state.advance(run.pk)
        run = Run.objects.get(pk=run.pk)
        if run.state not in Run.AT_WORK:
            return run
        for picture in used_pictures(run).filter(state="waiting"):
            render_picture(picture.pk)
        worker.work(should_stop=time_passes)
    return run


def time_passes():
    """Let every call's waiting be over, and every provider's; nothing has to stop for it."""
    past = timezone.now() - timedelta(seconds=1)
    Call.objects.filter(state="waiting", not_before__gt=past).update(not_before=past)
    Provider.objects.update(pauses={})
    return False


def leases_run_out(**calls):
    Call.objects.filter(state="waiting", leased_until__isnull=False, **calls).update(
        leased_until=timezone.now() - timedelta(seconds=1)
    )


def ask(call, timeout_s=None):
    """Ask what a claimed call asks and return the answer, not written down yet."""
    provider = Provider.objects.get(name=call.provider)
    if timeout_s is not None:
        provider.timeout_s = timeout_s
    question = question_of(call, provider)
    if not leases.reserve(call, question.reservation_nano):
        raise OverBudget
    try:
        return CallAnswer(
            question, reply=chat(provider_access.endpoint_of(provider), question.request)
        )
    except CallFailed as failure:
        return CallAnswer(question, failure=failure)


def attempt(slots=100, timeout_s=None, *, settles=True):
    """Make one attempt at calls that are free now; return them as they are then."""
    final = []
    claimed = leases.claim(slots, uuid4())
    for call in claimed:
        try:
            final += results.write([ask(call, timeout_s)])
        except CallFailed as failure:
            final += results.give_up(call, failure)
    if settles:
        verdicts.settle([call.verdict_id for call in final if call.verdict_id])
    return list(Call.objects.filter(pk__in=[call.pk for call in claimed]).order_by("pk"))


def a_verdict(winner="A", score_a=8, score_b=5, reason="So it is."):
    said = {"winner": winner, "score_a": score_a, "score_b": score_b, "reason": reason}
    return json.dumps(said)


def says(at, text, *, models=(), times=None, **more):
    """Let models of a provider give this very text."""
    body = completion(text, **{"usage": {"prompt_tokens": 10, "completion_tokens": 5}} | more)
    at.control(mode="canned", canned={"body": body}, models=list(models), times=times)


def asked_of(at, model):
    """The bodies of all requests for a model, oldest first."""
    return [request["body"] for request in at.requests if request["model"] == model]
