"""Invite links: who gets in, what is remembered, what is said to the others."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from tests.helpers.pages import text_of
from tests.makers import (
    make_invite,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    voter_client,
)
from voting.ballot.assignment import next_pairs
from voting.models import Entry, Voter
from voting.people.voters import erase, invite_token, join

pytestmark = pytest.mark.django_db
DEAD = [
    ({"revoked_at": timezone.now()}, "withdrawn"),
    ({"expires_at": timezone.now() - timedelta(days=1)}, "expired"),
    ({"max_voters": 0}, "as many voters as it may"),
]


def link_of(invite):
    return f"/join/{invite_token(invite)}/"


def test_the_link_shows_the_rubric_and_makes_no_voter_yet():
    run = make_run()
    response = Client().get(link_of(make_invite(run)))
    assert response.status_code == 200
    assert run.queue.rubric.text in text_of(response)
    assert not response.cookies.get(f"voter-{run.queue.project_id.hex[:12]}")
    assert not Voter.objects.exists()


def test_joining_leads_to_the_pairs():
    run = make_run()
    client = Client()
    response = client.post(link_of(make_invite(run)), {"name": " Ada "}, follow=True)
    assert response.redirect_chain == [(f"/vote/{run.queue_id}/", 302)]
    assert response.status_code == 200
    assert Voter.objects.get().name == "Ada"


def test_the_cookie_is_signed_http_only_and_lasts():
    run = make_run()
    response = Client().post(link_of(make_invite(run)), {"name": ""})
    cookie = response.cookies[f"voter-{run.queue.project_id.hex[:12]}"]
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert cookie["max-age"] == 180 * 24 * 3600
    assert cookie.value.count(":") == 2


def test_the_cookie_is_secure_behind_https(settings):
    settings.HTTPS = True
    response = Client().post(link_of(make_invite(make_run())), {"name": ""})
    assert all(cookie["secure"] for cookie in response.cookies.values() if "voter" in cookie.key)


def test_who_comes_back_goes_on_as_the_same_voter():
    run = make_run()
    invite = make_invite(run, max_voters=1)
    client = Client()
    client.post(link_of(invite), {"name": ""})
    invite.revoked_at = timezone.now()
    invite.save()
    assert client.get(link_of(invite)).url == f"/vote/{run.queue_id}/"
    assert client.post(link_of(invite), {"name": ""}).url == f"/vote/{run.queue_id}/"
    assert Voter.objects.count() == 1


@pytest.mark.parametrize("fields, words", DEAD, ids=["revoked", "expired", "full"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_new_gets_in_and_is_told_why(fields, words, method):
    invite = make_invite(make_run(), **fields)
    response = getattr(Client(), method)(link_of(invite))
    assert response.status_code == 403
    assert words in text_of(response)
    assert not Voter.objects.exists()


@pytest.mark.parametrize("token", ["nonsense", "0" * 32 + ":x", "%00", "%F0%9F%90%A6"])
def test_a_forged_link_is_not_found(token):
    response = Client().get(f"/join/{token}/")
    assert response.status_code == 404
    assert "This invite link is not right. Part of it may be missing" in text_of(response)


def test_a_name_that_is_too_long_is_said_and_kept():
    response = Client().post(link_of(make_invite(make_run())), {"name": "x" * 101})
    assert response.status_code == 200
    assert "at most 100" in text_of(response)
    assert "x" * 101 in response.content.decode()
    assert not Voter.objects.exists()


def test_a_cookie_of_another_project_is_not_taken():
    """Not even under the name that this project's cookie has."""
    run, other = make_run(), make_run()
    client = voter_client(make_voter(run))
    name, foreign = (f"voter-{each.queue.project_id.hex[:12]}" for each in (run, other))
    client.cookies[foreign] = client.cookies[name].value
    assert client.get(f"/vote/{other.queue_id}/").status_code == 403


def test_a_blocked_voter_is_nobody():
    run = make_run()
    client = voter_client(make_voter(run, blocked_at=timezone.now()))
    assert client.get(f"/vote/{run.queue_id}/").status_code == 403


def test_what_is_asked_how_long_and_what_is_done_with_it_is_said_before_anything():
    run = make_run(pairs=30)
    text = text_of(Client().get(link_of(make_invite(run))))
    assert "two outputs for one prompt and say which is better." in text
    assert "30 pairs, about 15 s each: some 8 min in all." in text
    assert "sealed in a ledger under a random name and compared with what AI judges say" in text
    assert "You can ask us to erase everything that identifies you." in text


