"""Anchors are asked again by the clock, and a judge that has changed is told of once."""

from datetime import UTC, datetime, timedelta

import pytest

from judge_eval import tasks
from judge_eval.gate import drift
from judge_eval.judging.config.judge_types import JUDGE_TYPES, JudgeType
from judge_eval.judging.config.run_config import JoiningJudges
from judge_eval.models import Anchor, Call, Judge, Provider, Run, Verdict, Watch
from judge_eval.runs import lifecycle
from judge_eval.runs.services import judge_of
from judge_eval.workshop import services
from reports.models import Delivery
from reports.webhooks.services import make_webhook
from tests.helpers.board_rows import make_studied_run
from tests.helpers.pages import text_of
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

pytestmark = pytest.mark.django_db
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


def watch(model, run, spec, a_day=4, repeats=1):
    """Let a judge of a run be one that a provider answers for, and watch it."""
    Provider.objects.create(name="local", base_url=model.base_url)
    [spec] = JoiningJudges(judges=[spec], provider="local").judges
    config = lifecycle._joined_config(run, JoiningJudges(judges=[spec], provider="local"))
    judge = Judge.objects.get(run=run, name=spec.id)
    fields = ("provider", "model", "recipe")
    made = judge_of(run, config, config.spec_of(spec.id))
    Judge.objects.filter(pk=judge.pk).update(**{name: getattr(made, name) for name in fields})
    Run.objects.filter(pk=run.pk).update(config=config.as_dict(), anchors_a_day=a_day)
    run.refresh_from_db()
    items = map(str, run.queue.items.filter(votes__gt=0).values_list("pk", flat=True))
    judge = Judge.objects.get(pk=judge.pk)
    # A yardstick of a year is larger than a test can wait for.
    Watch.objects.create(judge=judge, anchors=list(items), repeats=repeats, started_at=NOON)
    return judge


def days(number, monkeypatch, first=0):
    """Let the clock strike on each of so many days, as often as all of a day takes."""
    for day in range(first, first + number):
        now = NOON + timedelta(days=day)
        monkeypatch.setattr(drift.timezone, "now", lambda now=now: now)
        for _ in range(3):
            drift.ask_anchors(now)


def states(run):
    return [drift.state_of(each) for each in drift.watches_of(run)]


def test_a_yardstick_is_asked_at_once_and_each_of_its_answers_is_used_once(model, monkeypatch):
    run, judge = watched(model)
    Watch.objects.update(repeats=2)
    before = [of.objects.count() for of in (Call, Verdict, Entry)]
    assert states(run) == ["good is not watched yet: its yardstick is being asked."]
    # A worker goes on with other things in between.
    assert drift.ask_anchors(NOON) is True
    assert Anchor.objects.count() == drift.AT_ONCE
    days(1, monkeypatch)
    rows = Anchor.objects.filter(watch__judge=judge)
    numbers = sorted(rows.values_list("number", flat=True))
    assert numbers == [1] * 12 + [2] * 12
    assert rows.exclude(answered_at=None).count() == 0
    assert states(run) == ["good is watched since 27 November 2026: no change is shown."]
    days(1, monkeypatch, 1)
    assert rows.exclude(answered_at=None).count() == 4
    days(2, monkeypatch, 2)
    assert rows.filter(difference=0, number=1).count() == 12
    days(3, monkeypatch, 4)
    assert rows.filter(difference=0).count() == 24
    # All of it is used, and nothing is asked again.
    ended = "The watch of good ended on 3 December 2026: its yardstick is used up"
    assert states(run) == [f"{ended}, and no change was found. Later ones are not looked for."]
    assert run.events.filter(kind="watch_ended").count() == 1
    days(2, monkeypatch, 7)
    # Both orders of each, and nothing that a stored reply answered.
    assert len(model.requests) == 2 * (24 + 24)
    # Nothing of it is a call, a verdict or an entry.
    assert before == [of.objects.count() for of in (Call, Verdict, Entry)]


