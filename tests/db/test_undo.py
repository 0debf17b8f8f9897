"""Undo goes back through the voter's own votes, as retractions in the ledger."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.makers import entry_of, make_run, make_vote, make_voter, pairs_of, seal_all, voter_client
from voting.curating import decide
from voting.models import Entry, Queue
from voting.selectors import open_to, progress
from voting.services import NothingToUndo, VotingClosed, record_exposure, undo_last_vote

pytestmark = pytest.mark.django_db


def test_undo_retracts_and_deletes_nothing():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    vote = entry_of(make_vote(voter, pair))
    assert undo_last_vote(voter, run.queue) == pair
    vote.refresh_from_db()
    retraction = Entry.objects.get(kind="retraction")
    assert vote.retracted
    assert (retraction.target, retraction.voter, retraction.item) == (vote, voter, pair)
    assert retraction.at > vote.at


def test_any_vote_of_ones_own_is_changed_and_only_that():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    first, second = (make_vote(voter, pair) for pair in pairs[:2])
    client = voter_client(voter)
    mine = client.get(reverse("my-votes", args=[run.queue_id]))
    number = re.search(rf'value="{first.uid}"><input[^>]*value="([^"]+)"', mine.content.decode())[1]
    for _ in range(2):  # the same request again is not a second one
        answer = client.post(
            reverse("undo", args=[run.queue_id]), {"vote": first.uid, "undo": number}
        )
        assert answer.url.endswith(f"?again={pairs[0].pk}")
    assert entry_of(first).retracted
    assert not entry_of(second).retracted
    record_exposure(voter.pk, [pairs[1].pk], timezone.now())
    assert f'value="{second.uid}"' not in client.get(mine.request["PATH_INFO"]).content.decode()
    seen = client.post(reverse("undo", args=[run.queue_id]), {"vote": second.uid})
    assert (seen.status_code, b"would not be blind" in seen.content) == (409, True)
    other = voter_client(make_voter(run)).post(
        reverse("undo", args=[run.queue_id]), {"vote": second.uid}
    )
    assert other.status_code == 409
    assert not entry_of(second).retracted


def test_undo_once_voting_has_closed_is_refused_and_the_vote_stands():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    vote = make_vote(voter, pair)
    closed_meanwhile = Queue.objects.get(pk=run.queue_id)
    Queue.objects.update(is_open=False)
    with pytest.raises(VotingClosed, match="Voting has closed"):
        undo_last_vote(voter, closed_meanwhile)
    seal_all(run.queue.project)
    assert not entry_of(vote).retracted
    assert not Entry.objects.filter(kind="retraction").exists()


def test_an_undo_that_came_through_before_voting_closed_is_answered_alike_afterwards():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    make_vote(voter, pair)
    uid = uuid4()
    undo_last_vote(voter, run.queue, uid)
    Queue.objects.update(is_open=False)
    assert undo_last_vote(voter, run.queue, uid) == pair
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


def test_a_vote_on_an_item_that_was_excluded_meanwhile_can_be_undone_and_given_again():
    run = make_run()
    voter, [pair, *_] = make_voter(run), pairs_of(run)
    make_vote(voter, pair)
    decide(pair.pk, "exclude", make_voter(run), after=None)
    seal_all(run.queue.project)
    assert undo_last_vote(voter, run.queue) == pair
    again = entry_of(make_vote(voter, pair, "B"))
    seal_all(run.queue.project)
    again.refresh_from_db()
    assert (again.choice, again.retracted, again.excluded) == ("B", False, True)


def test_undo_twice_goes_further_back():
    run = make_run(pairs=3)
    voter, pairs = make_voter(run), pairs_of(run)
    for pair in pairs[:2]:
        make_vote(voter, pair)
    assert [undo_last_vote(voter, run.queue) for _ in range(2)] == [pairs[1], pairs[0]]
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


def test_the_number_of_somebody_elses_entry_undoes_nothing():
    run = make_run(pairs=2)
    voter, other = make_voter(run), make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    theirs = make_vote(other, pairs_of(run)[1])
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue, theirs.uid)
    assert not Entry.objects.filter(retracted=True).exists()


def test_undo_after_a_new_vote_takes_back_the_new_one():
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0])
    undo_last_vote(voter, run.queue)
    again = make_vote(voter, pairs[0], "B")
    undo_last_vote(voter, run.queue)
    assert Entry.objects.filter(kind="retraction").count() == 2
    assert entry_of(again).retracted


def test_only_ones_own_votes_in_this_queue_are_undone():
    run = make_run()
    other_run = make_run(run.queue.project)
    voter, stranger = make_voter(run), make_voter(run)
    make_vote(stranger, pairs_of(run)[0])
    make_vote(voter, pairs_of(other_run)[0])
    with pytest.raises(NothingToUndo):
        undo_last_vote(voter, run.queue)


@pytest.mark.parametrize("sealed", [True, False])
def test_the_pair_is_open_to_its_voter_again(sealed):
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_vote(voter, pair)
    if sealed:
        seal_all(run.queue.project)
    assert not open_to(voter, run.queue).exists()
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert open_to(voter, run.queue).get() == pair
    assert progress(voter, run.queue).mine == 0
    pair.refresh_from_db()
    assert pair.votes == 0


def test_a_vote_of_a_clock_that_runs_ahead_is_retracted_behind_it():
    run = make_run()
    voter = make_voter(run)
    ahead = timezone.now() + timedelta(minutes=2)
    make_vote(voter, pairs_of(run)[0], at=ahead)
    undo_last_vote(voter, run.queue)
    assert Entry.objects.get(kind="retraction").at > ahead
    seal_all(run.queue.project, later=timedelta(minutes=5))
    kinds = Entry.objects.order_by("seq").values_list("kind", flat=True)
    assert list(kinds) == ["verdicts", "vote", "retraction"]
