"""Pretend votes: reproducible, counted in their own run alone, and never beside those of people."""

from collections import Counter
from functools import partial

import pytest

from judge_eval.demo import load
from judge_eval.demo.load import drawn_choice, simulate
from judge_eval.models import Board, Checkpoint
from tests.helpers.reference import assert_as_expected
from tests.makers import (
    change_verdicts,
    counts_of,
    elos_of,
    make_exposure,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.assignment import ballot_for
from voting.ballot.queries import queue_counts
from voting.ballot.services import (
    VotingClosed,
    cast_simulated_votes,
    cast_vote,
    make_simulated,
    undo_last_vote,
)
from voting.items.kinds import VoteAnswer
from voting.ledger import chain, ledger
from voting.models import Entry, Item, Queue
from voting.people.voters import erase

pytestmark = pytest.mark.django_db


def pretend(run, voter=None, choice="A", **options):
    return simulate(run, voter or make_voter(run), choice, **({"limit": None, "seed": 0} | options))


def votes_in(run):
    return Entry.objects.filter(queue=run.queue_id, kind="vote").order_by("item__position")


def seal(run):
    seal_all(run.queue.project)
    assert_as_expected(run)
    assert ledger.replay(run.queue.project, write=False) == []


def test_every_pending_pair_gets_one_vote_that_is_marked():
    run = make_run(pairs=3)
    voter = make_voter(run)
    done = pretend(run, voter, "B")
    assert (done.voted, done.skipped) == (3, 0)
    assert [vote.item for vote in votes_in(run)] == pairs_of(run)
    assert set(votes_in(run).values_list("choice", "simulated", "left_side", "voter")) == {
        ("B", True, "", voter.pk)
    }
    assert Queue.objects.get(pk=run.queue_id).is_simulated


def test_the_same_again_votes_on_nothing():
    run = make_run(pairs=2)
    voter = make_voter(run)
    pretend(run, voter)
    again = pretend(run, voter)
    assert (again.voted, again.skipped, again.left) == (0, 0, 0)
    assert votes_in(run).count() == 2


def test_the_simulated_votes_rate_the_judges_of_their_own_run():
    run = make_run(says=[["A", "B", "B"]])
    pretend(run)
    seal(run)
    assert [round(elo, 6) for elo in elos_of(run)] == [1031.263693, 984.0, 984.736307]
    assert counts_of(run) == [(1, 0, 1, 1), (0, 1, 1, 1), (0, 1, 1, 1)]
    assert Board.objects.get(run=run).votes == 1
    assert queue_counts(run.queue)[0] == 1


def test_they_count_in_no_other_run_of_the_project():
    run = make_run()
    other = make_run(run.queue.project)
    pretend(run)
    make_vote(make_voter(other), pairs_of(other)[0], "B")
    seal(run)
    assert_as_expected(other)
    assert elos_of(run) == [1016.0, 984.0]
    assert elos_of(other) == [984.0, 1016.0]


def test_the_ledger_says_of_each_that_it_is_simulated_and_still_verifies():
    run = make_run(pairs=2)
    pretend(run)
    seal(run)
    project = run.queue.project
    lines = list(ledger.export(project))
    assert sum('"simulated":true' in line for line in lines) == 2
    assert chain.verify(lines, project.ledger_head).entries == project.head_seq


def test_what_was_seen_before_does_not_matter_to_a_vote_that_nobody_thinks_about():
    run = make_run()
    voter = make_voter(run)
    make_exposure(voter, pairs_of(run)[0])
    pretend(run, voter)
    seal_all(run.queue.project)
    board = Board.objects.get(run=run)
    assert (board.votes, board.unblinded) == (1, 0)
    assert elos_of(run) == [1016.0, 984.0]
    assert ledger.replay(run.queue.project, write=False) == []


def test_verdicts_that_change_afterwards_are_counted_again():
    run = make_run(pairs=3)
    pretend(run)
    seal(run)
    change_verdicts(pairs_of(run)[1], ["B", "A"])
    seal(run)
    assert counts_of(run) == [(2, 1, 3, 3), (1, 2, 3, 3)]


def test_one_that_is_taken_back_is_as_if_it_had_never_been():
    run = make_run(pairs=2)
    voter = make_voter(run)
    pretend(run, voter)
    seal(run)
    undo_last_vote(voter, run.queue)
    seal(run)
    assert Board.objects.get(run=run).votes == 1
    assert [pair.votes for pair in pairs_of(run)] == [1, 0]


def test_auto_draws_from_the_ballot_and_the_same_seed_draws_the_same():
    ballot = ("A", "B", "tie", "both_bad")
    drawn = [drawn_choice("auto", ballot, 7, position) for position in range(400)]
    assert drawn == [drawn_choice("auto", ballot, 7, position) for position in range(400)]
    assert drawn != [drawn_choice("auto", ballot, 8, position) for position in range(400)]
    assert set(Counter(drawn)) == set(ballot)
    assert all(60 < count < 140 for count in Counter(drawn).values())


def test_auto_votes_the_same_in_two_runs_that_are_alike():
    said = []
    for _ in range(2):
        run = make_run(pairs=12, ballot=["A", "B", "both_bad"])
        pretend(run, choice="auto", seed=3)
        said.append(list(votes_in(run).values_list("choice", flat=True)))
    assert said[0] == said[1]
    assert len(set(said[0])) == 3


def test_a_limit_takes_the_first_pairs_and_the_next_call_goes_on():
    run = make_run(pairs=5)
    voter = make_voter(run)
    first = pretend(run, voter, limit=2)
    second = pretend(run, voter, limit=2)
    assert [(done.voted, done.left) for done in (first, second)] == [(2, 3), (2, 1)]
    assert [vote.item.position for vote in votes_in(run)] == [0, 1, 2, 3]


def test_a_request_takes_only_so_many(monkeypatch):
    monkeypatch.setattr(load, "MOST_VOTES", 4)
    monkeypatch.setattr(load, "BATCH", 3)
    run = make_run(pairs=6)
    done = pretend(run)
    assert (done.voted, done.left) == (4, 2)


def test_pairs_that_are_not_open_take_none():
    run = make_run(pairs=3)
    Item.objects.filter(pk=pairs_of(run)[1].pk).update(opened_at=None)
    assert pretend(run).voted == 2


def test_where_nothing_is_pending_the_run_stays_open_to_people():
    run = make_run()
    Item.objects.update(opened_at=None)
    assert pretend(run).voted == 0
    assert not Queue.objects.get(pk=run.queue_id).is_simulated


@pytest.mark.parametrize("is_sealed", [True, False])
@pytest.mark.parametrize("is_undone", [True, False])
def test_a_run_in_which_somebody_has_voted_takes_none(is_sealed, is_undone):
    run = make_run(pairs=2)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    if is_undone:
        undo_last_vote(voter, run.queue)
    if is_sealed:
        seal_all(run.queue.project)
    with pytest.raises(VotingClosed, match="People have voted in this run"):
        pretend(run)
    with pytest.raises(VotingClosed):
        make_simulated(run.queue)
    assert not Entry.objects.filter(simulated=True).exists()


def test_a_queue_of_people_takes_no_pretend_vote_even_when_one_is_cast():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    assert (
        cast_simulated_votes(run.queue, [(ballot_for(voter, run.queue, pair), VoteAnswer("A"))])
        == 0
    )
    assert not votes_in(run).exists()


@pytest.mark.parametrize("cast", [cast_vote, partial(cast_vote, left="")])
def test_a_run_of_simulated_votes_takes_none_of_people(cast):
    run = make_run(pairs=2)
    pretend(run, limit=1)
    voter = make_voter(run)
    for pair in pairs_of(run):
        with pytest.raises(VotingClosed, match="holds simulated votes only"):
            cast(ballot_for(voter, run.queue, pair), "A")
    assert votes_in(run).count() == 1


def test_the_key_itself_may_not_repeat_as_a_real_vote_what_it_pretended():
    run = make_run()
    voter = make_voter(run)
    pretend(run, voter)
    for choice in ("A", "B"):
        with pytest.raises(VotingClosed, match="simulated votes only"):
            make_vote(voter, pairs_of(run)[0], choice)


def test_a_closed_run_takes_none():
    run = make_run(is_open=False)
    with pytest.raises(VotingClosed, match="Voting has closed"):
        pretend(run)


def test_a_voter_who_is_shut_out_casts_none():
    run = make_run()
    voter = make_voter(run)
    erase(voter)
    with pytest.raises(VotingClosed, match="no longer"):
        pretend(run, voter)


def test_what_was_voted_on_meanwhile_is_skipped(monkeypatch):
    run = make_run(pairs=3)
    voter = make_voter(run)
    real = load.make_simulated

    def with_somebody_quicker(queue):
        real(queue)
        ballot = ballot_for(voter, queue, pairs_of(run)[1])
        cast_simulated_votes(queue, [(ballot, VoteAnswer("B"))])

    monkeypatch.setattr(load, "make_simulated", with_somebody_quicker)
    done = pretend(run, voter)
    assert (done.voted, done.skipped, done.left) == (2, 1, 0)
    assert [vote.choice for vote in votes_in(run)] == ["A", "B", "A"]


def test_a_pretend_vote_in_a_run_of_people_counts_for_nobody():
    run = make_run(votes_wanted=2)
    vote = make_vote(make_voter(run), pairs_of(run)[0])
    Entry.objects.filter(uid=vote.uid).update(simulated=True)
    make_vote(make_voter(run), pairs_of(run)[0], "B")
    seal_all(run.queue.project)
    assert elos_of(run) == [984.0, 1016.0]
    assert pairs_of(run)[0].votes == 1
    assert ledger.replay(run.queue.project, write=False) == []


def test_a_real_vote_in_a_run_of_simulated_ones_counts_for_nobody():
    run = make_run()
    make_vote(make_voter(run), pairs_of(run)[0])
    Queue.objects.update(is_simulated=True)
    seal_all(run.queue.project)
    assert not Checkpoint.objects.filter(run=run).exists()
    assert elos_of(run) == [1000.0, 1000.0]
    assert pairs_of(run)[0].votes == 0
    assert ledger.replay(run.queue.project, write=False) == []


def test_many_votes_are_cast_with_as_many_queries_as_one(django_assert_max_num_queries):
    run = make_run(pairs=20)
    voter = make_voter(run)
    with django_assert_max_num_queries(20 + 15):  # an INSERT each
        pretend(run, voter)
