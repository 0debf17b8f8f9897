"""Who may make which call, and when: limits of providers, leases that are kept and lost."""

from bisect import bisect_left
from datetime import timedelta
from random import Random
from time import monotonic
from uuid import uuid4

import pytest
from django.db.models import F
from django.utils import timezone

from judge_eval.judging import leases, results
from judge_eval.models import Call, Provider, Run
from tests.helpers.run_maker import (
    ask,
    go_on,
    leases_run_out,
    make_draft,
    make_judging,
    make_started,
    time_passes,
)
from voting.models import Inference

pytestmark = [pytest.mark.both, pytest.mark.django_db]

MANY = [f"Say {n}." for n in range(20)]


def claim(slots=100):
    return [call.pk for call in leases.claim(slots, uuid4())]


def in_order():
    return list(Call.objects.order_by("not_before", "pk").values_list("pk", flat=True))


class TestWhichOnes:
    def test_those_that_wait_longest_and_no_more_than_there_are_slots(self, at):
        make_started(at, {"concurrency": 100}, prompts=MANY)
        Call.objects.filter(prompt=7).update(not_before=F("not_before") - timedelta(hours=1))
        wanted = in_order()
        assert sorted(claim(3)) == sorted(wanted[:3])
        assert sorted(claim(4)) == sorted(wanted[3:7])
        assert claim(0) == []
        assert len(claim(100)) == 40 - 7

    def test_each_only_once(self, at):
        make_started(at, {"concurrency": 100}, prompts=MANY)
        first, second = claim(30), claim(30)
        assert len(first) == 30
        assert set(first).isdisjoint(second)
        assert claim() == []

    def test_none_whose_time_has_not_come(self, at):
        make_started(at)
        later = Call.objects.order_by("pk")[0].pk
        Call.objects.filter(pk=later).update(not_before=timezone.now() + timedelta(hours=1))
        assert len(claim()) == 3
        time_passes()
        assert claim() == [later]

    @pytest.mark.parametrize("state", ["draft", "voting", "complete", "stopped", "failed"])
    def test_none_of_a_run_that_is_not_at_work(self, at, state):
        run = make_started(at)
        Run.objects.filter(pk=run.pk).update(state=state)
        assert claim() == []
        Run.objects.filter(pk=run.pk).update(state="judging")
        assert len(claim()) == 4

    def test_of_the_provider_that_has_waited_longest_first(self, at):
        run = make_started(at)
        make_started(at, {"name": "another"}, provider="another")
        assert {call.run_id for call in leases.claim(2, uuid4())} == {run.pk}
        assert len(claim()) == 6

    def test_a_draft_has_none(self, at):
        make_draft(at)
        assert claim() == []


class TestConcurrency:
    def test_no_more_are_out_than_the_provider_allows(self, at):
        make_started(at, {"concurrency": 3}, prompts=MANY)
        first = claim()
        assert len(first) == 3
        assert claim() == []
        Call.objects.filter(pk=first[0]).update(state="failed", error="x", leased_until=None)
        assert len(claim()) == 1

    def test_all_runs_of_a_provider_share_it_and_others_do_not(self, at):
        for name in ("default", "default", "another"):
            make_started(at, {"name": name, "concurrency": 3}, provider=name, prompts=MANY)
        calls = Call.objects.filter(pk__in=claim()).values_list("provider", flat=True)
        assert sorted(calls) == ["another"] * 3 + ["default"] * 3

    def test_a_lease_that_ran_out_takes_no_place(self, at):
        make_started(at, {"concurrency": 3}, prompts=MANY)
        lost = claim()
        leases_run_out()
        assert sorted(claim()) == sorted(lost)

    def test_the_provider_never_sees_more_at_once(self, at):
        at.control(latency_ms=20)
        run = go_on(make_started(at, {"concurrency": 3}, judges=["judge-long"], prompts=MANY[:6]))
        assert run.state == "voting"
        assert at.log()["peak"] == 3


