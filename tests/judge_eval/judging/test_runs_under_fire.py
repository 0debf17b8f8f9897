"""Runs are generated and judged by real workers while all that they need is taken away in turn."""

import json
import random
import signal
import time
from contextlib import closing

import psycopg
import pytest

from humanjudge.celery import app
from judge_eval.judging import results
from judge_eval.models import Call, Run, Verdict
from judge_eval.runs import lifecycle
from tests.helpers.scene import make_unjudged_run
from tests.helpers.waiting import eventually, gone
from tests.process.nursery import CONSTANTS
from tests.process.processes import Site, test_database_url
from tests.process.run_scene import (
    asked_again,
    assert_judged_once,
    done_calls,
    reaches_voting,
    start_run,
    state_of,
)
from tests.provider import provider_process
from tests.servers import postgres_server, valkey_server
from tests.voting.ballot.test_under_fire import forget_all_tasks
from voting.models import Entry

pytestmark = [
    pytest.mark.process,
    pytest.mark.fault,
    pytest.mark.slow,
    pytest.mark.postgresql_only,
]
THREADS = 4
KILLS = 4
# A lease is half as long as in production, and so is all that hangs on it.
LEASE = 10
LEASES = {"leases.LEASE": LEASE, "worker.RENEW_SECONDS": 2.5, "worker.LATE_SECONDS": 5}
# By then a call has been tried three times. With all its tries the provider may be away for more
# than a minute: see the last test.
AWAY_SECONDS = 5
# How long the supervisor of `make run` waits for a worker before it kills it.
PATIENCE = 10


@pytest.fixture
def model():
    with provider_process(latency_ms=100) as server:
        yield server


@pytest.fixture
def site(tmp_path, settings, transactional_db):
    """Processes on the database and the broker of this test."""
    forget_all_tasks()
    with Site(
        tmp_path, test_database_url(), settings.CELERY_BROKER_URL, **environment(settings)
    ) as s:
        yield s


def environment(settings):
    return {
        "SECRET_KEY": settings.SECRET_KEY,
        "JUDGING_THREADS": str(THREADS),
        CONSTANTS: json.dumps({f"judge_eval.judging.{name}": s for name, s in LEASES.items()}),
    }


def workers(site, number=2):
    site.beat()
    return [site.worker() for _ in range(number)]


def nothing_was_asked_twice(model, at_once=8):
    log = model.log()
    assert log["peak"] <= at_once
    assert set(log["counts"].values()) == {1}


def crews():
    """The crews that hold calls, those that are dead included."""
    held = Call.objects.filter(state="waiting", lease__isnull=False)
    return set(held.values_list("lease", flat=True))


def test_workers_are_killed_again_and_again_in_the_middle_of_their_calls(site, model):
    """What a killed worker had asked is asked again when its lease is over, and nothing else is."""
    at_once = 64  # the dead keep their places until their leases are over
    model.control(latency_ms=1500)
    workers(site, 1)
    run = start_run(model.base_url, prompts=60, concurrency=at_once)
    eventually(lambda: done_calls(run) > 0)
    kills = 0
    while kills < KILLS and done_calls(run) < 250:
        before = crews()
        mortal = site.worker()
        eventually(lambda: crews() - before or done_calls(run) > 250)  # noqa: B023
        # Others make no more calls than this at once.
        eventually(lambda: model.log()["now"] > THREADS or done_calls(run) > 250)
        time.sleep(random.uniform(0, 0.5))
        site.kill(mortal)
        kills += 1
    model.control(latency_ms=100)
    reaches_voting(run, 200)
    assert_judged_once(run)
    assert kills >= KILLS / 2
    assert 0 < asked_again(model) <= kills * THREADS
    assert model.log()["peak"] <= at_once


def test_both_workers_go_to_work_and_a_second_run_need_not_wait_for_the_first(site, model):
    model.control(latency_ms=1000)
    workers(site)
    large = start_run(model.base_url, prompts=200)
    eventually(lambda: len(crews()) == 2)
    small = start_run(model.base_url, prompts=2, topic="mountains")
    reaches_voting(small, 30)
    assert_judged_once(small)
    assert state_of(large) != "voting"
    nothing_was_asked_twice(model)


def test_calls_that_outlast_their_leases_are_made_once_and_seals_go_on_meanwhile(site, model):
    """Every hand of both workers is held for longer than a lease; nobody else makes its call."""
    model.control(mode="slow", slow_ms=4_000 * LEASE, times=8)
    workers(site)
    # One may take much longer to start than the other.
    eventually(lambda: len(app.control.ping(timeout=0.5)) == 2)
    run = start_run(model.base_url, prompts=4)
    eventually(lambda: model.log()["now"] == 8)
    local, pairs = make_unjudged_run(["longer-wins", "always-first"], pairs=20)
    reaches_voting(local, 20)
    sealed = Entry.objects.filter(kind="verdicts", seq__isnull=False, item__in=pairs)
    assert sealed.count() == len(pairs)
    assert model.log()["now"] == 8
    reaches_voting(run, 200)
    assert_judged_once(run)
    nothing_was_asked_twice(model)


def test_tasks_that_come_again_and_again_and_at_the_same_time_do_nothing_twice(site, model):
    workers(site)
    run = start_run(model.base_url)
    rounds = 0
    while state_of(run) != "voting":
        app.send_task("judge_eval.tasks.advance", [str(run.pk)])
        app.send_task("judge_eval.tasks.work")
        app.send_task("judge_eval.tasks.sweep")
        rounds += 1
        time.sleep(0.05)
    reaches_voting(run, 200)
    assert rounds > 20
    assert_judged_once(run)
    nothing_was_asked_twice(model)