def test_a_judge_that_changes_is_told_once_on_the_board_by_webhook_and_in_the_gate(
    model, monkeypatch
):
    run, _ = watched(model, pairs=36, a_day=8)
    compute(run)
    make_webhook(
        run.queue.project, "https://8.8.8.8/hook", ["judge_drift"], None, "http://testserver"
    )
    days(1, monkeypatch)
    # What it said before was right on all, and now it is on half: in both orders the first.
    for row in Anchor.objects.select_related("item"):
        row.stored = "A" if row.item.votes_a else "B"
        row.save()
    days(6, monkeypatch, 1)
    [said] = states(run)
    assert said.startswith("good has changed: it is worse since about 27 November 2026. ")
    assert run.events.filter(kind="judge_drift").count() == 1
    [told] = Delivery.objects.filter(event="judge_drift")
    data = told.payload["data"]
    assert (data["direction"], data["since"]) == ("worse", "2026-11-27")
    assert data["evidence"] >= 40
    reply = key_client(make_key("read")[1]).get(
        f"/api/runs/{run.pk}/gate", {"judge": "good", "min_agreement": 0.5}
    )
    assert said in reply.json()["notes"]
    page = member_client(run.queue.project, "viewer").get(f"/runs/{run.pk}/").content.decode()
    assert "good has changed" in page
    # It is told, so nothing more is asked; and it stays told while nobody is watched.
    asked = len(model.requests)
    days(4, monkeypatch, 7)
    drift.set_anchors(run, 0, None)
    assert (states(run), len(model.requests)) == ([said], asked)
    assert Delivery.objects.filter(event="judge_drift").count() == 1


def test_the_threshold_counts_all_judges_that_were_ever_watched(model, monkeypatch):
    run, _ = watched(model, pairs=36, a_day=8)
    other = Judge.objects.get(run=run, name="weak")
    Watch.objects.create(judge=other, anchors=[], repeats=1, ended_at=NOON)
    days(1, monkeypatch)
    for row in Anchor.objects.select_related("item"):
        row.stored = "A" if row.item.votes_a else "B"
        row.save()
    days(6, monkeypatch, 1)
    change = Watch.objects.get(judge__name="good")
    assert change.direction == "worse"
    [event] = run.events.filter(kind="judge_drift")
    odds = float(event.text.split("evidence ")[1].split(" : 1")[0])
    assert odds >= 80


def test_an_answer_that_failed_makes_no_difference(model, monkeypatch):
    _, judge = watched(model)
    days(1, monkeypatch)
    rows = Anchor.objects.filter(watch__judge=judge)
    lost = rows.first()
    rows.filter(pk=lost.pk).update(stored="")
    model.control(mode="prose")
    days(1, monkeypatch, 1)
    assert rows.exclude(answered_at=None).filter(answer="", difference=None).count() == 4
    model.control(mode="ok")
    days(2, monkeypatch, 2)
    # What was not stored is not asked again.
    assert rows.filter(difference=0).count() == 7
    lost.refresh_from_db()
    assert lost.answered_at is None
    assert Watch.objects.get().ended_at is not None


def test_a_watch_that_another_worker_asks_for_is_left_alone(model, monkeypatch):
    watched(model)
    Watch.objects.update(leased_until=NOON + timedelta(minutes=1))
    days(1, monkeypatch)
    assert model.requests == []
    Watch.objects.update(leased_until=None)
    days(1, monkeypatch, 1)
    assert Anchor.objects.count() == 12
    assert Watch.objects.get().leased_until is None


@pytest.mark.parametrize("is_more", [True, False])
def test_a_yardstick_goes_on_behind_what_others_wait_for(monkeypatch, is_more):
    submitted = []
    monkeypatch.setattr(drift, "ask_anchors", lambda now: is_more)
    monkeypatch.setattr(tasks.ask_anchors, "delay", lambda: submitted.append(1))
    tasks.ask_anchors()
    assert submitted == [1] * is_more


def test_repeats_of_a_judge_are_not_asked_for(model, monkeypatch):
    run = make_studied_run(pairs=2, judges=2)
    Judge.objects.filter(run=run, name="weak").update(provider=Judge.IMPORTED)
    watch(model, run, {"id": "good", "model": "judge-first", "repeats": 3})
    days(1, monkeypatch)
    assert len(model.requests) == 2 * 2


