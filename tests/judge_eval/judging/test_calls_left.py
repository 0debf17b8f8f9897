"""Workers are lost at any line, providers are taken away: the next goes on, nothing comes twice."""

import pytest

from judge_eval.judging import verdicts
from judge_eval.models import Call, Provider, Run, Verdict
from judge_eval.runs import lifecycle, state
from tests.helpers.run_budget import money, priced
from tests.helpers.run_maker import (
    attempt,
    go_on,
    leases_run_out,
    make_judging,
    make_provider,
    make_started,
)
from tests.makers import make_vote, make_voter, pairs_of, seal_all
from voting.ledger import ledger
from voting.models import Entry, Inference, Item

pytestmark = pytest.mark.django_db


def entries_on(run):
    return Entry.objects.filter(queue=run.queue, kind="verdicts")


class TestWhoWroteTheLastCallIsLost:
    def test_before_the_verdict_was_made(self, at):
        run = make_judging(at)
        attempt(settles=False)
        state.advance(run.pk)
        assert Verdict.objects.get().state == "waiting"
        verdicts.settle_left(run.pk)
        assert Verdict.objects.get().state == "done"
        assert pairs_of(run)[0].opened_at is not None
        state.advance(run.pk)
        assert Run.objects.get(pk=run.pk).state == "voting"

    def test_before_a_verdict_on_an_open_pair_was_made_again(self, at):
        run = make_judging(at)
        at.control(mode="insufficient_quota")
        run = go_on(run)
        seal_all(run.queue.project)
        at.control(mode="ok")
        lifecycle.retry_failed(run.pk)
        attempt(settles=False)
        verdicts.settle_left(run.pk)
        assert entries_on(run).count() == 2

    def test_nothing_is_settled_that_still_waits(self, at):
        run = make_judging(at)
        attempt(slots=1, settles=False)
        verdicts.settle_left(run.pk)
        assert Verdict.objects.get().state == "waiting"

    def test_and_settling_it_again_and_again_changes_nothing(self, at):
        run = make_judging(at)
        attempt()
        before = Verdict.objects.values().get()
        for _ in range(3):
            verdicts.settle([before["id"]])
            verdicts.settle_left(run.pk)
        assert Verdict.objects.values().get() == before
        assert entries_on(run).count() == 1


def test_a_pair_is_judged_and_opened_once_however_often_all_is_repeated(at):
    run = make_started(at)
    for _ in range(4):
        state.advance(run.pk)
        state.advance(run.pk)
        attempt(slots=3)
        leases_run_out()
    run = go_on(run)
    assert Inference.objects.count() == 4
    assert Call.objects.filter(run=run).count() == 4 + 2 * 2 * 2
    assert sorted(pair.position for pair in pairs_of(run)) == [0, 1]
    assert entries_on(run).count() == 2
    assert len(at.requests) == Call.objects.filter(run=run).count()


def test_outputs_written_down_but_never_paired_are_paired_by_the_next(at):
    run = make_started(at)
    attempt()
    assert Item.objects.count() == 0
    for _ in range(2):
        state.advance(run.pk)
    assert Item.objects.count() == 2
    assert Call.objects.filter(purpose="judge").count() == 2 * 2 * 2


class TestAProviderThatIsGone:
    def test_fails_its_calls_and_the_run_goes_on(self, at):
        run = make_judging(at)
        Provider.objects.all().delete()
        run = go_on(run)
        assert run.state == "voting"
        verdict = Verdict.objects.get()
        assert (verdict.state, verdict.winner) == ("failed", "")
        assert verdict.error == "as stored: there is no provider named default"
        for call in Call.objects.filter(purpose="judge"):
            assert (call.state, call.attempts) == ("failed", 0)
            assert call.done_at is not None
            assert run.events.filter(kind="call_failed", data__call=call.pk).count() == 1
        assert len(at.requests) == 2

    def test_and_is_back_has_them_made_again(self, at):
        run = make_judging(at)
        Provider.objects.all().delete()
        run = go_on(run)
        make_provider(at)
        assert lifecycle.retry_failed(run.pk) == 2
        run = go_on(run)
        assert (run.state, Verdict.objects.get().state) == ("voting", "done")

    def test_while_a_call_is_out_lets_it_be_written_down(self, at):
        run = make_judging(at)
        Call.objects.filter(order="AB").update(lease=run.pk, leased_until="2999-01-01T00:00Z")
        Provider.objects.all().delete()
        state.advance(run.pk)
        states = Call.objects.filter(purpose="judge").order_by("order").values_list("state")
        assert list(states) == [("waiting",), ("failed",)]
        leases_run_out()
        run = go_on(run)
        assert Verdict.objects.get().state == "failed"

    def test_before_any_output_came_leaves_nothing_to_vote_on(self, at):
        run = make_started(at)
        Provider.objects.all().delete()
        run = go_on(run)
        assert (run.state, Call.objects.filter(state="failed").count()) == ("failed", 4)

    def test_keeps_no_money_aside(self, at):
        run = make_judging(at, priced(), budget_usd=1)
        before, _ = money(run)
        Call.objects.filter(order="AB").update(reserved_nano=500, lease=run.pk)
        Run.objects.filter(pk=run.pk).update(reserved_nano=500)
        Provider.objects.all().delete()
        state.advance(run.pk)
        assert money(run) == (before + 500, 0)
        assert Call.objects.get(order="AB").cost_nano == 500


def test_a_vote_survives_all_of_it(at):
    run = make_started(at, judges=["judge-long", "longer-wins"])
    at.control(mode="insufficient_quota", models=["judge-long"])
    run = go_on(run)
    voter = make_voter(run)
    votes = [make_vote(voter, pair, "A").uid for pair in pairs_of(run)]
    at.control(mode="ok")
    lifecycle.retry_failed(run.pk)
    attempt(slots=1, settles=False)
    lifecycle.stop(run.pk)
    lifecycle.resume(run.pk)
    Provider.objects.all().delete()
    run = go_on(run)
    seal_all(run.queue.project)
    kept = Entry.objects.filter(kind="vote", retracted=False, seq__isnull=False)
    assert sorted(kept.values_list("uid", flat=True)) == sorted(votes)
    assert ledger.replay(run.queue.project, write=False) == []