def test_the_time_is_that_of_the_latest_votes():
    run = make_run(pairs=20, votes_wanted=9)
    voter = make_voter(run)
    for pair in pairs_of(run)[:5]:
        make_vote(voter, pair)
    Entry.objects.filter(kind="vote").update(elapsed_ms=30_000)
    assert "20 pairs, about 15 s each" in text_of(Client().get(link_of(make_invite(run))))
    seal_all(run.queue.project)
    assert "20 pairs, about 30 s each" in text_of(Client().get(link_of(make_invite(run))))


def test_a_known_voter_who_is_invited_to_more_goes_on():
    run = make_run(pairs=2)
    text = text_of(voter_client(make_voter(run)).get(link_of(make_invite(run))))
    assert "There is more to vote on" in text
    assert "Go on voting" in text


def test_a_personal_link_says_for_whom_it_is_and_asks_for_no_name():
    run = make_run()
    invite = make_invite(run, label="Ada Lovelace", max_voters=1)
    page = Client().get(link_of(invite))
    assert "This link is for Ada Lovelace" in text_of(page)
    assert 'name="name"' not in page.content.decode()
    assert Client().post(link_of(invite), {}).status_code == 302
    assert Voter.objects.get().name == "Ada Lovelace"


# --- who has a voter's cookie already ------------------------------------------------------------


def two_runs():
    """Return a run, and a voter of another run of the same project."""
    run = make_run()
    other = make_run(run.queue.project)
    return run, join(make_invite(other), "Ada", timezone.now())


@pytest.mark.parametrize("fields, words", DEAD, ids=["revoked", "expired", "full"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_dead_invite_lets_no_voter_of_another_run_in(fields, words, method):
    run, voter = two_runs()
    client = voter_client(voter)
    response = getattr(client, method)(link_of(make_invite(run, **fields)))
    assert response.status_code == 403
    assert words in text_of(response)


def test_a_live_invite_lets_a_voter_of_another_run_in_as_the_same_voter():
    run, voter = two_runs()
    invite, client = make_invite(run), voter_client(voter)
    page = client.get(link_of(invite))
    assert page.status_code == 200
    assert "Your name" not in text_of(page)
    assert client.post(link_of(invite)).url == f"/vote/{run.queue_id}/"
    assert Voter.objects.get() == voter
    assert client.get(link_of(invite)).url == f"/vote/{run.queue_id}/"


def test_a_voter_of_another_run_takes_one_of_the_places():
    run, voter = two_runs()
    invite = make_invite(run, max_voters=1)
    assert voter_client(voter).post(link_of(invite)).status_code == 302
    assert Client().post(link_of(invite), {"name": ""}).status_code == 403
    assert voter_client(voter).get(link_of(invite)).status_code == 302
    assert Voter.objects.count() == 1


def has_voted(run, voter):
    make_vote(voter, pairs_of(run)[0])


def has_looked(run, voter):
    next_pairs(voter, run.queue, [], 1, timezone.now())


@pytest.mark.parametrize("been_here", [has_voted, has_looked])
@pytest.mark.parametrize("fields, words", DEAD, ids=["revoked", "expired", "full"])
def test_who_votes_in_the_run_already_comes_back_by_any_of_its_invites(been_here, fields, words):
    run, voter = two_runs()
    been_here(run, voter)
    invite = make_invite(run, **fields)
    assert voter_client(voter).get(link_of(invite)).url == f"/vote/{run.queue_id}/"


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_blocked_voter_does_not_become_a_new_one(method):
    run = make_run()
    invite = make_invite(run)
    voter = make_voter(run, invite=invite, blocked_at=timezone.now())
    response = getattr(voter_client(voter), method)(link_of(invite), {"name": "Again"})
    assert response.status_code == 403
    assert "no longer vote here" in text_of(response)
    assert Voter.objects.get() == voter


def test_an_erased_guest_leaves_no_trace_at_the_invite():
    run, voter = two_runs()
    invite = make_invite(run)
    voter_client(voter).post(link_of(invite))
    assert invite.guests.get() == voter
    erase(voter)
    assert not invite.guests.exists()
