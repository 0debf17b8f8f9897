"""Score files over the web: asked for, made by a worker, fetched; by page and by REST."""

import json
import zipfile
from copy import deepcopy
from datetime import timedelta
from io import BytesIO

import pytest
from django.apps import apps
from django.db import IntegrityError
from django.utils import timezone

from judge_eval.stats import SCORERS
from reports import tasks
from reports.models import ScoreReport
from reports.scores import files as scores_files
from reports.scores import views
from tests.helpers.pages import HTMX, queries_of, text_of
from tests.helpers.run_findings import compute
from tests.helpers.scores import MoreAs
from tests.makers import (
    key_client,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
)
from voting.people.voters import voter_of_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def drawn():
    """Charts take most of the time, and few tests look at them: those ask for this."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(scores_files, "write_charts", lambda *_, **__: [])


ASKED = {"metrics": [{"scorer": "classification", "display_name": "accuracy"}]}


def voted_run(**fields):
    run = make_run(pairs=2, **fields)
    for pair in pairs_of(run):
        make_vote(make_voter(run), pair, "A")
    seal_all(run.queue.project)
    return run


@pytest.fixture(scope="module")
def made_once(module_db):
    return voted_run()


@pytest.fixture
def run(made_once):
    return deepcopy(made_once)


def manager(project=None):
    return key_client(make_key("manage", "read", project=project)[1])


def post(client, run, body=None):
    data = "" if body is None else body if isinstance(body, str) else json.dumps(body)
    address = f"/api/runs/{run.pk}/scores"
    return client.post(address, data, content_type="application/json")


def make_all():
    for report in ScoreReport.objects.filter(state="waiting"):
        tasks.make_score_files(str(report.pk))


def unpacked(content):
    archive = zipfile.ZipFile(BytesIO(content))
    assert archive.testzip() is None
    return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def bytes_of(response):
    return b"".join(response.streaming_content)


# --- by REST ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("drawn")
def test_asked_for_waited_for_and_fetched(run):
    client = manager()
    asked = post(client, run, ASKED)
    assert asked.status_code == 202
    location = asked["Location"]
    assert asked.json()["location"] == location
    waiting = client.get(location).json()
    assert (waiting["state"], waiting["download"]) == ("waiting", None)
    assert client.get(f"{location}/download").status_code == 409
    make_all()
    done = client.get(location).json()
    assert done["state"] == "done"
    response = client.get(done["download"])
    assert response["Content-Type"] == "application/zip"
    assert response["Content-Disposition"].startswith(
        'attachment; filename="scores-a-run-of-pairs-'
    )
    content = bytes_of(response)
    assert done["bytes"] == len(content)
    files = unpacked(content)
    assert {"report.json", "scores/score_report.csv", "scores/score_report.html"} <= files.keys()
    assert "scores/classification_accuracy/accuracy/accuracy_scores.png" in files
    result = json.loads(files["scores/classification_accuracy/accuracy/judge-0_result.json"])
    assert (result["scores"], result["counts"]) == ({"accuracy": 1.0}, {"accuracy": 2})


def test_without_a_body_the_usual_metrics_are_computed(run):
    client = manager()
    location = post(client, run)["Location"]
    make_all()
    files = unpacked(bytes_of(client.get(f"{location}/download")))
    assert files["scores/score_report.csv"].startswith(
        b"judge_id,classification_accuracy_1tasks_978f6f60"
    )


@pytest.mark.parametrize(
    "body, path, message",
    [
        ("{", "", "not JSON"),
        ('{"metrics": [], "metrics": []}', "", "is given twice"),
        ({"metrics": [{"scorer": "kapa"}]}, "metrics[0].scorer", "no scorer is called 'kapa'"),
        ({"metrics": [{"scorer": "os.getcwd"}]}, "metrics[0].scorer", "no scorer is called"),
        (ASKED | {"modules": ["antigravity"]}, "modules", "on the command line only"),
        (ASKED | {"vega_config": {}}, "vega_config", "give it as style"),
        (ASKED | {"style": "/etc/passwd"}, "style", "line 1: must be a key, a colon and a value"),
        (ASKED | {"style": {"figure.hooks": "os:abort"}}, "style", "figure.hooks: this key cannot"),
        ({"metrics": ASKED["metrics"] * 2}, "metrics", "give one of them a display_name"),
    ],
)
def test_a_wrong_configuration_is_told_at_once_with_its_place(run, body, path, message):
    response = post(manager(), run, body)
    assert response.status_code == 422
    [error] = response.json()["detail"]
    assert error["path"] == path
    assert message in error["message"]
    assert not ScoreReport.objects.exists()


@pytest.mark.parametrize(
    "embedder, path",
    [
        ({"base_url": "http://127.0.0.1:9/v1", "model": "m"}, "base_url"),
        ({"local": "/etc"}, "local"),
        ({"provider": "nobody", "model": "m"}, "provider"),
    ],
)
def test_what_only_a_worker_can_find_wrong_is_told_in_the_end(run, embedder, path):
    metric = {"scorer": "semantic_similarity", "options": {"embedder": embedder}}
    client = manager()
    location = post(client, run, {"metrics": [metric]})["Location"]
    make_all()
    told = client.get(location).json()
    assert told["state"] == "failed"
    assert told["error"].startswith(f"metrics[0].options.embedder.{path}: ")
    assert client.get(f"{location}/download").status_code == 409


def test_a_task_that_the_run_has_no_labels_of_is_told_in_the_end(run):
    metric = {"scorer": "classification", "task_names": ["stars"]}
    client = manager()
    location = post(client, run, {"metrics": [metric]})["Location"]
    make_all()
    assert "this run has no labels of the task 'stars'" in client.get(location).json()["error"]


MODULE = """
from judge_eval.stats import Estimate, Scorer, register


