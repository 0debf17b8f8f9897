"""An invite and who has a voter's cookie already: another run's voter, a blocked one."""

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
    voter_client,
)
from voting.assignment import next_pairs
from voting.models import Voter
from voting.voters import erase, invite_token, join

pytestmark = pytest.mark.django_db

DEAD = [
    ({"revoked_at": timezone.now()}, "withdrawn"),
    ({"expires_at": timezone.now() - timedelta(days=1)}, "expired"),
    ({"max_voters": 0}, "as many voters as it may"),
]


def link_of(invite):
    return f"/join/{invite_token(invite)}/"


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
