"""A judge tried on a few pairs before a run: the run's own words, its budget, asked once."""

from datetime import timedelta
from hashlib import sha256
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from judge_eval.judging import leases, results, trial, worker
from judge_eval.judging.providers.errors import CallFailed
from judge_eval.models import Call, Judge, Provider, Run, RunEvent, Verdict
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from tests.helpers.run_maker import (
    PRICES,
    ask,
    asked_of,
    attempt,
    go_on,
    make_config,
    make_provider,
    make_started,
    says,
)
from tests.makers import make_picture, make_project, make_run, user_client
from tests.provider import provider
from tests.provider_models import outputs_shown
from voting.models import Inference, Item, Picture, Queue

pytestmark = pytest.mark.django_db

JUDGE = "judge-hash"


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


@pytest.fixture
def at(server):
    server.control(reset=True, mode="ok", models=[], times=None, canned={})
    return server


def make_draft(at, /, *, pairs=5, **config):
    """A draft in a project in which an earlier run has so many pairs."""
    project = make_project()
    make_provider(at, prices={JUDGE: PRICES})
    if pairs:
        make_run(project, pairs=pairs)
    return lifecycle.create(project, make_config(judges=[JUDGE, "longer-wins"], **config))


def judge_of(run, name=JUDGE):
    return run.judges.get(name=name)


def try_it(run):
    """Ask, and do what a worker would; return what came."""
    trial.try_judge(run.pk, judge_of(run).pk)
    worker.work()
    return trial.latest(run)


def items_of(came):
    return [call.item_id for call in came.calls]


def test_three_pairs_of_the_project_with_what_was_said(at):
    run = make_draft(at)
    came = try_it(run)
    assert len(items_of(came)) == len(set(items_of(came))) == 3
    assert came.is_over
    assert not came.lost
    for call in came.answered:
        assert call.winner in ("A", "B")
        assert call.reason == f"By the rule of {JUDGE}."
        assert '"winner"' in call.reply
    assert set(Call.objects.values_list("state")) == {("done",)}
    assert not Verdict.objects.filter(judge__run=run).exists()


def test_it_is_asked_what_the_run_would_ask(at):
    run = make_draft(at, rubric="Which is more cheerful?", ballot=["A", "B", "tie"])
    came = try_it(run)
    [first, *_] = bodies = asked_of(at, JUDGE)
    assert len(bodies) == 3
    assert "Which is more cheerful?" in first["messages"][0]["content"]
    assert (first["temperature"], first["max_tokens"]) == (0.0, 400)
    shown = [outputs_shown(body["messages"]) for body in bodies]
    pairs = [Inference.objects.filter(pk__in=ids) for ids in _sides(items_of(came))]
    stored = [{output.output.encode() for output in pair} for pair in pairs]
    assert {frozenset(each) for each in shown} == {frozenset(each) for each in stored}


def test_it_is_asked_though_it_has_said_the_same_before(at):
    made = {"judges": [JUDGE], "verdict_orders": "both"}
    earlier = go_on(make_started(at, **made))
    draft = lifecycle.create(earlier.queue.project, make_config(**made))
    at.control(reset=True)
    came = try_it(draft)
    assert len(items_of(came)) == len(asked_of(at, JUDGE)) == 2
    assert all(call.latency_ms is not None for call in came.answered)


def _sides(pairs):
    found = Item.objects.in_bulk(pairs)
    return [(found[pk].a_id, found[pk].b_id) for pk in pairs]


def test_different_prompts_are_chosen_first_and_other_pairs_next_time(at):
    run = make_draft(at, pairs=40)
    Inference.objects.filter(prompt__in=[f"Question {n}" for n in range(37)]).update(prompt="Same")
    first, second = try_it(run), try_it(run)
    for came in (first, second):
        prompts = {Inference.objects.get(pk=a).prompt for a, _ in _sides(items_of(came))}
        assert len(prompts) == 3
    assert items_of(first) != items_of(second)


def test_with_fewer_pairs_than_three_all_are_taken(at):
    assert len(try_it(make_draft(at, pairs=2)).calls) == 2


