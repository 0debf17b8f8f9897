"""Crews beside each other and beside who stops them, and answers that a database refuses."""

import threading
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from judge_eval.judging import leases, worker
from judge_eval.models import Call
from judge_eval.runs import lifecycle
from tests.helpers.run_maker import go_on, make_started
from tests.helpers.waiting import PATIENCE, eventually
from tests.judge_eval.judging.test_worker_pool import MODELS

pytestmark = pytest.mark.both


@pytest.mark.django_db
@pytest.mark.postgresql_only
def test_an_answer_that_cannot_be_written_down_takes_no_other_with_it(at):
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE judge_eval_call ADD CONSTRAINT no_such_reply "
            "CHECK (prompt <> 1 OR model <> 'model-a' OR state <> 'done')"
        )
    run = go_on(make_started(at, judges=["judge-long"], prompts=list("abc")))
    call = Call.objects.get(prompt=1, model="model-a")
    assert (call.state, call.lease, call.attempts) == ("failed", None, 1)
    assert call.error.startswith("its answer could not be written down: IntegrityError")
    assert run.state == "voting"
    assert run.calls.filter(state="failed").count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "stop",
    [
        lambda run: lifecycle.stop(run.pk),
        lambda run: [leases.pause("default", each, 3600, "429") for each in MODELS],
    ],
)
def test_what_was_set_aside_is_not_begun_once_its_run_or_provider_is_stopped(at, stop):
    at.control(latency_ms=40)
    run = make_started(at, {"concurrency": 1}, prompts=[f"prompt {n}" for n in range(60)])
    aside = Call.objects.filter(run=run, lease=None, leased_until__isnull=False)
    stopped_at = []

    def watch():
        if not stopped_at and aside.count() > 9:
            stop(run)
            stopped_at.append((len(at.requests), time.monotonic()))
        return bool(stopped_at) and time.monotonic() > stopped_at[0][1] + 1.5

    worker.work(should_stop=watch)
    [(asked, _)] = stopped_at
    # More than that were set aside.
    assert len(at.requests) - asked < 8
    assert not Call.objects.filter(run=run, leased_until__isnull=False).exists()
    assert Call.objects.filter(run=run, state="done").count() == len(at.requests)
    assert set(Call.objects.filter(run=run, state="waiting").values_list("attempts")) == {(0,)}


@pytest.mark.django_db(transaction=True)
def test_a_second_crew_goes_home_and_what_the_first_is_making_is_not_made_again(at):
    """Not even by itself, when leases ran out under it because the machine slept."""
    at.control(mode="slow", slow_ms=5000)
    run = make_started(at, {"concurrency": 8}, prompts=["one"])

    def shift():
        try:
            worker.work()
        finally:
            connection.close()

    first = threading.Thread(target=shift)
    first.start()
    eventually(lambda: at.log()["now"] == 2)
    worker.work()
    assert at.log()["now"] == 2
    assert first.is_alive()
    held = Call.objects.filter(run=run, lease__isnull=False)
    assert held.update(leased_until=timezone.now() - timedelta(seconds=1)) == 2
    at.control(mode="ok")
    first.join(PATIENCE)
    assert not first.is_alive()
    assert not Call.objects.filter(state="waiting").exists()
    assert set(at.log()["counts"].values()) == {1}
