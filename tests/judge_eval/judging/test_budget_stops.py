"""When a budget stops a run: not while money is out that may come back, nor without a word."""

from decimal import Decimal
from uuid import uuid4

import pytest

from judge_eval.judging import leases, provider_access, results
from judge_eval.judging.providers.chat import chat
from judge_eval.judging.requests import question_of
from judge_eval.judging.results import CallAnswer
from judge_eval.models import Call, Provider, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.progress import progress_of
from tests.helpers.run_budget import NAMES, ONE_JUDGE, SHORT, money, priced, work_within
from tests.helpers.run_maker import (
    PRICES,
    a_verdict,
    attempt,
    go_on,
    make_draft,
    make_judging,
    make_started,
    says,
)
from tests.process.processes import free_port

pytestmark = pytest.mark.django_db


def claimed_questions():
    there = Provider.objects.get()
    return [question_of(call, there) for call in leases.claim(8, uuid4())]


def reserved(question):
    return leases.reserve(question.call, question.reservation_nano)


def answered(question):
    endpoint = provider_access.endpoint_of(question.provider)
    return CallAnswer(question, reply=chat(endpoint, question.request))


def leave(run, nano):
    """Let so much be left of a run's budget; return the run as it is then."""
    spent, _ = money(run)
    Run.objects.filter(pk=run.pk).update(budget_nano=spent + nano)
    return Run.objects.get(pk=run.pk)


class TestWhileOthersHoldMoney:
    def test_a_call_without_room_is_given_back_and_the_run_goes_on(self, at):
        run = make_judging(at, priced(), budget_usd=1)
        first, second = claimed_questions()
        leave(run, first.reservation_nano + 1000)
        assert reserved(first)
        assert not reserved(second)
        leases.let_go(second.call)
        assert not lifecycle.stop_if_over_budget(second)
        assert Run.objects.get(pk=run.pk).state == "judging"

        results.write([answered(first)])
        [again] = claimed_questions()
        assert again.call.pk == second.call.pk
        assert again.call.attempts == 1
        assert not lifecycle.stop_if_over_budget(again)

    def test_once_all_are_paid_it_stops(self, at):
        run = make_judging(at, priced(), budget_usd=1)
        first, second = claimed_questions()
        leave(run, min(first.reservation_nano, second.reservation_nano) - 1)
        for question in (first, second):
            assert not reserved(question)
            leases.let_go(question.call)
        assert lifecycle.stop_if_over_budget(first)
        run = Run.objects.get(pk=run.pk)
        assert run.state == "stopped"
        # A second word on it changes nothing.
        assert lifecycle.stop_if_over_budget(second)
        assert Run.objects.get(pk=run.pk).note == run.note
        assert set(Call.objects.filter(purpose="judge").values_list("attempts", "lease")) == {
            (0, None)
        }

    def test_a_crew_makes_all_calls_that_fit_one_after_the_other(self, at):
        says(at, a_verdict())
        run = make_judging(at, priced(), budget_usd=1, judging={"samples": 4, "max_tokens": 60})
        [most] = {question.reservation_nano for question in claimed_questions()}
        Call.objects.filter(lease__isnull=False).update(lease=None, leased_until=None, attempts=0)
        # For one at a time, and for what all eight cost in the end: 75,000 each.
        leave(run, most + 8 * 75_000)
        at.control(reset=True)
        run = go_on(run)
        assert (run.state, len(at.requests)) == ("voting", 8)
        assert at.log()["peak"] == 1
        assert money(run)[0] <= run.budget_nano
        assert not run.events.filter(kind="stopped").exists()

    def test_nothing_of_a_held_run_is_claimed(self, at):
        run = make_started(at)
        assert leases.claim(8, uuid4(), without={run.pk}) == []
        assert len(leases.claim(8, uuid4(), without={uuid4()})) == 4


@pytest.mark.parametrize(
    "amount, told",
    [("0.001", "$0.001"), ("0.0000015", "$0.0000015"), ("0.5", "$0.50"), ("1234.5", "$1,234.50")],
)
def test_the_note_names_the_budget_exactly(at, amount, told):
    run = make_judging(at, priced(), budget_usd=5000)
    nano = provider_access.nano(Decimal(amount))
    Run.objects.filter(pk=run.pk).update(budget_nano=nano, spent_nano=nano - 1)
    run = go_on(run)
    assert run.note == f"The next call could pass the budget of {told}."


class TestPricesThatGo:
    @pytest.fixture
    def run(self, at):
        run = make_judging(at, priced(), budget_usd=1)
        Provider.objects.update(prices={"model-a": PRICES, "model-b": PRICES})
        at.control(reset=True)
        return run

    def test_the_run_stops_and_says_which_is_missing(self, at, run):
        spent = money(run)
        run = go_on(run)
        assert run.state == "stopped"
        assert run.note == "A budget needs every price, and nobody has said what judge-long costs."
        assert at.requests == []
        assert money(run) == spent
        calls = Call.objects.filter(purpose="judge")
        assert set(calls.values_list("state", "attempts", "lease")) == {("waiting", 0, None)}

    def test_it_goes_on_when_the_price_is_back_and_not_before(self, at, run):
        run = go_on(run)
        with pytest.raises(LifecycleRefused, match="what judge-long costs"):
            lifecycle.resume(run.pk)
        Provider.objects.update(**priced())
        lifecycle.resume(run.pk)
        assert go_on(run).state == "voting"

    def test_without_a_budget_it_goes_on(self, at, run):
        Run.objects.filter(pk=run.pk).update(budget_nano=None)
        assert go_on(run).state == "voting"


