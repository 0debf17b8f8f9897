"""What becomes of a run with a budget: it is refused, stopped, and goes on with a larger one."""

from decimal import Decimal

import pytest

from judge_eval.models import Call
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.progress import progress_of
from tests.helpers.run_budget import NAMES, ONE_JUDGE, SHORT, money, priced, work_within
from tests.helpers.run_maker import PRICES, go_on, make_draft, make_started

pytestmark = pytest.mark.django_db


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
        with pytest.raises(LifecycleRefused, match="are spent: give a larger budget to go on"):
            lifecycle.resume(run.pk, Decimal(run.spent_nano) / 10**9)
        run.refresh_from_db()
        assert (run.state, run.budget_usd) == ("stopped", Decimal("0.02"))
