"""What failed is asked again: on pairs that are open already, under votes that stay."""

import pytest

from judge_eval.models import Call, JudgeRating, Run, Verdict
from judge_eval.runs import lifecycle
from tests.helpers.run_maker import a_verdict, attempt, go_on, make_judging, make_started, says
from tests.makers import elos_of, judges_of, make_vote, make_voter, pairs_of, seal_all
from voting.ledger import chain, ledger
from voting.models import Entry

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(at):
    """A run in voting of which one judge has failed throughout."""
    at.control(mode="insufficient_quota", models=["judge-hash"])
    run = go_on(make_started(at, prompts=["One.", "Two."]))
    at.control(mode="ok", reset=True)
    return run


def verdicts_of(name):
    return Verdict.objects.filter(judge__name=name)


def entries_of(run):
    return Entry.objects.filter(queue=run.queue, kind="verdicts").order_by("pk")


def test_only_what_failed_is_asked_and_the_rest_stays_as_it_was(at, run):
    before = list(verdicts_of("judge-long").order_by("pk").values())
    assert lifecycle.retry_failed(run.pk) == 4
    run = Run.objects.get(pk=run.pk)
    assert (run.state, run.queue.is_open) == ("judging", True)
    event = run.events.filter(kind="retried").get()
    assert event.text == "4 failed calls are made again."
    assert go_on(run).state == "voting"
    assert [request["model"] for request in at.requests] == ["judge-hash"] * 4
    assert set(verdicts_of("judge-hash").values_list("state", flat=True)) == {"done"}
    assert list(verdicts_of("judge-long").order_by("pk").values()) == before


def test_pairs_stay_open_and_votes_are_taken_meanwhile(at, run):
    opened = [pair.opened_at for pair in pairs_of(run)]
    lifecycle.retry_failed(run.pk)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    assert [pair.opened_at for pair in pairs_of(run)] == opened
    run = go_on(run)
    assert [pair.opened_at for pair in pairs_of(run)] == opened
    assert pairs_of(run)[0].votes == 1


def test_a_later_verdict_is_a_second_entry_and_the_ratings_are_folded_anew(at, run):
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    failed = JudgeRating.objects.get(judge__name="judge-hash")
    assert (failed.elo, failed.requested, failed.answered) == (1000, 2, 0)
    before = elos_of(run)

    lifecycle.retry_failed(run.pk)
    seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == [], "while they are asked again"
    run = go_on(run)
    assert entries_of(run).count() == 4
    seal_all(run.queue.project)

    for pair in pairs_of(run):
        first, second = entries_of(run).filter(item=pair)
        position = judges_of(run)[1].position
        assert first.payload["verdicts"][position]["winner"] is None
        said = Verdict.objects.get(item=pair, judge__name="judge-hash").winner
        assert second.payload["verdicts"][position]["winner"] == said != ""
    rating = JudgeRating.objects.get(judge__name="judge-hash")
    assert (rating.agree + rating.disagree, rating.requested, rating.answered) == (2, 2, 2)
    agreed = verdicts_of("judge-hash").filter(winner="A").count()
    assert rating.agree == agreed
    assert elos_of(run) != before
    assert sum(elos_of(run)) == pytest.approx(1000 * run.judges.count())
    project = run.queue.project
    assert ledger.replay(project, write=False) == []
    assert chain.verify(ledger.export(project), project.ledger_head).entries == 17
    votes = Entry.objects.filter(kind="vote", retracted=False, seq__isnull=False)
    assert votes.count() == 2


def test_failing_again_for_the_same_reason_writes_no_entry(at, run):
    at.control(mode="insufficient_quota", models=["judge-hash"])
    lifecycle.retry_failed(run.pk)
    run = go_on(run)
    assert (run.state, entries_of(run).count()) == ("voting", 2)
    assert set(verdicts_of("judge-hash").values_list("state", flat=True)) == {"failed"}


def test_with_nothing_failed_nothing_happens(at):
    run = go_on(make_started(at))
    events = run.events.count()
    assert lifecycle.retry_failed(run.pk) == 0
    run.refresh_from_db()
    assert (run.state, run.events.count()) == ("voting", events)


def test_a_complete_run_is_judged_and_voted_on_again(at, run):
    Run.objects.filter(pk=run.pk).update(state="complete")
    assert lifecycle.retry_failed(run.pk) == 4
    assert go_on(run).state == "voting"


def test_a_call_keeps_what_it_cost_and_begins_its_tries_anew(at, run):
    Call.objects.filter(model="judge-hash").update(cost_nano=7, prompt_tokens=3, attempts=8)
    lifecycle.retry_failed(run.pk)
    fresh = Call.objects.filter(model="judge-hash")
    row = fresh.values("state", "attempts", "error", "reply", "done_at", "cost_nano").distinct()
    assert list(row) == [
        {
            "state": "waiting",
            "attempts": 0,
            "error": "",
            "reply": "",
            "done_at": None,
            "cost_nano": 7,
        }
    ]
    go_on(run)
    assert set(fresh.values_list("state", "attempts")) == {("done", 1)}
    assert min(fresh.values_list("prompt_tokens", flat=True)) > 3


class TestSamplesThatFailed:
    @pytest.fixture
    def run(self, at):
        run = make_judging(at, verdict_orders="random", judging={"samples": 3})
        says(at, a_verdict("A"))
        attempt(slots=1)
        at.control(mode="insufficient_quota")
        attempt()
        at.control(mode="ok")
        return go_on(run)

    def test_the_others_make_the_verdict(self, run):
        verdict = Verdict.objects.get()
        assert (verdict.state, verdict.picks, verdict.sample_consistency) == ("done", ["A"], 1.0)
        assert run.state == "voting"

    def test_asked_again_they_count_too(self, at, run):
        order = Verdict.objects.get().order
        assert lifecycle.retry_failed(run.pk) == 2
        waiting = Verdict.objects.get()
        assert (waiting.state, waiting.winner, waiting.picks) == ("waiting", "", [])
        says(at, a_verdict("B", 1, 9))
        run = go_on(run)
        verdict = Verdict.objects.get()
        assert (verdict.state, verdict.picks) == ("done", ["B"])
        assert verdict.winner == ("B" if order == "AB" else "A")
        assert verdict.sample_consistency == pytest.approx(2 / 3)
        assert entries_of(run).count() == 2
        assert run.state == "voting"

    def test_failing_again_they_leave_it_as_it_was(self, at, run):
        before = Verdict.objects.values().get()
        at.control(mode="insufficient_quota")
        lifecycle.retry_failed(run.pk)
        go_on(run)
        after = Verdict.objects.values().get()
        assert after | {"decided_at": 0} == before | {"decided_at": 0}
        assert entries_of(run).count() == 1
