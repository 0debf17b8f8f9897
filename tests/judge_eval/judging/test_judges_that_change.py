"""A model that calls itself something else in mid-run is another judge, from there on."""

import pytest

from judge_eval.models import Call, Judge, JudgeRating, Verdict
from judge_eval.runs import lifecycle
from judge_eval.runs.services import model_fingerprint
from tests.helpers.model_calls import completion
from tests.helpers.run_maker import a_verdict, attempt, go_on, make_judging, says
from tests.makers import counts_of, elos_of, judges_of, make_vote, make_voter, pairs_of, seal_all
from voting.ledger import ledger
from voting.models import Entry

pytestmark = pytest.mark.django_db

THREE = ["Say one.", "Say two.", "Say three."]
SWAPPED = a_verdict("B", 5, 8)


def answers_as(at, *names, slots=1):
    """Make one call after the other; the model calls itself by the next name each time."""
    for name in names:
        [waiting] = Call.objects.filter(state="waiting").order_by("not_before", "pk")[:1]
        says(at, SWAPPED if waiting.order == "BA" else a_verdict(), model=name)
        attempt(slots=slots)


def names_of(run):
    return [(judge.position, judge.name, judge.reported_model) for judge in judges_of(run)]


def test_the_name_in_the_first_reply_names_the_judge(at):
    run = make_judging(at)
    before = judges_of(run)[0].fingerprint
    answers_as(at, "judge-long-0613", "judge-long-0613")
    [judge] = judges_of(run)
    assert (judge.name, judge.model, judge.reported_model) == (
        "judge-long",
        "judge-long",
        "judge-long-0613",
    )
    assert judge.fingerprint == model_fingerprint(
        lifecycle.config_of(run), "judge-long", "default", "judge-long", "judge-long-0613"
    )
    assert judge.fingerprint != before
    assert not run.events.filter(kind="judge_changed").exists()


def test_another_name_is_a_new_judge_at_the_end_of_the_order(at):
    run = make_judging(at, prompts=THREE, judges=["judge-x", "longer-wins"])
    answers_as(at, "v1", "v1", "v2", "v2", "v2", "v2")
    named = names_of(run)
    assert named[:2] == [(0, "judge-x", "v1"), (1, "longer-wins", "")]
    assert named[-1] == (len(named) - 1, "judge-x (v2)", "v2")
    verdicts = Verdict.objects.filter(judge__provider="default").order_by("item__position")
    assert [verdict.judge.reported_model for verdict in verdicts] == ["v1", "v2", "v2"]
    [event] = run.events.filter(kind="judge_changed")
    assert event.text == "judge-x now answers as v2: it is a new judge and starts at 1000."
    assert event.data == {"judge": str(judges_of(run)[0].pk)}


def test_it_starts_at_1000_and_plays_only_where_it_judged(at):
    run = make_judging(at, prompts=THREE, judges=["judge-x", "longer-wins"])
    answers_as(at, "v1", "v1", "v2", "v2", "v2", "v2")
    run = go_on(run)
    assert run.state == "voting"
    voter, pairs = make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0], "both_bad")
    seal_all(run.queue.project)
    assert set(elos_of(run)) == {1000}
    judged = [counts[:2] for counts in counts_of(run)]
    assert (judged[:2], judged[-1]) == ([(0, 1), (0, 1)], (0, 0))
    make_vote(voter, pairs[1], "A")
    make_vote(voter, pairs[2], "A")
    seal_all(run.queue.project)
    old, baseline, *_, new = counts_of(run)
    assert (old, new) == ((0, 1, 1, 1), (2, 0, 2, 2))
    assert baseline[2:] == (3, 3)
    assert elos_of(run)[0] == 1000
    assert sum(elos_of(run)) == pytest.approx(1000 * run.judges.count())
    last = run.judges.count() - 1
    for entry in Entry.objects.filter(kind="verdicts").select_related("item"):
        positions = [said["position"] for said in entry.payload["verdicts"]]
        assert [0 in positions, last in positions] == [
            entry.item == pairs[0],
            entry.item != pairs[0],
        ]
    assert ledger.replay(run.queue.project, write=False) == []


def test_a_model_that_comes_back_is_the_judge_it_was(at):
    run = make_judging(at, prompts=THREE, judges=["judge-x"])
    answers_as(at, "v1", "v1", "v2", "v2", "v1", "v1")
    assert names_of(run) == [(0, "judge-x", "v1"), (1, "judge-x (v2)", "v2")]
    verdicts = Verdict.objects.order_by("item__position")
    assert [verdict.judge.position for verdict in verdicts] == [0, 1, 0]
    assert run.events.filter(kind="judge_changed").count() == 1


