"""Single items before the vote: nothing of verdicts, model names or other people's votes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.models import RunEvent, Verdict
from tests.helpers.pages import HTMX
from tests.makers import (
    key_client,
    make_invite,
    make_key,
    make_single_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
    user_client,
    voter_client,
)
from tests.voting.ballot.test_blindness import assert_blind, everything_in
from voting.models import Inference
from voting.people.voters import invite_token

pytestmark = pytest.mark.django_db

SECRETS = ["zwickau", "yverdon", "xanten", "wismar", "ulm-tag", "villach", "0.8125", "tuttlingen"]
KINDS = {"pass_flag": ["pass", "flag"], "category": ["dry", "warm"], "rating": list("12345")}


class Study:
    """A run of single items, on which judges and others have had their say."""

    def __init__(self, kind):
        first, second = KINDS[kind][:2]
        says = [[first, second]] * 3
        names = ["zwickau-judge", "yverdon-judge"]
        about = {"kind": kind, "ballot": KINDS[kind], "votes_per_item": 5, "shared": True}
        self.run = make_single_run(says, names=names, **about)
        Inference.objects.update(
            generator="xanten-model", metadata={"model": "wismar-weights"}, tags=["ulm-tag"]
        )
        Verdict.objects.update(feedback="villach feedback", score_a=0.8125)
        self.items = pairs_of(self.run)
        self.other = make_voter(self.run, name="Tuttlingen Tester")
        self.vote = make_vote(self.other, self.items[0], first)
        seal_all(self.run.queue.project)

    def secrets(self):
        return [*SECRETS, str(self.other.pk), self.other.pk.hex, self.other.pseudonym]


@pytest.fixture(params=KINDS)
def study(request):
    return Study(request.param)


def test_nothing_that_a_voter_can_get_gives_anything_away(study):
    client = voter_client(make_voter(study.run))
    vote_page, board = f"/vote/{study.run.queue_id}/", f"/runs/{study.run.pk}/"
    addresses = [
        f"/join/{invite_token(make_invite(study.run))}/",
        vote_page,
        f"{vote_page}pairs",
        f"{vote_page}mine",
        f"/reveal/{study.vote.uid}/",
        board,
        f"{board}pairs/",
        f"{board}models/",
        *[f"{board}pairs/{item.pk}/" for item in study.items],
        f"/api/runs/{study.run.pk}/judge-eval/pending",
        f"/api/runs/{study.run.pk}/judge-eval/results",
    ]
    responses = {address: client.get(address) for address in addresses}
    responses |= {f"htmx {address}": client.get(address, headers=HTMX) for address in addresses}
    assert_blind(study, responses)
    assert responses[vote_page].status_code == 200


def test_a_key_that_votes_blindly_gets_the_output_and_nothing_else(study):
    client = key_client(make_key("read", "vote")[1])
    RunEvent.objects.update(at=timezone.now() - timedelta(seconds=1))
    of_run = f"/api/runs/{study.run.pk}"
    pending = client.get(f"{of_run}/judge-eval/pending")
    assert len(pending.json()["tasks"]) == 3
    assert_blind(study, {"pending": pending})
    assert client.get(f"{of_run}/judge-eval/results").status_code == 403
    assert client.get(f"{of_run}/findings").status_code == 403


def test_after_the_vote_the_reveal_says_what_each_judge_said(study):
    first, second = KINDS[study.run.queue.kind][:2]
    voter = make_voter(study.run)
    vote = make_vote(voter, study.items[0], second)
    seal_all(study.run.queue.project)
    shown = everything_in(voter_client(voter).get(f"/reveal/{vote.uid}/", headers=HTMX)).lower()
    for word in ("zwickau-judge", "yverdon-judge", "villach feedback", "0.8125", "xanten-model"):
        assert word in shown
    assert "1 of 2 judges agree" in shown
    assert f"said {first}" in shown
    assert "left" not in shown.replace("left_side", "")


def test_the_page_of_an_item_shows_the_output_the_verdicts_and_the_votes(study):
    item, client = study.items[0], user_client()
    shown = client.get(f"/runs/{study.run.pk}/pairs/{item.pk}/").content.decode()
    for words in ("Answer 0", "zwickau-judge", "villach feedback", "xanten-model", "Item 1"):
        assert words in shown
    assert "Swapped" not in shown
    assert "Most people: <strong>" in shown
    listed = client.get(f"/runs/{study.run.pk}/pairs/").content.decode()
    assert "Question 0" in listed
    assert " against " not in listed
