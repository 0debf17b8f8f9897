"""A reply that is no verdict is asked about once more: once, on record, and within all leases."""

import json
from decimal import Decimal

import pytest

from judge_eval.judging import leases
from judge_eval.models import Call, Provider, Run, Verdict
from judge_eval.runs import lifecycle
from tests.helpers.run_maker import (
    PRICES,
    a_verdict,
    asked_of,
    attempt,
    go_on,
    make_judging,
    says,
    time_passes,
)

pytestmark = pytest.mark.django_db

# Of a reply of `says`: 10 tokens in and 5 out.
COST = 10 * 2_500 + 5 * 10_000


@pytest.fixture
def run(at):
    """A run with one call for a verdict left to be made."""
    run = make_judging(at, judges=["judge-x"], verdict_orders="random")
    names = ("model-a", "model-b", "judge-x")
    Provider.objects.update(prices=dict.fromkeys(names, PRICES))
    at.control(reset=True)
    return run


def judge_call():
    return Call.objects.get(purpose="judge")


def was_repair(body):
    return len(body["messages"]) == 4


def test_the_judge_is_told_what_was_wrong_and_its_second_reply_counts(at, run):
    says(at, "I like both.", times=1)
    go_on(run)
    first, second = asked_of(at, "judge-x")
    assert second["messages"][:2] == first["messages"]
    assert second["messages"][2] == {"role": "assistant", "content": "I like both."}
    assert "it has no JSON object: 'I like both.'" in second["messages"][3]["content"]
    assert second["response_format"] == first["response_format"]
    call = judge_call()
    assert (call.state, call.is_repaired, call.attempts, call.error) == ("done", True, 2, "")
    assert call.changes == [
        "asked once more, since it has no JSON object: 'I like both.'; it had said: I like both."
    ]
    assert json.loads(call.reply)["winner"] == call.winner != ""
    assert Verdict.objects.get(judge__run=run).state == "done"


def test_tokens_and_costs_of_both_replies_are_added_up(at, run):
    says(at, "I like both.", times=1)
    [call] = attempt()
    assert (call.state, call.prompt_tokens, call.cost_nano) == ("waiting", 10, COST)
    waited = call.latency_ms
    says(at, a_verdict())
    [call] = attempt()
    assert (call.state, call.prompt_tokens, call.completion_tokens) == ("done", 20, 10)
    assert call.cost_nano == 2 * COST
    assert call.latency_ms > waited > 0
    run.refresh_from_db()
    assert (run.spent_nano, run.reserved_nano) == (2 * COST, 0)


def test_there_is_never_a_second_repair(at, run):
    says(at, '{"winner": "C"}')
    go_on(run)
    assert [was_repair(body) for body in asked_of(at, "judge-x")] == [False, True]
    call = judge_call()
    assert (call.state, call.is_repaired, call.winner) == ("failed", True, "")
    assert call.error == "the winner 'C' must be one of A, B, both_bad"
    assert (call.reply, call.cost_nano) == ('{"winner": "C"}', 2 * COST)
    assert 'it had said: {"winner": "C"}' in call.changes[0]


@pytest.mark.parametrize("mode", ["500", "429", "disconnect", "malformed"])
def test_a_fault_of_the_provider_in_between_is_no_reason_to_begin_anew(at, run, mode):
    says(at, "I like both.", times=1)
    attempt()
    at.control(mode=mode, times=2, models=[])
    for _ in range(2):
        [call] = attempt()
        assert (call.state, call.is_repaired, call.reply) == ("waiting", True, "I like both.")
        time_passes()
    [call] = attempt()
    assert (call.state, call.is_repaired, call.attempts) == ("done", True, 4)
    assert [was_repair(body) for body in asked_of(at, "judge-x")] == [False, True, True, True]


def test_a_repair_whose_worker_was_lost_is_made_by_the_next(at, run):
    says(at, "I like both.", times=1)
    attempt()
    Call.objects.update(lease=run.pk, leased_until=run.created_at)
    [call] = attempt()
    assert (call.state, call.is_repaired) == ("done", True)
    assert [was_repair(body) for body in asked_of(at, "judge-x")] == [False, True]


def test_a_run_that_was_stopped_asks_nothing_more(at, run):
    says(at, "I like both.", times=1)
    attempt()
    lifecycle.stop(run.pk)
    assert attempt() == []
    assert len(at.requests) == 1
    lifecycle.resume(run.pk)
    [call] = attempt()
    assert (call.state, call.is_repaired) == ("done", True)


def test_a_repair_waits_for_a_model_that_is_paused(at, run):
    says(at, "I like both.", times=1)
    attempt()
    leases.pause("default", "judge-x", 3600, "429")
    assert attempt() == []
    time_passes()
    assert len(attempt()) == 1


def test_a_repair_must_fit_the_budget_too(at, run):
    says(at, "I like both.", times=1)
    attempt()
    Run.objects.filter(pk=run.pk).update(budget_nano=COST + 1)
    stopped = go_on(run)
    assert (stopped.state, stopped.spent_nano, stopped.reserved_nano) == ("stopped", COST, 0)
    assert len(at.requests) == 1
    assert (judge_call().state, judge_call().attempts) == ("waiting", 1)
    lifecycle.resume(run.pk, budget_usd=Decimal(1))
    run = go_on(run)
    assert [was_repair(body) for body in asked_of(at, "judge-x")] == [False, True]
    assert (run.state, judge_call().state) == ("voting", "done")


def test_asked_again_after_it_failed_it_is_asked_the_question_itself(at, run):
    says(at, "I like both.")
    go_on(run)
    assert judge_call().state == "failed"
    at.control(mode="ok", reset=True)
    assert lifecycle.retry_failed(run.pk) == 1
    go_on(run)
    assert [was_repair(body) for body in asked_of(at, "judge-x")] == [False]
    call = judge_call()
    assert (call.state, call.is_repaired, call.changes) == ("done", False, [])
    assert call.cost_nano > 2 * COST


@pytest.mark.parametrize("reply", ["", " \n", "<think>Hm.</think>"])
def test_an_empty_reply_is_quoted_as_such(at, run, reply):
    says(at, reply, times=1)
    go_on(run)
    _, second = asked_of(at, "judge-x")
    assert second["messages"][2]["content"].strip()
    assert judge_call().state == "done"


def test_a_verdict_cut_short_names_the_limit(at, run):
    message = {"role": "assistant", "content": '{"winner": "A", "score_a": 8, "rea'}
    choices = [{"message": message, "finish_reason": "length"}]
    says(at, "", choices=choices)
    go_on(run)
    call = judge_call()
    assert (call.state, call.reply) == ("failed", message["content"])
    assert call.error.startswith("its last JSON object is broken")
    assert call.error.endswith("(it reached max_tokens)")


def test_a_provider_that_counts_beyond_measure_holds_nothing_up(at, run):
    usage = {"prompt_tokens": 2**31 - 1, "completion_tokens": 5}
    says(at, "I like both.", times=1, usage=usage)
    attempt()
    says(at, a_verdict(), usage=usage)
    [call] = attempt()
    assert (call.state, call.prompt_tokens) == ("done", 2**31 - 1)
