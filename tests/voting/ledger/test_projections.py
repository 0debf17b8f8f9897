"""Scores follow the ledger: votes, undos, changed verdicts, unblinded and late votes."""

from datetime import timedelta

import pytest
from django.utils import timezone

from judge_eval.models import Board, Checkpoint, RatingPoint
from judge_eval.runs.queries import rating_series
from tests.helpers.reference import assert_as_expected, expected, stored
from tests.makers import (
    change_verdicts,
    counts_of,
    elos_of,
    entry_of,
    make_exposure,
    make_judges,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.queries import queue_counts
from voting.ballot.services import undo_last_vote
from voting.ledger import ledger
from voting.models import Entry, Item, Queue

pytestmark = [pytest.mark.both, pytest.mark.django_db]


def seal(run):
    seal_all(run.queue.project)
    assert_as_expected(run)
    assert ledger.replay(run.queue.project, write=False) == []


def vote_on_all(run, choice="A"):
    """Return one vote on each pair, by a voter each, so that any of them can be undone."""
    voters = [make_voter(run) for _ in pairs_of(run)]
    return voters, [
        make_vote(voter, pair, choice) for voter, pair in zip(voters, pairs_of(run), strict=True)
    ]


def test_the_worked_values_reach_the_board():
    run = make_run(says=[["A", "B", "B"]])
    make_vote(make_voter(run), pairs_of(run)[0], "A")
    seal(run)
    assert [round(elo, 6) for elo in elos_of(run)] == [1031.263693, 984.0, 984.736307]


def test_a_failed_verdict_lowers_coverage_and_nothing_else():
    run = make_run(says=[["A", None], ["A", "B"]])
    for pair in pairs_of(run):
        make_vote(make_voter(run), pair, "A")
    seal(run)
    assert counts_of(run) == [(2, 0, 2, 2), (0, 1, 1, 2)]


@pytest.mark.parametrize("undone", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.parametrize("sealed_between", [True, False], ids=["later batch", "same batch"])
def test_a_retraction_is_as_if_the_vote_had_never_been(undone, sealed_between):
    run = make_run(pairs=5, judges=3, says=[["A", "B", None]] * 3 + [["B", "tie", "A"]] * 2)
    voters, votes = vote_on_all(run)
    if sealed_between:
        seal(run)
    undo_last_vote(voters[undone], run.queue)
    seal(run)
    assert Board.objects.get(run=run).votes == 4
    assert entry_of(votes[undone]).retracted_seq == run.queue.project.head_seq


def test_undoing_everything_brings_everybody_back_to_1000():
    run = make_run(pairs=3)
    voters, _ = vote_on_all(run)
    seal(run)
    for voter in voters:
        undo_last_vote(voter, run.queue)
    seal(run)
    assert elos_of(run) == [1000.0, 1000.0]
    assert not RatingPoint.objects.filter(run=run).exists()


def test_a_vote_in_the_batch_of_an_earlier_votes_retraction():
    run = make_run(pairs=2)
    voter, pairs = make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0], "A")
    seal(run)
    undo_last_vote(voter, run.queue)
    make_vote(voter, pairs[0], "B")
    make_vote(voter, pairs[1], "B")
    seal(run)
    assert Board.objects.get(run=run).votes == 2


@pytest.mark.parametrize("with_votes", [True, False])
def test_changed_verdicts_refold_from_the_first_vote_on_the_pair(with_votes):
    run = make_run(pairs=4)
    vote_on_all(run)
    seal(run)
    before = elos_of(run)
    change_verdicts(pairs_of(run)[1], ["B", None])
    if with_votes:
        make_vote(make_voter(run), pairs_of(run)[1], "B")
    seal(run)
    assert elos_of(run) != before
    assert counts_of(run)[1][2:] == (3, 4)


def test_verdicts_that_change_twice_in_a_batch_end_as_the_last_says():
    run = make_run()
    make_vote(make_voter(run), pairs_of(run)[0], "A")
    seal(run)
    change_verdicts(pairs_of(run)[0], [None, None])
    change_verdicts(pairs_of(run)[0], ["B", "A"])
    seal(run)
    assert elos_of(run) == [984.0, 1016.0]


