"""A budget is never passed: what a call may cost is set aside before it is made."""

from decimal import Decimal
from uuid import uuid4

import pytest
from django.db.models import Sum

from judge_eval.judging import leases, results
from judge_eval.models import Call, Run
from judge_eval.runs.progress import progress_of
from tests.helpers.run_budget import NAMES, ONE_JUDGE, SHORT, money, priced, work_within
from tests.helpers.run_maker import (
    a_verdict,
    ask,
    attempt,
    go_on,
    leases_run_out,
    make_judging,
    make_started,
    says,
)

pytestmark = pytest.mark.django_db


def test_the_provider_is_never_asked_for_more(at):
    usage = {"prompt_tokens": 10, "completion_tokens": 50}
    each = 10 * 2_500 + 50 * 10_000
    says(at, a_verdict(), usage=usage)
    run = make_started(at, priced(), budget_usd=0.02, **ONE_JUDGE, **SHORT)
    assert work_within(run) <= run.budget_nano
    assert run.state == "stopped"
    assert 0 < len(at.requests) * each == run.spent_nano <= 20_000_000


@pytest.mark.parametrize("amount, mode", [("0.01", "ok"), ("0.025", "usage_missing")])
def test_it_stops_the_run_before_it_is_passed(at, amount, mode):
    at.control(mode=mode)
    run = make_started(at, priced(), budget_usd=float(amount), **ONE_JUDGE, **SHORT)
    work_within(run)
    assert run.state == "stopped"
    assert run.note == f"The next call could pass the budget of ${amount}."
    assert run.events.filter(kind="stopped", text=run.note).count() == 1
    spent, reserved = money(run)
    assert (0 < spent <= run.budget_nano, reserved) == (True, 0)
    assert Call.objects.aggregate(cost=Sum("cost_nano"))["cost"] == spent
    # Each of these has cost something, and there was no other.
    assert len(at.requests) == Call.objects.filter(cost_nano__gt=0).count()
    assert Call.objects.filter(state="waiting", attempts__gt=0).count() == 0
    assert not run.queue.is_open


def test_what_a_call_has_cost_is_what_the_provider_counted(at):
    run = make_started(at, priced(), budget_usd=1, judges=["judge-long"], prompts=["Hi."])
    run = go_on(run)
    for call in Call.objects.filter(run=run):
        assert call.cost_nano == call.prompt_tokens * 2_500 + call.completion_tokens * 10_000
        assert call.reserved_nano == 0
    assert money(run) == (sum(Call.objects.values_list("cost_nano", flat=True)), 0)
    assert progress_of(run).spent_usd == Decimal(run.spent_nano) / 10**9


@pytest.mark.parametrize("price", [("0.15", "0.6"), (0.15, 0.6), (0.15, "0.60")])
def test_a_price_is_exact_however_it_is_written(at, price):
    prices = {name: dict(zip(("input", "output"), price, strict=True)) for name in NAMES}
    says(at, a_verdict())
    run = make_started(at, {"prices": prices}, budget_usd=0.1, **ONE_JUDGE)
    attempt(slots=2)
    assert money(run) == (2 * (10 * 150 + 5 * 600), 0)


def test_a_provider_that_counts_more_than_it_could_is_not_asked_again(at):
    """What it says is what it bills: nobody can set that aside, only stop at once."""
    usage = {"prompt_tokens": 10**6, "completion_tokens": 5}
    says(at, a_verdict(), usage=usage)
    run = make_started(at, priced(concurrency=1), budget_usd=0.1, **ONE_JUDGE, **SHORT)
    run = go_on(run)
    assert (run.state, len(at.requests)) == ("stopped", 1)
    assert money(run) == (10**6 * 2_500 + 5 * 10_000, 0)


