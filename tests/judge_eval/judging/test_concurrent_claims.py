"""Many crews at once: no limit of a provider is passed, no call is made or paid for twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from functools import partial
from uuid import uuid4

import pytest
from django.db import transaction
from django.db.models import Sum

from judge_eval.judging import leases, results, verdicts
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import lifecycle, state
from tests.helpers.concurrent_calls import only, together
from tests.helpers.run_budget import money, priced
from tests.helpers.run_maker import (
    OverBudget,
    a_verdict,
    ask,
    attempt,
    leases_run_out,
    make_judging,
    make_started,
    says,
    time_passes,
)
from voting.models import Entry, Inference, Item

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]

MANY = [f"Say {n}." for n in range(10)]


def claim(slots=8):
    """Claim as a crew of its own does."""
    return [call.pk for call in leases.claim(slots, uuid4())]


def settle_all(calls):
    Call.objects.filter(pk__in=calls).update(state="failed", error="x", leased_until=None)


def test_crews_together_never_have_more_out_than_a_provider_allows(at):
    make_started(at, {"concurrency": 5}, prompts=MANY)
    made = []
    while Call.objects.filter(state="waiting").exists():
        claimed = [pk for calls in together(*[claim] * 6) for pk in calls]
        assert len(claimed) == len(set(claimed)) == 5
        made += claimed
        settle_all(claimed)
    assert len(made) == len(set(made)) == 20


def test_crews_together_keep_to_the_pace(at):
    make_started(at, {"concurrency": 100, "requests_per_minute": 600}, prompts=MANY)
    Provider.objects.update(next_start_at="2020-01-01T00:00Z")
    started = time.monotonic()
    claimed = [pk for calls in together(*[claim] * 6) for pk in calls]
    # What a second allows, and ten more for each second that they took.
    assert 10 <= len(claimed) <= 11 + 10 * (time.monotonic() - started)


def test_a_lost_lease_is_found_by_one_and_written_off_once(at):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    spent, _ = money(run)
    [lost] = leases.claim(1, uuid4())
    assert leases.reserve(lost, 1000)
    leases_run_out()
    claimed = [pk for calls in together(*[claim] * 6) for pk in calls]
    assert claimed == [lost.pk]
    assert money(run) == (spent + 1000, 0)
    assert Call.objects.get(pk=lost.pk).attempts == 2


def test_what_several_set_aside_together_stays_within_the_budget(at):
    run = make_judging(at, priced(), budget_usd=1, judging={"samples": 8})
    calls = leases.claim(8, uuid4())
    spent, _ = money(run)
    Run.objects.filter(pk=run.pk).update(budget_nano=spent + 5_500)
    granted = together(*[partial(leases.reserve, call, 1000) for call in calls])
    assert sorted(granted) == [False] * 3 + [True] * 5
    assert money(run) == (spent, 5000)


def test_one_answer_written_by_many_is_written_once(at):
    run = make_started(at, priced(), prompts=["Say hi."])
    answers = [ask(call) for call in leases.claim(8, uuid4())]
    writes = [partial(results.write, [answer]) for answer in answers * 4]
    assert sorted(map(len, together(*writes))) == [0] * 6 + [1] * 2
    assert Inference.objects.count() == 2
    spent, reserved = money(run)
    assert spent == Call.objects.aggregate(cost=Sum("cost_nano"))["cost"]
    assert reserved == 0


@pytest.mark.postgresql_only
def test_a_late_answer_that_is_being_written_is_not_claimed(at):
    """Its lease ran out, but its row is locked by who brings the answer: it is no longer free."""
    run = make_judging(at, verdict_orders="random")
    [call] = leases.claim(1, uuid4())
    answer = ask(call)
    leases_run_out()
    half_way, done = threading.Event(), threading.Event()

    def write_slowly():
        with transaction.atomic():
            results.write([answer])
            half_way.set()
            assert done.wait(30)

    def claim_meanwhile():
        assert half_way.wait(30)
        try:
            return claim()
        finally:
            done.set()

    assert together(write_slowly, claim_meanwhile) == [None, []]
    written = Call.objects.get(pk=call.pk)
    assert (written.state, written.attempts, written.lease) == ("done", 1, None)
    assert claim() == []
    assert run.state == "judging"


def test_a_verdict_settled_by_many_is_one_and_its_pair_is_entered_once(at):
    run = make_judging(at, judges=["judge-x"], prompts=MANY[:4])
    attempt(settles=False)
    keys = list(Verdict.objects.values_list("pk", flat=True))
    assert together(*[partial(verdicts.settle, keys)] * 4) == [None] * 4
    assert set(Verdict.objects.values_list("state", flat=True)) == {"done"}
    assert Entry.objects.filter(queue=run.queue, kind="verdicts").count() == 4


def test_a_model_that_changed_is_one_new_judge_whoever_notices(at):
    run = make_judging(at, judges=["judge-x"], prompts=MANY[:4])
    says(at, a_verdict(), model="v1")
    attempt(slots=2)
    says(at, a_verdict(), model="v2")
    attempt(settles=False)
    settles = [partial(verdicts.settle, [verdict.pk]) for verdict in Verdict.objects.all()]
    assert together(*settles) == [None] * 4
    names = Judge.objects.filter(run=run).order_by("position").values_list("reported_model")
    assert list(names) == [("v1",), ("v2",)]
    assert run.events.filter(kind="judge_changed").count() == 1


def test_many_who_advance_a_run_make_each_pair_and_each_call_once(at):
    run = make_started(at, {"concurrency": 100}, models=["a", "b", "c"], prompts=MANY[:4])
    attempt()
    assert together(*[partial(state.advance, run.pk)] * 6) == [True] * 6
    positions = Item.objects.values_list("position", flat=True)
    assert sorted(positions) == list(range(12))
    assert Call.objects.filter(purpose="judge").count() == 12 * 2 * 2


@pytest.mark.parametrize("action", [lifecycle.start, lifecycle.resume, lifecycle.stop])
def test_what_is_asked_for_by_many_is_done_once(at, action):
    run = make_started(at)
    state = {"start": "draft", "resume": "stopped", "stop": "generating"}[action.__name__]
    if state == "draft":
        Call.objects.all().delete()
    Run.objects.filter(pk=run.pk).update(state=state)
    answers = together(*[partial(action, run.pk)] * 5)
    assert len(only(Run, answers)) == 1
    assert len(only(lifecycle.LifecycleRefused, answers)) == 4
    assert Call.objects.count() == 4


def test_a_budget_holds_while_crews_ask_write_and_lose_their_leases(at):
    """Everything at once, again and again; after each round the purse is looked into."""
    at.control(rates={"500": 0.1, "disconnect": 0.1, "prose": 0.1, "usage_missing": 0.1}, seed=5)
    short = {"max_tokens": 60}
    run = make_started(
        at,
        priced(concurrency=6),
        budget_usd=0.05,
        judges=["judge-long"],
        prompts=MANY,
        generation=short,
        judging=short,
    )
    for number in range(12):
        together(*[crew_round] * 3)
        state.advance(run.pk)
        time_passes()
        if number % 3 == 2:
            leases_run_out()
        spent, reserved = money(run)
        assert spent + reserved <= run.budget_nano
    assert spent > 0
    counted = Counter(Call.objects.values_list("state", flat=True))
    assert counted["done"] > 0
    total = Call.objects.aggregate(cost=Sum("cost_nano"), aside=Sum("reserved_nano"))
    assert (total["cost"], total["aside"]) == money(run)


def crew_round():
    final = []
    for call in leases.claim(4, uuid4()):
        try:
            answer = ask(call)
        except OverBudget:
            leases.let_go(call)
            continue
        final += results.write([answer])
    verdicts.settle([call.verdict_id for call in final if call.verdict_id])
