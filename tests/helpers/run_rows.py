"""Runs with calls, as rows: for tests of pages that need no provider."""

from django.utils import timezone

from judge_eval.judging.config.run_config import parse
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import lifecycle
from tests.makers import judges_of, make_project, make_run

PRICES = {"input": "2.50", "output": "10"}
CONFIG = {
    "name": "Harbours",
    "kind": "text",
    "models": ["model-a", "model-b"],
    "judges": ["judge-long", "judge-hash", "random"],
    "prompts": ["a harbour", "a lighthouse"],
}


def make_config(**changes):
    return parse(CONFIG | changes)


def make_provider(**fields):
    fields = {"name": "default", "base_url": "http://127.0.0.1:9/v1"} | fields
    return Provider.objects.create(**fields)


def make_draft(**changes):
    return lifecycle.create(make_project(), make_config(**changes))


def make_asked_run(*, state="judging", **options):
    """A run whose judges are models: no call was made yet."""
    names = options.get("names")
    run = make_run(**({"judges": len(names)} if names else {}) | options)
    Judge.objects.filter(run=run).update(provider="default", model="asked-model")
    run.config, run.state = make_config().as_dict(), state
    run.save()
    return run


def make_outputs(run, number, *, first=0, **fields):
    return Call.objects.bulk_create(
        Call(run=run, purpose="generate", prompt=n, **call_fields(fields, model="model-a"))
        for n in range(first, first + number)
    )


def make_calls(run, *, orders=("AB", "BA"), samples=1, **fields):
    """Calls for every verdict of a run."""
    return Call.objects.bulk_create(
        Call(
            run=run,
            purpose="judge",
            verdict=verdict,
            order=order,
            sample=sample,
            **call_fields(fields, model=verdict.judge.name),
        )
        for verdict in Verdict.objects.filter(judge__run=run)
        .select_related("judge")
        .order_by("item__position", "judge__position")
        for order in orders
        for sample in range(samples)
    )


def call_fields(fields, model):
    common = {"provider": "default", "model": model, "state": "done", "attempts": 1}
    if fields.get("state", "done") != "waiting":
        common |= {
            "done_at": timezone.now(),
            "prompt_tokens": 100,
            "completion_tokens": 20,
            "cost_nano": 450_000,
            "latency_ms": 250.0,
        }
    if fields.get("state") == "failed":
        common |= {"error": "the reply is empty"}
    return common | fields


def set_state(run, state, **fields):
    Run.objects.filter(pk=run.pk).update(state=state, **fields)


def first_verdict(run):
    return Verdict.objects.filter(judge=judges_of(run)[0]).order_by("item__position").first()
