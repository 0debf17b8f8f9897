"""The list of runs, the way to vote for oneself, login and health."""

import json
import re
from datetime import timedelta

import pytest
from celery import Celery
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from humanjudge.celery import ALIVE, app, say_alive, who_is_alive
from humanjudge.server.health import PROCESSES
from judge_eval.models import Board, Run
from tests.helpers.pages import text_of
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_project,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    user_client,
)
from voting.models import Queue, Voter
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db


def test_no_runs_says_what_to_do():
    assert "load_demo" in text_of(user_client().get("/runs/"))


def test_votes_are_written_as_one_reads_them():
    run = make_run()
    Board.objects.filter(run=run).update(votes=12345)
    assert "12,345" in text_of(user_client().get("/runs/"))


@pytest.mark.parametrize(
    "state, is_open, is_offered",
    [("voting", True, True), ("complete", True, False), ("stopped", False, False)],
)
def test_voting_is_offered_only_where_it_is_possible(state, is_open, is_offered):
    run = make_run()
    Run.objects.filter(pk=run.pk).update(state=state)
    Queue.objects.filter(pk=run.queue_id).update(is_open=is_open)
    client = user_client()
    for page in ("/runs/", f"/runs/{run.pk}/people/"):
        assert ("Vote on pairs" in text_of(client.get(page))) == is_offered, page


def test_a_browser_finds_the_icon_where_a_page_names_none():
    response = Client().get("/favicon.ico")
    assert response.status_code == 301
    assert response.url.endswith(".svg")


def test_a_user_votes_as_one_voter():
    run = make_run()
    client = user_client()
    for _ in range(2):
        response = client.post(f"/runs/{run.pk}/vote/me", follow=True)
        assert response.redirect_chain == [(f"/vote/{run.queue_id}/", 302)]
        assert response.status_code == 200
    assert Voter.objects.get().user.username == "owner"


def test_the_invites_stand_on_the_people_tab():
    run = make_run()
    good = make_invite(run, label="friends", max_voters=5)
    old = make_invite(run, expires_at=timezone.now() - timedelta(days=1))
    response = user_client().get(f"/runs/{run.pk}/people/")
    body, text = response.content.decode(), text_of(response)
    assert f"http://testserver/join/{invite_token(good)}/" in body
    assert invite_token(old) not in body
    assert "friends 0 of at most 5 joined" in text
    assert "This invite has expired" in text


def test_login_and_logout():
    User.objects.create_user("ada", password="correct horse battery")
    client = Client()
    assert client.get("/login/").status_code == 200
    wrong = client.post("/login/", {"username": "ada", "password": "wrong"})
    assert "Please enter a correct username and password" in text_of(wrong)
    right = {"username": "ada", "password": "correct horse battery", "next": "/runs/"}
    assert client.post("/login/", right).url == "/runs/"
    assert client.get("/runs/").status_code == 200
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").url == "/"
    assert client.get("/runs/").status_code == 302


@pytest.fixture
def everybody_alive():
    say_alive(PROCESSES.values())
    yield
    with app.connection_for_write() as broker:
        broker.default_channel.client.delete(*(ALIVE + sign for sign in PROCESSES.values()))


def test_health_with_everything_up(everybody_alive):
    response = Client().get("/healthz")
    assert response.status_code == 200
    assert json.loads(response.content) == {
        "status": "ok",
        "web": "ok",
        "database": "ok",
        "broker": "ok",
        "sealing_worker": "ok",
        "judging_worker": "ok",
        "beat": "ok",
        "oldest_unsealed_seconds": 0,
    }


@pytest.mark.parametrize("missing", PROCESSES)
def test_health_names_the_process_that_is_missing(everybody_alive, missing):
    with app.connection_for_write() as broker:
        broker.default_channel.client.delete(ALIVE + PROCESSES[missing])
    response = Client().get("/healthz")
    assert response.status_code == 503
    told = response.json()
    assert told["status"] == "degraded"
    assert [name for name in PROCESSES if told[name] != "ok"] == [missing]
    assert told[missing] == "missing"


def test_health_without_a_broker_knows_nothing_of_the_workers(everybody_alive, monkeypatch):
    with Celery("away", broker="redis+socket:///tmp/no-broker-here.sock") as away:
        monkeypatch.setattr("humanjudge.celery.app", away)
        assert who_is_alive(["votes"]) is None
        say_alive(["votes"])
        told = Client().get("/healthz").json()
    assert told["broker"] == "unreachable"
    assert {told[name] for name in PROCESSES} == {"unknown"}


@pytest.mark.parametrize("seconds, status", [(20, 200), (600, 503)])
def test_health_tells_how_old_the_oldest_unsealed_vote_is(everybody_alive, seconds, status):
    run = make_run()
    at = timezone.now() - timedelta(seconds=seconds)
    make_vote(make_voter(run), pairs_of(run)[0], at=at)
    response = Client().get("/healthz")
    assert response.status_code == status
    assert seconds <= response.json()["oldest_unsealed_seconds"] < seconds + 100
    assert Client().post("/healthz").status_code == 405


class TestTheList:
    def names(self, **asked):
        page = user_client().get("/runs/", asked)
        return re.findall(r'<th scope="row"><a [^>]*>([^<]+)</a>', page.content.decode())

    @pytest.fixture(autouse=True)
    def three(self):
        for place, (name, votes) in enumerate([("Birds", 3), ("apples", 9), ("Cats", 1)]):
            run = make_run(make_project(f"Project {3 - place}"))
            at = timezone.now() + timedelta(minutes=place)
            Run.objects.filter(pk=run.pk).update(name=name, created_at=at)
            Board.objects.filter(run=run).update(votes=votes)

    def test_it_is_sorted_as_asked(self):
        assert self.names() == ["Cats", "apples", "Birds"]
        assert self.names(sort="votes") == ["apples", "Birds", "Cats"]
        assert self.names(sort="project") == ["Cats", "apples", "Birds"]
        assert sorted(self.names(sort="name")) == ["Birds", "Cats", "apples"]

    def test_it_is_searched_by_run_and_project(self):
        assert self.names(q="APP") == ["apples"]
        assert self.names(q="project 3") == ["Birds"]
        assert self.names(q="nothing") == []
        assert "No run matches" in text_of(user_client().get("/runs/?q=nothing"))

    def test_an_order_that_there_is_not_is_refused(self):
        assert user_client().get("/runs/?sort=nonsense").status_code == 400
        assert len(self.names(sort="", q="\0", page="x")) == 3

    def test_archived_runs_are_listed_apart_and_come_back(self):
        run, client = Run.objects.get(name="Birds"), user_client()
        assert "Archived" not in text_of(client.get("/runs/"))
        page = client.post(f"/runs/{run.pk}/archive", follow=True)
        assert "Bring back" in text_of(page)
        assert self.names() == ["Cats", "apples"]
        assert self.names(archived="on") == ["Birds"]
        assert "Archived (1)" in text_of(client.get("/runs/"))
        # It can still be read, and voted on.
        assert client.get(f"/runs/{run.pk}/").status_code == 200
        script = key_client(make_key("read")[1])
        listed = [row["name"] for row in script.get("/api/runs").json()]
        assert listed == ["Cats", "apples"]
        apart = script.get("/api/runs?archived=true").json()
        assert [row["name"] for row in apart] == ["Birds"]
        client.post(f"/runs/{run.pk}/unarchive")
        assert len(self.names()) == 3

    def test_where_all_are_archived_it_says_so(self):
        Run.objects.update(archived_at=timezone.now())
        assert "Every run is archived" in text_of(user_client().get("/runs/"))
