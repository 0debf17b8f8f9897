"""Simulated votes by REST, and how every page and answer says that they are simulated."""

import pytest

from tests.helpers.pages import ballots_in, post_vote, text_of
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_run,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.models import Entry, Queue
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

EVERYTHING = ("read", "vote", "verdicts", "manage")


def script(*scopes, **options):
    return key_client(make_key(*(scopes or EVERYTHING), **options)[1])


def post(client, run, what, **body):
    url = f"/api/runs/{run.pk}/judge-eval/{what}"
    return client.post(url, body, content_type="application/json")


def simulate(run, client=None, **body):
    response = post(client or script(), run, "simulate", **body)
    assert response.status_code == 200, response.content
    return response.json()


def real_vote(client, run, winner="A"):
    return post(client, run, "vote", task_id=str(pairs_of(run)[0].pk), winner=winner)


# --- by REST ------------------------------------------------------------------------------------


def test_every_pending_pair_gets_a_vote():
    run, client = make_run(pairs=3), script()
    first = simulate(run, client, choice="both_bad", limit=1)
    assert first == {"voted": 1, "skipped": 0, "left": 2, "simulated": True}
    assert simulate(run, client, choice="both_bad")["voted"] == 2
    votes = Entry.objects.filter(kind="vote")
    assert set(votes.values_list("choice", "simulated")) == {("both_bad", True)}