def test_a_third_name_is_a_third_judge(at):
    run = make_judging(at, prompts=THREE, judges=["judge-x"])
    answers_as(at, "v1", "v1", "v2", "v2", "v3", "v3")
    assert names_of(run) == [
        (0, "judge-x", "v1"),
        (1, "judge-x (v2)", "v2"),
        (2, "judge-x (v3)", "v3"),
    ]
    assert len(set(Judge.objects.values_list("fingerprint", flat=True))) == 3
    assert JudgeRating.objects.filter(judge__run=run, elo=1000).count() == 3


class TestTwoModelsInOneVerdict:
    @pytest.fixture
    def run(self, at):
        run = make_judging(at, judges=["judge-x"])
        answers_as(at, "v1", "v2")
        return run

    def test_make_none_and_it_says_why(self, run):
        verdict = Verdict.objects.get()
        assert (verdict.state, verdict.winner) == ("failed", "")
        assert verdict.error == "it answered as v1 and as v2, which are two judges"
        assert names_of(run) == [(0, "judge-x", "")]

    def test_are_both_asked_again(self, at, run):
        assert lifecycle.retry_failed(run.pk) == 2
        assert set(Call.objects.filter(purpose="judge").values_list("state")) == {("waiting",)}
        answers_as(at, "v2", "v2")
        verdict = Verdict.objects.get()
        assert (verdict.state, verdict.winner, verdict.judge.reported_model) == ("done", "A", "v2")

    def test_are_asked_again_too_where_a_sample_failed_besides(self, at, run):
        Call.objects.filter(order="AB").update(sample=1)
        first = Call.objects.get(order="AB")
        first.pk, first.sample = None, 0
        first.state, first.winner, first.error = "failed", "", "refused: no"
        first.save()
        assert lifecycle.retry_failed(run.pk) == 3

    def test_are_not_reused_by_a_copy(self, at, run):
        copy = lifecycle.start(lifecycle.duplicate(run.pk).pk)
        at.control(mode="ok", reset=True)
        copy = go_on(copy)
        assert Verdict.objects.get(judge__run=copy).state == "done"
        assert len(at.requests) == 2

    def test_one_of_them_from_storage_are_both_asked_anew(self, at):
        run = make_judging(at, judges=["judge-x"])
        answers_as(at, "v1")
        at.control(mode="insufficient_quota")
        attempt()
        copy = lifecycle.start(lifecycle.duplicate(run.pk).pk)
        at.control(mode="canned", canned={"body": completion(SWAPPED, model="v2")})
        copy = go_on(copy)
        reused = Call.objects.get(run=copy, purpose="judge", reused__isnull=False)
        assert reused.reported_model == "v1"
        assert "which are two judges" in Verdict.objects.get(judge__run=copy).error
        at.control(reset=True)
        assert lifecycle.retry_failed(copy.pk) == 2
        go_on(copy)
        assert len(at.requests) == 2
        verdict = Verdict.objects.get(judge__run=copy)
        assert (verdict.state, verdict.judge.reported_model) == ("done", "v2")


class TestTwoNamesForOneModel:
    def test_are_two_judges(self, at):
        run = make_judging(at, judges=["alias", "model-1"], prompts=["Say one."])
        answers_as(at, *["model-1"] * 4)
        assert names_of(run) == [(0, "alias", "model-1"), (1, "model-1", "model-1")]
        assert len({judge.fingerprint for judge in judges_of(run)}) == 2
        assert [v.state for v in Verdict.objects.all()] == ["done", "done"]

    def test_stay_two_when_one_of_them_changes_into_the_other(self, at):
        run = make_judging(at, judges=["alias", "model-1"], prompts=THREE)
        orders = Call.objects.filter(purpose="judge").order_by("pk")
        assert list(orders.values_list("model", flat=True)[:4]) == ["alias"] * 2 + ["model-1"] * 2
        answers_as(at, "old", "old", "model-1", "model-1", *["model-1"] * 8)
        assert names_of(run) == [
            (0, "alias", "old"),
            (1, "model-1", "model-1"),
            (2, "alias (model-1)", "model-1"),
        ]
        assert len({judge.fingerprint for judge in judges_of(run)}) == 3
        assert set(Verdict.objects.values_list("state", flat=True)) == {"done"}
        assert go_on(run).state == "voting"


def test_a_retried_verdict_goes_to_the_judge_that_answers_then(at):
    run = make_judging(at, judges=["judge-x"], prompts=THREE[:2])
    at.control(mode="insufficient_quota")
    attempt(slots=2)
    answers_as(at, "v2", "v2")
    lifecycle.retry_failed(run.pk)
    answers_as(at, "v1", "v1")
    assert names_of(run) == [(0, "judge-x", "v2"), (1, "judge-x (v1)", "v1")]
    [first, second] = Verdict.objects.order_by("item__position")
    assert (first.judge.position, second.judge.position) == (1, 0)
