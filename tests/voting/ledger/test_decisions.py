"""What curators decide stands in the ledger, and every score follows: also after a reversal."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from judge_eval.judging.verdicts import open_those_final
from judge_eval.models import Board
from judge_eval.runs import state
from tests.helpers.reference import assert_as_expected
from tests.helpers.scene import assert_sound, make_scene
from tests.makers import (
    change_verdicts,
    elos_of,
    entry_of,
    make_exposure,
    make_key,
    make_run,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import open_to, progress, queue_counts
from voting.ballot.services import cast_key_vote, cast_vote, undo_last_vote
from voting.curating.services import AlreadyDecided, CannotDecide, decide, reverse
from voting.ledger import chain, ledger
from voting.ledger.decisions import EXCLUDED
from voting.models import Entry, Item, Queue
from voting.people.voters import erase, voter_of_key

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


def a_voted_run(*, pairs=3, votes_wanted=2):
    """Return a run, its pairs, and two voters who have voted A on all of them."""
    run = make_run(pairs=pairs, votes_wanted=votes_wanted)
    voters = [make_voter(run), make_voter(run)]
    for voter in voters:
        for pair in pairs_of(run):
            make_vote(voter, pair, "A")
    seal_all(run.queue.project)
    return run, pairs_of(run), voters


def a_curator(run):
    return make_voter(run, name="Cara")


def check(run):
    assert_sound(run.queue.project)
    assert_as_expected(run)


def figures(run):
    names = ("pk", "votes", "votes_a", "unusable", "votes_wanted", "opened_at", "disagreement")
    items = list(run.queue.items.order_by("position").values_list(*names))
    done = Queue.objects.get(pk=run.queue_id).done
    return items, done, elos_of(run), Board.objects.get(run=run).votes


def test_an_exclusion_takes_the_votes_out_of_every_figure_and_a_reversal_brings_them_back():
    run, pairs, _ = a_voted_run()
    before, curator = figures(run), a_curator(run)

    decision = decide(pairs[1].pk, "exclude", curator, "Both are copied.", after=None)
    seal_all(run.queue.project)

    left_out = Item.objects.get(pk=pairs[1].pk)
    assert (left_out.votes, left_out.votes_a, left_out.unusable) == (0, 0, EXCLUDED)
    assert Board.objects.get(run=run).votes == 4
    assert elos_of(run) != before[2]
    assert queue_counts(Queue.objects.get(pk=run.queue_id)) == (2, 2, 0)
    assert Entry.objects.filter(item=pairs[1], excluded=True).count() == 2
    check(run)

    reverse(decision.uid, curator)
    seal_all(run.queue.project)
    assert figures(run) == before
    assert not Entry.objects.filter(excluded=True).exists()
    check(run)


def test_the_only_votes_there_are_come_back_too():
    run, pairs, _ = a_voted_run(pairs=1)
    before, curator = figures(run), a_curator(run)
    first = decide(pairs[0].pk, "exclude", curator, after=None)
    seal_all(run.queue.project)
    assert elos_of(run) == [1000.0, 1000.0]
    decide(pairs[0].pk, "keep", curator, after=first.uid)
    seal_all(run.queue.project)
    assert figures(run) == before
    check(run)


def test_votes_sealed_later_are_left_out_and_so_are_those_of_the_same_batch():
    run, pairs, _ = a_voted_run()
    make_vote(make_voter(run), pairs[0])
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    make_vote(make_voter(run), pairs[0])
    seal_all(run.queue.project)
    late = make_vote(make_voter(run), pairs[0])
    seal_all(run.queue.project)
    assert entry_of(late).excluded
    assert Item.objects.get(pk=pairs[0].pk).votes == 0
    check(run)
    reverse(first.uid, a_curator(run))
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).votes == 5
    check(run)


@pytest.mark.parametrize("together_with_the_reversal", [True, False])
def test_a_vote_that_is_taken_back_while_excluded_stays_away(together_with_the_reversal):
    run, pairs, voters = a_voted_run()
    first = decide(pairs[2].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    undo_last_vote(voters[0], run.queue)
    if not together_with_the_reversal:
        seal_all(run.queue.project)
    reverse(first.uid, a_curator(run))
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[2].pk).votes == 1
    check(run)


def test_an_exclusion_and_its_reversal_in_one_batch_change_nothing():
    run, pairs, _ = a_voted_run()
    before = figures(run)
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    reverse(first.uid, a_curator(run))
    assert seal_all(run.queue.project) == 2
    assert figures(run) == before
    check(run)


def test_of_several_decisions_the_latest_that_nobody_reversed_stands():
    run, pairs, _ = a_voted_run()
    curator, latest = a_curator(run), None
    made = []
    for action in ("exclude", "keep", "exclude", "note"):
        latest = decide(pairs[0].pk, action, curator, after=latest and latest.uid)
        made.append(latest)
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).unusable == EXCLUDED
    reverse(made[2].uid, curator)
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).unusable == ""
    reverse(made[1].uid, curator)
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).unusable == EXCLUDED
    check(run)


def test_votes_that_were_not_blind_leave_the_board_with_their_pair():
    run, pairs, _ = a_voted_run()
    voter = make_voter(run)
    make_exposure(voter, pairs[0])
    make_vote(voter, pairs[0])
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).unblinded == 1
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    other = make_voter(run)
    make_exposure(other, pairs[1])
    make_vote(other, pairs[1])
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).unblinded == 1
    reverse(first.uid, a_curator(run))
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).unblinded == 2
    check(run)


def test_verdicts_that_change_while_a_pair_is_excluded_count_once_it_is_back():
    run, pairs, _ = a_voted_run()
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    change_verdicts(pairs[0], ["B", "A"])
    reverse(first.uid, a_curator(run))
    seal_all(run.queue.project)
    check(run)


def test_a_changed_verdict_of_an_excluded_pair_reaches_the_ledger():
    run, pairs, _ = a_voted_run()
    decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    verdict = pairs[0].verdicts.get(judge__position=0)
    verdict.winner = "tie"
    verdict.save()
    open_those_final([pairs[0].pk], amend=True)
    latest = Entry.objects.filter(kind="verdicts", item=pairs[0]).latest("pk")
    assert latest.payload["verdicts"][0]["winner"] == "tie"


# --- what is handed out -------------------------------------------------------------------------


def test_an_excluded_pair_is_not_handed_out_and_one_that_is_back_is():
    run = make_run(pairs=2)
    pairs, voter = pairs_of(run), make_voter(run)
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    handed_out, _ = next_pairs(voter, run.queue, [], 6, timezone.now())
    assert [pair.pk for pair in handed_out] == [pairs[1].pk]
    assert list(open_to(voter, run.queue)) == [pairs[1]]
    _, gone = next_pairs(voter, run.queue, [pairs[0].pk], 6, timezone.now())
    assert gone == [pairs[0].pk]
    reverse(first.uid, a_curator(run))
    seal_all(run.queue.project)
    assert set(open_to(voter, run.queue)) == set(pairs)


def test_a_voter_is_told_which_votes_are_left_out():
    run, pairs, voters = a_voted_run()
    decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    so_far = progress(voters[0], run.queue)
    assert (so_far.mine, so_far.left_out, so_far.total) == (3, 1, 2)
    assert "1 of your votes is left out" in so_far.counted_in_words
    assert "every one" not in so_far.counted_in_words


def test_a_key_cannot_vote_on_it_but_a_ballot_that_was_out_is_taken():
    scene = make_scene()
    ballot, pair = scene.ballot(), scene.pairs[0]
    api_key, _ = make_key("vote", project=scene.project)
    voter_of_key(scene.project.pk, api_key)
    decide(pair.pk, "exclude", scene.voters[1], after=None)
    seal_all(scene.project)
    assert cast_key_vote(api_key, scene.queue.pk, pair.pk, "A") is None
    assert cast_vote(ballot, "A").uid == ballot.uid
    seal_all(scene.project)
    assert entry_of(ballot).excluded
    assert_sound(scene.project)


def test_another_round_wants_more_votes_until_it_is_reversed():
    run, pairs, voters = a_voted_run(pairs=1)
    more = decide(pairs[0].pk, "another_round", a_curator(run), after=None, votes=3)
    assert more.payload["votes_wanted"] == 5
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).votes_wanted == 5
    assert Queue.objects.get(pk=run.queue_id).done == 0
    assert open_to(make_voter(run), run.queue).count() == 1
    assert open_to(voters[0], run.queue).count() == 0
    check(run)
    reverse(more.uid, a_curator(run))
    seal_all(run.queue.project)
    assert Item.objects.get(pk=pairs[0].pk).votes_wanted == 2
    assert Queue.objects.get(pk=run.queue_id).done == 1
    check(run)


def test_a_complete_run_takes_votes_again():
    run, pairs, _ = a_voted_run()
    state.complete_voted_runs([run.pk])
    run.refresh_from_db()
    assert run.state == "complete"
    decide(pairs[0].pk, "another_round", a_curator(run), after=None)
    seal_all(run.queue.project)
    state.complete_voted_runs([run.pk])
    run.refresh_from_db()
    assert run.state == "voting"


@pytest.mark.parametrize("votes", [0, -1, 1_001, 40_000])
def test_another_round_has_bounds(votes):
    run, pairs, _ = a_voted_run(pairs=1)
    with pytest.raises(CannotDecide, match="1 to 1,000"):
        decide(pairs[0].pk, "another_round", a_curator(run), after=None, votes=votes)


def test_what_is_not_open_cannot_be_decided_on():
    run = make_run()
    run.queue.items.update(opened_at=None, unusable="A could not be drawn.")
    with pytest.raises(CannotDecide, match="drawn"):
        decide(pairs_of(run)[0].pk, "exclude", a_curator(run), after=None)


# --- the ledger's own ---------------------------------------------------------------------------


def test_the_chain_holds_a_pseudonym_and_a_hash_and_never_a_name_or_the_reason():
    run, pairs, _ = a_voted_run(pairs=1)
    curator = a_curator(run)
    entry = decide(pairs[0].pk, "exclude", curator, "Ann wrote both.", after=None)
    seal_all(run.queue.project)
    entry.refresh_from_db()
    content = ledger.content(entry)
    digest = chain.salted_hash(entry.salt, "Ann wrote both.")
    assert content["payload"] == {"action": "exclude", "by": curator.pseudonym, "why": digest}
    exported = "\n".join(ledger.export(run.queue.project))
    assert "Ann" not in exported
    assert "Cara" not in exported


def test_who_is_erased_leaves_no_reason_behind():
    run, pairs, _ = a_voted_run(pairs=2)
    curator, other = a_curator(run), make_voter(run)
    mine = decide(pairs[0].pk, "note", curator, "I am Cara.", after=None)
    theirs = decide(pairs[1].pk, "note", other, "It is fine.", after=None)
    erase(curator)
    seal_all(run.queue.project)
    for entry in (mine, theirs):
        entry.refresh_from_db()
    assert (mine.comment, mine.salt, theirs.comment) == ("", "", "It is fine.")
    assert_sound(run.queue.project)


def test_who_decides_on_what_was_decided_since_is_told():
    run, pairs, _ = a_voted_run(pairs=1)
    first = decide(pairs[0].pk, "keep", a_curator(run), after=None)
    with pytest.raises(AlreadyDecided) as refused:
        decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    assert refused.value.decision == first
    decide(pairs[0].pk, "exclude", a_curator(run), after=first.uid)


def test_the_same_request_again_decides_once():
    run, pairs, _ = a_voted_run(pairs=1)
    curator, uid = a_curator(run), uuid4()
    made = [decide(pairs[0].pk, "exclude", curator, after=None, uid=uid) for _ in range(2)]
    assert made[0] == made[1]
    again = uuid4()
    assert len({reverse(made[0].uid, curator, uid=again).pk for _ in range(2)}) == 1
    with pytest.raises(AlreadyDecided):
        reverse(made[0].uid, curator)
    with pytest.raises(CannotDecide):
        reverse(again, curator)


def test_replay_finds_marks_that_are_not_what_was_decided():
    run, pairs, _ = a_voted_run()
    decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    Entry.objects.filter(kind="vote", item=pairs[0]).update(excluded=False)
    Entry.objects.filter(kind="vote", item=pairs[1]).update(excluded=True)
    Item.objects.filter(pk=pairs[0].pk).update(unusable="")
    Item.objects.filter(pk=pairs[1].pk).update(unusable=EXCLUDED)
    found = {difference.place for difference in ledger.replay(run.queue.project, write=True)}
    assert {f"unusable of comparison {pair.pk}" for pair in pairs[:2]} <= found
    assert sum(where.startswith("excluded of vote") for where in found) == 4
    check(run)


def test_a_decision_is_behind_what_it_takes_back_whatever_the_clocks_say():
    run, pairs, _ = a_voted_run(pairs=1)
    first = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    later = timezone.now() + timedelta(hours=1)
    Entry.objects.filter(pk=first.pk).update(at=later)
    assert reverse(first.uid, a_curator(run)).at > later


def test_the_queries_of_a_batch_do_not_grow_with_its_decisions():
    counts = []
    for pairs in (2, 30):
        run, all_pairs, _ = a_voted_run(pairs=pairs)
        for pair in all_pairs:
            decide(pair.pk, "exclude", a_curator(run), after=None)
        with CaptureQueriesContext(connection) as queries:
            ledger.seal(run.queue.project_id, now=timezone.now() + timedelta(seconds=1))
        counts.append(len({query["sql"].split(" WHERE ")[0] for query in queries}))
    assert counts[1] <= counts[0] + 1