@pytest.mark.parametrize(
    "price",
    [
        {"input": "NaN", "output": 1},
        {"input": -1, "output": 1},
        {"input": "1", "output": "Infinity"},
        {"input": 1},
        {"input": 1, "output": 1, "picture_tokens": "many"},
        {"input": 1, "output": 1, "picture_tokens": -1},
        {"input": 1, "output": 1, "picture_tokens": None},
        "1",
        None,
        [],
    ],
)
def test_what_is_no_price_is_none(price):
    assert provider_access.price_of(Provider(prices={"m": price}), "m") is None


class TestPictures:
    def reservations(self, at, more):
        """What each call of a judge of drawings sets aside."""
        prices = dict.fromkeys(("model-a", "model-b", "judge-hash"), PRICES | more)
        run = make_started(
            at, {"prices": prices}, kind="svg", judges=["judge-hash"], prompts=["a cat"], **SHORT
        )
        run = go_on(run)
        there = Provider.objects.get()
        calls = Call.objects.filter(run=run, purpose="judge").select_related(
            "verdict__item__a__picture", "verdict__item__b__picture", "run__queue__rubric"
        )
        tokens = provider_access.price_of(there, "judge-hash").picture_tokens
        return tokens, {question_of(call, there).reservation_nano for call in calls}

    def test_a_model_that_counts_more_for_one_sets_more_aside(self, at):
        usual, [before] = self.reservations(at, {})
        tokens, [after] = self.reservations(at, {"picture_tokens": 25_501})
        assert (usual, tokens) == (1_600, 25_501)
        assert after - before == 2 * (tokens - usual) * 2_500


class TestNothingWasSent:
    def test_a_call_that_reached_nobody_has_cost_nothing(self, at):
        run = make_judging(at, priced(), budget_usd=1)
        before = money(run)
        Provider.objects.update(base_url=f"http://127.0.0.1:{free_port()}/v1")
        calls = attempt()
        assert {call.error for call in calls} == {"no connection: Connection refused"}
        assert {(call.state, call.cost_nano, call.reserved_nano) for call in calls} == {
            ("waiting", 0, 0)
        }
        assert money(run) == before


@pytest.mark.parametrize("amount", ["0.000000001", "0.1", "123.456789012"])
def test_amounts_are_whole_numbers_of_billionths(at, amount):
    run = make_draft(at, priced(), budget_usd=float(amount))
    run.refresh_from_db()
    assert run.budget_nano == int(Decimal(amount) * 10**9)
    assert isinstance(run.budget_nano, int)
    assert run.budget_usd == Decimal(amount)


class TestUnknownPrices:
    @pytest.mark.parametrize("unknown", NAMES)
    def test_a_run_with_a_budget_is_not_started(self, at, unknown):
        prices = {name: PRICES for name in NAMES if name != unknown}
        run = make_draft(at, {"prices": prices}, budget_usd=1, **ONE_JUDGE)
        with pytest.raises(LifecycleRefused, match=f"nobody has said what {unknown} costs"):
            lifecycle.start(run.pk)
        run.refresh_from_db()
        assert (run.state, run.calls.count()) == ("draft", 0)

    def test_a_run_without_one_is_and_its_cost_is_unknown(self, at):
        run = make_started(at, judges=["judge-long"], prompts=["Hi."])
        at.control(mode="500", times=3)
        run = go_on(run)
        assert run.state == "voting"
        assert set(Call.objects.values_list("cost_nano", "reserved_nano")) == {(None, 0)}
        assert progress_of(run).cost_usd is None
        assert money(run) == (0, 0)

    def test_it_cannot_be_resumed_with_one(self, at):
        run = make_started(at)
        lifecycle.stop(run.pk)
        with pytest.raises(LifecycleRefused, match="A budget needs every price"):
            lifecycle.resume(run.pk, Decimal(1))
        run.refresh_from_db()
        assert (run.state, run.budget_usd) == ("stopped", None)

    def test_a_model_that_is_free_has_a_price(self, at):
        free = {"prices": {name: {"input": "0", "output": 0} for name in NAMES}}
        run = make_started(at, free, budget_usd=0.001, judges=["judge-long"], prompts=["Hi."])
        run = go_on(run)
        assert (run.state, progress_of(run).cost_usd) == ("voting", 0)


class TestResuming:
    @pytest.fixture
    def run(self, at):
        run = make_started(at, priced(), budget_usd=0.02, **ONE_JUDGE, **SHORT)
        work_within(run)
        return run

    def test_with_more_it_goes_on_where_it_was(self, at, run):
        done = set(Call.objects.filter(state="done").values_list("pk", flat=True))
        made = len(at.requests)
        assert 0 < len(done) == made
        lifecycle.resume(run.pk, Decimal(5))
        run = go_on(run)
        assert (run.state, run.note, run.budget_usd) == ("voting", "", 5)
        assert run.queue.is_open
        assert len(at.requests) == Call.objects.filter(run=run).count() > made

    def test_with_the_same_it_comes_to_an_end_within_it(self, at, run):
        made = -1
        while made < len(at.requests):
            made = len(at.requests)
            lifecycle.resume(run.pk)
            work_within(run)
            assert run.state == "stopped"
        assert run.events.filter(kind="stopped", text=run.note).count() > 1

    def test_with_what_is_spent_already_it_is_refused(self, run):
        with pytest.raises(LifecycleRefused, match="are spent: enter a larger budget to continue"):
            lifecycle.resume(run.pk, Decimal(run.spent_nano) / 10**9)
        run.refresh_from_db()
        assert (run.state, run.budget_usd) == ("stopped", Decimal("0.02"))