def test_the_demo_where_the_project_has_nothing_of_this_kind(at):
    run = make_draft(at, pairs=0)
    assert trial.items_for(run) == []
    demo = make_run(make_project("Demo"), pairs=3)
    came = try_it(run)
    assert set(items_of(came)) == set(demo.queue.items.values_list("pk", flat=True))


def test_a_judge_of_drawings_is_sent_the_very_pictures(at):
    run = make_draft(at, pairs=1, kind="svg")
    sides = list(Inference.objects.order_by("output"))
    pictures = [
        make_picture(colour, inferences=[side])
        for colour, side in zip(("red", "teal"), sides, strict=True)
    ]
    assert try_it(run).is_over
    [body] = asked_of(at, JUDGE)
    sent = {sha256(png).hexdigest() for png in outputs_shown(body["messages"])}
    assert sent == {picture.png_sha256 for picture in pictures}


def test_pairs_whose_pictures_are_not_drawn_are_not_taken(at):
    run = make_draft(at, pairs=2, kind="svg")
    waiting = Picture.objects.create(source_sha256="0" * 64)
    for pair in Item.objects.all():
        make_picture("red", inferences=[pair.a])
        Inference.objects.filter(pk=pair.b_id).update(picture=waiting, kind="svg")
    assert trial.items_for(run) == []


@pytest.mark.parametrize("kind", ["svg", "code"])
def test_other_kinds_and_pairs_that_cannot_be_shown_are_not_taken(at, kind):
    run = make_draft(at, kind=kind)
    with pytest.raises(LifecycleRefused, match="no pairs of this kind"):
        trial.try_judge(run.pk, judge_of(run).pk)
    other = make_draft_of_texts(run.queue.project)
    Queue.objects.get(run__name="A run of pairs").items.update(unusable="no drawing")
    with pytest.raises(LifecycleRefused, match="no pairs of this kind"):
        trial.try_judge(other.pk, judge_of(other).pk)


def make_draft_of_texts(project):
    return lifecycle.create(project, make_config(judges=[JUDGE]))


@pytest.mark.parametrize(
    "said, error",
    [
        ("I cannot decide.", "no JSON object"),
        ('{"winner": "both"}', "the winner 'both' must be one of"),
        ("", "the reply is empty"),
    ],
)
def test_what_is_no_verdict_is_told_with_the_raw_reply(at, said, error):
    run = make_draft(at)
    says(at, said)
    came = try_it(run)
    assert len(asked_of(at, JUDGE)) == 3  # not asked once more: that is what is to be seen
    for call in came.answered:
        assert error in call.error
        assert call.reply == said if said else '"choices"' in call.reply
        assert not call.winner


@pytest.mark.parametrize(
    "mode, error, cost",
    [
        ("insufficient_quota", "no credit", 0),
        ("500", "500 Internal Server Error", 0),
        ("refuse", "refused: I cannot help with that.", None),
    ],
)
def test_failures_of_the_provider_are_told(at, mode, error, cost):
    run = make_draft(at)
    at.control(mode=mode)
    came = try_it(run)
    assert came.is_over
    for call in came.answered:
        assert error in call.error
        assert cost is None or call.cost_nano == cost


def spent(run):
    return Run.objects.values_list("spent_nano", flat=True).get(pk=run.pk)


def test_what_it_costs_counts_as_spent(at):
    run = make_draft(at)
    says(at, '{"winner": "A"}')
    came = try_it(run)
    # 10 tokens in at $2.50 and 5 out at $10 a million.
    assert [call.cost_nano for call in came.answered] == [75_000] * 3
    assert spent(run) == 225_000
    assert Run.objects.get(pk=run.pk).reserved_nano == 0


def test_no_call_is_made_that_could_pass_the_budget(at):
    run = make_draft(at, budget_usd=0.000001)
    # Generators are priced too, or the budget itself would be refused.
    Provider.objects.update(prices=dict.fromkeys([JUDGE, "model-a", "model-b"], PRICES))
    came = try_it(run)
    assert {call.error for call in came.answered} == {
        "This call could pass the budget, so it was not made."
    }
    assert at.requests == []
    assert spent(run) == 0


