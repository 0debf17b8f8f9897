"""A voter whom a lead excludes leaves every figure, and comes back to the last bit."""

from uuid import uuid4

import pytest
from django.utils import timezone

from judge_eval.models import Board
from reports.models import Quality, Review
from tests.makers import entry_of, make_run, make_vote, make_voter, pairs_of, seal_all
from tests.voting.ledger.test_decisions import a_curator, a_voted_run, check, figures
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import progress
from voting.ballot.services import undo_last_vote
from voting.curating.services import AlreadyDecided, CannotDecide, decide, exclude_voter, reverse
from voting.ledger import chain, ledger
from voting.models import Entry, Item
from voting.people.voters import erase

pytestmark = pytest.mark.django_db


def everything(run):
    project = run.queue.project_id
    quality = Quality.objects.filter(project=project).values("score", "votes", "passes", "standing")
    reviews = Review.objects.filter(project=project).order_by("item")
    columns = reviews.values_list("item", "is_divided", "flags", "decided", "waits")
    return figures(run), list(quality), list(columns)


def a_divided_run():
    """Return a run with a dispute: two voters say A, the third, who is odd, says B."""
    run, pairs, voters = a_voted_run(votes_wanted=3)
    odd = make_voter(run, name="Odd")
    for pair in pairs:
        make_vote(odd, pair, "B")
    make_vote(make_voter(run), pairs[0], "tie")
    seal_all(run.queue.project)
    return run, pairs, [*voters, odd]


def test_an_excluded_voter_leaves_every_figure_and_a_reversal_brings_all_back():
    run, pairs, [_, _, odd] = a_divided_run()
    before, curator = everything(run), a_curator(run)
    assert Review.objects.get(item=pairs[0]).waits

    decision = exclude_voter(odd.pk, run.queue, curator, "Always right.", after=None)
    seal_all(run.queue.project)

    assert [item.votes_b for item in pairs_of(run)] == [0, 0, 0]
    assert Board.objects.get(run=run).votes == 7
    assert not Review.objects.get(item=pairs[0]).waits
    assert [row["votes"] for row in everything(run)[1]] == [7]
    assert {item.unusable for item in pairs_of(run)} == {""}
    check(run)

    reverse(decision.uid, curator)
    seal_all(run.queue.project)
    assert everything(run) == before
    check(run)


def test_votes_that_the_voter_casts_meanwhile_are_left_out_until_they_are_back():
    run, pairs, [odd, _] = a_voted_run(votes_wanted=3)
    undo_last_vote(odd, run.queue)
    decision = exclude_voter(odd.pk, run.queue, a_curator(run), after=None)
    same_batch = make_vote(odd, pairs[2], "tie")
    seal_all(run.queue.project)
    undo_last_vote(odd, run.queue)
    later = make_vote(odd, pairs[2], "B")
    seal_all(run.queue.project)
    assert entry_of(same_batch).excluded
    assert entry_of(later).excluded
    assert Item.objects.get(pk=pairs[2].pk).votes == 1
    check(run)
    reverse(decision.uid, a_curator(run))
    seal_all(run.queue.project)
    assert not entry_of(later).excluded
    assert Item.objects.get(pk=pairs[2].pk).votes_b == 1
    check(run)


def test_a_vote_stays_away_while_its_item_or_its_voter_is_excluded():
    run, pairs, [odd, _] = a_voted_run()
    of_voter = exclude_voter(odd.pk, run.queue, a_curator(run), after=None)
    of_item = decide(pairs[0].pk, "exclude", a_curator(run), after=None)
    seal_all(run.queue.project)
    reverse(of_item.uid, a_curator(run))
    seal_all(run.queue.project)
    assert [item.votes for item in pairs_of(run)] == [1, 1, 1]
    check(run)
    decide(pairs[1].pk, "exclude", a_curator(run), after=None)
    reverse(of_voter.uid, a_curator(run))
    seal_all(run.queue.project)
    assert [item.votes for item in pairs_of(run)] == [2, 0, 2]
    check(run)


def test_what_the_same_voter_says_in_another_run_counts_on():
    run, _, [odd, _] = a_voted_run()
    other = make_run(run.queue.project, pairs=1)
    make_vote(odd, pairs_of(other)[0])
    exclude_voter(odd.pk, run.queue, a_curator(run), after=None)
    seal_all(run.queue.project)
    assert pairs_of(other)[0].votes == 1
    assert Board.objects.get(run=run).votes == 3
    check(other)


def test_an_excluded_voter_votes_on_and_reads_nothing_that_is_not_so():
    run, _, [odd, _] = a_voted_run(votes_wanted=3)
    exclude_voter(odd.pk, run.queue, a_curator(run), after=None)
    make_vote(odd, run.queue.items.create(**_like(pairs_of(run)[0])))
    seal_all(run.queue.project)
    so_far = progress(odd, run.queue)
    words = "You voted on 4 pairs. 4 of your votes are left out by decision of a curator."
    assert so_far.counted_in_words == words
    handed_out, _ = next_pairs(make_voter(run), run.queue, [], 6, timezone.now())
    assert len(handed_out) == 4


def _like(pair):
    """Return the fields of one more pair that is open."""
    same = {name: getattr(pair, name) for name in ("prompt_key", "turn", "a", "b", "opened_at")}
    return same | {"position": 3, "votes_wanted": 3}


def test_the_chain_names_both_by_pseudonyms_and_holds_no_reason():
    run, _, [odd, _] = a_voted_run()
    curator = a_curator(run)
    entry = exclude_voter(odd.pk, run.queue, curator, "Ann clicks.", after=None)
    seal_all(run.queue.project)
    entry.refresh_from_db()
    content = ledger.content(entry)
    digest = chain.salted_hash(entry.salt, "Ann clicks.")
    assert content["payload"] == {"action": "exclude", "by": curator.pseudonym, "why": digest}
    assert content["voter"] == odd.pseudonym
    exported = "\n".join(ledger.export(run.queue.project))
    assert "Ann" not in exported
    erase(odd)
    entry.refresh_from_db()
    assert entry.comment == ""
    seal_all(run.queue.project)
    check(run)


def test_the_same_request_again_decides_once_and_a_late_one_is_told():
    run, _, [odd, _] = a_voted_run()
    curator, uid = a_curator(run), uuid4()
    made = [exclude_voter(odd.pk, run.queue, curator, after=None, uid=uid) for _ in range(2)]
    assert made[0] == made[1]
    with pytest.raises(AlreadyDecided) as refused:
        exclude_voter(odd.pk, run.queue, curator, after=None)
    assert refused.value.decision == made[0]
    back = reverse(made[0].uid, curator)
    with pytest.raises(AlreadyDecided):
        reverse(made[0].uid, curator)
    with pytest.raises(CannotDecide):
        reverse(back.uid, curator)
    exclude_voter(odd.pk, run.queue, curator, after=back.uid)
    seal_all(run.queue.project)
    assert Board.objects.get(run=run).votes == 3
    check(run)


def test_replay_finds_votes_of_an_excluded_voter_that_are_not_marked():
    run, _, [odd, _] = a_voted_run()
    exclude_voter(odd.pk, run.queue, a_curator(run), after=None)
    seal_all(run.queue.project)
    Entry.objects.filter(kind="vote", voter=odd).update(excluded=False)
    found = ledger.replay(run.queue.project, write=True)
    assert sum(each.place.startswith("excluded of vote") for each in found) == 3
    check(run)
