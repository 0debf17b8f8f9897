"""Models that refuse a parameter: asked without it, noted on the run, and another competitor."""

import pytest

from judge_eval.models import Judge, Provider, Verdict
from tests.helpers.run_maker import go_on, make_started

pytestmark = pytest.mark.django_db

JUDGE = "judge-long"


def done_run(at, prompt="Say hello."):
    run = make_started(at, judges=[JUDGE, "longer-wins"], prompts=[prompt])
    go_on(run)
    assert set(Verdict.objects.filter(judge__run=run).values_list("state", flat=True)) == {"done"}
    return run


def test_it_is_asked_without_and_everybody_is_told(at):
    usual = done_run(at)
    at.control(mode="refuses temperature", models=[JUDGE], reset=True)
    first, second = done_run(at, "Say good morning."), done_run(at, "Say good night.")
    # Once for what the first batch asked; who comes later knows.
    assert Provider.objects.get().refused == {JUDGE: ["temperature"]}
    for run in (first, second):
        [event] = run.events.filter(kind="refused")
        assert event.text == f"{JUDGE} is asked without temperature, which it refuses."
    [one, other, another] = (run.judges.get(name=JUDGE) for run in (usual, first, second))
    assert one.fingerprint != other.fingerprint == another.fingerprint


def test_each_judge_and_each_model_has_settings_of_its_own(at):
    run = make_started(
        at,
        models=[{"id": "model-a", "temperature": None, "max_tokens": 99}, "model-b"],
        judges=[
            {"id": JUDGE, "temperature": 0.3, "reasoning_effort": "low", "max_tokens": 77},
            "judge-first",
        ],
    )
    go_on(run)
    sent = {each["model"]: each["body"] for each in at.requests}
    names = ("temperature", "max_tokens", "reasoning_effort")
    assert {model: [body.get(name) for name in names] for model, body in sent.items()} == {
        "model-a": [None, 99, None],
        "model-b": [0.7, 4000, None],
        JUDGE: [0.3, 77, "low"],
        "judge-first": [0.0, 400, None],
    }
    plain = done_run(at)
    fingerprints = Judge.objects.filter(name=JUDGE).values_list("fingerprint", flat=True)
    assert len(set(fingerprints)) == 2
    assert plain.config["judges"][0] == {"id": JUDGE, "provider": "default"}
