"""Curators and leads decide at the same moment as each other, as votes and as seals."""

from functools import partial

import pytest
from django.db import transaction

from judge_eval.runs.services import add_items
from reports.models import Review
from reports.review import services as review
from tests.helpers.concurrent_calls import only, together
from tests.helpers.reference import assert_as_expected
from tests.helpers.scene import assert_sound, make_scene
from tests.judge_eval.board.test_votes_wanted import rules
from tests.makers import make_vote, make_voter, pairs_of, seal_all
from voting.ballot.services import cast_vote, flag
from voting.curating.services import (
    AlreadyDecided,
    by_rules,
    change_for_all,
    change_for_disputed,
    decide,
    exclude_voter,
    reverse,
)
from voting.ledger.decisions import votes_required_in
from voting.models import Entry, Item, Queue

pytestmark = [pytest.mark.both, pytest.mark.django_db(transaction=True)]


def test_of_eight_curators_who_decide_at_once_one_does_and_the_others_see_it():
    scene = make_scene()
    actions = ["exclude", "keep"] * 4
    answers = together(
        *[
            partial(decide, scene.pairs[0].pk, action, voter, after=None)
            for action, voter in zip(actions, scene.voters, strict=True)
        ]
    )
    [made], refused = only(Entry, answers), only(AlreadyDecided, answers)
    assert {answer.decision for answer in refused} == {made}
    assert len(refused) == 7
    seal_all(scene.project)
    assert_sound(scene.project)


def test_of_eight_reversals_at_once_one_counts():
    scene = make_scene()
    made = decide(scene.pairs[0].pk, "exclude", scene.voters[0], after=None)
    answers = together(*[partial(reverse, made.uid, voter) for voter in scene.voters])
    assert len(only(Entry, answers)) == 1
    assert len(only(AlreadyDecided, answers)) == 7


def test_votes_and_sealing_while_curators_decide():
    scene = make_scene(pairs=2)
    seal = partial(seal_all, scene.project)
    for voter in range(4):
        cast_vote(scene.ballot(voter, pair=0), "A")
    answers = together(
        *[partial(cast_vote, scene.ballot(voter, pair=0), "B") for voter in range(4, 8)],
        partial(decide, scene.pairs[0].pk, "exclude", scene.voters[0], after=None),
        partial(decide, scene.pairs[1].pk, "another_round", scene.voters[0], after=None),
        seal,
        seal,
    )
    assert only(Exception, answers) == []
    seal_all(scene.project)
    assert Item.objects.get(pk=scene.pairs[0].pk).votes == 0
    assert Entry.objects.filter(kind="vote", excluded=True).count() == 8
    assert_sound(scene.project)
    assert_as_expected(scene.run)


def test_of_eight_leads_who_exclude_a_voter_at_once_one_does():
    scene = make_scene()
    odd = make_voter(scene.run)
    answers = together(
        *[partial(exclude_voter, odd.pk, scene.queue, by, after=None) for by in scene.voters]
    )
    assert len(only(Entry, answers)) == 1
    assert len(only(AlreadyDecided, answers)) == 7


def test_votes_and_sealing_while_a_voter_is_excluded():
    scene = make_scene(pairs=6)
    odd, seal = scene.voters[0], partial(seal_all, scene.project)
    for pair in range(3):
        cast_vote(scene.ballot(0, pair=pair), "A")
    seal()
    answers = together(
        *[partial(cast_vote, scene.ballot(0, pair=pair), "B") for pair in range(3, 6)],
        *[partial(cast_vote, scene.ballot(voter, pair=1), "B") for voter in range(1, 4)],
        partial(exclude_voter, odd.pk, scene.queue, scene.voters[5], after=None),
        seal,
        seal,
    )
    assert only(Exception, answers) == []
    seal()
    assert Entry.objects.filter(kind="vote", excluded=True, voter=odd).count() == 6
    assert sum(pair.votes for pair in pairs_of(scene.run)) == 3
    assert_sound(scene.project)
    assert_as_expected(scene.run)


def test_votes_sealing_and_new_pairs_while_leads_change_their_minds():
    scene = make_scene(pairs=4, votes_wanted=2)
    queue = Queue.objects.get(pk=scene.queue.pk)
    lead, seal = scene.voters[7], partial(seal_all, scene.project)
    answers = together(
        *[partial(cast_vote, scene.ballot(voter, pair=0), "AB"[voter % 2]) for voter in range(4)],
        partial(change_for_all, queue, rules(1, 0.5), lead),
        partial(change_for_all, queue, rules(5, 0.5), lead),
        partial(change_for_disputed, queue, 9, lead),
        partial(_add, queue, scene.pairs[0].a, scene.pairs[1].b),
        seal,
        seal,
    )
    assert only(Exception, answers) == []
    seal()
    queue.refresh_from_db()
    last = Entry.objects.filter(kind="parameters", payload__votes_wanted__has_key="votes_per_item")
    said = last.order_by("seq").last().payload["votes_wanted"]
    assert queue.votes_per_item == said["votes_per_item"]
    of_all = by_rules(queue, rules(queue.votes_per_item, 0.5))
    disputes = Entry.objects.filter(kind="parameters").order_by("seq").last()
    expected = of_all | (votes_required_in(disputes.payload))
    assert dict(queue.items.values_list("pk", "votes_wanted")) == expected
    full = sum(item.votes >= item.votes_wanted for item in queue.items.all())
    assert queue.done == full
    assert_sound(scene.project)
    assert_as_expected(scene.run)


def _add(queue, a, b):
    with transaction.atomic():
        return add_items(queue, [(a, b)])


def test_flags_votes_and_decisions_at_the_same_moment():
    scene = make_scene(pairs=1)
    [pair] = scene.pairs
    for voter, choice in zip(scene.voters, ["A", "B", "tie"], strict=False):
        make_vote(voter, pair, choice)
    seal = partial(seal_all, scene.project)
    answers = together(
        *[partial(flag, voter, pair.pk, "other", "") for voter in scene.voters[:4]],
        partial(review.decide, pair, "exclude", scene.voters[5], "", after=None),
        seal,
        seal,
    )
    assert only(Exception, answers) == []
    seal_all(scene.project)
    assert Review.objects.get().flags == 4
    assert_sound(scene.project)