def test_a_reply_without_usage_has_cost_the_most_it_can(at):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    before, _ = money(run)
    at.control(mode="usage_missing")
    [call] = leases.claim(8, run.pk)
    answer = ask(call)
    results.write([answer])
    call.refresh_from_db()
    assert call.cost_nano == answer.question.reservation_nano > 0
    assert money(run) == (before + call.cost_nano, 0)


def test_what_is_set_aside_is_more_than_the_answer_can_cost(at):
    run = make_judging(at, priced(), budget_usd=1)
    for call in leases.claim(8, run.pk):
        answer = ask(call)
        reply = answer.reply
        most = answer.question.cost_nano(len(str(answer.question.request.messages)) // 4, 400)
        cost = answer.question.cost_nano(reply.prompt_tokens, reply.completion_tokens)
        assert cost <= most <= answer.question.reservation_nano


def test_while_a_call_is_out_its_money_is_set_aside(at):
    run = make_judging(at, priced(), budget_usd=1)
    spent, _ = money(run)
    calls = leases.claim(8, run.pk)
    answers = [ask(call) for call in calls]
    aside = [answer.question.reservation_nano for answer in answers]
    assert money(run) == (spent, sum(aside))
    results.write(answers[:1])
    assert money(run)[1] == aside[1]
    results.write(answers[1:])
    assert money(run)[1] == 0


def test_a_call_that_does_not_fit_is_given_back_untouched(at):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    spent, _ = money(run)
    [call] = leases.claim(8, run.pk)
    Run.objects.filter(pk=run.pk).update(budget_nano=spent + 99)
    assert leases.reserve(call, 100) is False
    assert leases.reserve(call, 99) is True
    assert money(run) == (spent, 99)
    assert leases.reserve(call, 1) is False


@pytest.mark.parametrize(
    "mode,is_spent",
    [
        ("429", False),
        ("500", False),
        ("error_200", False),
        ("insufficient_quota", False),
        ("disconnect", True),
        ("slow", True),
        ("malformed", True),
        ("huge", True),
    ],
)
def test_an_error_costs_nothing_and_a_lost_reply_all_it_can(at, mode, is_spent):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    before, _ = money(run)
    at.control(mode=mode)
    [call] = leases.claim(8, run.pk)
    answer = ask(call, timeout_s=0.5)
    results.write([answer])
    spent = answer.question.reservation_nano if is_spent else 0
    assert money(run) == (before + spent, 0)
    assert Call.objects.get(pk=call.pk).cost_nano == spent


def test_a_lost_lease_has_spent_what_was_set_aside(at):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    before, _ = money(run)
    [lost] = leases.claim(8, run.pk)
    late = ask(lost)
    leases_run_out()
    [call] = attempt()
    aside = late.question.reservation_nano
    assert call.state == "done"
    assert call.cost_nano > aside
    assert money(run) == (before + call.cost_nano, 0)
    results.write([late])
    assert money(run) == (before + call.cost_nano, 0)


def test_who_lost_the_lease_before_asking_has_spent_it(at):
    run = make_judging(at, priced(), budget_usd=1, verdict_orders="random")
    before, _ = money(run)
    [lost] = leases.claim(8, run.pk)
    leases_run_out()
    [held] = leases.claim(8, uuid4())
    assert leases.reserve(held, 100)
    assert leases.reserve(lost, 30)
    assert money(run) == (before + 30, 100)
    assert Call.objects.get(pk=lost.pk).reserved_nano == 100


def test_repairs_retries_and_lost_leases_stay_within_it(at):
    run = make_started(at, priced(), budget_usd=0.045, **ONE_JUDGE, **SHORT)
    at.control(rates={"500": 0.2, "disconnect": 0.1, "prose": 0.2, "usage_missing": 0.1}, seed=3)
    work_within(run)
    assert run.state == "stopped"
    spent, reserved = money(run)
    assert (spent <= run.budget_nano, reserved) == (True, 0)
    assert Call.objects.aggregate(cost=Sum("cost_nano"))["cost"] == spent
