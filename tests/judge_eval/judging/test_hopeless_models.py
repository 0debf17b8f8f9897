"""A model whose calls all fail for good is not called again and again: the rest is held."""

import pytest
from django.urls import reverse

from judge_eval.judging import results, trial, worker
from judge_eval.judging.providers.errors import LEFT_OUT, CallFailed
from judge_eval.models import Call, Run
from judge_eval.runs import exclusion, lifecycle, state
from judge_eval.runs.lifecycle import create
from tests.helpers.imports import assert_whole
from tests.helpers.run_maker import go_on, make_config, make_judging, make_provider, make_started
from tests.makers import make_project, make_run, make_voter, seal_all, user_client

pytestmark = pytest.mark.django_db
PROMPTS = [f"Prompt {number}." for number in range(30)]
CONFIG = {"judges": ["judge-ghost", "judge-long"], "prompts": PROMPTS}


def calls_to(model="judge-ghost"):
    return Call.objects.filter(model=model)


@pytest.fixture
def run(at):
    at.control(mode="unknown_model", models=["judge-ghost"])
    run = go_on(make_started(at, {"concurrency": 1}, **CONFIG))
    return Run.objects.get(pk=run.pk)


def test_after_eight_of_eight_the_others_are_held_and_people_can_vote(at, run):
    asked = [request["model"] for request in at.requests].count("judge-ghost")
    assert 8 <= asked <= 8 + 2
    assert calls_to().filter(attempts=0, state="failed").count() == 60 - asked
    assert run.state == "voting"
    assert calls_to("judge-long").filter(state="done").count() == 60
    event = run.events.filter(kind="held").first()
    assert event.text.startswith("judge-ghost failed on every call so far")
    page = user_client().get(reverse("run-progress", args=[run.pk])).content.decode()
    words = " ".join(page.split())
    assert f"{asked} so far; {60 - asked} more are on hold" in words
    assert "?leave_out=judge-ghost#leave-out" in page


def test_retrying_asks_for_all_of_them_and_holds_them_again(at, run):
    assert lifecycle.retry_failed(run.pk) == 60
    at.control(mode="ok", reset=True)
    assert go_on(run).state == "voting"
    assert calls_to().filter(state="done").count() == 60


@pytest.mark.parametrize("mode", ["insufficient_quota"])
def test_other_errors_hold_nothing(at, mode):
    at.control(mode=mode, models=["judge-ghost"])
    go_on(make_started(at, {"concurrency": 1}, **CONFIG))
    assert not calls_to().filter(attempts=0).exists()


@pytest.mark.parametrize(
    "status, is_permanent",
    [(401, True), (403, True), (404, True), (400, False), (429, False), (None, False)],
)
def test_which_errors_are_permanent(status, is_permanent):
    assert CallFailed("no", status=status).is_permanent == is_permanent


def test_one_answer_shows_that_there_is_hope(at, run):
    Call.objects.filter(pk=calls_to().first().pk).update(state="done", error="", winner="A")
    calls_to().filter(state="failed", attempts=0).update(state="waiting", error="")
    about = {"purpose": "judge", "provider": "default", "model": "judge-ghost"}
    assert results.hold_hopeless(run, **about) == []


def test_a_try_out_without_any_answer_says_so_in_its_head(at):
    project = make_project()
    make_provider(at)
    make_run(project, pairs=5)
    at.control(mode="unknown_model", models=["judge-ghost"])
    run = create(project, make_config(judges=["judge-ghost"]))
    trial.try_judge(run.pk, run.judges.get(name="judge-ghost").pk)
    worker.work()
    assert trial.latest(run).failure == "failed on all three: 404 no such model or address"
    page = user_client().get(reverse("run-draft", args=[run.pk])).content.decode()
    assert "judge-ghost: failed on all three: 404 no such model or address" in page


def leave_out(run, name="judge-ghost"):
    exclusion.leave_out(run.judges.get(name=name), make_voter(run), "Dead.")


def test_calls_of_a_judge_that_is_left_out_are_held_and_made_when_it_is_back(at):
    run = make_judging(at, judges=["judge-ghost", "judge-long"])
    leave_out(run)
    run = go_on(run)
    assert [request["model"] for request in at.requests].count("judge-ghost") == 0
    assert {*calls_to().values_list("state", "error", "attempts")} == {("failed", LEFT_OUT, 0)}
    assert (run.state, run.queue.items.get().opened_at is None) == ("voting", False)
    assert not lifecycle.can_retry(run)
    assert "2 calls held: their judge is left out." in [each.text for each in run.events.all()]
    client = user_client()
    shown = client.get(reverse("run-progress", args=[run.pk])).content.decode()
    assert "2 calls on hold until it is taken back." in shown
    failed = client.get(reverse("run-calls", args=[run.pk])).content.decode()
    assert LEFT_OUT in failed
    assert "Retry these" not in failed

    seal_all(run.queue.project)
    exclusion.include(run.judges.get(name="judge-ghost"), make_voter(run))
    seal_all(run.queue.project)
    assert go_on(run).state == "voting"
    assert {*calls_to().values_list("state", "error")} == {("done", "")}
    seal_all(run.queue.project)
    assert_whole(run.queue.project)


def test_what_is_asked_for_later_of_a_judge_that_is_left_out_is_held_too(at):
    run = make_started(at, judges=["judge-ghost", "judge-long"])
    leave_out(run)
    assert go_on(run).state == "voting"
    assert calls_to().filter(error=LEFT_OUT, attempts=0).count() == 4
    [left_out] = exclusion.left_out_of(run)
    assert left_out.held == 4


def test_a_worker_that_claims_such_a_call_does_not_make_it(at):
    run = make_judging(at, judges=["judge-ghost", "judge-long"])
    leave_out(run)
    seal_all(run.queue.project)
    worker.work()
    assert "judge-ghost" not in [request["model"] for request in at.requests]
    assert calls_to().filter(error=LEFT_OUT).count() == 2


def test_a_stopped_run_makes_them_once_it_goes_on(at):
    run = make_judging(at, judges=["judge-ghost", "judge-long"])
    leave_out(run)
    state.advance(run.pk)
    lifecycle.stop(run.pk)
    exclusion.include(run.judges.get(name="judge-ghost"), make_voter(run))
    assert Run.objects.get(pk=run.pk).state == "stopped"
    assert calls_to().filter(state="waiting").count() == 2
