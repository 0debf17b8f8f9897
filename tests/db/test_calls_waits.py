"""How long a call waits after a failure, and how long its model is left alone."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.models import Call, Provider
from judge_eval.runs import leases, worker
from tests.helpers.run_maker import attempt, make_judging, make_started

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("attempts", range(7))
def test_waits_grow_with_the_attempts_and_differ_from_call_to_call(at, attempts):
    make_judging(at)
    at.control(mode="500")
    Call.objects.filter(state="waiting").update(attempts=attempts)
    before = timezone.now()
    calls = attempt()
    after = timezone.now()
    least = timedelta(seconds=min(2**attempts, 30))
    assert len({call.not_before for call in calls}) == 2
    for call in calls:
        assert before + least <= call.not_before <= after + 1.25 * least
    assert pauses() == {}


def pauses():
    return leases.paused(Provider.objects.get(), timezone.now())


@pytest.mark.parametrize("asked, seconds", [(45, 45), (36_000, 60)])
def test_a_model_that_names_a_time_is_left_alone_and_the_others_are_not(at, asked, seconds):
    """One reply may be wrong: a time that is named once is kept to for a minute at most."""
    run = make_started(at, {"concurrency": 1}, prompts=["one", "two"])
    at.control(mode="429", retry_after=asked, models=["model-a"])
    before = timezone.now()
    others = run.calls.filter(model="model-b", state="done")
    worker.work(should_stop=lambda: others.count() == 2)
    assert others.count() == 2
    [(model, until)] = pauses().items()
    assert model == "model-a"
    assert before + timedelta(seconds=seconds) <= until
    assert until <= timezone.now() + timedelta(seconds=seconds)
    [told] = Provider.objects.get().pauses.values()
    assert told["why"].endswith(f"asked to wait {min(asked, 600)} s")
    assert sum(request["model"] == "model-a" for request in at.log()["requests"]) == 1
    assert run.calls.filter(model="model-a", state="waiting").count() == 2


@pytest.mark.parametrize("asked", ["0", "1"])
def test_a_provider_that_is_away_longer_than_it_says_costs_no_calls(at, asked):
    """A wait that is asked for is the least: eight tries must outlast a minute."""
    make_judging(at)
    at.answers({"error": {"message": "Busy."}}, status=503, headers={"Retry-After": asked})
    Call.objects.filter(state="waiting").update(attempts=5)
    before = timezone.now()
    calls = attempt()
    assert [call.attempts for call in calls] == [6, 6]
    assert all(call.not_before >= before + timedelta(seconds=30) for call in calls)


def test_a_shorter_pause_does_not_end_a_longer_one():
    Provider.objects.create(name="p", base_url="http://127.0.0.1:1/v1")
    leases.pause("p", "other", 0, "over at once")
    before = timezone.now()
    for seconds in (30, 60, 10):
        leases.pause("p", "m", seconds, f"{seconds} s")
    [(model, until)] = pauses().items()
    assert model == "m"
    assert before + timedelta(seconds=60) <= until <= timezone.now() + timedelta(seconds=60)
    assert {m: told["why"] for m, told in Provider.objects.get().pauses.items()} == {"m": "60 s"}