def test_a_budget_wants_a_price(at):
    run = make_draft(at, budget_usd=5)
    Provider.objects.update(prices={})
    with pytest.raises(LifecycleRefused, match="nobody has said what judge-hash costs"):
        trial.try_judge(run.pk, judge_of(run).pk)


def test_a_price_that_is_gone_by_then_asks_nobody(at):
    run = make_draft(at, budget_usd=5)
    Provider.objects.update(prices=dict.fromkeys([JUDGE, "model-a", "model-b"], PRICES))
    trial.try_judge(run.pk, judge_of(run).pk)
    Provider.objects.update(prices={})
    worker.work()
    call = trial.latest(run).answered
    assert all("nobody has said what judge-hash costs" in each.error for each in call)
    assert (len(call), at.requests) == (3, [])


def test_a_picture_that_is_gone_is_told(at):
    run = make_draft(at, pairs=1, kind="svg")
    for side in Inference.objects.all():
        make_picture("red", inferences=[side])
    Picture.objects.update(png_sha256="0" * 64)
    [call] = try_it(run).answered
    assert call.error.startswith("it could not be asked: ")


class TestLimits:
    def test_a_model_that_is_paused_for_long_is_not_asked_and_the_page_says_so(self, at):
        run = make_draft(at)
        leases.pause("default", "another", 100, "429")
        leases.pause("default", JUDGE, 100, "429")
        trial.try_judge(run.pk, judge_of(run).pk)
        attempt()
        came = trial.latest(run)
        assert came.lost.startswith(f"default takes no call to {JUDGE} for another ")
        assert came.is_over
        assert at.requests == []
        # Whoever tries again leaves nothing behind of the first time.
        trial.try_judge(run.pk, judge_of(run).pk)
        Provider.objects.update(pauses={})
        worker.work()
        assert len(trial.latest(run).answered) == len(at.requests) == 3

    def test_a_short_pause_is_waited_for(self, at):
        run = make_draft(at, pairs=1)
        until = timezone.now() + timedelta(seconds=0.5)
        leases.pause("default", JUDGE, 0.5, "429")
        [call] = try_it(run).answered
        assert not call.error
        assert call.done_at > until

    def test_they_count_among_the_calls_at_once_and_have_their_turn(self, at):
        make_started(at, {"concurrency": 1})
        run = make_draft(at)
        Provider.objects.update(concurrency=1)
        trial.try_judge(run.pk, judge_of(run).pk)
        [call] = leases.claim(8, uuid4())
        assert leases.claim(8, uuid4()) == []
        leases.let_go(call)
        # Somebody waits for these, so they do not stand behind all others.
        purposes = []
        for _ in range(4):
            [call] = leases.claim(8, uuid4())
            purposes.append(call.purpose)
            assert leases.claim(8, uuid4()) == []
            results.give_up(call, CallFailed("not this one"))
        assert purposes == ["trial", "trial", "trial", "generate"]

    def test_a_provider_that_is_busy_for_long_is_told(self, at):
        run = make_draft(at)
        make_started(at, {"concurrency": 1})
        leases.claim(8, uuid4())
        trial.try_judge(run.pk, judge_of(run).pk)
        assert leases.claim(8, uuid4()) == []
        assert not trial.latest(run).lost
        RunEvent.objects.filter(kind=trial.TRIED).update(at=long_ago())
        assert trial.latest(run).lost == "default is busy with other calls."
        assert at.requests == []


def long_ago():
    return timezone.now() - timedelta(minutes=10)


def test_workers_that_come_again_ask_once(at):
    run = make_draft(at)
    try_it(run)
    worker.work()
    assert len(at.requests) == 3
    assert Call.objects.filter(state="done").count() == 3


def test_one_at_a_time_until_it_is_over_or_lost(at):
    run = make_draft(at)
    trial.try_judge(run.pk, judge_of(run).pk)
    with pytest.raises(LifecycleRefused, match="judge-hash is being tried"):
        trial.try_judge(run.pk, judge_of(run).pk)
    RunEvent.objects.filter(kind=trial.TRIED).update(at=long_ago())
    assert "No worker has taken this up" in trial.latest(run).lost
    assert try_it(run).is_over
    assert len(at.requests) == 3