def test_a_late_vote_is_counted_in_the_order_of_the_ledger():
    run = make_run(pairs=3, says=[["A", "B"], ["B", "A"], ["A", "A"]])
    voters, _ = vote_on_all(run)
    seal(run)
    undo_last_vote(voters[1], run.queue)
    make_vote(voters[1], pairs_of(run)[1], "B", at=timezone.now() - timedelta(days=1))
    seal(run)
    last = Entry.objects.filter(kind="vote").order_by("-seq").first()
    assert Checkpoint.objects.get(run=run, seq=last.seq).standings["elo"] == elos_of(run)


def test_an_unblinded_vote_is_counted_on_the_board_and_nowhere_else():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_exposure(voter, pair)
    vote = make_vote(voter, pair, "A")
    seal(run)
    board = Board.objects.get(run=run)
    assert entry_of(vote).unblinded
    assert not Checkpoint.objects.filter(run=run).exists()
    assert (board.votes, board.unblinded) == (0, 1)
    assert elos_of(run) == [1000.0, 1000.0]
    assert Item.objects.get(pk=pair.pk).votes == 0


@pytest.mark.parametrize("sealed_between", [True, False])
def test_an_unblinded_vote_that_is_undone_leaves_the_board(sealed_between):
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_exposure(voter, pair)
    make_vote(voter, pair, "A")
    if sealed_between:
        seal(run)
    undo_last_vote(voter, run.queue)
    seal(run)
    assert Board.objects.get(run=run).unblinded == 0


def test_what_was_seen_after_the_vote_does_not_unblind_it():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    vote = make_vote(voter, pair)
    make_exposure(voter, pair, ago=timedelta(seconds=-1))
    seal(run)
    assert not entry_of(vote).unblinded


def test_what_somebody_else_has_seen_does_not_matter():
    run = make_run(pairs=2, votes_wanted=2)
    one, other = make_voter(run), make_voter(run)
    make_exposure(one, pairs_of(run)[0])
    blind = [make_vote(other, pairs_of(run)[0]), make_vote(one, pairs_of(run)[1])]
    seal(run)
    assert not any(entry_of(vote).unblinded for vote in blind)


def test_simulated_votes_count_for_nobody():
    run = make_run()
    vote = make_vote(make_voter(run), pairs_of(run)[0])
    Entry.objects.filter(uid=vote.uid).update(simulated=True)
    seal_all(run.queue.project)
    assert elos_of(run) == [1000.0, 1000.0]
    assert Item.objects.get(pk=pairs_of(run)[0].pk).votes == 0
    assert ledger.replay(run.queue.project, write=False) == []
    undo_last_vote(Entry.objects.get(uid=vote.uid).voter, run.queue)
    seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == []


def test_reputations_do_not_enter_the_elo():
    run = make_run(pairs=1, votes_wanted=2)
    make_vote(make_voter(run, reputation=5_000_000), pairs_of(run)[0])
    seal(run)
    assert elos_of(run) == [1016.0, 984.0]


def test_runs_of_one_project_are_rated_apart():
    run = make_run()
    other = make_run(run.queue.project, pairs=2)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0], "A")
    make_vote(voter, pairs_of(other)[0], "B")
    seal(run)
    undo_last_vote(voter, run.queue)
    make_vote(voter, pairs_of(other)[1], "B")
    seal(run)
    assert_as_expected(other)
    assert elos_of(run) == [1000.0, 1000.0]
    assert elos_of(other)[1] > 1016


def test_a_judge_that_joins_later_starts_at_1000():
    run = make_run(pairs=2)
    vote_on_all(run)
    seal(run)
    [late] = make_judges(run, ["judge-late"], first=2)
    late.verdicts.create(item=pairs_of(run)[1], state="done", winner="A")
    change_verdicts(pairs_of(run)[1], ["B", "B", "A"])
    seal_all(run.queue.project)
    assert counts_of(run)[2] == (1, 0, 1, 1)
    assert elos_of(run)[2] > 1000
    assert ledger.replay(run.queue.project, write=False) == []