def test_an_outage_is_no_change_and_is_asked_later(model, monkeypatch):
    _, judge = watched(model)
    model.control(mode="500")
    days(1, monkeypatch)
    assert not Anchor.objects.exists()
    model.control(mode="ok")
    days(1, monkeypatch, 1)
    assert Anchor.objects.filter(watch__judge=judge).count() == 12


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


def test_an_evaluator_sees_what_a_yardstick_takes_and_then_asks_for_it(model):
    run, judge = watched(model, a_day=0)
    Watch.objects.all().delete()
    Provider.objects.update(prices={"judge-first": {"input": "1", "output": "1"}})
    client = member_client(run.queue.project, "evaluator")
    page, where = f"/runs/{run.pk}/progress/", f"/runs/{run.pk}/anchors"
    assert 'name="anchors"' in client.get(page).content.decode()
    shown = text_of(client.post(where, {"anchors": "7"}))
    # 365 days of 7, each anchor being asked about in both orders.
    assert "good: 213 times about each of 12 pairs, 5,112 calls, $" in shown
    assert (Watch.objects.count(), Run.objects.get(pk=run.pk).anchors_a_day) == (0, 0)
    assert client.post(where, {"anchors": "7", "asked": "1"}).status_code == 302
    assert Run.objects.get(pk=run.pk).anchors_a_day == 7
    begun = Watch.objects.get(judge=judge)
    assert (begun.repeats, len(begun.anchors)) == (213, 12)
    assert "its yardstick is being asked" in text_of(client.get(page))
    # Of judges that are watched the pace changes, and nothing is asked anew.
    assert client.post(where, {"anchors": "5"}).status_code == 302
    assert client.post(where, {"anchors": "101"}).status_code == 422
    assert (Watch.objects.count(), Run.objects.get(pk=run.pk).anchors_a_day) == (1, 5)
    # A watch that has ended leaves its place to another one, with a yardstick of its own.
    Watch.objects.update(ended_at=NOON)
    assert "good: 153 times" in text_of(client.post(where, {"anchors": "5"}))
    client.post(where, {"anchors": "5", "asked": "1"})
    assert Watch.objects.filter(judge=judge).count() == 2


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
    for choice in (right, right, wrong):
        voter = make_voter(run)
        for item in run.queue.items.all():
            make_vote(voter, item, choice)
    seal_all(run.queue.project)
    judge = watch(model, run, {"id": "good", "model": "judge-first"})
    days(1, monkeypatch)
    rows = Anchor.objects.filter(watch__judge=judge)
    assert rows.count() == 3
    rows.update(stored=right)
    days(1, monkeypatch, 1)
    share = {right: 2 / 3, wrong: 1 / 3}
    differences = dict(rows.values_list("answer", "difference"))
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
    rows = Anchor.objects.filter(watch__judge=judge)
    assert rows.exclude(answered_at=None).count() == 4
    assert {*rows.values_list("stored", flat=True)} <= {"A", "B", "tie"}
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
    assert Anchor.objects.get(watch__judge=judge).stored != ""
    assert [request["mode"] for request in model.requests] == ["prose", "ok", "ok"]


def test_a_provider_with_few_calls_a_minute_is_asked_all_the_same(model, monkeypatch):
    _, judge = watched(model)
    Provider.objects.update(requests_per_minute=10)
    days(1, monkeypatch)
    # The clock stands still, and each has both orders: one at each look.
    assert Anchor.objects.filter(watch__judge=judge).count() == 1


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda run: Run.objects.update(config=None), "No judge of this run is asked here"),
        (lambda run: Queue.objects.update(is_simulated=True), "Votes here are simulated"),
        (lambda run: Queue.objects.update(kind="text", ballot=[]), "whether a free text is right"),
        (lambda run: run.queue.items.update(votes=0), "Nobody has voted yet"),
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
        watch=Watch.objects.get(judge=judge),
        item=run.queue.items.first(),
        number=1,
        stored="A",
        stored_model="judge-2",
    )
    note = "judge-latest has answered as judge-1 and judge-2."
    assert drift.floating_models(run) == {judge.pk: note}
    services.open_for_tuning(run)
    client = member_client(run.queue.project, "evaluator")
    assert note in client.get(f"/runs/{run.pk}/workshop/").content.decode()
