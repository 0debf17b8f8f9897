"""One vote is one INSERT; a repeat is answered as the first time and changes nothing."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.makers import entry_of, make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot import services
from voting.ballot.assignment import ballot_for
from voting.ballot.services import (
    VoteConflict,
    VoteTakenBack,
    VotingClosed,
    cast_vote,
    undo_last_vote,
)
from voting.models import Entry, Queue
from voting.people.voters import erase

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def votes_in(run):
    return Entry.objects.filter(queue=run.queue_id, kind="vote")


def a_pair():
    run = make_run()
    return run, make_voter(run), pairs_of(run)[0]


def test_a_vote_is_exactly_one_insert():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    with CaptureQueriesContext(connection) as queries:
        cast_vote(ballot, "A", 900)
    assert len(queries) == 1
    assert queries[0]["sql"].split()[:3] == ["INSERT", "INTO", "voting_entry"]


def test_a_vote_keeps_the_choice_the_sides_the_rubric_and_the_time():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    recorded = cast_vote(ballot, "both_bad", 900)
    entry = entry_of(recorded)
    assert (recorded.item, recorded.choice, recorded.repeated) == (pair.pk, "both_bad", False)
    assert (entry.kind, entry.choice, entry.elapsed_ms) == ("vote", "both_bad", 900)
    assert (entry.left_side, entry.rubric_id) == (ballot.left, run.queue.rubric_id)
    assert (entry.voter, entry.item, entry.queue) == (voter, pair, run.queue)
    assert (entry.project, entry.seq, entry.hash) == (run.queue.project, None, None)
    assert (entry.unblinded, entry.simulated, entry.retracted) == (False, False, False)


def test_a_held_ballot_is_refused_once_the_queue_is_closed():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    Queue.objects.update(is_open=False)
    with pytest.raises(VotingClosed, match="Voting has closed"):
        cast_vote(ballot, "A")
    assert not votes_in(run).exists()


def test_a_held_ballot_is_refused_once_the_voter_is_blocked():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    erase(voter)
    with pytest.raises(VotingClosed, match="no longer"):
        cast_vote(ballot, "A")
    assert not votes_in(run).exists()


def test_the_first_answer_is_still_given_after_the_queue_has_closed():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    first = cast_vote(ballot, "A")
    Queue.objects.update(is_open=False)
    assert cast_vote(ballot, "A").uid == first.uid


def test_the_same_ballot_again_is_answered_alike_once_it_is_sealed():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    first = cast_vote(ballot, "A")
    seal_all(run.queue.project)
    assert cast_vote(ballot, "A").uid == first.uid
    assert votes_in(run).count() == 1


def test_a_used_ballot_makes_no_new_vote_after_an_undo():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    first = cast_vote(ballot, "A")
    undo_last_vote(voter, run.queue)
    assert cast_vote(ballot, "A").uid == first.uid
    with pytest.raises(VoteTakenBack):
        cast_vote(ballot, "B")
    assert not votes_in(run).filter(retracted=False).exists()


def test_a_fresh_ballot_makes_a_new_vote_after_an_undo():
    run, voter, pair = a_pair()
    first = make_vote(voter, pair)
    undo_last_vote(voter, run.queue)
    second = make_vote(voter, pair, "B")
    assert not second.repeated
    assert second.uid != first.uid
    assert votes_in(run).get(retracted=False).choice == "B"


def test_a_script_votes_on_the_stored_sides():
    run, voter, pair = a_pair()
    ballot = ballot_for(voter, run.queue, pair)
    recorded = cast_vote(ballot, "B", left="")
    entry = entry_of(recorded)
    assert (entry.choice, entry.left_side, entry.elapsed_ms) == ("B", "", None)
    again = ballot_for(voter, run.queue, pair)
    assert cast_vote(again, "B", left="").uid == recorded.uid
    with pytest.raises(VoteConflict):
        cast_vote(again, "A", left="")


@pytest.mark.parametrize("by_script", [True, False])
def test_an_undo_between_the_conflict_and_the_look_up_leaves_room_for_the_vote(by_script):
    """The vote that was in the way is gone when it is looked up: the new one is recorded whole."""
    run, voter, pair = a_pair()
    make_vote(voter, pair, "A")
    calls = []

    def undo_before_the_look_up(execute, sql, params, many, context):
        if sql.startswith("SELECT") and not calls:
            calls.append(sql)
            undo_last_vote(voter, run.queue)
        return execute(sql, params, many, context)

    ballot = ballot_for(voter, run.queue, pair)
    with connection.execute_wrapper(undo_before_the_look_up):
        vote = cast_vote(ballot, "B", left="") if by_script else cast_vote(ballot, "B", 700)
    entry = entry_of(vote)
    assert (entry.choice, vote.repeated) == ("B", False)
    expected = ("", None) if by_script else (ballot.left, 700)
    assert (entry.left_side, entry.elapsed_ms) == expected


@pytest.mark.postgresql_only
@pytest.mark.parametrize("threshold, kept", [(5, 1), (None, 0)])
def test_a_vote_is_planned_once_unless_a_pooler_forbids_it(monkeypatch, threshold, kept):
    run = make_run(pairs=8)
    voter = make_voter(run)
    monkeypatch.setattr(connection.connection, "prepare_threshold", threshold)
    with connection.cursor() as cursor:
        cursor.execute("DEALLOCATE ALL")
        for pair in pairs_of(run):
            make_vote(voter, pair)
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements "
            "WHERE statement LIKE '%INSERT INTO voting_entry%ON CONFLICT%'"
        )
        assert cursor.fetchone() == (kept,)


def test_a_nudge_follows_the_commit(monkeypatch, django_capture_on_commit_callbacks):
    noted = []
    monkeypatch.setattr(services, "nudge", noted.append)
    run, voter, pair = a_pair()
    with django_capture_on_commit_callbacks(execute=True):
        make_vote(voter, pair)
        assert noted == []
    assert noted == [run.queue.project_id]
    with django_capture_on_commit_callbacks(execute=True) as callbacks:
        make_vote(voter, pair)
    assert callbacks == []