def test_baselines_do_not_play_with_judges():
    says = [["A", "A", "B", "B"], ["B", "A", "A", "tie"]]
    run = make_run(says=says, baselines=["judge-0", "judge-3"])
    vote_on_all(run)
    seal(run)
    alone = make_run(says=[said[1:3] for said in says])
    vote_on_all(alone)
    seal(alone)
    assert elos_of(run) == [1000.0, *elos_of(alone), 1000.0]
    assert counts_of(run)[0] == (1, 1, 2, 2), "they are right and wrong all the same"


def test_a_judge_that_is_alone_and_the_baselines_beside_it_stay_at_1000():
    run = make_run(says=[["A", "B", "B"]], baselines=["judge-1", "judge-2"])
    vote_on_all(run)
    seal(run)
    assert elos_of(run) == [1000.0, 1000.0, 1000.0]


def replayed_as_expected(run):
    """Compare ratings alone: points of the graph from before a judge joined do not know it."""
    seal_all(run.queue.project)
    assert stored(run)["ratings"] == expected(run)["ratings"]
    assert ledger.replay(run.queue.project, write=False) == []


@pytest.mark.parametrize("with_votes", [True, False])
def test_judges_that_join_baselines_replace_them_from_the_first_vote_on(with_votes):
    """Baselines that had nobody else have played; what is stored of it goes, point by point."""
    run = make_run(pairs=3)
    vote_on_all(run)
    seal(run)
    assert elos_of(run)[0] > 1000
    late = make_judges(run, ["judge-a", "judge-b"], first=2, baselines=())
    assert ledger.replay(run.queue.project, write=False) == [], "nobody has asked them yet"

    def answer(pair):
        for judge, winner in zip(late, "BA", strict=True):
            judge.verdicts.create(item=pair, state="done", winner=winner)
        change_verdicts(pair, ["A", "B", "B", "A"])

    answer(pairs_of(run)[1])
    if with_votes:
        make_vote(make_voter(run), pairs_of(run)[1], "A")
    replayed_as_expected(run)
    assert elos_of(run)[:2] == [1000.0, 1000.0]
    assert elos_of(run)[3] > 1000
    for pair in (pairs_of(run)[0], pairs_of(run)[2]):
        answer(pair)
    replayed_as_expected(run)
    assert {votes: ratings[:2] for votes, ratings in rating_series(run, 3)} == {
        votes: [1000.0, 1000.0] for votes in (1, 2, 3)
    }


def test_the_graph_is_a_point_per_vote_at_first():
    run = make_run(pairs=3)
    vote_on_all(run)
    seal(run)
    series = rating_series(run, 3)
    assert [votes for votes, _ in series] == [1, 2, 3]
    assert series[-1][1] == [round(elo, 2) for elo in elos_of(run)]


def test_the_graph_of_many_votes_has_few_points():
    run = make_run(pairs=1, votes_wanted=300)
    for _ in range(300):
        make_vote(make_voter(run), run.queue.items.get(), "A")
    seal_all(run.queue.project)
    assert ledger.replay(run.queue.project, write=False) == []
    series = rating_series(run, 300)
    assert [votes for votes, _ in series] == list(range(4, 301, 4))


def test_a_pair_is_done_with_enough_votes_and_undone_with_an_undo():
    run = make_run(pairs=2, votes_wanted=2)
    first, second = make_voter(run), make_voter(run)
    done = []
    for voter in (first, second):
        make_vote(voter, pairs_of(run)[0])
        seal(run)
        done.append(queue_counts(run.queue)[0])
    undo_last_vote(second, run.queue)
    seal(run)
    assert [*done, queue_counts(run.queue)[0]] == [0, 1, 0]


def test_a_wrong_number_of_pairs_that_are_done_is_found_and_mended():
    run = make_run(pairs=1)
    make_vote(make_voter(run), pairs_of(run)[0])
    seal(run)
    Queue.objects.update(done=7)
    assert [d.replayed for d in ledger.replay(run.queue.project, write=True)] == [1]
    assert queue_counts(run.queue)[0] == 1
