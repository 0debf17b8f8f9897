"""Runs in and out by REST: the form, the report, who may, and that nobody learns what is blind."""

import csv
import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from judge_eval.demo import load
from judge_eval.imports import import_jobs
from judge_eval.judging.baselines import names_asked, names_for
from judge_eval.models import Run
from tests.helpers.bundles import empty_the_instance, facts_of
from tests.helpers.imports import imported, pair, verdict, vote
from tests.makers import (
    entry_of,
    key_client,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ledger import chain
from voting.models import Entry, Exposure, Inference, Item, Project

pytestmark = pytest.mark.django_db

ROWS = [pair(1), pair(2), verdict(1, "x", "A"), verdict(1, "y", "B"), vote(1, "ann", "A")]


def file_of(*records, name="rows.jsonl"):
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return SimpleUploadedFile(name, text.encode())


def manager(*scopes, project=None):
    return key_client(make_key("manage", *scopes, project=project)[1])


def post(client, *files, run=None, **fields):
    address = f"/api/runs/{run.pk}/import" if run else "/api/runs/import"
    return client.post(address, {"file": list(files)} | fields)


def done(client, *files, run=None, **fields):
    """Bring files, let a worker do what waits, and ask what came of it."""
    accepted = post(client, *files, run=run, **fields)
    assert accepted.status_code == 202, accepted.json()
    while job := import_jobs.claim():
        import_jobs.run(job)
    return client.get(accepted.headers["Location"]).json()


def refused(client, *files, run=None, **fields):
    job = done(client, *files, run=run, **fields)
    assert (job["state"], job["run_id"] if not run else None) == ("refused", None)
    return job["status"], job


def exported(client, run, kind="jsonl"):
    response = client.get(f"/api/runs/{run.pk}/export?format={kind}")
    assert response.status_code == 200
    return b"".join(response.streaming_content).decode(), response


# --- a new run ----------------------------------------------------------------------------------


def test_files_become_a_run_and_the_report_says_what_was_in_them():
    project = make_project()
    job = done(manager(project=project), file_of(*ROWS), name=" Answers ")
    report = job["report"]
    assert (job["state"], job["run_id"], job["status"]) == ("done", report["run_id"], None)
    run = Run.objects.select_related("queue").get(pk=report["run_id"])
    assert (run.name, run.queue.project_id) == ("Answers", project.pk)
    assert report["runs"] == [str(run.pk)]
    assert report["new"] == {"pairs": 2, "judges": 2, "verdicts": 2, "voters": 1, "votes": 1}
    assert report["already"] == dict.fromkeys(report["new"], 0)
    assert (report["errors"], report["left_out"]) == ([], [])
    names = ", ".join(names_asked(names_for("text"), "AB"))
    floor = f"Baselines are on the board, as its floor: {names}."
    assert report["notes"] == [floor]


def test_several_files_are_one_source_in_the_order_given():
    make_project()
    verdicts = file_of(verdict(1, "x", "A"), name="verdicts.jsonl")
    table = SimpleUploadedFile("votes.csv", b"pair,voter,vote\np1,ann,A\np1,bob,B\n")
    job = done(manager(), verdicts, file_of(pair(1)), table, name="Three files")
    assert job["report"]["new"]["votes"] == 2
    assert Item.objects.get().a.output == "Answer 1 of ada"


def test_options_say_how_the_run_is_made():
    make_project()
    options = {
        "rubric": "Which is shorter?",
        "ballot": ["A", "B"],
        "votes_per_pair": 3,
        "reveal": "never",
        "open_for_voting": False,
        "kind": "code",
        "source": "elsewhere",
    }
    job = done(manager(), file_of(pair(1)), name="Opted", options=json.dumps(options))
    queue = Run.objects.get(pk=job["run_id"]).queue
    assert (queue.rubric.text, queue.ballot, queue.reveal) == (
        "Which is shorter?",
        ["A", "B"],
        "never",
    )
    assert (queue.votes_per_item, queue.is_open) == (3, False)
    assert Inference.objects.first().kind == "code"


def test_a_project_that_is_not_there_yet_is_made():
    make_project()
    job = done(manager(), file_of(pair(1)), name="First", project="New")
    assert Run.objects.get(pk=job["run_id"]).queue.project.name == "New"


def test_beside_the_demo_alone_the_first_import_has_a_project_of_its_own():
    for name in load.PROJECTS:
        make_project(name)
    for name in ("First", "Second"):
        job = done(manager(), file_of(pair(1)), name=name)
        assert Run.objects.get(pk=job["run_id"]).queue.project.name == "My project"
    make_project("Another")
    answer = post(manager(), file_of(pair(1)), name="Third")
    assert answer.status_code == 422
    assert "which one?" in answer.json()["detail"][0]["message"]


def test_rows_that_are_wrong_are_422_with_where_and_why():
    project = make_project()
    status, job = refused(manager(), file_of(pair(1), vote(1, "ann", "left")), name="Wrong")
    assert (status, job["detail"]) == (422, "1 error; nothing was imported")
    assert job["report"]["errors"] == [
        {
            "file": "rows.jsonl",
            "row": 2,
            "field": "vote",
            "why": "'left' is not one of A, B, tie, both_bad",
        }
    ]
    assert not Run.every.exists()
    assert project.inferences.count() == 0


def test_with_skip_errors_a_file_that_breaks_off_is_422_all_the_same():
    make_project()
    table = SimpleUploadedFile("v.csv", b'pair,voter,vote,sure\n1,ann,A,y\n2,"bob,B,n\n')
    status, job = refused(manager(), table, name="Cut", options='{"skip_errors": true}')
    said = "1 error, not all of them about single rows; nothing was imported"
    assert (status, job["detail"]) == (422, said)
    assert job["report"]["notes"] == ["v.csv: not read: 'sure'"]
    assert not Run.every.exists()


@pytest.mark.parametrize(
    "fields, path, message",
    [
        ({"name": ""}, "name", "a line of 1 to 200 characters is needed"),
        ({"name": "a\nb"}, "name", "a line of 1 to 200 characters is needed"),
        ({"name": "x" * 201}, "name", "a line of 1 to 200 characters is needed"),
        ({"format": "xml"}, "format", "'xml' is not one of csv, json, jsonl, parquet"),
        ({"mapping": "{"}, "mapping", "not JSON"),
        ({"mapping": '{"pairs": "x"}'}, "mapping.pairs", "unknown; did you mean 'pair'?"),
        ({"options": '{"ballot": ["A"]}'}, "ballot", "must have at least 2, has 1"),
        ({"options": '{"ballott": []}'}, "ballott", "unknown; did you mean 'ballot'?"),
        ({"options": "[]"}, "", "must be an object"),
        ({"options": '{"votes_per_pair": 0}'}, "votes_per_pair", "must be at least 1"),
    ],
)
def test_a_field_that_is_wrong_is_422_with_its_path(fields, path, message):
    make_project()
    response = post(manager(), file_of(pair(1)), **({"name": "Named"} | fields))
    assert response.status_code == 422
    problems = {problem["path"]: problem["message"] for problem in response.json()["detail"]}
    assert message in problems[path]
    assert not Run.objects.exists()


def test_no_file_is_422():
    response = manager().post("/api/runs/import", {"name": "None"})
    assert response.status_code == 422
    assert response.json()["detail"][0]["path"] == "file"


def test_a_file_that_is_too_large_is_413(settings):
    settings.IMPORT_MAX_MB = 1
    response = post(manager(), file_of(pair(1, prompt="x" * 2**20)), name="Large")
    assert response.status_code == 413
    assert response.json()["detail"] == "rows.jsonl has more than 1 MB"


def test_more_rows_than_are_taken_at_once_are_413(settings):
    make_project()
    settings.IMPORT_MAX_ROWS = 2
    assert done(manager(), file_of(pair(1), pair(2)), name="Two")["state"] == "done"
    status, job = refused(manager(), file_of(pair(1), pair(2), pair(3)), name="Three")
    assert (status, job["detail"]) == (413, "There are more than 2 rows; import them in parts.")


def test_more_imports_than_wait_are_429(monkeypatch):
    make_project()
    monkeypatch.setattr(import_jobs, "MOST_WAITING", 1)
    client = manager()
    assert post(client, file_of(pair(1)), name="First").status_code == 202
    assert post(client, file_of(pair(1)), name="Second").status_code == 429


def test_the_queue_of_a_project_is_not_that_of_the_others(monkeypatch):
    here, there = make_project("Here"), make_project("There")
    monkeypatch.setattr(import_jobs, "MOST_OF_A_PROJECT", 2)
    monkeypatch.setattr(import_jobs, "MOST_WAITING", 3)
    one, other = manager(project=here), manager(project=there)
    answers = [post(one, file_of(pair(1)), name=f"{n}").status_code for n in range(3)]
    assert answers == [202, 202, 429]
    assert post(other, file_of(pair(1)), name="Not behind them").status_code == 202
    # Of all projects together no more than so many wait.
    assert post(other, file_of(pair(1)), name="One too many").status_code == 429


# --- how far it has come ------------------------------------------------------------------------


def test_an_import_says_how_far_it_has_come_to_those_who_may_know():
    project = make_project()
    accepted = post(manager(project=project), file_of(pair(1)), name="Later")
    assert accepted.status_code == 202
    address = accepted.headers["Location"]
    assert accepted.json() == manager().get(address).json()
    assert (accepted.json()["state"], accepted.json()["report"]) == ("waiting", None)
    assert not Run.every.exists()
    assert manager(project=make_project("Other")).get(address).status_code == 404
    assert key_client(make_key(*OTHER_SCOPES)[1]).get(address).status_code == 403


def test_an_import_that_waits_can_be_stopped():
    make_project()
    client = manager()
    address = post(client, file_of(pair(1)), name="Not this").headers["Location"]
    stopped = client.post(f"{address}/stop").json()
    assert (stopped["state"], stopped["detail"]) == ("failed", "It was stopped.")
    assert import_jobs.claim() is None


def test_a_request_that_is_too_large_is_413_before_it_is_read(settings):
    client = manager()
    response = client.generic(
        "POST",
        "/api/runs/import",
        b"--x",
        content_type="multipart/form-data; boundary=x",
        CONTENT_LENGTH=str(settings.IMPORT_MAX_FILES * 64 * 2**20 + 1),
    )
    assert response.status_code == 413


def test_voting_that_cannot_be_opened_is_409():
    make_project()
    options = '{"open_for_voting": true}'
    status, job = refused(manager(), file_of({"pair": "p1"}), name="Open", options=options)
    assert status == 409
    assert "has no outputs" in job["detail"]


# --- more for a run -----------------------------------------------------------------------------


def test_a_run_is_added_to_and_the_same_again_adds_nothing():
    run = imported(*ROWS)
    client = manager(project=run.queue.project)
    first = done(client, file_of(vote(2, "ann", "B")), run=run)["report"]
    assert first["new"]["votes"] == 1
    again = done(client, file_of(*ROWS, vote(2, "ann", "B")), run=run)["report"]
    assert sum(again["new"].values()) == 0
    assert again["already"] == {"pairs": 2, "judges": 0, "verdicts": 2, "voters": 0, "votes": 2}


def test_a_run_that_is_generating_is_409():
    run = imported(*ROWS)
    Run.objects.update(state="generating")
    assert post(manager(), file_of(pair(3)), run=run).status_code == 409


def test_a_bundle_is_not_added_to_a_run():
    run = imported(*ROWS)
    text, _ = exported(manager(), run)
    response = post(manager(), SimpleUploadedFile("run.jsonl", text.encode()), run=run)
    assert response.status_code == 422


# --- out, and in again --------------------------------------------------------------------------


def test_a_bundle_makes_the_same_run_again_in_an_empty_instance():
    run = imported(*ROWS, name="Round")
    before = facts_of(run)
    text, response = exported(manager(), run)
    assert response["Content-Type"] == "application/jsonl"
    assert response["Content-Disposition"] == (
        f'attachment; filename="round-{str(run.pk)[:8]}.jsonl"'
    )
    empty_the_instance()
    bundle = SimpleUploadedFile("run.jsonl", text.encode())
    client = manager()
    job = done(client, bundle)
    back = Run.objects.select_related("queue__project").get(pk=job["run_id"])
    assert (back.pk, facts_of(back)) == (run.pk, before)
    bundle.seek(0)
    again = done(client, bundle)
    assert (again["state"], again["run_id"]) == ("done", str(run.pk))


def test_a_bundle_goes_into_the_project_of_the_key():
    run = imported(*ROWS)
    text, _ = exported(manager(), run)
    other = Project.objects.create(name="Other")
    job = done(manager(project=other), SimpleUploadedFile("run.jsonl", text.encode()))
    assert Run.objects.get(pk=job["run_id"]).queue.project == other


def test_the_votes_come_as_a_table_and_as_a_vote_file():
    run = imported(*ROWS)
    text, response = exported(manager(), run, "csv")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert next(csv.reader(io.StringIO(text)))[:2] == ["\ufeffpair", "prompt"]
    text, response = exported(manager(), run, "votes")
    assert response["Content-Disposition"].endswith('-votes.csv"')
    assert text.startswith("inference_id,vote,voter_id,vote_time,voter_prompt_id\r\n")
    assert len(text.splitlines()) == 3


# --- who may, and who stays blind ---------------------------------------------------------------

OTHER_SCOPES = ("read", "vote", "verdicts")


def test_who_may_vote_and_has_exported_is_not_blind_any_more():
    run = make_run(pairs=3, votes_wanted=2)
    key, token = make_key("manage", "vote")
    client = key_client(token)
    first, second, _ = pairs_of(run)

    def vote_on(each):
        body = {"task_id": str(each.pk), "winner": "A"}
        address = f"/api/runs/{run.pk}/judge-eval/vote"
        assert client.post(address, body, content_type="application/json").status_code == 200

    vote_on(first)
    seal_all(run.queue.project)
    exported(client, run, "csv")
    assert Exposure.objects.filter(voter__api_key=key).count() == 3
    vote_on(second)
    seal_all(run.queue.project)
    votes = Entry.objects.filter(queue=run.queue_id, kind="vote")
    assert dict(votes.values_list("item", "unblinded")) == {first.pk: False, second.pk: True}


def test_who_may_vote_and_has_brought_verdicts_in_is_not_blind_there():
    make_project()
    key, token = make_key("manage", "vote")
    client = key_client(token)
    assert done(client, file_of(*ROWS), name="Run")["state"] == "done"
    run = Run.objects.get(name="Run")
    seen = Exposure.objects.filter(voter__api_key=key)
    assert set(seen.values_list("item", flat=True)) == {p.pk for p in pairs_of(run)}
    assert done(client, file_of(pair(1), pair(2)), name="Without")["state"] == "done"
    assert seen.count() == 2


def test_the_ledger_goes_out_whole_and_shows_every_run_of_its_project(tmp_path):
    run = make_run(pairs=2)
    other = make_run(run.queue.project)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal_all(run.queue.project)
    key, token = make_key("manage", "vote")
    text, response = exported(key_client(token), run, "ledger")
    run.queue.project.refresh_from_db()
    found = chain.verify(io.StringIO(text), run.queue.project.ledger_head)
    assert found.entries == run.queue.project.head_seq
    assert response["Content-Disposition"].endswith('-ledger.jsonl"')
    seen = Exposure.objects.filter(voter__api_key=key).values_list("item", flat=True)
    assert set(seen) == {pair.pk for each in (run, other) for pair in pairs_of(each)}


def test_who_cannot_vote_has_no_voter_made_for_it():
    run = make_run()
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    seal_all(run.queue.project)
    exported(manager(), run)
    assert not Exposure.objects.exists()
    assert run.queue.project.voters.count() == 1
    assert entry_of(vote).unblinded is False


def test_an_import_needs_no_token_of_a_page():
    make_project()
    client = key_client(make_key("manage")[1], enforce_csrf_checks=True)
    assert post(client, file_of(pair(1)), name="Scripted").status_code == 202