def test_the_broker_forgets_everything_and_goes_away(tmp_path, settings, transactional_db, model):
    run = start_run(model.base_url)  # its tasks go to another broker: all of them are lost
    with (
        valkey_server() as broker,
        Site(tmp_path, test_database_url(), broker.url, **environment(settings)) as site,
    ):
        workers(site)
        for due in (20, 60):
            eventually(lambda: done_calls(run) > due)  # noqa: B023
            with closing(broker.client()) as client:
                client.flushall()
        broker.stop()
        time.sleep(3)
        broker.start()
        reaches_voting(run, 200)
    assert_judged_once(run)
    nothing_was_asked_twice(model)


def test_the_database_is_restarted_in_the_middle_of_a_run(tmp_path, settings, model):
    at = "from tests.process.run_scene import"
    with (
        postgres_server() as database,
        valkey_server() as broker,
        Site(tmp_path, database.url, broker.url, **environment(settings)) as site,
    ):
        site.manage("migrate", "--verbosity", "0")
        first, _ = workers(site)
        run = site.manage(
            "shell",
            "--no-imports",
            "-c",
            f"{at} start_run; print(start_run({model.base_url!r}).pk)",
        ).strip()
        for due in (20, 100):
            eventually(lambda: done_there(database) > due)  # noqa: B023
            database.stop()
            time.sleep(2)
            database.start()
        eventually(lambda: done_there(database) > 140)
        nothing_was_asked_twice(model)
        database.stop()
        first.send_signal(signal.SIGTERM)
        eventually(lambda: gone(first.pid), PATIENCE)
        database.start()
        eventually(lambda: count(database, "judge_eval_run WHERE state = 'voting'"))
        eventually(lambda: not count(database, "voting_entry WHERE seq IS NULL"))
        site.manage("shell", "--no-imports", "-c", f"{at} report; report({run!r})")


def count(database, rows):
    with psycopg.connect(database.url) as link:
        return link.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]


def done_there(database):
    return count(database, "judge_eval_call WHERE state = 'done'")


def test_a_provider_that_is_away_for_a_while(site, model):
    workers(site)
    run = start_run(model.base_url)
    eventually(lambda: done_calls(run) > 50)
    model.kill()
    time.sleep(AWAY_SECONDS)
    assert state_of(run) in Run.AT_WORK
    model.start()  # on its port, with nothing remembered
    reaches_voting(run, 200)
    assert_judged_once(run)
    nothing_was_asked_twice(model)
    assert not Call.objects.filter(attempts__gt=results.MOST_ATTEMPTS).exists()


@pytest.mark.parametrize("retry_after", [1, None], ids=["it says when", "it does not say when"])
def test_a_storm_of_every_fault_that_a_provider_has(site, model, retry_after):
    faults = {"429": 0.05, "500": 0.04, "503": 0.03, "disconnect": 0.04, "malformed": 0.04}
    rates = faults | {"slow": 0.02}
    model.control(mode="429", times=16, retry_after=retry_after, rates=rates, slow_ms=5000)
    workers(site)
    run = start_run(model.base_url, timeout_s=1)
    reaches_voting(run, 200)
    assert_judged_once(run)
    log = model.log()
    assert log["modes"]["ok"] == len(log["counts"])
    assert log["modes"].keys() >= faults.keys()
    # The provider goes on with calls that were not waited for.
    assert log["peak"] <= 8 + log["modes"].get("slow", 0)


def test_what_failed_for_good_is_asked_again_when_somebody_says_so(site, model):
    model.control(mode="refuse", models=["judge-two"])
    workers(site)
    run = start_run(model.base_url, prompts=10)
    reaches_voting(run, 200)
    failed = Verdict.objects.filter(judge__run=run, state="failed")
    assert set(failed.values_list("judge__name", flat=True)) == {"judge-two"}
    assert all("refused: I cannot help" in verdict.error for verdict in failed)
    model.control(mode="ok")
    assert lifecycle.retry_failed(run.pk) == 2 * 10
    reaches_voting(run, 200)
    # The verdict that came after all is a second word on each pair.
    assert_judged_once(run, entries_a_pair=2)


def test_a_worker_that_is_told_to_stop_writes_down_what_it_asked(site, model):
    model.control(latency_ms=1000)
    first, _ = workers(site)
    run = start_run(model.base_url, prompts=20)
    eventually(lambda: len(crews()) == 2)
    first.send_signal(signal.SIGTERM)
    eventually(lambda: gone(first.pid), PATIENCE)
    assert len(crews()) < 2
    model.control(latency_ms=100)
    reaches_voting(run, 200)
    assert_judged_once(run)
    nothing_was_asked_twice(model)


def test_a_worker_stops_in_time_though_its_calls_do_not_come_back(site, model):
    model.control(mode="slow", slow_ms=100_000)
    [worker] = workers(site, 1)
    run = start_run(model.base_url, prompts=10)
    eventually(lambda: model.log()["now"] == THREADS)
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: gone(worker.pid), PATIENCE)
    calls = Call.objects.filter(run=run)
    assert set(calls.values_list("state", flat=True)) == {"waiting"}
    held = calls.filter(leased_until__isnull=False)
    assert list(held.values_list("attempts", flat=True)) == [1] * THREADS
    nothing_was_asked_twice(model)


@pytest.mark.django_db
def test_a_provider_may_be_away_for_a_minute():
    waits = [results.least_wait(attempts) for attempts in range(1, results.MOST_ATTEMPTS)]
    assert sum(waits) > 60
    assert waits == sorted(waits)
