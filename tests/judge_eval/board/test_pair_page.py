"""The page of one pair: its outputs, its verdicts, its votes; never before one's own vote."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from tests.helpers.pages import text_of
from tests.makers import (
    entry_of,
    make_run,
    make_skip,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.assignment import next_pairs
from voting.ballot.services import undo_last_vote
from voting.models import Exposure
from voting.people.voters import voter_of_user

pytestmark = pytest.mark.django_db


def page_of(run, number=0):
    return f"/runs/{run.pk}/pairs/{pairs_of(run)[number].pk}/"


def test_the_owner_sees_outputs_generators_verdicts_and_votes():
    run = make_run(says=[["A", None]], names=["wise", "silent"])
    voter = make_voter(run, name="Ada Lovelace")
    make_vote(voter, pairs_of(run)[0], "both_bad")
    text = text_of(user_client().get(page_of(run)))
    for shown in ("Answer 0", "Answer 1", "generator-0", "wise", "A is better", "no answer came"):
        assert shown in text
    assert f"{voter.pseudonym} both bad" in text
    assert "being sealed" in text
    assert "Ada" not in text


def test_votes_that_were_taken_back_are_not_shown():
    run = make_run()
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    undo_last_vote(voter, run.queue)
    assert "Nobody has voted on this pair yet" in text_of(user_client().get(page_of(run)))


@pytest.mark.parametrize("logged_in", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_a_voter_who_has_the_pair_open_is_refused_whatever_else_they_are(logged_in, shared):
    run = make_run(shared=shared, names=["wise", "wrong"])
    client = voter_client(make_voter(run))
    if logged_in:
        client.force_login(User.objects.create(username="owner", is_superuser=True))
    response = client.get(page_of(run))
    assert response.status_code == 403
    assert "You have not voted on this pair yet" in text_of(response)
    assert b"wise" not in response.content
    assert not Exposure.objects.exists()


def test_an_owner_who_votes_in_another_browser_is_the_same_pair_of_eyes():
    run = make_run()
    client = user_client()
    voter = voter_of_user(run.queue.project, User.objects.get(username="owner"))
    next_pairs(voter, run.queue, [], 10, timezone.now())
    assert client.get(page_of(run)).status_code == 403
    make_vote(voter, pairs_of(run)[0])
    assert client.get(page_of(run)).status_code == 200


def test_an_evaluator_who_reads_a_pair_first_does_not_vote_blind_on_it():
    run = make_run(pairs=2)
    client = user_client()
    assert client.get(page_of(run)).status_code == 200
    assert client.get(page_of(run)).status_code == 200
    voter = voter_of_user(run.queue.project, User.objects.get(username="owner"))
    votes = [make_vote(voter, pair) for pair in pairs_of(run)]
    seal_all(run.queue.project)
    assert [entry_of(vote).unblinded for vote in votes] == [True, False]


def test_skipping_does_not_open_the_page():
    run = make_run(shared=True)
    voter = make_voter(run)
    for _ in range(2):
        make_skip(voter, pairs_of(run)[0].pk)
    assert voter_client(voter).get(page_of(run)).status_code == 403


def test_after_ones_own_vote_the_page_opens_once_nothing_else_is_open():
    run = make_run(pairs=2, shared=True)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    client = voter_client(voter)
    assert client.get(page_of(run)).status_code == 403
    make_vote(voter, pairs_of(run)[1])
    assert client.get(page_of(run)).status_code == 200


def test_seeing_a_pair_that_opens_again_later_is_kept():
    """It had enough votes, so its page was open; then one is undone, and it wants votes again."""
    run = make_run(shared=True)
    voter, other = make_voter(run), make_voter(run)
    make_vote(other, pairs_of(run)[0])
    seal_all(run.queue.project)
    assert voter_client(voter).get(page_of(run)).status_code == 200
    undo_last_vote(other, run.queue)
    seal_all(run.queue.project)
    late = make_vote(voter, pairs_of(run)[0])
    seal_all(run.queue.project)
    assert entry_of(late).unblinded


def test_a_pair_of_another_run_is_not_found():
    run, other = make_run(), make_run()
    client = user_client()
    pair = pairs_of(other)[0]
    assert client.get(f"/runs/{run.pk}/pairs/{pair.pk}/").status_code == 404
    assert client.get(f"/runs/{run.pk}/pairs/{uuid4()}/").status_code == 404
