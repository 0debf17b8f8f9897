"""Drawings that failed: why, for whom, and what is tried again."""

import sys
from pathlib import Path

import pytest

from judge_eval.models import Run, Verdict
from judge_eval.runs import lifecycle, state
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.queries import left_out
from tests.helpers.pages import text_of
from tests.hostile_svg import drawing
from tests.judge_eval.judging.test_judging import ALSO_GOOD, BAD, GOOD, make_new_run, work_on
from tests.makers import make_inference, make_project, make_vote, make_voter, pairs_of, user_client
from voting.models import Picture, Queue
from voting.pictures import rendering
from voting.pictures.rendering import RendererMissing
from voting.pictures.store import render_picture

pytestmark = pytest.mark.django_db

REFUSED = '<svg xmlns="http://www.w3.org/2000/svg"><script/></svg>'


def a_picture(source=GOOD):
    picture = Picture.objects.create(source_sha256="0" * 64)
    make_inference(make_project(), source, kind="svg", picture=picture)
    return picture


def no_python(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")


def no_package(monkeypatch):
    monkeypatch.setattr(rendering, "PACKAGES", {"resvg": "resvg_that_nobody_installed"})
    rendering._package_folder.cache_clear()


def a_broken_package(monkeypatch, tmp_path):
    (tmp_path / "resvg_py.py").write_text("raise ImportError('it was built for another machine')")
    monkeypatch.setattr(rendering, "_package_folder", lambda renderer: str(tmp_path))


@pytest.mark.parametrize("fault", ["no python", "no package", "a broken package"])
def test_a_fault_of_the_machine_leaves_the_drawing_waiting(monkeypatch, tmp_path, caplog, fault):
    with monkeypatch.context() as broken:
        if fault == "no python":
            no_python(broken)
        elif fault == "no package":
            no_package(broken)
        else:
            a_broken_package(broken, tmp_path)
        picture = a_picture()
        render_picture(picture.pk)
    rendering._package_folder.cache_clear()
    picture.refresh_from_db()
    assert picture.state == "waiting"
    assert "could not be started" in picture.error or "is not installed" in picture.error
    assert "waits" in caplog.text
    assert picture.leased_until is not None
    render_picture(picture.pk)
    picture.refresh_from_db()
    assert (picture.state, picture.error) == ("done", "")


def test_what_keeps_drawings_waiting_is_on_the_page_of_the_run(monkeypatch):
    run = make_new_run("svg", [GOOD, ALSO_GOOD])
    with monkeypatch.context() as broken:
        no_python(broken)
        work_on(run)
    assert run.state == "judging"
    page = text_of(user_client().get(f"/runs/{run.pk}/progress/"))
    assert "Drawings wait the renderer could not be started" in page
    work_on(run)
    assert run.state == "voting"


def test_only_screening_refuses_for_good():
    for source, is_refused in ((REFUSED, True), (BAD, True)):
        picture = a_picture(source)
        render_picture(picture.pk)
        picture.refresh_from_db()
        assert (picture.state, picture.is_refused) == ("failed", is_refused)
        picture.inferences.update(picture=None)
        picture.delete()


def a_run_with_a_slow_drawing(monkeypatch):
    """Return a run of three drawings of which one took too long, twice, on a busy machine."""
    run = make_new_run("svg", [GOOD, ALSO_GOOD, drawing('<rect width="7" height="7"/>')])
    with monkeypatch.context() as busy:
        busy.setattr(rendering, "WALL_SECONDS", 0.0)
        state.advance(run.pk)
        slow = Picture.objects.order_by("-pk").first()
        render_picture(slow.pk)
    slow.refresh_from_db()
    assert (slow.state, slow.error) == ("failed", "the drawing takes too long to render")
    work_on(run)
    return run


def test_a_drawing_that_failed_is_tried_again_and_its_pairs_come_back(monkeypatch):
    run = a_run_with_a_slow_drawing(monkeypatch)
    voter = make_voter(run)
    [open_pair] = [pair for pair in pairs_of(run) if not pair.unusable]
    make_vote(voter, open_pair)
    assert (run.state, sum(pairs for _, pairs in left_out(run))) == ("voting", 2)
    assert lifecycle.can_retry(run)
    assert lifecycle.retry_failed(run.pk) == 1
    assert run.events.get(kind="retried").text == "1 drawing is tried again."
    assert Queue.objects.get(pk=run.queue_id).more_may_come
    work_on(run)
    assert (run.state, left_out(run)) == ("voting", [])
    assert all(pair.opened_at for pair in pairs_of(run))
    assert set(Verdict.objects.filter(judge__run=run).values_list("state", flat=True)) == {"done"}
    assert not lifecycle.can_retry(run)


def test_what_another_run_has_drawn_since_comes_back_too(monkeypatch):
    run = a_run_with_a_slow_drawing(monkeypatch)
    failed = Picture.objects.get(state="failed")
    Picture.objects.update(state="waiting")
    render_picture(failed.pk)
    refused = make_new_run("svg", [GOOD, BAD])
    work_on(refused)
    assert lifecycle.can_retry(run)
    assert lifecycle.retry_failed(run.pk) == 2
    work_on(run)
    assert (run.state, left_out(run)) == ("voting", [])
    assert all(pair.opened_at for pair in pairs_of(run))
    assert len(left_out(refused)) == 1


def test_what_screening_refused_is_not_tried_again():
    run = make_new_run("svg", [GOOD, ALSO_GOOD, BAD])
    work_on(run)
    before = left_out(run)
    assert before
    assert not lifecycle.can_retry(run)
    assert lifecycle.retry_failed(run.pk) == 0
    assert left_out(run) == before
    assert run.state == "voting"


def test_a_run_of_which_nothing_can_be_drawn_says_why_and_offers_no_retry():
    run = make_new_run("svg", [BAD, REFUSED], prompts=2)
    work_on(run)
    assert run.state == Run.State.FAILED
    assert run.note.startswith("No pair can be shown. ")
    assert "could not be drawn: the drawing" in run.note
    client = user_client()
    page = client.get(f"/runs/{run.pk}/progress/")
    assert 'id="act-retry" disabled' in page.content.decode()
    assert "No pair can be shown." in text_of(page)


def test_a_run_of_given_outputs_offers_a_retry_of_its_drawings(monkeypatch):
    run = a_run_with_a_slow_drawing(monkeypatch)
    client = user_client()
    page = client.get(f"/runs/{run.pk}/progress/").content.decode()
    assert 'id="act-retry">' in page
    assert client.post(f"/runs/{run.pk}/retry").status_code == 302
    work_on(run)
    assert run.state == "voting"


def test_a_stopped_run_retries_nothing(monkeypatch):
    run = a_run_with_a_slow_drawing(monkeypatch)
    run = lifecycle.stop(run.pk)
    assert not lifecycle.can_retry(run)
    with pytest.raises(LifecycleRefused):
        lifecycle.retry_failed(run.pk)


def test_the_child_tells_its_own_faults_from_those_of_the_drawing(monkeypatch, tmp_path):
    a_broken_package(monkeypatch, tmp_path)
    assert Path(tmp_path, "resvg_py.py").exists()
    with pytest.raises(RendererMissing, match="built for another machine"):
        rendering.render(GOOD)
