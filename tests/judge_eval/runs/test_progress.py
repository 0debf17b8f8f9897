"""What a run page shows of a run's progress, from its rows."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from judge_eval.models import Call, Run, Verdict
from judge_eval.runs import lifecycle, state
from judge_eval.runs.progress import Part, progress_of
from tests.helpers.run_budget import NAMES, money, priced
from tests.helpers.run_maker import (
    PRICES,
    attempt,
    go_on,
    make_draft,
    make_judging,
    make_started,
    says,
    time_passes,
)
from tests.makers import make_run

pytestmark = pytest.mark.django_db


def advanced(run):
    state.advance(run.pk)
    return Run.objects.get(pk=run.pk)


def test_a_draft_has_none(at):
    progress = progress_of(make_draft(at, budget_usd=2))
    assert (progress.outputs, progress.calls, progress.verdicts) == (Part(), Part(), Part())
    assert (progress.cost_usd, progress.spent_usd, progress.budget_usd) == (0, 0, 2)
    assert (progress.mean_latency_ms, progress.seconds_left) == (None, None)


def test_outputs_then_calls_then_verdicts(at):
    run = make_started(at, judges=["judge-long", "longer-wins"])
    assert progress_of(run).outputs == Part(waiting=4)
    attempt(slots=3)
    assert progress_of(run).outputs == Part(done=3, waiting=1)
    assert progress_of(run).outputs.total == 4
    run = go_on(run)
    progress = progress_of(run)
    assert progress.outputs == Part(done=4)
    assert progress.calls == Part(done=4)
    assert progress.verdicts == Part(done=2 * run.judges.count())
    assert progress.pictures == Part()
    assert progress.attempts == 8


@pytest.mark.parametrize("orders, calls", [("both", 8), ("random", 4)])
def test_totals_are_those_of_the_plan_from_the_start(at, orders, calls):
    judges = ["judge-long", "judge-hash", "longer-wins"]
    run = make_started(at, judges=judges, prompts=["a", "b"], verdict_orders=orders)
    totals = []
    while run.state in Run.AT_WORK:
        progress = progress_of(run)
        parts = (progress.outputs, progress.calls, progress.verdicts)
        totals.append(tuple(part.total for part in parts))
        attempt(slots=1)
        run = advanced(run)
    assert set(totals) == {(4, calls, 2 * run.judges.count())}
    assert progress_of(run).calls.total == calls


def test_baselines_answer_in_the_orders_of_each_judge_and_stand_in_the_totals(at):
    judges = ["judge-long", {"id": "judge-hash", "orders": "AB"}, "longer-wins"]
    run = make_started(at, judges=judges, prompts=["a", "b"])
    asked = run.judges.count()
    assert run.judges.filter(model="longer-wins", recipe__options__orders="AB").count() == 1
    assert progress_of(run).verdicts.total == 2 * asked
    run = go_on(run)
    assert progress_of(run).verdicts == Part(done=2 * asked)
    unanswered = run.judges.exclude(verdicts__state=Verdict.State.DONE)
    assert not unanswered.exists()


def test_outputs_that_failed_bring_no_pairs(at):
    at.control(mode="insufficient_quota", models=["model-a"], times=1)
    run = make_started(at, judges=["judge-long"], prompts=["a", "b", "c"])
    assert progress_of(run).calls.total == 6
    attempt()
    assert progress_of(advanced(run)).calls == Part(waiting=4)


def test_every_output_is_to_be_drawn(at):
    run = make_started(at, kind="svg", judges=["judge-long"], prompts=["a cat"])
    assert progress_of(run).pictures == Part(waiting=2)


def test_attempts_before_a_retry_are_still_counted(at):
    at.control(mode="insufficient_quota", models=["judge-hash"])
    run = go_on(make_started(at, judges=["judge-hash"], prompts=["Hi."]))
    for tries in (4, 6):
        assert progress_of(run).attempts == tries
        assert lifecycle.retry_failed(run.pk) == 2
        assert set(run.calls.filter(purpose="judge").values_list("attempts", flat=True)) == {0}
        assert progress_of(run).attempts == tries
        run = go_on(run)
    at.control(mode="ok")
    lifecycle.retry_failed(run.pk)
    assert progress_of(go_on(run)).attempts == 2 + 4 * 2


def test_drawings_that_were_rendered_or_not(at):
    says(at, "<svg><script/></svg>", models=["model-a"])
    run = go_on(make_started(at, kind="svg", judges=["judge-hash"], prompts=["a cat"]))
    assert progress_of(run).pictures == Part(done=1, failed=1)
    assert progress_of(run).verdicts == Part(failed=1)


def test_what_failed_is_counted_apart_and_waits_again_when_it_is_retried(at):
    run = make_judging(at)
    at.control(mode="insufficient_quota", times=1)
    attempt(slots=1)
    assert progress_of(run).calls == Part(failed=1, waiting=1)
    run = go_on(run)
    assert progress_of(run).calls == Part(done=1, failed=1)
    assert progress_of(run).verdicts == Part(failed=1)
    lifecycle.retry_failed(run.pk)
    assert progress_of(run).calls == Part(done=1, waiting=1)


def test_tokens_costs_and_attempts_are_sums_over_all_calls(at):
    says(at, '{"winner": "A"}')
    run = make_judging(at, priced())
    at.control(mode="500", times=1)
    attempt(slots=1)
    says(at, "I like both.", times=1)
    attempt(slots=1)
    says(at, '{"winner": "A"}')
    time_passes()
    attempt()
    assert money(run) == (5 * 75_000, 0)
    progress = progress_of(run)
    # Two outputs, two verdicts, one of them asked once more.
    assert (progress.tokens_in, progress.tokens_out) == (5 * 10, 5 * 5)
    assert (progress.attempts, progress.repaired, progress.reused) == (2 + 4, 1, 0)
    assert progress.cost_usd == progress.spent_usd == 5 * Decimal("0.000075")
    assert progress.mean_latency_ms > 0


# Of one that writes and one that judges; the other that writes is no new proof.
@pytest.mark.parametrize(
    "unknown", [NAMES[0], pytest.param(NAMES[1], marks=pytest.mark.thorough), *NAMES[2:]]
)
def test_one_unknown_price_makes_the_cost_unknown(at, unknown):
    prices = {name: PRICES for name in NAMES if name != unknown}
    run = go_on(make_started(at, {"prices": prices}, judges=["judge-long"], prompts=["Hi."]))
    progress = progress_of(run)
    assert progress.cost_usd is None
    assert progress.spent_usd > 0


def test_the_rate_is_that_of_the_last_minute_and_tells_the_time_left(at):
    run = make_started(at, prompts=[f"Say {n}." for n in range(10)])
    attempt(slots=8)
    # A moment, or a few answers, tell nothing.
    assert (progress_of(run).per_minute, progress_of(run).seconds_left) == (8, None)
    attempt(slots=4)
    since = timezone.now() - timedelta(seconds=30)
    Call.objects.filter(pk__in=Call.objects.filter(state="done")[:1]).update(done_at=since)
    progress = progress_of(run)
    # 8 outputs, and 10 pairs that two judges see in both orders.
    assert progress.calls == Part(waiting=40)
    assert progress.per_minute == 12
    assert progress.seconds_left == pytest.approx(30 / 12 * 48, rel=0.2)
    Call.objects.filter(state="done").update(done_at=timezone.now() - timedelta(minutes=2))
    progress = progress_of(run)
    assert (progress.per_minute, progress.seconds_left) == (0, None)


def test_with_nothing_left_no_time_is_left(at):
    assert progress_of(go_on(make_started(at, prompts=["Hi."]))).seconds_left is None


def test_outputs_that_were_given_are_no_calls():
    progress = progress_of(make_run(pairs=3, judges=2))
    assert (progress.calls, progress.verdicts) == (Part(), Part(done=6))
    assert progress.cost_usd == 0
