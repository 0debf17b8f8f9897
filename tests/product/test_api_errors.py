"""Whatever goes wrong with a request to the API is told as JSON, by the rule for every status."""

import json
import logging

import pytest

from judge_eval.models import Run
from judge_eval.runs import api
from tests.makers import key_client, make_key, make_project, make_run, user_client

pytestmark = pytest.mark.django_db

LARGE = 3_000_000  # more than Django reads of a body unless told to
CONFIG = {
    "name": "Long prompts",
    "kind": "text",
    "models": ["model-a", "model-b"],
    "judges": ["longer-wins"],
    "prompts": [f"{number}: {'x' * 15_000}" for number in range(250)],
}


def client():
    return key_client(make_key("read", "vote", "manage")[1])


def post(browser, path, body):
    return browser.post(f"/api{path}", body, content_type="application/json")


def detail_of(response, status):
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("application/json")
    return response.json()["detail"]


def test_an_address_that_there_is_not():
    for path in ("/api/run", "/api/runs/x/y/z", "/api/"):
        assert "there is no such address" in detail_of(client().get(path), 404)
    assert "text/html" in user_client().get("/run").headers["Content-Type"]


def test_a_method_that_an_address_does_not_take():
    response = client().delete("/api/runs")
    assert response.headers["Allow"] == "GET, POST"
    assert detail_of(response, 405) == "DELETE: this address takes GET, POST"


def test_a_body_that_is_not_json():
    run = make_run()
    said = detail_of(post(client(), f"/runs/{run.pk}/judge-eval/vote", "{"), 400)
    assert said.startswith("Cannot parse request body")
    said = detail_of(post(client(), "/runs", "{"), 422)
    assert said[0]["message"].startswith("the body is not JSON")


def test_a_form_that_cannot_be_read():
    make_project()
    broken = "multipart/form-data; boundary="
    response = client().post("/api/runs/import", b"x", content_type=broken)
    assert isinstance(detail_of(response, 400), str)


def test_a_config_may_be_larger_than_any_other_body():
    make_project()
    body = json.dumps(CONFIG)
    assert len(body) > LARGE
    assert post(client(), "/runs/estimate", body).status_code == 200
    assert post(client(), "/runs", body).status_code == 201
    assert len(Run.objects.get().config["prompts"]) == 250


@pytest.mark.parametrize("path", ["/runs", "/runs/estimate"])
def test_a_config_that_is_too_large_is_refused_unread(monkeypatch, path, caplog):
    monkeypatch.setattr(api, "MOST_BYTES", 1_000)
    with caplog.at_level(logging.ERROR):
        said = detail_of(post(client(), path, " " * 1_001), 413)
    assert said == "a body of more than 1,000 bytes"
    assert caplog.records == []
    assert post(client(), path, " " * 1_000).status_code != 413


def test_any_other_body_that_is_too_large(caplog):
    run = make_run()
    with caplog.at_level(logging.ERROR):
        of_run = ("judge-eval/vote", "judge-eval/simulate", "resume", "scores")
        for path in ("demo", *(f"{run.pk}/{word}" for word in of_run)):
            body = json.dumps({"more": "x" * LARGE})
            said = detail_of(post(client(), f"/runs/{path}", body), 413)
            assert said == "more than 2,621,440 bytes"
    assert caplog.records == []


def test_a_value_that_is_wrong_is_named_as_it_was_sent():
    run = make_run()
    said = detail_of(post(client(), f"/runs/{run.pk}/resume", '{"budget_usd": "much"}'), 422)
    assert said == [{"path": "budget_usd", "message": "Input should be a valid number"}]
    said = detail_of(post(client(), f"/runs/{run.pk}/judge-eval/vote", '{"task_id": 7}'), 422)
    assert [problem["path"] for problem in said] == ["task_id"]
    said = detail_of(client().get("/api/runs?limit=many"), 422)
    assert said[0]["path"] == "limit"
    reader = key_client(make_key("read")[1])
    said = detail_of(reader.get(f"/api/runs/{run.pk}/findings?part=colour:red"), 422)
    assert said == "part: tag:…, generator:…, group:… or ballot:decided, not 'colour:red'"


def test_what_breaks_on_the_server(monkeypatch):
    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr(api, "_config", broken)
    browser = client()
    browser.raise_request_exception = False
    said = detail_of(post(browser, "/runs", "{}"), 500)
    assert said == "The error was logged on the server. What was recorded before is safe."
