"""Replay finds every figure that is not what the ledger says, and puts it right when asked."""

import pytest
from django.db.models import F

from judge_eval.models import Board, Checkpoint, JudgeRating, RatingPoint
from tests.helpers.reference import assert_as_expected
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from voting.ballot.services import undo_last_vote
from voting.ledger import ledger
from voting.models import Item

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def a_voted_run():
    says = [["A", "B", None], ["B", "B", "A"], ["A", "tie", "A"], ["A"] * 3]
    run = make_run(says=says, baselines=["judge-0"])
    voter = make_voter(run)
    for pair in pairs_of(run):
        make_vote(voter, pair, "A")
    undo_last_vote(voter, run.queue)
    seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == []
    return run


def with_checkpoint(change):
    def tamper(run):
        kept = Checkpoint.objects.filter(run=run).latest("seq")
        change(kept.standings)
        kept.save()

    return tamper


def a_little_off(standings):
    standings["elo"][0] += 1e-9


tamper_checkpoint = with_checkpoint(a_little_off)

TAMPERING = {
    "a checkpoint that is none": with_checkpoint(dict.clear),
    "a checkpoint and more": with_checkpoint(lambda standings: standings.update(more=1)),
    "a lost checkpoint": lambda run: Checkpoint.objects.filter(run=run).delete(),
    "a checkpoint at no vote": lambda run: Checkpoint.objects.create(
        run=run, seq=9_999, standings={}
    ),
    "a rating": lambda run: JudgeRating.objects.filter(judge__run=run, judge__position=1).update(
        elo=F("elo") + 1e-9
    ),
    "an agreement": lambda run: JudgeRating.objects.filter(judge__run=run).update(agree=9),
    "a disagreement": lambda run: JudgeRating.objects.filter(judge__run=run).update(disagree=9),
    "a coverage": lambda run: JudgeRating.objects.filter(judge__run=run).update(answered=0),
    "a question": lambda run: JudgeRating.objects.filter(judge__run=run).update(requested=9),
    "the votes of a run": lambda run: Board.objects.filter(run=run).update(votes=9),
    "unblinded votes": lambda run: Board.objects.filter(run=run).update(unblinded=9),
    "the entry a board is made of": lambda run: Board.objects.filter(run=run).update(seq=1),
    "the votes on a pair": lambda run: Item.objects.filter(queue=run.queue, position=2).update(
        votes=9
    ),
    "a lost vote on a pair": lambda run: Item.objects.filter(queue=run.queue, position=0).update(
        votes=0
    ),
    "the answers on a pair": lambda run: Item.objects.filter(queue=run.queue, position=1).update(
        answers_tie=F("answers_tie") + 1
    ),
    "a point of the graph": lambda run: RatingPoint.objects.filter(run=run, votes=2).update(
        ratings=[1, 2, 3]
    ),
    "a missing point": lambda run: RatingPoint.objects.filter(run=run, votes=1).delete(),
    "a checkpoint": tamper_checkpoint,
}


def test_what_was_tampered_with_is_found_and_repaired():
    run = a_voted_run()
    for what, tamper in TAMPERING.items():
        tamper(run)
        found = ledger.replay(run.queue.project, write=False)
        assert found, what
        # Looking has changed nothing.
        assert ledger.replay(run.queue.project, write=True) == found, what
        assert ledger.replay(run.queue.project, write=False) == [], what
        assert_as_expected(run)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_votes_are_read_chunk_by_chunk_to_the_last(monkeypatch, chunk):
    run = a_voted_run()
    monkeypatch.setattr("judge_eval.ledger.projection.CHUNK", chunk)
    assert ledger.replay(run.queue.project, write=False) == []
    Checkpoint.objects.filter(run=run).delete()
    [lost] = ledger.replay(run.queue.project, write=True)
    assert lost.stored is None
    assert_as_expected(run)


def test_a_difference_says_where_and_what():
    run = a_voted_run()
    pair = pairs_of(run)[2]
    Item.objects.filter(pk=pair.pk).update(votes=9)
    [difference] = ledger.replay(run.queue.project, write=False)
    assert str(difference) == f"votes of comparison {pair.pk}: stored 9, replayed 1"


def test_votes_go_on_from_repaired_figures():
    run = a_voted_run()
    tamper_checkpoint(run)
    JudgeRating.objects.filter(judge__run=run).update(elo=5)
    ledger.replay(run.queue.project, write=True)
    make_vote(make_voter(run), pairs_of(run)[3], "B")
    seal_all(run.queue.project)
    assert_as_expected(run)


def test_only_the_project_at_hand_is_touched():
    run, other = a_voted_run(), a_voted_run()
    Board.objects.filter(run=other).update(votes=9)
    assert ledger.replay(run.queue.project, write=True) == []
    assert Board.objects.get(run=other).votes == 9
