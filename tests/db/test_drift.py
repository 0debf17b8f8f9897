"""Anchors are asked again by the clock, and a judge that has changed is told of once."""

from datetime import UTC, datetime, timedelta

import pytest

from judge_eval.config.judge_types import JUDGE_TYPES, JudgeType
from judge_eval.config.run_config import JoiningJudges
from judge_eval.models import Anchor, Call, Judge, Provider, Run, Verdict
from judge_eval.runs import drift, lifecycle, variants
from judge_eval.services import judge_of
from reports.models import Delivery
from reports.webhooks.services import make_webhook
from tests.helpers.board_rows import make_studied_run
from tests.helpers.run_findings import compute
from tests.makers import (
    key_client,
    make_key,
    make_single_run,
    make_vote,
    make_voter,
    member_client,
    seal_all,
)
from tests.provider import provider
from voting.models import Entry, Queue

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(300)]
NOON = datetime(2026, 11, 27, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def server():
    with provider() as running:
        yield running


@pytest.fixture
def model(server):
    server.control(reset=True, mode="ok", retry_after=None)
    return server


def watched(model, *, pairs=12, a_day=4, name="judge-first"):
    """A run with votes in which one judge could be asked, and has verdicts."""
    run = make_studied_run(pairs=pairs, judges=2)
    Judge.objects.filter(run=run, name="weak").update(provider=Judge.IMPORTED)
    return run, watch(model, run, {"id": "good", "model": name}, a_day)


def watch(model, run, spec, a_day=4):
    """Let a judge of a run be one that a provider answers for, and watch it."""
    Provider.objects.create(name="local", base_url=model.base_url)
    [spec] = JoiningJudges(judges=[spec], provider="local").judges
    config = lifecycle._joined(run, JoiningJudges(judges=[spec], provider="local"))
    judge = Judge.objects.get(run=run, name=spec.id)
    fields = ("provider", "model", "recipe")
    made = judge_of(run, config, config.spec_of(spec.id))
    Judge.objects.filter(pk=judge.pk).update(**{name: getattr(made, name) for name in fields})
    Run.objects.filter(pk=run.pk).update(config=config.as_dict(), anchors_a_day=a_day)
    run.refresh_from_db()
    return Judge.objects.get(pk=judge.pk)


def days(number, monkeypatch, first=0):
    """Let the clock strike on each of so many days, as often as all of a day takes."""
    for day in range(first, first + number):
        now = NOON + timedelta(days=day)
        monkeypatch.setattr(drift.timezone, "now", lambda now=now: now)
        for _ in range(3):
            drift.ask_anchors(now)


def test_a_few_are_frozen_and_asked_again_once_in_each_freezing(model, monkeypatch):
    run, judge = watched(model)
    before = [of.objects.count() for of in (Call, Verdict, Entry)]
    days(1, monkeypatch)
    rows = Anchor.objects.filter(judge=judge)
    assert (rows.count(), rows.exclude(answered_at=None).count()) == (12, 0)
    days(1, monkeypatch, 1)
    assert rows.exclude(answered_at=None).count() == 4
    days(2, monkeypatch, 2)
    assert rows.filter(difference=0).count() == 12
    # All were asked again, so they are frozen anew.
    assert sorted(rows.values_list("freezing", flat=True)) == [1] * 12 + [2] * 12
    # Both orders of each, and nothing that a stored reply answered.
    assert len(model.requests) == 2 * (12 + 12 + 12)
    # Nothing of it is a call, a verdict or an entry.
    assert before == [of.objects.count() for of in (Call, Verdict, Entry)]
    assert drift.changes_of(run) == []


def test_a_judge_that_changes_is_told_once_on_the_board_by_webhook_and_in_the_gate(
    model, monkeypatch
):
    run, judge = watched(model, pairs=24, a_day=6)
    compute(run)
    make_webhook(
        run.queue.project, "https://8.8.8.8/hook", ["judge_drift"], None, "http://testserver"
    )
    days(2, monkeypatch)
    assert drift.changes_of(run) == []
    # What it said before was right on all, and now it is on half: in both orders the first.
    Anchor.objects.filter(judge=judge).update(answered_at=None, difference=None, answer="")
    for row in Anchor.objects.filter(judge=judge).select_related("item"):
        row.frozen = "A" if row.item.votes_a else "B"
        row.save()
    days(6, monkeypatch, 2)
    [said] = drift.changes_of(run)
    assert said.startswith("good has changed: it is worse since ")
    assert run.events.filter(kind="judge_drift").count() == 1
    [told] = Delivery.objects.filter(event="judge_drift")
    assert told.payload["data"]["direction"] == "worse"
    reply = key_client(make_key("read")[1]).get(
        f"/api/runs/{run.pk}/gate", {"judge": "good", "min_agreement": 0.5}
    )
    assert said in reply.json()["notes"]
    page = member_client(run.queue.project, "viewer").get(f"/runs/{run.pk}/").content.decode()
    assert "good has changed" in page
    days(4, monkeypatch, 8)
    assert Delivery.objects.filter(event="judge_drift").count() == 1


def test_an_outage_is_no_change_and_is_asked_later(model, monkeypatch):
    _, judge = watched(model)
    model.control(mode="500")
    days(1, monkeypatch)
    assert not Anchor.objects.exists()
    model.control(mode="ok")
    days(1, monkeypatch, 1)
    assert Anchor.objects.filter(judge=judge).count() == 12


def test_a_budget_that_is_used_up_lets_nothing_be_asked(model, monkeypatch):
    run, _ = watched(model)
    Provider.objects.update(prices={"judge-first": {"input": "1", "output": "1"}})
    Run.objects.update(budget_nano=1)
    days(1, monkeypatch)
    assert (Anchor.objects.count(), model.requests) == (0, [])
    Run.objects.update(budget_nano=10**12)
    days(1, monkeypatch, 1)
    assert Anchor.objects.count() == 12
    assert Run.objects.get(pk=run.pk).spent_nano > 0


@pytest.mark.parametrize("off", ["zero", "simulated", "stopped"])
def test_it_is_off_unless_it_is_set_and_people_voted(model, monkeypatch, off):
    watched(model, a_day=0 if off == "zero" else 4)
    if off == "simulated":
        Queue.objects.update(is_simulated=True)
    if off == "stopped":
        Run.objects.update(state="stopped")
    days(2, monkeypatch)
    assert (Anchor.objects.count(), model.requests) == (0, [])


def test_an_evaluator_sets_it_on_the_page_of_the_run(model):
    run, _ = watched(model)
    client = member_client(run.queue.project, "evaluator")
    page = f"/runs/{run.pk}/progress/"
    assert 'name="anchors"' in client.get(page).content.decode()
    assert client.post(f"/runs/{run.pk}/anchors", {"anchors": "7"}).status_code == 302
    assert Run.objects.get(pk=run.pk).anchors_a_day == 7
    assert client.post(f"/runs/{run.pk}/anchors", {"anchors": "101"}).status_code == 422


# --- which judges are watched --------------------------------------------------------------------

LABELS = {"kind": "labels", "ballot": ["long", "rude"]}
SINGLES = [
    ({"kind": "pass_flag", "ballot": ["pass", "flag"]}, "pass", "flag"),
    ({"kind": "category", "ballot": ["dog", "cat"]}, "dog", "cat"),
    ({"kind": "rating", "ballot": ["1", "2", "3", "4", "5"]}, "4", "3"),
    (LABELS, "long;rude", "long"),
]


@pytest.mark.parametrize("asked, right, wrong", SINGLES, ids=lambda each: str(each))
def test_an_answer_is_right_as_far_as_it_equals_votes(model, monkeypatch, asked, right, wrong):
    run = make_single_run([[right]] * 3, names=["good"], votes_per_item=3, **asked)
    judge = watch(model, run, {"id": "good", "model": "judge-first"})
    for choice in (right, right, wrong):
        voter = make_voter(run)
        for item in run.queue.items.all():
            make_vote(voter, item, choice)
    seal_all(run.queue.project)
    days(1, monkeypatch)
    rows = Anchor.objects.filter(judge=judge)
    assert rows.count() == 3
    rows.update(frozen=right)
    days(1, monkeypatch, 1)
    share = {right: 2 / 3, wrong: 1 / 3}
    differences = dict(rows.filter(freezing=1).values_list("answer", "difference"))
    assert differences == {
        answer: pytest.approx(share.get(answer, 0) - share[right]) for answer in differences
    }
    assert None not in differences.values()


class Arbiter(JudgeType):
    id = "arbiter"
    title = "Arbiter"
    version = "1"
    description = "Two models, and a third where they differ."
    parts = (3, 3)

    def verdict(self, judge, helpers):
        *two, third = judge.models
        one, other = helpers.judge(*two)
        return one if one.winner == other.winner else helpers.judge(third)[0]


def test_a_judge_of_several_models_is_asked_as_in_its_run(model, monkeypatch):
    monkeypatch.setitem(JUDGE_TYPES, "arbiter", Arbiter())
    run = make_studied_run(pairs=12, judges=2)
    Judge.objects.filter(run=run, name="weak").update(provider=Judge.IMPORTED)
    models = ["judge-tie", "judge-bad", "judge-long"]
    parts = [{"id": name, "provider": "local"} for name in models]
    judge = watch(model, run, {"id": "good", "type": "arbiter", "parts": parts})
    days(2, monkeypatch)
    rows = Anchor.objects.filter(judge=judge)
    assert rows.exclude(answered_at=None).count() == 4
    assert {*rows.values_list("frozen", flat=True)} <= {"A", "B", "tie"}
    assert {request["model"] for request in model.requests} == {*models}
    # One whose type is another by now is not asked at all.
    asked = len(model.requests)
    monkeypatch.setattr(Arbiter, "version", "2")
    days(2, monkeypatch, 2)
    assert len(model.requests) == asked


def test_an_unreadable_reply_is_asked_for_once_more_as_in_the_run(model, monkeypatch):
    _, judge = watched(model, pairs=1)
    model.control(mode="prose", times=1)
    days(1, monkeypatch)
    assert Anchor.objects.get(judge=judge).frozen != ""
    assert [request["mode"] for request in model.requests] == ["prose", "ok", "ok"]


def test_a_provider_with_few_calls_a_minute_is_asked_all_the_same(model, monkeypatch):
    _, judge = watched(model)
    Provider.objects.update(requests_per_minute=10)
    days(1, monkeypatch)
    # The clock stands still, and each has both orders: one at each look.
    assert Anchor.objects.filter(judge=judge).count() == 1


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda run: Run.objects.update(config=None), "No judge of this run is asked here"),
        (lambda run: Queue.objects.update(is_simulated=True), "Votes here are simulated"),
        (lambda run: Queue.objects.update(kind="text", ballot=[]), "whether a free text is right"),
    ],
)
def test_the_page_says_why_nobody_is_watched(model, monkeypatch, change, words):
    run, _ = watched(model)
    change(run)
    days(2, monkeypatch)
    assert model.requests == []
    client = member_client(run.queue.project, "evaluator")
    page = client.get(f"/runs/{run.pk}/progress/").content.decode()
    assert words in page
    assert 'name="anchors"' not in page
    refused = client.post(f"/runs/{run.pk}/anchors", {"anchors": "7"})
    assert refused.status_code == 409
    assert words in refused.content.decode()


def test_a_name_that_floats_is_noted(model):
    run, judge = watched(model, name="judge-latest")
    note = drift.floating_models(run)[judge.pk]
    assert note.startswith("judge-latest floats: ")
    Judge.objects.filter(pk=judge.pk).update(reported_model="judge-1")
    Anchor.objects.create(
        judge=judge,
        item=run.queue.items.first(),
        freezing=1,
        frozen="A",
        frozen_at=NOON,
        frozen_model="judge-2",
    )
    note = "judge-latest has answered as judge-1 and judge-2."
    assert drift.floating_models(run) == {judge.pk: note}
    variants.open_for_tuning(run)
    client = member_client(run.queue.project, "evaluator")
    assert note in client.get(f"/runs/{run.pk}/workshop/").content.decode()
