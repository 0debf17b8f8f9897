"""A database that is locked for the moment: every answer is 503, and the same again is right."""

import sqlite3
from contextlib import closing, contextmanager

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection
from django.test import Client

from humanjudge.core.http import is_busy
from tests.helpers.pages import post_vote
from tests.makers import key_client, make_invite, make_key, make_run, make_voter, pairs_of
from tests.makers import voter_client as client_of
from voting.models import Entry
from voting.people.voters import invite_token

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


@contextmanager
def locked():
    """Let another connection hold what every write needs, and this one not wait for it."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA busy_timeout = 0")
            with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
        else:
            cursor.execute("SET lock_timeout = '20ms'")
            with psycopg.connect(**connection.get_connection_params()) as other:
                other.execute("LOCK voting_entry, voting_voter, django_session IN SHARE MODE")
                yield
                other.rollback()
            # This connection goes back to a pool, from which the next test may get it.
            cursor.execute("RESET lock_timeout")
    connection.close()


def assert_busy(response):
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) > 0
    assert "cannot take this now" in response.content.decode()


def test_a_vote_is_503_and_the_same_again_is_recorded_once():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    client = client_of(voter)
    with locked():
        assert_busy(post_vote(client, voter, pair))
    assert [post_vote(client, voter, pair).status_code for _ in range(2)] == [200, 200]
    assert Entry.objects.filter(kind="vote").count() == 1


def test_joining_is_503():
    address = f"/join/{invite_token(make_invite(make_run()))}/"
    with locked():
        assert_busy(Client().post(address))
    assert Client().post(address).status_code == 302


def test_the_api_says_so_in_json():
    run = make_run()
    client = key_client(make_key("vote")[1])
    address = f"/api/runs/{run.pk}/judge-eval/vote"
    vote = {"task_id": str(pairs_of(run)[0].pk), "winner": "A"}
    with locked():
        response = client.post(address, vote, content_type="application/json")
    assert_busy(response)
    assert "Send the same again" in response.json()["detail"]


def test_middleware_that_meets_it_answers_alike(monkeypatch):
    def locked_sessions(self, request):
        raise OperationalError("database is locked")

    monkeypatch.setattr(
        "django.contrib.sessions.middleware.SessionMiddleware.process_request", locked_sessions
    )
    client = Client(raise_request_exception=False)
    for address in ("/", "/api/runs"):
        assert_busy(client.get(address))


def test_a_wrong_statement_is_no_busy_database():
    with pytest.raises(DatabaseError) as refused, connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")
    assert not is_busy(refused.value)
    connection.close()


def test_health_tries_a_write():
    assert Client().get("/healthz").json()["database"] == "ok"
    with locked():
        response = Client().get("/healthz")
    assert (response.status_code, response.json()["database"]) == (503, "not writable")
    assert Client().get("/healthz").json()["database"] == "ok"
