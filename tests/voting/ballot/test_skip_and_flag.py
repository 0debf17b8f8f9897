"""Skipping is the voter's own business and not in the ledger; a flag waits for a curator."""

import pytest
from django.utils import timezone

from tests.makers import make_run, make_skip, make_voter, pairs_of
from voting.ballot.assignment import next_pairs
from voting.ballot.queries import progress
from voting.ballot.services import flag, skip
from voting.models import Assignment, Entry, Flag

pytestmark = pytest.mark.django_db


def handed(voter, run, limit=10):
    return [pair.pk for pair in next_pairs(voter, run.queue, [], limit, timezone.now())[0]]


def test_a_skipped_pair_comes_back_once_at_the_end():
    run = make_run(pairs=5)
    voter = make_voter(run)
    order = handed(voter, run)
    make_skip(voter, order[0])
    assert handed(voter, run) == [*order[1:], order[0]]


def test_skipped_twice_a_pair_is_gone_for_its_voter_and_free_for_others():
    run = make_run()
    voter, other = make_voter(run), make_voter(run)
    [pair] = handed(voter, run)
    make_skip(voter, pair)
    assert handed(voter, run) == [pair]
    assert handed(other, run) == [pair]
    make_skip(voter, pair)
    assert handed(voter, run) == []
    assert progress(voter, run.queue).left_for_me == 0
    assert handed(other, run) == [pair]


def test_a_pair_that_was_skipped_once_is_free_for_others_meanwhile():
    run = make_run(pairs=2)
    voter, other = make_voter(run), make_voter(run)
    first = handed(voter, run)[0]
    make_skip(voter, first)
    assert handed(other, run) == [first]


def test_the_same_skip_again_is_not_a_second_one():
    run = make_run()
    voter, [pair] = make_voter(run), pairs_of(run)
    ballot = make_skip(voter, pair)
    skip(ballot)
    assert Assignment.objects.get().skips == 1
    make_skip(voter, pair)
    assert Assignment.objects.get().skips == 2


def test_skipping_further_changes_nothing():
    run = make_run()
    voter = make_voter(run)
    [pair] = handed(voter, run)
    for _ in range(4):
        make_skip(voter, pair)
    assert Assignment.objects.get().skips == 2


def test_a_pair_that_was_never_handed_out_can_be_skipped():
    run = make_run(pairs=2)
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_skip(voter, pair.pk)
    assert handed(voter, run)[-1] == pair.pk


def test_skips_of_others_do_not_matter():
    run = make_run(pairs=4, votes_wanted=9)
    voter, other = make_voter(run), make_voter(run)
    order = handed(voter, run)
    make_skip(other, order[0])
    make_skip(other, order[0])
    assert handed(voter, run) == order


def test_skips_are_not_in_the_ledger():
    run = make_run()
    before = Entry.objects.count()
    make_skip(make_voter(run), pairs_of(run)[0].pk)
    assert Entry.objects.count() == before


def test_a_flag_keeps_its_category_and_comment():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    flag(voter, pair.pk, Flag.Category.UNSAFE, "It tells how to.")
    kept = Flag.objects.get()
    assert (kept.voter, kept.item) == (voter, pair)
    assert (kept.category, kept.comment) == ("unsafe", "It tells how to.")


def test_a_second_flag_replaces_the_first_of_the_same_voter_only():
    run = make_run()
    voter, other, pair = make_voter(run), make_voter(run), pairs_of(run)[0]
    flag(voter, pair.pk, Flag.Category.UNSAFE, "one")
    flag(voter, pair.pk, Flag.Category.OTHER, "two")
    flag(other, pair.pk, Flag.Category.FORMAT, "three")
    assert sorted(Flag.objects.values_list("category", "comment")) == [
        ("format", "three"),
        ("other", "two"),
    ]
