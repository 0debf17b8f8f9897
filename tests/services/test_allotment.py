"""Which pairs a voter gets next, and the leases that keep two people off the last one."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.makers import make_run, make_vote, make_voter, pairs_of, seal_all
from voting import allotment
from voting.allotment import ballot_for, next_pairs
from voting.models import Assignment, Comparison
from voting.selectors import progress
from voting.sides import left_side

pytestmark = pytest.mark.django_db


def handed(voter, run, have=(), limit=10, later=timedelta()):
    now = timezone.now() + later
    return [pair.pk for pair in next_pairs(voter, run.queue, have, limit, now)]


def test_fewest_votes_first():
    run = make_run(pairs=6, votes_wanted=9)
    for votes, pair in enumerate(pairs_of(run)):
        Comparison.objects.filter(pk=pair.pk).update(votes=5 - votes)
    assert handed(make_voter(run), run) == [pair.pk for pair in reversed(pairs_of(run))]


def test_equal_votes_are_shuffled_for_each_voter_and_stay_so():
    run = make_run(pairs=10, votes_wanted=9)
    orders = {tuple(handed(voter, run)) for voter in (make_voter(run) for _ in range(5))}
    assert len(orders) == 5
    voter = make_voter(run)
    assert handed(voter, run) == handed(voter, run)
    assert set(handed(voter, run)) == {pair.pk for pair in pairs_of(run)}


def test_no_more_than_asked_for_and_none_that_the_page_has():
    run = make_run(pairs=6)
    voter = make_voter(run)
    first = handed(voter, run, limit=2)
    more = handed(voter, run, have=first, limit=3)
    assert (len(first), len(more)) == (2, 3)
    assert not set(first) & set(more)


def test_what_was_voted_on_does_not_come_again():
    run = make_run(pairs=2, votes_wanted=9)
    voter = make_voter(run)
    [pair] = [pair for pair in pairs_of(run) if pair.pk == handed(voter, run, limit=1)[0]]
    make_vote(voter, pair)
    assert pair.pk not in handed(voter, run)


def test_pairs_that_are_not_open_yet_or_have_enough_votes_are_not_handed_out():
    run = make_run(pairs=3)
    voted, closed, left = pairs_of(run)
    make_vote(make_voter(run), voted)
    seal_all(run.queue.project)
    Comparison.objects.filter(pk=closed.pk).update(opened_at=None)
    assert handed(make_voter(run), run) == [left.pk]


def test_the_last_pair_is_given_to_one_of_two_voters():
    run = make_run()
    first, second = make_voter(run), make_voter(run)
    assert len(handed(first, run)) == 1
    assert handed(second, run) == []


def test_a_reload_brings_the_same_pairs_although_they_are_leased():
    run = make_run(pairs=3)
    voter = make_voter(run)
    assert handed(voter, run) == handed(voter, run) != []


def test_others_are_not_told_that_nothing_is_left_while_a_lease_runs():
    run = make_run()
    first, second = make_voter(run), make_voter(run)
    handed(first, run)
    assert progress(second, run.queue).left_for_me == 1


def test_a_lease_that_ran_out_frees_the_pair(settings):
    run = make_run()
    first, second = make_voter(run), make_voter(run)
    handed(first, run)
    lease = timedelta(minutes=settings.LEASE_MINUTES)
    assert handed(second, run, later=lease - timedelta(seconds=1)) == []
    assert len(handed(second, run, later=lease + timedelta(seconds=1))) == 1


def test_what_the_page_still_holds_is_leased_anew(settings):
    run = make_run()
    first, second = make_voter(run), make_voter(run)
    lease = timedelta(minutes=settings.LEASE_MINUTES)
    have = handed(first, run)
    assert handed(first, run, have=have, later=lease / 2) == []
    assert handed(second, run, later=lease * 1.2) == []


def test_holding_a_pair_of_somebody_else_gives_no_lease():
    run = make_run()
    voter = make_voter(run)
    handed(voter, run, have=[pairs_of(run)[0].pk])
    assert not Assignment.objects.exists()


def test_a_lease_holds_until_the_vote_is_counted_and_not_longer():
    run = make_run(votes_wanted=2)
    first, second, third = (make_voter(run) for _ in range(3))
    handed(first, run)
    make_vote(first, pairs_of(run)[0])
    assert len(handed(second, run)) == 1
    assert handed(third, run) == []
    seal_all(run.queue.project)
    # One vote is counted and one pair is leased: two are wanted, so there is still no place.
    assert handed(third, run) == []
    Assignment.objects.filter(voter=second).delete()
    assert len(handed(third, run)) == 1


def test_as_many_leases_as_votes_are_wanted():
    run = make_run(votes_wanted=3)
    assert [len(handed(make_voter(run), run)) for _ in range(4)] == [1, 1, 1, 0]


def test_leases_of_a_crowd_do_not_hide_the_pairs_behind_them(monkeypatch):
    """More pairs are leased than are looked at for one voter; the others are still found."""
    monkeypatch.setattr(allotment, "CANDIDATES", 4)
    run = make_run(pairs=6)
    assert len(handed(make_voter(run), run, limit=4)) == 4
    assert len(handed(make_voter(run), run, limit=4)) == 2


def test_pairs_skipped_for_good_do_not_hide_the_pairs_behind_them(monkeypatch):
    monkeypatch.setattr(allotment, "CANDIDATES", 4)
    run = make_run(pairs=6, votes_wanted=9)
    voter = make_voter(run)
    for pair in handed(voter, run):
        Assignment.objects.update_or_create(
            voter=voter, comparison_id=pair, defaults={"skips": 2, "leased_until": timezone.now()}
        )
    assert len(handed(voter, run)) == 2


def test_another_queue_of_the_project_is_another_list():
    run = make_run(pairs=2)
    other = make_run(run.queue.project, pairs=2)
    voter = make_voter(run)
    assert set(handed(voter, other)) == {pair.pk for pair in pairs_of(other)}


def test_a_ballot_shows_the_side_that_the_keyed_hash_decides(settings):
    run = make_run(pairs=20)
    voter = make_voter(run)
    lefts = [ballot_for(voter, run.queue, pair).left for pair in pairs_of(run)]
    key = settings.SECRET_KEY
    assert lefts == [left_side(key, voter.pk, pair.pk) for pair in pairs_of(run)]


def test_two_presentations_have_two_ballots():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    one, other = (ballot_for(voter, run.queue, pair) for _ in range(2))
    assert one.uid != other.uid
    assert (one.left, one.choices) == (other.left, tuple(run.queue.ballot))


@pytest.mark.parametrize("limit", [0, 1])
def test_the_queries_do_not_grow_with_the_queue(limit):
    small, large = make_run(pairs=1), make_run(pairs=300)
    assert queries_of(small, limit) == queries_of(large, limit)


def queries_of(run, limit):
    voter = make_voter(run)
    with CaptureQueriesContext(connection) as queries:
        handed(voter, run, limit=limit)
    return len(queries)
