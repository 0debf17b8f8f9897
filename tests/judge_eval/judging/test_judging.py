"""From a new run to open pairs: render, judge, open; whatever is repeated or fails."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.board.load import outcomes_of
from judge_eval.demo.content import DemoOutput, DemoPrompt
from judge_eval.judging import verdicts
from judge_eval.judging.baselines import names_for
from judge_eval.models import Judge, JudgeRating, Run, Verdict
from judge_eval.runs import state
from judge_eval.runs.services import create_run
from judge_eval.tasks import advance, sweep
from tests.makers import make_project, make_vote, make_voter, seal_all
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import queue_counts
from voting.ledger import chain, ledger
from voting.models import Entry, Item, Picture
from voting.pictures.store import render_picture

pytestmark = pytest.mark.django_db

GOOD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><rect width="9" height="9"/></svg>'
)
ALSO_GOOD = GOOD.replace("rect", 'rect fill="red"')
BAD = "<svg"


def make_new_run(
    kind="text", outputs=("short", "longer", "the longest of all"), prompts=1, baselines=None
):
    answers = [DemoOutput(f"generator-{g}", output) for g, output in enumerate(outputs)]
    questions = [DemoPrompt(str(n), f"Question {n}", kind, (), answers) for n in range(prompts)]
    names = names_for(kind) if baselines is None else baselines
    return create_run(
        make_project(), "Study", questions, rubric="Which is better?", baselines=names
    )


def work_on(run):
    """Do what the workers do with the tasks that `advance` hands out."""
    for _ in range(3):
        state.advance(run.pk)
        for picture in Picture.objects.filter(state="waiting"):
            render_picture(picture.pk)
    run.refresh_from_db()


def waiting(run):
    return Verdict.objects.filter(judge__run=run, state="waiting").select_related("item")


def comparisons(run):
    return Item.objects.filter(queue=run.queue).order_by("position")


def test_baselines_are_measured_by_the_judges_own_rule():
    """Asked in both orders, who goes by the place contradicts itself; who goes by texts never."""
    run = make_new_run(prompts=14)
    work_on(run)
    said = {judge.name: list(judge.verdicts.all()) for judge in run.judges.all()}
    for verdict in said["always-first"]:
        assert (verdict.order, verdict.picks, verdict.first_picks) == ("both", ["A", "A"], 2)
        assert (verdict.winner, verdict.consistent) == ("tie", False)
    for verdict in said["longer-wins"]:
        assert (verdict.consistent, verdict.first_picks) == (True, 1)
    tossed = [verdict.consistent for verdict in said["random"]]
    assert len(tossed) == 42
    assert 8 < sum(tossed) < 34, "a new toss for each order agrees with the other by half"
    outcomes = outcomes_of(run)
    place = [judge.name for judge in outcomes.judges].index("always-first")
    _, first_picks, side_picks = outcomes.habits
    assert (first_picks[:, place] == 2).all()
    assert (side_picks[:, place] == 2).all()


def test_where_judges_are_asked_once_baselines_are_too():
    run = make_new_run(prompts=4)
    for verdict in waiting(run).select_related("judge", "item__a", "item__b"):
        said = verdicts.answer_of_baseline(verdict, "random")
        assert (said["consistent"], len(said["picks"])) == (None, 1)
        if verdict.judge.name == "always-first":
            assert said["winner"] == {"AB": "A", "BA": "B"}[said["order"]]


def verdict_entries(run):
    return Entry.objects.filter(queue=run.queue, kind="verdicts")


def test_a_text_run_opens_every_pair_with_the_verdicts_of_every_judge():
    run = make_new_run(prompts=2)
    work_on(run)
    assert run.state == Run.State.VOTING
    assert queue_counts(run.queue) == (0, 6, 0)
    assert not waiting(run).exists()
    assert verdict_entries(run).count() == 6
    longer = Verdict.objects.filter(judge__run=run, judge__name="longer-wins")
    for verdict in longer.select_related("item__a", "item__b"):
        pair = verdict.item
        is_longer = len(pair.a.output) > len(pair.b.output)
        assert verdict.winner == ("A" if is_longer else "B")
        assert verdict.feedback.endswith(".")
        assert verdict.latency_ms >= 0
        assert verdict.decided_at is not None


def test_pairs_of_a_new_run_are_voted_on_and_judged_end_to_end():
    run = make_new_run()
    work_on(run)
    voter = make_voter(run)
    for pair in next_pairs(voter, run.queue, [], 10, timezone.now())[0]:
        pair.queue = run.queue
        make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    always_first = JudgeRating.objects.get(judge__run=run, judge__name="always-first")
    assert (always_first.agree, always_first.disagree) == (0, 3), "it contradicts itself"
    assert (always_first.requested, always_first.answered) == (3, 3)
    project = run.queue.project
    # The run, its judges, their verdicts on three pairs, and three votes.
    entries = 1 + len(names_for("text")) + 3 + 3
    assert chain.verify(ledger.export(project), project.ledger_head).entries == entries
    assert ledger.replay(project, write=False) == []


def test_drawings_are_rendered_before_any_judge_is_asked():
    run = make_new_run("svg", [GOOD, ALSO_GOOD])
    state.advance(run.pk)
    assert waiting(run).count() == run.judges.count(), "nobody was asked"
    assert not comparisons(run).filter(opened_at__isnull=False).exists()
    work_on(run)
    assert run.state == Run.State.VOTING
    assert set(Picture.objects.values_list("state", flat=True)) == {"done"}


def test_a_drawing_that_cannot_be_rendered_makes_its_pairs_unusable_with_the_reason():
    run = make_new_run("svg", [GOOD, ALSO_GOOD, BAD])
    work_on(run)
    failed = Picture.objects.get(state="failed")
    unusable = comparisons(run).exclude(unusable="")
    assert unusable.count() == 2
    for pair in unusable:
        assert pair.opened_at is None
        side = "A" if pair.a.picture == failed else "B"
        assert pair.unusable == f"{side} could not be drawn: {failed.error}"
        assert failed.error
        assert set(pair.verdicts.values_list("state", "winner")) == {("failed", "")}
    assert run.state == Run.State.VOTING
    assert queue_counts(run.queue) == (0, 1, 0)


@pytest.mark.parametrize("votes, keeps", [(1, False), (2, True), (3, True)])
def test_a_pair_that_came_with_all_its_votes_stays_whatever_its_drawing(votes, keeps):
    run = make_new_run("svg", [GOOD, BAD])
    comparisons(run).update(votes=votes, votes_wanted=2)
    for _ in range(2):
        work_on(run)
    pair = comparisons(run).get()
    assert (pair.unusable == "", pair.opened_at is not None) == (keeps, keeps)
    assert set(pair.verdicts.values_list("state", flat=True)) == {"failed"}
    assert run.state == ("voting" if keeps else "failed")


def test_an_unusable_pair_is_neither_in_the_ledger_nor_in_the_coverage_nor_handed_out():
    run = make_new_run("svg", [GOOD, ALSO_GOOD, BAD])
    work_on(run)
    seal_all(run.queue.project)
    [entry] = verdict_entries(run)
    assert entry.item.unusable == ""
    assert set(JudgeRating.objects.values_list("requested", "answered")) == {(1, 1)}
    handed = next_pairs(make_voter(run), run.queue, [], 10, timezone.now())[0]
    assert [pair.pk for pair in handed] == [entry.item_id]


def test_a_run_of_drawings_that_all_failed_ends_with_nothing_to_vote_on():
    run = make_new_run("svg", [BAD, "<svg/>x"])
    work_on(run)
    assert (run.state, "No pair can be shown" in run.note) == (Run.State.FAILED, True)
    assert queue_counts(run.queue) == (0, 0, 0)


def test_a_judge_that_fails_lowers_its_coverage_and_holds_nothing_up():
    run = make_new_run(outputs=("short", "longer"))
    judge = Judge.objects.get(run=run, name="random")
    Judge.objects.filter(pk=judge.pk).update(name="a judge that nobody answers for")
    work_on(run)
    seal_all(run.queue.project)
    verdict = judge.verdicts.get()
    assert (verdict.state, verdict.winner, verdict.score_a) == ("failed", "", None)
    assert "no provider answers" in verdict.error
    assert JudgeRating.objects.get(judge=judge).requested == 1
    assert JudgeRating.objects.get(judge=judge).answered == 0
    assert comparisons(run).get().opened_at is not None


def test_a_pair_opens_with_its_last_verdict_and_is_entered_once():
    run = make_new_run(outputs=("short", "longer"))
    pair = comparisons(run).get()
    # One that workers have to ask.
    last = waiting(run).last()
    Judge.objects.filter(pk=last.judge_id).update(provider="default")
    state.advance(run.pk)
    pair.refresh_from_db()
    assert pair.opened_at is None
    assert not verdict_entries(run).exists()
    assert waiting(run).get() == last
    Judge.objects.filter(pk=last.judge_id).update(provider="baseline")
    for _ in range(3):
        state.advance(run.pk)
        verdicts.open_those_final([pair.pk])
    pair.refresh_from_db()
    assert pair.opened_at is not None
    assert verdict_entries(run).count() == 1


def test_a_verdict_is_decided_once():
    run = make_new_run(outputs=("short", "longer"))
    decided = run.judges.first().verdicts.values_list("decided_at")
    state.advance(run.pk)
    [first] = list(decided)
    assert first != (None,)
    state.advance(run.pk)
    verdicts.answer_baselines(run)
    assert list(decided) == [first]


def test_advance_hands_out_pictures_first_and_respects_leases(monkeypatch):
    handed = []
    monkeypatch.setattr(state, "enqueue", lambda *task: handed.append(task))
    run = make_new_run("svg", [GOOD, ALSO_GOOD])
    state.advance(run.pk)
    pictures = Picture.objects.values_list("pk", flat=True)
    assert sorted(handed) == sorted(
        ("judge_eval.tasks.render", picture, str(run.pk)) for picture in pictures
    )
    state.advance(run.pk)
    assert len(handed) == 2
    Picture.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    state.advance(run.pk)
    assert len(handed) == 4


def test_the_sweep_goes_on_with_what_a_lost_task_left():
    run = make_new_run(outputs=("short", "longer"))
    verdicts.answer_baselines(run)
    sweep()
    run.refresh_from_db()
    assert run.state == Run.State.VOTING
    before = Entry.objects.count()
    sweep()
    assert Entry.objects.count() == before


def test_the_last_verdict_takes_the_run_to_voting_and_no_other_does(monkeypatch):
    handed = []
    monkeypatch.setattr(state, "enqueue", lambda *task: handed.append(task))
    monkeypatch.setattr(verdicts, "BASELINES_AT_ONCE", 2)
    run = make_new_run(outputs=("short", "longer"), baselines=names_for("text")[-3:])
    state.advance(run.pk)
    run.refresh_from_db()
    assert (run.state, waiting(run).count()) == (Run.State.JUDGING, 1), "of three on one pair"
    assert handed == [("judge_eval.tasks.advance", str(run.pk))]
    advance(str(run.pk))
    run.refresh_from_db()
    assert (run.state, waiting(run).count()) == (Run.State.VOTING, 0)
    advance(str(run.pk))  # delivered twice
    assert len(handed) == 1


def test_a_run_that_is_stopped_is_left_alone(monkeypatch):
    handed = []
    monkeypatch.setattr(state, "enqueue", lambda *task: handed.append(task))
    run = make_new_run()
    Run.objects.filter(pk=run.pk).update(state=Run.State.STOPPED)
    state.advance(run.pk)
    assert handed == []


def test_a_picture_is_rendered_once():
    run = make_new_run("svg", [GOOD, ALSO_GOOD])
    picture = Picture.objects.order_by("pk").first()
    render_picture(picture.pk)
    picture.refresh_from_db()
    Picture.objects.filter(pk=picture.pk).update(width=1)
    render_picture(picture.pk)
    picture.refresh_from_db()
    assert (picture.state, picture.width) == ("done", 1)
    assert run.state == Run.State.JUDGING
