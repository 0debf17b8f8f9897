"""Leads raise and lower how many votes items want while people vote."""

import pytest
from django.utils import timezone

from judge_eval.runs import state
from judge_eval.runs.services import add_items
from tests.helpers.scene import assert_sound
from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from tests.voting.ledger.test_decisions import a_curator, a_voted_run, check
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import open_to
from voting.curating.services import (
    RoundCost,
    by_rules,
    change_for_all,
    change_for_disputed,
    cost_of,
    decide,
    disputed,
    reverse,
)
from voting.items.order import FRESH
from voting.ledger.decisions import Rules, votes_required_in
from voting.models import Item, Queue

pytestmark = pytest.mark.django_db


def rules(votes, share=0.0, overlap=3):
    return Rules(votes_per_item=votes, overlap_share=share, overlap_votes=overlap)


def wanted(run):
    return list(run.queue.items.order_by("position").values_list("votes_wanted", flat=True))


def done(run):
    return Queue.objects.get(pk=run.queue_id).done


def test_pairs_that_are_complete_by_lowering_leave_the_voting_page_and_by_raising_come_back():
    run, _, voters = a_voted_run(votes_wanted=3)
    lead, fresh = a_curator(run), make_voter(run)
    held, _ = next_pairs(fresh, run.queue, [], 3, timezone.now())
    assert len(held) == 3
    change_for_all(run.queue, rules(2), lead)
    seal_all(run.queue.project)
    assert (wanted(run), done(run)) == ([2, 2, 2], 3)
    kept = [pair.pk for pair in held]
    assert next_pairs(fresh, run.queue, kept, 3, timezone.now()) == ([], kept)
    check(run)

    change_for_all(run.queue, rules(4), lead)
    seal_all(run.queue.project)
    assert (wanted(run), done(run)) == ([4, 4, 4], 0)
    assert open_to(fresh, run.queue).count() == 3
    assert open_to(voters[0], run.queue).count() == 0
    check(run)


def test_what_it_costs_is_said_before():
    run, pairs, _ = a_voted_run(votes_wanted=3)
    make_vote(make_voter(run), pairs[0])
    seal_all(run.queue.project)
    assert cost_of(run.queue, by_rules(run.queue, rules(5))) == RoundCost(
        8, 2, reopened=1, closed=0
    )
    assert cost_of(run.queue, by_rules(run.queue, rules(1))) == RoundCost(
        0, 2, reopened=0, closed=2
    )
    assert cost_of(run.queue, {pairs[0].pk: 4}) == RoundCost(3, 2, reopened=1, closed=0)
    pairs[1].unusable = "It cannot be drawn."
    pairs[1].save()
    assert cost_of(run.queue, by_rules(run.queue, rules(5))) == RoundCost(
        5, 1, reopened=1, closed=0
    )


def test_only_pairs_where_people_disagree_want_more():
    run, pairs, _ = a_voted_run(votes_wanted=2)
    make_vote(make_voter(run), pairs[0], "B")
    make_vote(make_voter(run), pairs[1], "B")
    make_vote(make_voter(run), pairs[1], "B")
    seal_all(run.queue.project)
    # Two of three say the same of the first one; of the second one two say A and two say B.
    assert disputed(run.queue) == [pairs[1].pk]
    entry = change_for_disputed(run.queue, 7, a_curator(run))
    seal_all(run.queue.project)
    assert entry.payload == {"votes_wanted": {"items": {"7": [str(pairs[1].pk)]}}}
    assert wanted(run) == [2, 7, 2]
    assert Queue.objects.get(pk=run.queue_id).votes_per_item == run.queue.votes_per_item
    check(run)