def test_calls_of_a_worker_that_was_lost_are_made_by_another(at):
    run = make_draft(at)
    trial.try_judge(run.pk, judge_of(run).pk)
    assert len(leases.claim(8, uuid4())) == 3
    RunEvent.objects.filter(kind=trial.TRIED).update(at=long_ago())
    assert not trial.latest(run).lost
    Call.objects.update(leased_until=timezone.now() - timedelta(minutes=2))
    assert "The worker was lost" in trial.latest(run).lost
    assert trial.latest(run).is_over
    worker.work()
    assert len(trial.latest(run).answered) == len(at.requests) == 3
    assert not trial.latest(run).lost


def test_only_a_judge_of_this_draft_that_can_be_asked(at):
    run = make_draft(at)
    other = make_draft_of_texts(run.queue.project)
    for judge in (judge_of(run, "longer-wins"), judge_of(other)):
        with pytest.raises(LifecycleRefused, match="no such judge"):
            trial.try_judge(run.pk, judge.pk)
    Judge.objects.filter(run=run, name=JUDGE).update(provider="elsewhere")
    with pytest.raises(LifecycleRefused, match="no provider named elsewhere"):
        trial.try_judge(run.pk, judge_of(run).pk)


def test_only_in_a_draft(at):
    run = make_draft(at)
    lifecycle.start(run.pk)
    with pytest.raises(LifecycleRefused, match="judges are tried in a draft"):
        trial.try_judge(run.pk, judge_of(run).pk)


def test_a_draft_that_is_deleted_meanwhile_is_left_alone(at):
    run = make_draft(at)
    trial.try_judge(run.pk, judge_of(run).pk)
    [call, *_] = leases.claim(1, uuid4())
    answer = ask(call)
    lifecycle.delete(run.pk)
    assert results.write([answer]) == []
    at.control(reset=True)
    worker.work()
    assert at.requests == []
    assert not Call.objects.exists()


def test_a_draft_is_deleted_with_all_that_is_its_own(at):
    run = make_draft(at)
    queues = Queue.objects.count()
    try_it(run)
    lifecycle.delete(run.pk)
    assert not Run.objects.filter(pk=run.pk).exists()
    assert Queue.objects.count() == queues - 1
    assert not Judge.objects.filter(name=JUDGE).exists()
    connection.check_constraints()


@pytest.mark.parametrize("state", [state for state in Run.State.values if state != "draft"])
def test_nothing_but_a_draft_is_ever_deleted(at, state):
    run = make_draft(at)
    Run.objects.filter(pk=run.pk).update(state=state)
    # A run that is still being imported is found by nobody.
    refused = Run.DoesNotExist if state == "importing" else LifecycleRefused
    with pytest.raises(refused, match=r"only a draft can be deleted|does not exist"):
        lifecycle.delete(run.pk)
    assert Run.every.filter(pk=run.pk).exists()


def test_a_trial_ends_where_the_run_starts_and_its_money_stays_spent(at):
    run = make_draft(at)
    says(at, '{"winner": "A"}')
    try_it(run)
    trial.try_judge(run.pk, judge_of(run).pk)
    call, late = leases.claim(2, uuid4())
    for each in (call, late):
        leases.reserve(each, 100_000)
    results.write([ask(call)])
    lifecycle.start(run.pk)
    assert not Call.objects.filter(purpose="trial").exists()
    assert results.write([ask(late)]) == []
    run.refresh_from_db()
    assert run.reserved_nano == 0
    assert run.spent_nano >= 4 * 75_000 + 100_000


def test_the_page_of_a_call_shows_no_trial(at):
    run = make_draft(at)
    try_it(run)
    for call in run.calls.all():
        assert user_client().get(f"/runs/{run.pk}/calls/{call.pk}/").status_code == 404


def test_a_draft_of_a_new_project(at):
    run = lifecycle.create("Fresh", make_config())
    assert (run.queue.project.name, run.state) == ("Fresh", "draft")
