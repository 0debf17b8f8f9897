"""Runs that real workers make against the local provider, and what must be true of them in the end.

The functions also serve `manage.py shell` of an installation with a database of its own.
"""

import json
from collections import Counter

from judge_eval.judging.config.run_config import parse
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import lifecycle
from tests.helpers.scene import assert_whole
from tests.helpers.waiting import eventually
from tests.makers import make_project
from voting.models import Entry, Item

JUDGES = ("judge-one", "judge-two")


def start_run(base_url, *, prompts=40, judges=JUDGES, topic="the sea", kind="text", **provider):
    """Start a run of two models; a baseline judges too. Each call asks what no other one asks."""
    fields = {"base_url": base_url, "concurrency": 8, "timeout_s": 60} | provider
    Provider.objects.update_or_create(name="default", defaults=fields)
    config = parse(
        {
            "name": "Under fire",
            "kind": kind,
            "models": ["model-a", "model-b"],
            "judges": [*judges, "longer-wins"],
            "prompts": [f"Tell me of {topic}, in {n + 1} words." for n in range(prompts)],
        }
    )
    return lifecycle.start(lifecycle.create(make_project(), config).pk)


def state_of(run):
    return Run.objects.values_list("state", flat=True).get(pk=run.pk)


def done_calls(run):
    return Call.objects.filter(run=run.pk, state="done").count()


def reaches_voting(run, seconds):
    """Wait for it, and for the ledger to have sealed all there is."""
    eventually(lambda: state_of(run) == "voting", seconds)
    eventually(lambda: not Entry.objects.filter(seq__isnull=True).exists())


def assert_judged_once(run, *, entries_a_pair=1):
    """Every call is done, there is one verdict of each judge on each pair, and one on the board."""
    run = Run.objects.get(pk=run.pk)
    judges, prompts = Judge.objects.filter(run=run), run.config["prompts"]
    models = judges.exclude(provider=Judge.BASELINE)
    pairs = Item.objects.filter(queue=run.queue_id)
    assert len(pairs) == len(prompts)
    assert all(pair.opened_at and not pair.unusable for pair in pairs)
    assert len(models) == len(run.config["judges"]) - 1
    verdicts = Verdict.objects.filter(judge__run=run)
    assert Counter(verdicts.values_list("state", flat=True)) == {"done": len(pairs) * len(judges)}
    calls = Call.objects.filter(run=run)
    asked = 2 * len(prompts) + 2 * len(pairs) * len(models)
    assert Counter(calls.values_list("state", flat=True)) == {"done": asked}
    assert not calls.filter(lease__isnull=False).exists()
    assert not calls.exclude(reserved_nano=0).exists()
    entries = Entry.objects.filter(queue=run.queue_id, kind="verdicts")
    counted = Counter(entries.values_list("item", flat=True))
    assert counted == dict.fromkeys([pair.pk for pair in pairs], entries_a_pair)
    assert_whole(run.queue.project)


def requests_of(model):
    """How often each request was made that the provider remembers."""
    return Counter(model.log()["counts"])


def asked_again(model):
    return sum(requests_of(model).values()) - len(requests_of(model))


def report(run_id):
    """Print, for another process, what `assert_judged_once` says; it raises where that fails."""
    assert_judged_once(Run.objects.get(pk=run_id))
    print(json.dumps({"judged": "once"}))
