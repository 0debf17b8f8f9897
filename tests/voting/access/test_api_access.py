"""Keys of the API: none is 401, the wrong scope 403, another project's run is not there."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from judge_eval.models import Run
from tests.makers import (
    key_client,
    make_key,
    make_queue,
    make_run,
    make_voter,
    user_client,
    voter_client,
)

pytestmark = pytest.mark.django_db

ENDPOINTS = [("get", "pending", "read"), ("get", "results", "read"), ("post", "vote", "vote")]
BODY = {"task_id": "0" * 8, "winner": "A"}


def ask(client, method, run, name):
    url = f"/api/runs/{getattr(run, 'pk', run)}/judge-eval/{name}"
    if method == "get":
        return client.get(url)
    return client.post(url, BODY, content_type="application/json")


@pytest.mark.parametrize("method, name, scope", ENDPOINTS)
def test_no_key_is_401(method, name, scope):
    run = make_run(shared=True)
    browsers = [Client(), user_client(), voter_client(make_voter(run))]
    for client in [*browsers, key_client(""), key_client("hj_00000000_x"), key_client("Basic x")]:
        response = ask(client, method, run, name)
        assert response.status_code == 401
        assert response.json()["detail"]


def test_a_key_in_the_address_is_none():
    run = make_run()
    _, token = make_key("read")
    url = f"/api/runs/{run.pk}/judge-eval/results?key={token}&token={token}"
    assert Client().get(url).status_code == 401


@pytest.mark.parametrize("method, name, scope", ENDPOINTS)
def test_a_revoked_or_expired_key_is_401(method, name, scope):
    run, now = make_run(), timezone.now()
    revoked, revoked_token = make_key(scope)
    revoked.revoked_at = now
    revoked.save()
    _, expired_token = make_key(scope, expires_at=now - timedelta(days=1))
    for token in (revoked_token, expired_token):
        assert ask(key_client(token), method, run, name).status_code == 401


@pytest.mark.parametrize("method, name, scope", ENDPOINTS)
@pytest.mark.parametrize("run", ["0" * 8, "nonsense", "1234567", "00000000-0000-0000"])
def test_an_unknown_run_is_404(method, name, scope, run):
    response = ask(key_client(make_key(scope)[1]), method, run, name)
    assert response.status_code == 404
    assert "there is no run" in response.json()["detail"]


@pytest.mark.parametrize("method, name, scope", ENDPOINTS)
def test_a_key_of_a_project_knows_no_other(method, name, scope):
    run, other = make_run(), make_run()
    client = key_client(make_key(scope, project=run.queue.project)[1])
    assert "there is no run" not in ask(client, method, run, name).content.decode()
    response = ask(client, method, other, name)
    assert response.status_code == 404
    assert "there is no run" in response.json()["detail"]


def test_a_run_may_be_named_by_eight_characters():
    run = make_run()
    client = key_client(make_key("read")[1])
    assert ask(client, "get", str(run.pk)[:8], "results").status_code == 200


def test_what_begins_two_runs_is_ambiguous():
    for last in "12":
        Run.objects.create(
            pk=f"abcdef01-0000-4000-8000-00000000000{last}", queue=make_queue(), name="twin"
        )
    client = key_client(make_key("read")[1])
    response = ask(client, "get", "abcdef01", "results")
    assert response.status_code == 409
    assert "give more characters" in response.json()["detail"]


@pytest.mark.parametrize("method, name, scope", ENDPOINTS)
def test_other_methods_are_not_allowed(method, name, scope):
    run = make_run()
    client = key_client(make_key(scope)[1])
    assert client.put(f"/api/runs/{run.pk}/judge-eval/{name}").status_code == 405


def test_an_api_vote_needs_no_token_of_a_page():
    run = make_run()
    client = key_client(make_key("vote")[1], enforce_csrf_checks=True)
    assert ask(client, "post", run, "vote").status_code == 404


def test_an_unknown_address_of_the_api_is_404():
    assert key_client(make_key("read")[1]).get("/api/nowhere").status_code == 404