class Always(Scorer):
    def __init__(self):
        super().__init__("always")

    def can_score_task(self, sample_label):
        return True

    def compute_score(self, judge_data, human_data, task_name, judge_id, aggregation_mode):
        return self.result(judge_id, task_name, aggregation_mode, {"always": Estimate(1, n=1)})


register("named_by_the_setting", Always)
"""


def test_a_scorer_of_the_setting_is_taken_by_its_name(run, tmp_path, monkeypatch, settings):
    (tmp_path / "scorers_of_the_setting.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    # Whatever is registered here is gone after the test.
    monkeypatch.setitem(SCORERS, "named_by_the_setting", None)
    del SCORERS["named_by_the_setting"]
    settings.SCORER_MODULES = ["scorers_of_the_setting"]
    apps.get_app_config("reports").ready()
    client = manager()
    location = post(client, run, {"metrics": ["named_by_the_setting"]})["Location"]
    make_all()
    table = unpacked(bytes_of(client.get(f"{location}/download")))["scores/score_report.csv"]
    assert table.splitlines()[1] == b"judge-0,1"


def test_the_figures_are_on_the_page_and_in_the_answer_those_of_own_scorers_too(run, monkeypatch):
    monkeypatch.setitem(SCORERS, "more_as", MoreAs)
    client = manager()
    metrics = [*ASKED["metrics"], {"scorer": "more_as", "display_name": "how many more As"}]
    location = post(client, run, {"metrics": metrics}).json()["location"]
    assert client.get(location).json()["figures"] is None
    make_all()
    figures = client.get(location).json()["figures"]
    assert figures["columns"] == ["accuracy", "how many more As"]
    assert [row["figures"][0]["value"] for row in figures["judges"]] == [1.0, 0.0]
    assert figures["judges"][0]["figures"][0]["is_best"]
    assert figures["judges"][0]["is_baseline"]
    page = text_of(user_client().get(f"/runs/{run.pk}/scores/"))
    assert "how many more As" in page
    assert "1.000" in page
    assert "judge-0 baseline" in page
    assert "As of 2 votes by 2 people on 2 pairs (all pairs), ledger entry" in page


def test_people_stand_beneath_the_judges_and_are_rounded_as_in_the_files():
    run = make_run(pairs=8, votes_wanted=9)
    for number, pair in enumerate(pairs_of(run)):
        for who, choice in (("ann", "A"), ("ben", "AB"[number % 2])):
            make_vote(make_voter(run, name=who), pair, choice)
    seal_all(run.queue.project)
    location = post(manager(), run).json()["location"]
    make_all()
    figures = manager().get(location).json()["figures"]
    assert figures["titles"][0] == "Accuracy, winner"
    assert figures["of_people"][-2:] == [True, False]
    files = unpacked(bytes_of(manager().get(f"{location}/download")))
    html = user_client().get(f"/runs/{run.pk}/scores/").content.decode()
    table = html.split('id="figures"')[1].split("</table>")[0]
    assert "Accuracy, winner" in table
    assert "classification_accuracy_1tasks_978f6f60_single" in table, "as a tooltip"
    assert "people among themselves" in table
    assert "Krippendorff&#x27;s alpha, winner" not in table
    assert html.count("Krippendorff&#x27;s alpha, winner") == 1
    report = files["scores/score_report.html"].decode()
    for figure in figures["people"]:
        if figure["value"] is not None:
            assert f"{figure['value']:.3f}" in html
            assert f"{figure['value']:.3f}" in report


@pytest.mark.parametrize("text", ["", json.dumps(ASKED), json.dumps(ASKED["metrics"])])
def test_a_part_is_chosen_on_the_page(run, text):
    browser = user_client()
    address = f"/runs/{run.pk}/scores/"
    assert "<select" not in browser.get(address).content.decode(), "nothing is known of the run"
    compute(run)
    html = browser.get(address).content.decode()
    assert html.count('<option value="generator:generator-0">') == 2
    asked = browser.post(f"{address}ask", {"config": text, "part": "ballot:decided"})
    assert asked.status_code == 302
    make_all()
    assert ScoreReport.objects.get().state == "done"
    page = text_of(browser.get(address))
    assert "(only votes and verdicts for A or B)" in page
    assert ("usual" in page) == (not text)


def test_a_part_that_cannot_be_is_refused(run):
    answer = user_client().post(f"/runs/{run.pk}/scores/ask", {"part": "colour:red"})
    assert answer.status_code == 422
    assert "part: tag:" in text_of(answer)


def test_the_page_costs_the_same_however_many_files_there_are(run):
    client = user_client()
    address = f"/runs/{run.pk}/scores/"
    few = queries_of(client, address)
    for _ in range(15):
        ScoreReport.objects.create(run=run, state="failed", error="broken")
    assert queries_of(client, address) == few


def test_a_key_that_votes_blindly_is_told_no_figures():
    run = make_run(pairs=2, votes_wanted=3)
    key = key_client(make_key("vote", "read")[1])
    location = post(manager(), run, ASKED).json()["location"]
    make_all()
    answer = key.get(location).json()
    assert (answer["state"], answer["figures"]) == ("done", None)


def test_one_at_a_time():
    run, client = voted_run(), manager()
    assert post(client, run, ASKED).status_code == 202
    assert post(client, run, ASKED).status_code == 409
    assert post(client, voted_run(), ASKED).status_code == 202
    make_all()
    assert post(client, run, ASKED).status_code == 202


def test_a_key_that_votes_blindly_waits_until_it_has_voted():
    run = voted_run(votes_wanted=3)
    location = post(manager(), run, ASKED)["Location"]
    make_all()
    key, token = make_key("read", "vote")
    client = key_client(token)
    refused = client.get(f"{location}/download")
    assert (refused.status_code, client.get(location).status_code) == (403, 200)
    assert "vote first" in refused.json()["detail"]
    seer = key_client(make_key("read", "vote", "verdicts")[1])
    assert unpacked(bytes_of(seer.get(f"{location}/download")))
    for pair in pairs_of(run):
        make_vote(voter_of_key(run.queue.project_id, key), pair, "A")
    assert unpacked(bytes_of(client.get(f"{location}/download")))


def test_another_project_and_another_run_do_not_have_them():
    run, other = voted_run(), voted_run()
    location = post(manager(), run, ASKED)["Location"]
    assert manager(make_project()).get(location).status_code == 404
    assert manager().get(location.replace(str(run.pk), str(other.pk))).status_code == 404
    assert post(manager(make_project()), run, ASKED).status_code == 404


def test_files_that_are_gone_are_told(run):
    client = manager()
    location = post(client, run, ASKED)["Location"]
    make_all()
    views.path_of(ScoreReport.objects.get()).unlink()
    assert client.get(f"{location}/download").status_code == 404


# --- the worker ---------------------------------------------------------------------------------


def test_a_task_that_comes_twice_makes_them_once(run):
    report = views.request_scores(run, None)
    views.make(report.pk)
    path = views.path_of(report)
    before = path.stat().st_mtime_ns
    views.make(report.pk)
    assert path.stat().st_mtime_ns == before
    assert [file for file in path.parent.iterdir() if file.name.startswith(str(report.pk))] == [
        path
    ]


def test_a_worker_leaves_alone_what_another_is_at(run):
    report = views.request_scores(run, None)
    ScoreReport.objects.update(leased_until=timezone.now() + timedelta(minutes=1))
    views.make(report.pk)
    assert not views.path_of(report).exists()
    ScoreReport.objects.update(leased_until=timezone.now() - timedelta(minutes=1))
    views.make(report.pk)
    assert views.path_of(report).exists()


def test_who_was_overtaken_leaves_the_files_of_the_other_alone(run, monkeypatch):
    report = views.request_scores(run, None)
    made = scores_files.make_report

    def overtaken(*args, **options):
        ScoreReport.objects.update(attempts=2)
        return made(*args, **options)

    monkeypatch.setattr(scores_files, "make_report", overtaken)
    views.make(report.pk)
    report.refresh_from_db()
    assert (report.state, report.attempts) == ("waiting", 2)
    folder = views.path_of(report).parent
    assert [file for file in folder.iterdir() if file.name.startswith(str(report.pk))] == []


def test_what_breaks_off_again_and_again_fails_in_the_end(run):
    report = views.request_scores(run, None)
    ScoreReport.objects.update(attempts=views.MOST_ATTEMPTS)
    views.make(report.pk)
    report.refresh_from_db()
    assert (report.state, report.error) == ("failed", "The job failed 3 times.")


def test_what_fails_each_time_says_why_in_the_end(run, settings, tmp_path):
    settings.DATA = tmp_path
    (tmp_path / "scores").write_text("a file where a folder belongs")
    report = views.request_scores(run, None)
    for _ in range(views.MOST_ATTEMPTS):
        ScoreReport.objects.update(leased_until=None)
        with pytest.raises(OSError, match="scores"):
            views.make(report.pk)
    report.refresh_from_db()
    why = "The files could not be made: an unexpected error occurred (NotADirectoryError)"
    assert (report.state, report.error[: len(why)]) == ("failed", why)
    assert why in text_of(user_client().get(f"/runs/{run.pk}/scores/"))


def test_a_lost_task_is_asked_for_again(monkeypatch):
    published = []
    monkeypatch.setattr(views, "enqueue", lambda *task: published.append(task))
    fresh, lost, left, held = (views.request_scores(make_run(), None) for _ in range(4))
    published.clear()
    now = timezone.now()
    earlier = ScoreReport.objects.filter(pk__in=[lost.pk, left.pk, held.pk])
    earlier.update(requested_at=now - timedelta(minutes=1))
    ScoreReport.objects.filter(pk=left.pk).update(leased_until=now - timedelta(seconds=1))
    ScoreReport.objects.filter(pk=held.pk).update(leased_until=now + timedelta(minutes=1))
    tasks.sweep()
    assert sorted(pk for _, pk in published) == sorted(str(report.pk) for report in (lost, left))
    assert str(fresh.pk) not in dict(published)


def test_old_files_make_room(run):
    ago = timezone.now() - timedelta(days=1)
    old = ScoreReport.objects.create(run=run, state="done", requested_at=ago)
    path = views.path_of(old)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"zip")
    for _ in range(views.MOST_KEPT - 1):
        ScoreReport.objects.create(run=run, state="done")
    views.request_scores(run, None)
    assert not path.exists()
    assert ScoreReport.objects.filter(run=run).count() == views.MOST_KEPT


def test_the_database_refuses_a_failure_without_a_reason():
    with pytest.raises(IntegrityError):
        ScoreReport.objects.create(run=make_run(), state="failed")


# --- the page -----------------------------------------------------------------------------------


def test_an_evaluator_presses_the_button_waits_and_fetches(run):
    browser = user_client()
    page = f"/runs/{run.pk}/scores/"
    assert "Make score files" in text_of(browser.get(page))
    answer = browser.post(f"{page}ask")
    assert (answer.status_code, answer["Location"]) == (302, page)
    waiting = browser.get(page)
    assert "being made" in text_of(waiting)
    assert 'hx-trigger="every 2s"' in waiting.content.decode()
    make_all()
    fragment = browser.get(page, headers=HTMX)
    assert "<html" not in fragment.content.decode()
    assert "hx-trigger" not in fragment.content.decode()
    report = ScoreReport.objects.get()
    address = f"/runs/{run.pk}/scores/{report.pk}/download"
    assert address in fragment.content.decode()
    assert "scores/score_report.html" in unpacked(bytes_of(browser.get(address)))


def test_a_wrong_configuration_stays_in_the_form_with_its_mistakes(run):
    text = '{"metrics": [{"scorer": "<b>"}]}'
    answer = user_client().post(f"/runs/{run.pk}/scores/ask", {"config": text})
    assert answer.status_code == 422
    assert "metrics[0].scorer: no scorer is called &#x27;&lt;b&gt;&#x27;" in answer.content.decode()
    assert (
        "{&quot;metrics&quot;: [{&quot;scorer&quot;: &quot;&lt;b&gt;&quot;}]}"
        in answer.content.decode()
    )


def test_the_reason_of_a_failure_is_text(run):
    ScoreReport.objects.create(run=run, state="failed", error="<script>x</script>")
    page = user_client().get(f"/runs/{run.pk}/scores/").content.decode()
    assert "failed: &lt;script&gt;x&lt;/script&gt;" in page


def test_files_of_another_run_are_not_there():
    run, other = voted_run(), voted_run()
    report = views.request_scores(run, None)
    make_all()
    address = f"/runs/{other.pk}/scores/{report.pk}/download"
    assert user_client().get(address).status_code == 404
