"""Undo, skip and flag from the voting page, with and without scripts."""

from uuid import uuid4

import pytest

from tests.helpers.pages import HTMX, ballots_in, text_of, token_of
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all, voter_client
from voting.ballot.signed_form import read
from voting.models import Assignment, Entry, Flag, Queue

pytestmark = pytest.mark.django_db
ACTIONS = ["undo", "skip", "flag"]


def a_pair():
    run = make_run()
    voter = make_voter(run)
    return run, voter, pairs_of(run)[0], voter_client(voter)


def url_of(run, action):
    return f"/vote/{run.queue_id}/{action}"


def data_for(voter, pair):
    return {"ballot": token_of(voter, pair), "category": "unsafe", "comment": "It tells how."}


def test_undo_brings_the_pair_back_with_a_fresh_ballot():
    run, voter, pair, client = a_pair()
    vote = make_vote(voter, pair)
    response = client.post(url_of(run, "undo"), headers=HTMX)
    assert response.status_code == 200
    ballots = {read(token) for token in ballots_in(response)}
    assert {ballot.item for ballot in ballots} == {pair.pk}
    assert vote.uid not in {ballot.uid for ballot in ballots}
    assert Entry.objects.get(uid=vote.uid).retracted


@pytest.mark.parametrize("sealed", ["vote", "vote and undo"])
def test_a_pair_that_is_undone_is_still_one_to_vote_on(sealed):
    run = make_run(pairs=3)
    voter = make_voter(run)
    for pair in pairs_of(run)[:2]:
        make_vote(voter, pair)
    seal_all(run.queue.project)
    response = voter_client(voter).post(url_of(run, "undo"), headers=HTMX)
    if sealed == "vote and undo":
        seal_all(run.queue.project)
        response = voter_client(voter).get(f"/vote/{run.queue_id}/")
    assert "1 of 3 voted by you · 1 of 3 have enough votes" in text_of(response)


def test_a_pair_that_others_have_filled_is_not_open_again():
    run = make_run(pairs=2, votes_wanted=1)
    voter, other = make_voter(run), make_voter(run)
    pair = pairs_of(run)[0]
    for who in (voter, other):
        make_vote(who, pair)
    seal_all(run.queue.project)
    response = voter_client(voter).post(url_of(run, "undo"), headers=HTMX)
    assert "0 of 1 voted by you · 1 of 2 have enough votes" in text_of(response)


def test_an_undo_by_a_number_that_is_none_is_refused():
    run, voter, pair, client = a_pair()
    make_vote(voter, pair)
    response = client.post(url_of(run, "undo"), {"undo": "7"}, headers=HTMX)
    assert response.status_code == 422
    assert "undo: " in text_of(response)
    assert not Entry.objects.filter(kind="retraction").exists()


def test_undo_of_nothing_is_said():
    run, _, _, client = a_pair()
    response = client.post(url_of(run, "undo"), headers=HTMX)
    assert response.status_code == 409
    assert "no vote of yours to undo" in text_of(response)


@pytest.mark.parametrize("headers", [HTMX, {}], ids=["htmx", "plain form"])
def test_undo_once_voting_has_closed_says_that_the_vote_stands(headers):
    run, voter, pair, client = a_pair()
    vote = make_vote(voter, pair)
    Queue.objects.update(is_open=False)
    response = client.post(url_of(run, "undo"), headers=headers)
    assert response.status_code == 409
    assert "Voting has closed; your vote stands." in text_of(response)
    assert not Entry.objects.get(uid=vote.uid).retracted


def test_once_voting_has_closed_no_page_offers_undo():
    run, voter, pair, client = a_pair()
    make_vote(voter, pair)
    assert "Undo last vote" in text_of(client.get(f"/vote/{run.queue_id}/"))
    Queue.objects.update(is_open=False)
    text = text_of(client.get(f"/vote/{run.queue_id}/"))
    assert "Undo last vote" not in text
    assert "Your votes stand: they cannot be undone any more." in text


def test_a_pair_whose_vote_was_undone_is_not_offered_again_once_voting_has_closed():
    run, voter, pair, client = a_pair()
    make_vote(voter, pair)
    back = client.post(url_of(run, "undo")).url
    assert ballots_in(client.get(back))
    Queue.objects.update(is_open=False)
    assert ballots_in(client.get(back)) == []


def test_a_page_that_asks_for_more_is_told_that_voting_has_closed():
    run, _, _, client = a_pair()
    assert "HX-Trigger" not in client.get(url_of(run, "pairs"), headers=HTMX).headers
    Queue.objects.update(is_open=False)
    more = client.get(url_of(run, "pairs"), headers=HTMX)
    assert "closed" in more.headers["HX-Trigger"]


@pytest.mark.parametrize("action", ACTIONS)
def test_without_scripts_everything_leads_back_to_the_pairs(action):
    run, voter, pair, client = a_pair()
    make_vote(voter, pair)
    response = client.post(url_of(run, action), data_for(voter, pair))
    assert response.status_code == 302
    assert response.url.partition("?")[0] == f"/vote/{run.queue_id}/"
    assert client.get(response.url).status_code == 200


@pytest.mark.parametrize("action", ["skip", "flag"])
def test_a_ballot_of_another_voter_is_refused(action):
    run, voter, pair, _ = a_pair()
    response = voter_client(make_voter(run)).post(url_of(run, action), data_for(voter, pair))
    assert response.status_code == 403
    assert not Flag.objects.exists()
    assert not Assignment.objects.exists()


@pytest.mark.parametrize("action", ["skip", "flag"])
@pytest.mark.parametrize("ballot", ["", "forged"])
def test_a_forged_ballot_is_refused(action, ballot):
    run, voter, pair, client = a_pair()
    response = client.post(url_of(run, action), data_for(voter, pair) | {"ballot": ballot})
    assert response.status_code == 422
    assert "ballot: " in text_of(response)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"category": ""}, "category: "),
        ({"category": "rude"}, "category: "),
        ({"comment": "x" * 2001}, "comment: "),
        ({"comment": "\x00"}, "comment: "),
    ],
)
def test_a_misshapen_flag_is_refused_in_words(change, words):
    run, voter, pair, client = a_pair()
    response = client.post(url_of(run, "flag"), data_for(voter, pair) | change, headers=HTMX)
    assert response.status_code == 422
    assert words in text_of(response)
    assert not Flag.objects.exists()


@pytest.mark.parametrize("action", ACTIONS)
def test_a_queue_that_is_not_there(action):
    *_, client = a_pair()
    assert client.post(f"/vote/{uuid4()}/{action}").status_code == 404