class TestPace:
    def started(self, at, a_minute, calls=200):
        prompts = [f"Say {n}." for n in range(calls // 2)]
        fields = {"concurrency": 1000, "requests_per_minute": a_minute}
        return make_started(at, fields, prompts=prompts)

    def clock_moves(self, seconds):
        moved = F("next_start_at") - timedelta(seconds=seconds)
        Provider.objects.update(next_start_at=moved)

    def test_calls_start_one_after_the_other(self, at):
        self.started(at, 6)
        assert len(claim()) == 1
        for _ in range(3):
            assert claim() == []
            self.clock_moves(9)
            assert claim() == []
            self.clock_moves(1.2)
            assert len(claim()) == 1

    def test_a_quiet_hour_does_not_end_in_a_flood(self, at):
        self.started(at, 30)
        claim()
        self.clock_moves(3600)
        assert len(claim()) == 1
        assert claim() == []

    def test_what_a_second_allows_may_start_together(self, at):
        self.started(at, 1200)
        claim()
        self.clock_moves(3600)
        assert 20 <= len(claim()) <= 21

    @pytest.mark.parametrize("a_minute", [1, 7, 90])
    def test_no_minute_holds_more_than_are_allowed(self, at, a_minute):
        """Nor the busiest: a quiet hour, then all that may start whenever it may."""
        self.started(at, a_minute, calls=2 * a_minute + 60)
        dice, now, starts = Random(a_minute), 0.0, [0.0] * len(claim())
        self.clock_moves(3600)
        while now < 65:
            before = monotonic()
            starts += [now] * len(claim())
            Call.objects.filter(lease__isnull=False).update(state="failed", error="x")
            step = dice.choice([0.05, 0.5, 1.0])
            self.clock_moves(step)
            now += step + monotonic() - before
        busiest = max(
            bisect_left(starts, first + 59.9) - n for n, first in enumerate(starts[1:], 1)
        )
        assert 0 < busiest <= a_minute

    def test_a_limit_without_measure_divides_by_nothing(self, at):
        self.started(at, 2**31 - 1, calls=4)
        assert len(claim()) >= 1

    def test_none_of_a_model_that_is_paused(self, at):
        make_started(at)
        leases.pause("default", "model-a", 3600, "429")
        others = Call.objects.filter(pk__in=claim())
        assert list(others.values_list("model", flat=True)) == ["model-b"] * 2
        time_passes()
        assert len(claim()) == 2


class TestLeases:
    @pytest.fixture
    def run(self, at):
        return make_judging(at, verdict_orders="random")

    def test_one_that_ran_out_is_claimed_again_and_counts_as_an_attempt(self, run):
        [call] = leases.claim(1, uuid4())
        assert claim() == []
        leases_run_out()
        [again] = leases.claim(1, uuid4())
        assert (again.pk, again.attempts) == (call.pk, 2)
        assert again.lease != call.lease

    def test_one_that_is_renewed_does_not_run_out(self, run):
        [call] = leases.claim(1, uuid4())
        leases_run_out()
        leases.renew(call.lease, [call.pk])
        assert claim() == []

    def test_nobody_renews_another_s(self, run):
        [call] = leases.claim(1, uuid4())
        leases_run_out()
        leases.renew(uuid4(), [call.pk])
        assert claim() == [call.pk]

    def test_an_answer_under_a_lost_lease_is_not_written_down(self, at, run):
        [lost] = leases.claim(1, uuid4())
        late = ask(lost)
        leases_run_out()
        [now] = leases.claim(1, uuid4())
        before = Call.objects.values().get(pk=lost.pk)
        assert results.write([late]) == []
        assert Call.objects.values().get(pk=lost.pk) == before
        assert results.write([ask(now)]) == [now]
        assert Call.objects.get(pk=lost.pk).state == "done"

    def test_an_answer_that_is_late_but_nobody_else_s_is_written_down(self, run):
        [call] = leases.claim(1, uuid4())
        leases_run_out()
        results.write([ask(call)])
        assert Call.objects.get(pk=call.pk).state == "done"

    def test_the_same_answer_twice_is_written_down_once(self, at):
        make_started(at, prompts=["Say hi."])
        answers = [ask(call) for call in leases.claim(8, uuid4())]
        for answer in answers * 2:
            results.write([answer])
        assert Inference.objects.count() == 2

    def test_one_given_back_is_as_if_it_had_never_been_claimed(self, run):
        [call] = leases.claim(1, uuid4())
        leases.let_go(call)
        again = Call.objects.get(pk=call.pk)
        assert (again.attempts, again.lease, again.leased_until) == (0, None, None)
        assert claim() == [call.pk]
        leases.let_go(call)
        assert Call.objects.get(pk=call.pk).attempts == 1
