"""Runs against the local provider, gone through in this process: the tasks, without a broker."""

from judge_eval import crew, judging, lifecycle
from judge_eval.models import Provider, Run, Verdict
from judge_eval.run_config import parse
from judge_eval.selectors import ready_verdicts, used_pictures
from tests.makers import make_project
from voting.pictures import render_picture

PRICES = {"input": "2.50", "output": "10"}


def make_provider(at, **fields):
    """The endpoint of a local provider, as the back office would hold it."""
    return Provider.objects.create(
        **{"name": "default", "base_url": at.base_url, "concurrency": 8} | fields
    )


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


def make_started(at, provider=(), **changes):
    """A run that was just started on a local provider."""
    make_provider(at, **dict(provider))
    run = lifecycle.create_draft(make_project(), make_config(**changes))
    return lifecycle.start(run.pk)


def go_on(run, rounds=20):
    """Do what the workers would until the run is not at work any more; return it."""
    for _ in range(rounds):
        judging.advance(run.pk)
        run = Run.objects.get(pk=run.pk)
        if run.state not in Run.AT_WORK:
            return run
        for picture in used_pictures(run).filter(state="waiting"):
            render_picture(picture.pk)
        Verdict.objects.update(leased_until=None)
        for verdict in ready_verdicts(run):
            judging.decide(verdict.pk)
        crew.work()
    return run