def test_without_a_choice_it_draws_and_the_seed_makes_the_draw():
    drawn = []
    for seed in (1, 1, 2):
        run = make_run(pairs=20)
        simulate(run, seed=seed)
        votes = Entry.objects.filter(queue=run.queue, kind="vote").order_by("item__position")
        drawn.append(list(votes.values_list("choice", flat=True)))
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "body, word",
    [
        ({"choice": "C"}, "A, B, both_bad, auto"),
        ({"choice": "tie"}, "A, B, both_bad, auto"),
        ({"limit": 0}, "limit"),
        ({"limit": -1}, "limit"),
        ({"limit": 1.5}, "limit"),
        ({"seed": "x"}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_what_cannot_be_is_refused(body, word):
    run = make_run(ballot=["A", "B", "both_bad"])
    response = post(script(), run, "simulate", **body)
    assert response.status_code == 422
    assert word in response.content.decode()
    assert not Queue.objects.get(pk=run.queue_id).is_simulated


def test_a_run_of_people_refuses_it():
    run = make_run(pairs=2)
    assert real_vote(script(), run).status_code == 200
    response = post(script(), run, "simulate")
    assert response.status_code == 409
    assert "People have voted in this run" in response.json()["detail"]


def test_a_run_of_simulated_votes_refuses_real_ones_by_key():
    run, client = make_run(pairs=2), script()
    simulate(run, client, limit=1)
    for winner in "AB":
        response = real_vote(client, run, winner)
        assert response.status_code == 409
        assert response.json()["detail"] == (
            "This run holds simulated votes only; make another run for people."
        )


def test_answers_say_that_the_votes_are_simulated():
    run, client = make_run(pairs=2), script()
    urls = [f"/api/runs/{run.pk}", *(f"/api/runs/{run.pk}/judge-eval/{w}" for w in WHAT)]
    for is_simulated in (False, True):
        assert [client.get(url).json()["simulated"] for url in urls] == [is_simulated] * 3
        [listed] = client.get("/api/runs").json()
        assert listed["simulated"] == is_simulated
        simulate(run, client, limit=1)


WHAT = ("pending", "results")


def test_results_say_whether_all_of_the_keys_votes_are_in_them(monkeypatch):
    monkeypatch.setattr("judge_eval.runs.api_access.OWN_VOTES_SECONDS", 0)
    run, client = make_run(pairs=2), script()
    url = f"/api/runs/{run.pk}/judge-eval/results"
    simulate(run, client, choice="A")
    assert client.get(url).json()["sealed"] is False
    seal_all(run.queue.project)
    answer = client.get(url).json()
    assert (answer["sealed"], answer["votes"], answer["done"]) == (True, 2, 2)


def test_the_flow_of_a_script_that_looks_before_it_pretends():
    """What it saw of the judges does not matter to votes that are drawn."""
    run, client = make_run(pairs=2), script()
    client.get(f"/api/runs/{run.pk}/judge-eval/pending")
    simulate(run, client, choice="A")
    seal_all(run.queue.project)
    answer = client.get(f"/api/runs/{run.pk}/judge-eval/results").json()
    assert (answer["votes"], answer["unblinded"]) == (2, 0)


# --- seeing verdicts, and votes after that ------------------------------------------------------


def test_a_vote_after_seeing_the_verdicts_says_that_it_was_not_blind():
    run, client = make_run(pairs=2), script()
    [seen] = client.get(f"/api/runs/{run.pk}/judge-eval/pending?limit=1").json()["tasks"]
    for pair in pairs_of(run):
        told = post(client, run, "vote", task_id=str(pair.pk), winner="A").json()
        assert told["unblinded"] is (seen["id"] == str(pair.pk))


def test_verdicts_that_are_not_asked_for_are_not_seen():
    run, client = make_run(), script()
    answer = client.get(f"/api/runs/{run.pk}/judge-eval/pending?verdicts=false").json()
    assert "verdicts" not in answer["tasks"][0]
    assert real_vote(client, run).json()["unblinded"] is False


def test_a_repeated_vote_says_what_the_first_was():
    run, client = make_run(votes_wanted=2), script()
    assert real_vote(client, run).json()["unblinded"] is False
    client.get(f"/api/runs/{run.pk}/judge-eval/pending")
    again = real_vote(client, run).json()
    assert (again["repeated"], again["unblinded"]) == (True, False)


# --- pages --------------------------------------------------------------------------------------


def pages(run):
    owner, base = user_client(), f"/runs/{run.pk}/"
    pair = pairs_of(run)[0]
    return {
        "board": (owner, base),
        "pairs": (owner, f"{base}pairs/"),
        "pair": (owner, f"{base}pairs/{pair.pk}/"),
        "people": (owner, f"{base}people/"),
        "voting page": (voter_client(make_voter(run)), f"/vote/{run.queue_id}/"),
        "invite": (user_client("guest"), f"/join/{invite_token(make_invite(run))}/"),
    }


@pytest.mark.parametrize("name", ["board", "pairs", "pair", "people", "voting page", "invite"])
def test_every_page_of_the_run_says_so(name):
    run = make_run(pairs=2)
    client, url = pages(run)[name]
    assert "Simulated votes:" not in text_of(client.get(url))
    simulate(run, limit=1)
    assert "Simulated votes:" in text_of(client.get(url))


def test_the_list_of_runs_says_so():
    run, client = make_run(), user_client()
    assert "simulated" not in text_of(client.get("/runs/"))
    simulate(run)
    assert "simulated" in text_of(client.get("/runs/"))


def test_a_person_is_given_no_pairs_there_and_is_told_why():
    run = make_run(pairs=2)
    simulate(run, limit=1)
    client = voter_client(make_voter(run))
    for url in (f"/vote/{run.queue_id}/", f"/vote/{run.queue_id}/pairs"):
        page = client.get(url)
        assert ballots_in(page) == []
        assert "This run takes only simulated votes" in text_of(page)


def test_a_ballot_of_before_is_refused_in_words():
    run = make_run(pairs=2)
    voter = make_voter(run)
    client = voter_client(voter)
    simulate(run, limit=1)
    response = post_vote(client, voter, pairs_of(run)[1])
    assert response.status_code == 409
    assert "This run holds simulated votes only; make another run for people." in text_of(response)
    assert not Entry.objects.filter(kind="vote", simulated=False).exists()
