"""POST of a ballot: what is recorded, and what is said of everything that cannot be."""

import pytest
from django.test import Client

from tests.helpers.pages import HTMX, position, post_vote, text_of, token_of
from tests.makers import make_run, make_voter, pairs_of, user_client, voter_client
from voting.ballot import views
from voting.ballot.services import undo_last_vote
from voting.models import Entry

pytestmark = pytest.mark.django_db


def a_pair(**options):
    run = make_run(**options)
    voter = make_voter(run)
    return run, voter, pairs_of(run)[0], voter_client(voter)


def recorded(run):
    return Entry.objects.filter(queue=run.queue_id, kind="vote", retracted=False)


def url_of(run):
    return f"/vote/{run.queue_id}/ballot"


@pytest.mark.parametrize("choice", ["A", "B"])
def test_a_side_is_recorded_as_the_stored_output_that_stood_there(choice):
    run, voter, *_ = a_pair(pairs=6)
    client = voter_client(voter)
    for pair in pairs_of(run):
        response = post_vote(client, voter, pair, position(voter, pair, choice), elapsed_ms="850")
        assert response.status_code == 200
    assert set(recorded(run).values_list("choice", "elapsed_ms")) == {(choice, 850)}
    assert set(recorded(run).values_list("left_side", flat=True)) <= {"A", "B"}


@pytest.mark.parametrize("choice", ["tie", "both_bad"])
def test_neither_side(choice):
    run, voter, pair, client = a_pair()
    post_vote(client, voter, pair, choice)
    assert recorded(run).get().choice == choice


def test_without_scripts_the_vote_leads_back_to_the_pairs():
    run, voter, pair, client = a_pair()
    data = {"ballot": token_of(voter, pair), "choice": "left"}
    response = client.post(url_of(run), data)
    assert response.url == f"/vote/{run.queue_id}/?voted={recorded(run).get().uid}"
    assert client.get(response.url).status_code == 200


def test_the_same_request_again_is_one_vote_and_the_same_answer():
    run, voter, pair, client = a_pair()
    data = {"ballot": token_of(voter, pair), "choice": "left"}
    first, second = (client.post(url_of(run), data, headers=HTMX) for _ in range(2))
    assert (first.status_code, second.status_code) == (200, 200)
    assert first.content == second.content
    assert recorded(run).count() == 1


def test_another_choice_is_a_conflict_that_says_what_stands():
    run, voter, pair, client = a_pair()
    post_vote(client, voter, pair, "left")
    response = post_vote(client, voter, pair, "right")
    assert response.status_code == 409
    assert "You chose Left on this pair before" in text_of(response)
    assert recorded(run).count() == 1


def test_the_other_choice_on_a_used_ballot_after_an_undo_says_what_to_do():
    run, voter, pair, client = a_pair()
    data = {"ballot": token_of(voter, pair), "choice": "left"}
    client.post(url_of(run), data)
    undo_last_vote(voter, run.queue)
    response = client.post(url_of(run), data | {"choice": "right"})
    assert response.status_code == 422
    assert "taken back; reload the page for a new ballot" in text_of(response)
    assert not recorded(run).exists()


@pytest.mark.parametrize(
    "change, words",
    [
        ({"ballot": ""}, "ballot: "),
        ({"ballot": "forged"}, "was not issued here"),
        ({"ballot": "x" * 2001}, "ballot: "),
        ({"ballot": "\x00"}, "ballot: "),
        ({"choice": ""}, "choice: "),
        ({"choice": "A"}, "choice: "),
        ({"choice": "up"}, "choice: "),
    ],
)
def test_bad_input_is_refused_in_words(change, words):
    run, voter, pair, client = a_pair()
    data = {"ballot": token_of(voter, pair), "choice": "left"} | change
    response = client.post(url_of(run), data, headers=HTMX)
    assert response.status_code == 422
    assert words in text_of(response)
    assert not recorded(run).exists()


def test_a_choice_that_the_ballot_does_not_offer_is_refused():
    run, voter, pair, client = a_pair(ballot=["A", "B", "both_bad"])
    response = post_vote(client, voter, pair, "tie")
    assert response.status_code == 422
    assert "must be one of" in text_of(response)
    assert not recorded(run).exists()


@pytest.mark.parametrize("elapsed", ["", "-5", "1e9", "soon", "9" * 30, "0x10", "١٢"])
def test_a_strange_clock_is_no_reason_to_lose_a_vote(elapsed):
    run, voter, pair, client = a_pair()
    assert post_vote(client, voter, pair, elapsed_ms=elapsed).status_code == 200
    assert recorded(run).get().elapsed_ms in (None, 12)


def test_a_ballot_of_another_voter_is_refused():
    run, voter, pair, _ = a_pair()
    thief = make_voter(run)
    response = post_vote(voter_client(thief), voter, pair)
    assert response.status_code == 403
    assert "given to another voter" in text_of(response)
    assert not recorded(run).exists()


@pytest.mark.parametrize("client", [Client, user_client], ids=["stranger", "owner"])
def test_a_ballot_without_its_voter_is_refused(client):
    run, voter, pair, _ = a_pair()
    assert post_vote(client(), voter, pair).status_code == 403
    assert not recorded(run).exists()


def test_a_ballot_of_another_queue_is_refused():
    run, voter, pair, client = a_pair()
    other = make_run(run.queue.project)
    data = {"ballot": token_of(voter, pair), "choice": "left"}
    assert client.post(url_of(other), data).status_code == 403
    assert not recorded(run).exists()


def test_a_cookie_that_was_tampered_with_is_nobody():
    run, voter, pair, client = a_pair()
    for cookie in client.cookies.values():
        cookie.set(cookie.key, cookie.value[:-1] + "x", cookie.value[:-1] + "x")
    assert post_vote(client, voter, pair).status_code == 403
    assert not recorded(run).exists()


def test_a_form_of_another_site_does_not_vote():
    run, voter, pair, _ = a_pair()
    client = voter_client(voter, enforce_csrf_checks=True)
    response = post_vote(client, voter, pair)
    assert response.status_code == 403
    assert "nothing was recorded" in text_of(response)
    assert not recorded(run).exists()


def test_a_flood_is_slowed_down_and_the_vote_in_it_is_not_lost_silently(monkeypatch):
    run, voter, pair, client = a_pair()
    monkeypatch.setattr(views.limit, "burst", 0)
    monkeypatch.setattr(views.limit, "per_second", 0.001)
    response = post_vote(client, voter, pair)
    assert response.status_code == 429
    assert "was not recorded" in text_of(response)
    assert not recorded(run).exists()
