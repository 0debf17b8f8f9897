"""What the judges said: to the voter who has just voted, and to nobody else."""

import re

import pytest
from django.test import Client

from judge_eval.models import Judge, Verdict
from tests.helpers.pages import HTMX, position, post_vote, text_of
from tests.makers import (
    entry_of,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.services import undo_last_vote
from voting.models import Exposure

pytestmark = pytest.mark.django_db


def voted(**options):
    run = make_run(**options)
    voter = make_voter(run)
    vote = make_vote(voter, pairs_of(run)[0])
    return run, voter, vote, f"/reveal/{vote.uid}/"


def test_each_judge_with_what_it_picked_and_why():
    run, voter, _, url = voted(says=[["A", "B", None]], names=["wise", "wrong", "silent"])
    seal_all(run.queue.project)
    text = text_of(voter_client(voter).get(url))
    pair = pairs_of(run)[0]
    mine, theirs = (position(voter, pair, choice).capitalize() for choice in "AB")
    assert f"You chose {mine} · 1 of 2 baselines agree" in text
    # What stands between the words is the page's own business.
    assert re.search(rf"said {mine}\W+wise has its reasons\.", text)
    assert re.search(rf"said {theirs}\W+wrong has its reasons\.", text)
    assert re.search(r"no verdict\W+no answer came", text)
    # How often each has agreed so far, and no rating: that is for the board.
    assert re.search(r"wise has its reasons\.\W+has agreed with people on 1 of 1\b", text)
    assert re.search(r"wrong has its reasons\.\W+has agreed with people on 0 of 1\b", text)
    assert "1016" not in text


def test_judges_whose_verdicts_were_written_for_the_demo_are_told_apart_from_baselines():
    run, voter, _, url = voted(says=[["A", "B"]], names=["careful", "coin"])
    run.judges.filter(name="careful").update(provider=Judge.IMPORTED, model=Judge.EXAMPLE)
    text = text_of(voter_client(voter).get(url))
    assert "careful example said" in text
    assert "coin baseline said" in text
    assert " 1 judge" in text


def test_before_the_vote_is_sealed_it_is_said_not_to_be_counted_yet():
    _, voter, _, url = voted()
    response = voter_client(voter).get(url)
    assert "This vote is not counted in that yet" in text_of(response)
    assert "agreed with people on" not in text_of(response)
    assert "look=1" in response.content.decode()


@pytest.mark.parametrize("choice", ["A", "B"])
def test_a_voter_reads_no_a_no_b_and_no_stored_order(choice):
    _, voter, vote, url = voted(says=[["tie"]], names=["judge"])
    says = f"Inconsistent: {choice} as stored, tie when swapped. Output A is finer than B."
    picks = [choice, "tie"]
    Verdict.objects.update(order="both", consistent=False, picks=picks, feedback=says)
    text = text_of(voter_client(voter).get(url, headers=HTMX))
    left, right = ("Left", "Right") if entry_of(vote).left_side == "A" else ("Right", "Left")
    assert f"{left} output is finer than {right}." in text
    assert not re.search(r"\b[AB]\b|stored", text)


def test_once_it_is_sealed_nothing_is_asked_for_again():
    run, voter, _, url = voted()
    seal_all(run.queue.project)
    assert "look=" not in voter_client(voter).get(url).content.decode()


def test_looking_ends_by_itself():
    _, voter, _, url = voted()
    response = voter_client(voter).get(f"{url}?look=12")
    assert "look=" not in response.content.decode()
    assert "This vote is not counted in that yet" in text_of(response)


@pytest.mark.parametrize("look", ["x", "-1", "1e5", "99999", ""])
def test_a_strange_count_of_looks_does_no_harm(look):
    _, voter, _, url = voted()
    assert voter_client(voter).get(url, {"look": look}).status_code == 200


def test_htmx_gets_a_fragment_and_a_browser_a_page():
    _, voter, _, url = voted()
    client = voter_client(voter)
    assert b"<html" not in client.get(url, headers=HTMX).content
    assert b"<html" in client.get(url).content


@pytest.mark.parametrize("client", [Client, user_client], ids=["stranger", "owner"])
def test_nobody_else_is_told_that_it_exists(client):
    _, _, _, url = voted()
    assert client().get(url).status_code == 404


def test_another_voter_is_not_told_that_it_exists():
    run, _, _, url = voted()
    assert voter_client(make_voter(run)).get(url).status_code == 404
    assert not Exposure.objects.exists()


def test_seeing_it_is_kept_and_a_later_vote_is_not_blind():
    run, voter, vote, url = voted()
    client = voter_client(voter)
    client.get(url)
    exposure = Exposure.objects.get()
    assert (exposure.voter, exposure.item) == (voter, pairs_of(run)[0])
    assert exposure.seen_at > entry_of(vote).at
    client.post(f"/vote/{run.queue_id}/undo")
    again = post_vote(client, voter, pairs_of(run)[0], "both_bad")
    assert again.status_code == 200
    seal_all(run.queue.project)
    assert not entry_of(vote).unblinded
    assert pairs_of(run)[0].votes == 1  # the blind one, which judges are measured by


def test_looking_again_does_not_move_the_first_time():
    _, voter, _, url = voted()
    client = voter_client(voter)
    client.get(url)
    first = Exposure.objects.get().seen_at
    client.get(url)
    assert Exposure.objects.get().seen_at == first


def test_a_vote_that_was_taken_back_says_so():
    run, voter, _, url = voted()
    undo_last_vote(voter, run.queue)
    assert "You have taken this vote back" in text_of(voter_client(voter).get(url))


def test_never_means_never():
    _, voter, _, url = voted(reveal="never")
    response = voter_client(voter).get(url)
    assert response.status_code == 403
    assert "not shown in this study" in text_of(response)
    assert not Exposure.objects.exists()


def test_at_the_end_means_when_nothing_is_left_for_me():
    run, voter, _, url = voted(pairs=2, reveal="at_end")
    client = voter_client(voter)
    response = client.get(url)
    assert response.status_code == 403
    assert "when you have voted on all" in text_of(response)
    assert not Exposure.objects.exists()
    make_vote(voter, pairs_of(run)[1])
    assert client.get(url).status_code == 200