def test_the_share_that_several_people_vote_on_can_grow_and_those_in_it_stay():
    run = make_run(pairs=40)
    lead = a_curator(run)
    several = []
    for share in (0.2, 0.6, 0.0, 1.0):
        entry = change_for_all(run.queue, rules(1, share, 3), lead)
        seal_all(run.queue.project)
        several.append(set(run.queue.items.filter(votes_wanted=3).values_list("pk", flat=True)))
        assert votes_required_in(entry.payload) == dict(
            run.queue.items.values_list("pk", "votes_wanted")
        )
    assert [0 < len(some) < 40 for some in several] == [True, True, False, False]
    assert several[0] < several[1]
    assert (len(several[2]), len(several[3])) == (0, 40)
    said = entry.payload["votes_wanted"]
    assert (said["votes_per_item"], said["overlap_share"], said["overlap_votes"]) == (1, "1.0", 3)
    check(run)


def test_items_that_are_added_later_want_as_many():
    run, pairs, _ = a_voted_run()
    stale = Queue.objects.get(pk=run.queue_id)
    change_for_all(run.queue, rules(9), a_curator(run))
    [added] = add_items(stale, [(pairs[0].b, pairs[1].a)])
    seal_all(run.queue.project)
    assert wanted(run) == [9, 9, 9, 9]
    assert added.votes_wanted == 9
    check(run)


def test_another_round_that_a_curator_asked_for_stands_above_it():
    run, pairs, _ = a_voted_run(votes_wanted=2)
    lead = a_curator(run)
    more = decide(pairs[0].pk, "another_round", lead, after=None, votes=3)
    change_for_all(run.queue, rules(3), lead)
    seal_all(run.queue.project)
    assert wanted(run) == [5, 3, 3]
    check(run)
    change_for_all(run.queue, rules(6), lead)
    seal_all(run.queue.project)
    assert wanted(run) == [6, 6, 6]
    change_for_all(run.queue, rules(1), lead)
    reverse(more.uid, lead)
    seal_all(run.queue.project)
    assert wanted(run) == [1, 1, 1]
    check(run)


def test_extra_votes_where_people_disagree_are_on_top():
    run = make_run(pairs=2, votes_wanted=2)
    Queue.objects.filter(pk=run.queue_id).update(options={"extra_votes": 2})
    pairs, voters = pairs_of(run), [make_voter(run) for _ in range(2)]
    for voter, choice in zip(voters, "AB", strict=True):
        make_vote(voter, pairs[0], choice)
    seal_all(run.queue.project)
    assert wanted(run) == [3, 2]
    change_for_all(run.queue, rules(1), voters[0])
    seal_all(run.queue.project)
    # The first vote alone is no dispute.
    assert wanted(run) == [1, 1]
    assert_sound(run.queue.project)
    change_for_all(run.queue, rules(2), voters[0])
    seal_all(run.queue.project)
    assert wanted(run) == [3, 2]
    assert_sound(run.queue.project)


def test_a_complete_run_takes_votes_again_and_the_order_of_pairs_stays():
    run, _, _ = a_voted_run()
    state.complete_voted_runs([run.pk])
    turns = list(run.queue.items.values_list("pk", "turn"))
    change_for_all(run.queue, rules(3), a_curator(run))
    seal_all(run.queue.project)
    state.complete_voted_runs([run.pk])
    run.refresh_from_db()
    assert run.state == "voting"
    assert list(run.queue.items.values_list("pk", "turn")) == turns


def test_a_prompt_that_nobody_has_begun_stays_behind_those_that_were():
    run = make_run(pairs=3)
    change_for_all(run.queue, rules(2), a_curator(run))
    seal_all(run.queue.project)
    assert all(item.turn >= FRESH for item in pairs_of(run))


def test_the_last_change_holds_also_for_what_opens_later():
    run = make_run(pairs=1, votes_wanted=1)
    a, b = pairs_of(run)[0].pair
    Item.objects.create(queue=run.queue, position=1, a=b, b=a, prompt_key="late", turn=1)
    lead = a_curator(run)
    change_for_all(run.queue, rules(4), lead)
    change_for_all(run.queue, rules(2), lead)
    seal_all(run.queue.project)
    assert wanted(run) == [2, 2]
    check(run)
