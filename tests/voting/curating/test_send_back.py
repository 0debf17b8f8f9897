"""A curator asks one voter again: the second answer is kept apart from the blind one."""

import pytest
from django.urls import reverse

from judge_eval.models import Board
from tests.helpers.pages import ballots_in, text_of
from tests.helpers.reference import assert_as_expected
from tests.helpers.scene import Scene, assert_whole, make_scene
from tests.makers import (
    entry_of,
    key_client,
    make_key,
    make_vote,
    make_voter,
    seal_all,
    user_client,
    voter_client,
)
from voting.ballot.services import flag
from voting.curating.services import CannotDecide, decide
from voting.curating.services import reverse as take_back
from voting.ledger.counts import COUNTED, OF_PEOPLE
from voting.models import Entry, Queue, Voter

pytestmark = pytest.mark.django_db

WORD = "Count the arms once more."


class Study(Scene):
    """A run with a flagged pair that two people have voted on, one of them Ann."""

    def __init__(self):
        super().__init__(**vars(make_scene(pairs=2, voters=2, votes_wanted=2)))
        self.pair, (self.ann, self.bob) = self.pairs[0], self.voters
        Voter.objects.filter(pk=self.ann.pk).update(name="Ann")
        self.first, _ = (make_vote(who, self.pair, "A") for who in self.voters)
        flag(self.bob, self.pair.pk, "unsafe", "")
        seal_all(self.project)
        self.vote_page = reverse("vote", args=[self.run.queue_id])

    def sent_back(self):
        return Entry.objects.get(kind="decision", payload__action="send_back")

    def found(self, counted):
        return list(Entry.objects.filter(counted, item=self.pair, voter=self.ann))

    def check(self):
        seal_all(self.project)
        assert_whole(self.project)
        assert_as_expected(self.run)


@pytest.mark.parametrize("scripts", [True, False])
def test_the_voter_gets_it_again_with_the_word_and_the_second_answer_stands_apart(scripts):
    study = Study()
    address = reverse("review-item", args=[study.pair.pk])
    curator, client = user_client(), voter_client(study.ann)
    assert "Ann" in text_of(curator.get(address))
    form = {"action": "send_back", "voter": study.ann.pk, "why": WORD}
    asked = curator.post(reverse("decide", args=[study.pair.pk]), form, follow=True)
    assert "Sent back to Ann" in text_of(asked)
    if scripts:
        study.check()
    page = client.get(study.vote_page)
    assert WORD in text_of(page)
    assert WORD not in text_of(voter_client(study.bob).get(study.vote_page))
    again = client.post(
        reverse("undo", args=[study.run.queue_id]), {"vote": study.first.uid}, follow=True
    )
    assert (WORD in text_of(again), "is not blind" in text_of(again)) == (True, True)
    ballot = {"ballot": ballots_in(again)[0], "choice": "both_bad", "elapsed_ms": "900"}
    cast = client.post(reverse("cast-vote", args=[study.run.queue_id]), ballot, follow=True)
    assert cast.status_code == 200, text_of(cast)
    assert WORD not in text_of(cast)
    study.check()
    [second] = study.found(OF_PEOPLE)
    assert (second.choice, second.unblinded) == ("both_bad", True)
    assert study.found(COUNTED) == [entry_of(study.first)]
    board = Board.objects.get(run=study.run)
    assert (board.votes, board.unblinded) == (2, 1)
    assert "asks a voter for another answer" in text_of(
        curator.get(reverse("project-audit", args=[study.project.pk]))
    )


def test_who_took_the_vote_back_and_left_is_led_to_it_again():
    study = Study()
    decide(study.pair.pk, "send_back", study.bob, WORD, after=None, voter=study.ann.pk)
    client, undo = voter_client(study.ann), reverse("undo", args=[study.run.queue_id])
    client.post(undo, {"vote": study.first.uid})
    assert f"?again={study.pair.pk}" in client.get(study.vote_page).content.decode()


def test_a_script_sends_back_by_pseudonym():
    study = Study()
    client, address = key_client(make_key("manage")[1]), f"/api/review/{study.pair.pk}/decisions"
    body = {"action": "send_back", "voter": study.ann.pseudonym, "why": WORD}
    unknown = client.post(address, body | {"voter": "nobody"}, content_type="application/json")
    assert unknown.status_code == 409
    made = client.post(address, body, content_type="application/json")
    assert (made.status_code, made.json()["action"]) == (201, "send_back")
    assert study.sent_back().voter == study.ann


def test_what_cannot_be_sent_back_and_what_is_reversed():
    study = Study()
    stranger = make_voter(study.run)
    for voter, why in ((study.ann.pk, " "), (stranger.pk, WORD), (None, WORD)):
        with pytest.raises(CannotDecide):
            decide(study.pair.pk, "send_back", study.bob, why, after=None, voter=voter)
    made = decide(study.pair.pk, "send_back", study.bob, WORD, after=None, voter=study.ann.pk)
    reversal = take_back(made.uid, study.bob)
    study.check()
    assert WORD not in text_of(voter_client(study.ann).get(study.vote_page))
    Queue.objects.update(is_open=False)
    with pytest.raises(CannotDecide):
        decide(study.pair.pk, "send_back", study.bob, WORD, after=reversal.uid, voter=study.bob.pk)
