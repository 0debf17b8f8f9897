"""A judge that somebody leaves out is in no figure, and comes back to the last bit."""

import pytest
from django.urls import reverse

from judge_eval.board.model import RunFindings
from judge_eval.exports.export import export_run
from judge_eval.models import Judge, JudgeRating, Run
from judge_eval.runs.exclusion import include, leave_out, left_out_of
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.queries import board, verdicts_on
from reports.report.make import report_of
from reports.report.page import report_context
from tests.helpers.bundles import empty_the_instance, restored
from tests.helpers.imports import assert_whole
from tests.helpers.run_findings import compute, voted_run
from tests.makers import (
    key_client,
    make_key,
    make_voter,
    member_client,
    pairs_of,
    seal_all,
    user_client,
)
from voting.ledger import ledger

pytestmark = pytest.mark.django_db


@pytest.fixture
def run():
    return voted_run(pairs=12)


def figures_of(run):
    return RunFindings.read(compute(run).data)


def ratings_of(run):
    ratings = JudgeRating.objects.filter(judge__run=run).order_by("judge__position")
    return list(ratings.values())


def names_on_board(run):
    return [row.judge.name for row in board(run).rows]


def test_a_judge_that_is_left_out_is_in_no_figure_and_comes_back(run):
    judges, before, ratings = names_on_board(run), figures_of(run), ratings_of(run)
    gone = run.judges.order_by("position").first()
    lead = make_voter(run, name="Lea")
    leave_out(gone, lead, "It answers nothing.")
    seal_all(run.queue.project)

    figures = figures_of(run)
    assert names_on_board(run) == [name for name in judges if name != gone.name]
    assert [judge.name for judge in figures.judges] == names_on_board(run)
    assert figures.left_out == [gone.name]
    assert gone.name not in str(figures.words) + str(figures.more)
    assert len(figures.claims.beats) == len(judges) - 1
    assert gone.name not in [each.judge.name for each in verdicts_on(pairs_of(run)[0])]
    [out] = left_out_of(run)
    assert (out.judge.name, out.who, out.why) == (gone.name, "Lea", "It answers nothing.")
    assert_whole(run.queue.project)
    with pytest.raises(LifecycleRefused, match="left out already"):
        leave_out(gone, lead, "Again.")

    include(gone, lead)
    seal_all(run.queue.project)
    assert ratings_of(run) == ratings
    after = figures_of(run)
    assert after.judges == before.judges
    assert left_out_of(run) == after.left_out == []
    assert_whole(run.queue.project)
    with pytest.raises(LifecycleRefused, match="not left out"):
        include(gone, lead)


def test_the_others_have_the_elo_of_a_run_without_it(run):
    """Nobody played against it: with one judge left nobody plays at all."""
    named = run.judges.exclude(provider=Judge.BASELINE).order_by("position")
    for judge in named[1:]:
        leave_out(judge, make_voter(run), "Test.")
    seal_all(run.queue.project)
    assert {row["elo"] for row in ratings_of(run)} == {1000.0}
    assert_whole(run.queue.project)


def test_a_rating_that_says_otherwise_than_the_ledger_is_found(run):
    JudgeRating.objects.filter(judge=run.judges.first()).update(is_left_out=True)
    assert [d for d in ledger.replay(run.queue.project, write=False) if d.is_correctable]
    ledger.replay(run.queue.project, write=True)
    assert not JudgeRating.objects.filter(is_left_out=True).exists()


def test_a_bundle_brings_the_decision_and_another_run_of_it_names_its_own_judge(run):
    gone = run.judges.order_by("position").first()
    leave_out(gone, make_voter(run), "Test.")
    seal_all(run.queue.project)
    lines = list(export_run(run))
    [copy] = restored([line.replace(str(run.pk), str(run.pk)) for line in lines])
    empty_the_instance()
    [back] = restored(lines)
    assert Run.objects.count() == 1
    assert names_on_board(back) == names_on_board(copy)
    assert [out.judge.name for out in left_out_of(back)] == [gone.name]
    assert_whole(back.queue.project)


def test_page_board_report_and_roles(run):
    gone = run.judges.order_by("position").first()
    where = reverse("leave-out-judge", args=[run.pk])
    body = {"judge": gone.pk, "why": "Dead: 404."}
    member = member_client(run.queue.project, "viewer")
    assert member.post(where, body).status_code in (403, 404)
    client = user_client()
    progress = reverse("run-progress", args=[run.pk])
    assert (
        f'value="{gone.pk}" selected'
        in client.get(f"{progress}?leave_out={gone.name}").content.decode()
    )
    assert client.post(where, {"judge": gone.pk}).status_code == 422
    assert client.post(where, body).status_code == 302
    assert client.post(where, body).status_code == 409
    seal_all(run.queue.project)
    compute(run)
    shown = client.get(reverse("run", args=[run.pk])).content.decode()
    assert f"Left out by owner: {gone.name} (Dead: 404.)" in " ".join(shown.split())
    report = report_of(run.queue.project, run)
    assert report.runs[0].findings.left_out == [gone.name]
    assert report_context(report, is_frozen=False, outputs={})
    assert "Dead: 404." in client.get(progress).content.decode()
    assert client.post(reverse("include-judge", args=[run.pk, gone.pk])).status_code == 302
    assert left_out_of(run) == []
    assert client.post(reverse("include-judge", args=[run.pk, gone.pk])).status_code == 409


def test_rest_leaves_out_and_takes_back(run):
    gone = run.judges.order_by("position").first()
    _, token = make_key("read", "manage", project=run.queue.project)
    client, path = key_client(token), f"/api/runs/{run.pk}/left-out"

    def post(path, body):
        return client.post(path, body, content_type="application/json")

    said = post(path, {"judge": gone.name, "why": "Dead."})
    assert (said.status_code, said.json()["judges"][0]["name"]) == (200, gone.name)
    assert client.get(path).json() == said.json()
    assert post(path, {"judge": gone.name, "why": "Dead."}).status_code == 409
    assert post(path, {"judge": "nobody", "why": "x"}).status_code == 404
    assert post(path, {"judge": gone.name}).status_code == 422
    assert post(f"{path}/take-back", {"judge": str(gone.pk)}).json() == {"judges": []}
