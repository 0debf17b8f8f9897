"""Where a voter, a queue and the ledger stand."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.makers import (
    make_exposure,
    make_project,
    make_run,
    make_skip,
    make_vote,
    make_voter,
    pairs_of,
    seal_all,
)
from voting.ballot.queries import (
    oldest_unsealed,
    open_to,
    progress,
    projects_with_unsealed,
    queue_counts,
)
from voting.ballot.services import undo_last_vote, wait_until_sealed
from voting.models import Item

pytestmark = pytest.mark.django_db


def test_progress_counts_mine_and_what_is_left_for_me():
    run = make_run(pairs=5, votes_wanted=2)
    voter, other, pairs = make_voter(run), make_voter(run), pairs_of(run)
    make_vote(voter, pairs[0])
    make_vote(other, pairs[0])
    make_vote(other, pairs[1])
    for _ in range(2):
        make_skip(voter, pairs[2].pk)
    make_skip(voter, pairs[3].pk)
    seal_all(run.queue.project)
    now = progress(voter, run.queue)
    assert (now.mine, now.left_for_me, now.my_total) == (1, 3, 4)
    assert (now.done, now.total, now.pending) == (1, 5, 4)


def test_an_undone_vote_is_no_progress():
    run = make_run(pairs=2)
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    undo_last_vote(voter, run.queue)
    assert (progress(voter, run.queue).mine, progress(voter, run.queue).left_for_me) == (0, 2)


def test_votes_in_another_queue_are_not_this_progress():
    run = make_run()
    other = make_run(run.queue.project)
    voter = make_voter(run)
    make_vote(voter, pairs_of(other)[0])
    assert progress(voter, run.queue).mine == 0


def test_an_unblinded_vote_leaves_the_pair_pending_and_its_voter_done():
    run = make_run()
    voter, pair = make_voter(run), pairs_of(run)[0]
    make_exposure(voter, pair)
    make_vote(voter, pair)
    seal_all(run.queue.project)
    assert queue_counts(run.queue)[0] == 0
    assert not open_to(voter, run.queue).exists()
    assert open_to(make_voter(run), run.queue).get() == pair


def test_unusable_pairs_are_not_counted_and_closed_ones_are_being_prepared():
    run = make_run(pairs=4)
    _, unusable, closed, _ = pairs_of(run)
    Item.objects.filter(pk=unusable.pk).update(unusable="A failed", opened_at=None)
    Item.objects.filter(pk=closed.pk).update(opened_at=None)
    assert queue_counts(run.queue) == (0, 3, 1)


def test_the_oldest_unsealed_entry_of_all():
    assert oldest_unsealed() is None
    run, other = make_run(), make_run()
    old = timezone.now() - timedelta(hours=1)
    make_vote(make_voter(run), pairs_of(run)[0], at=old)
    make_vote(make_voter(other), pairs_of(other)[0])
    assert oldest_unsealed() == old
    seal_all(run.queue.project)
    assert oldest_unsealed() > old


def test_projects_with_unsealed_entries():
    make_project()
    run, sealed = make_run(), make_run()
    make_vote(make_voter(run), pairs_of(run)[0])
    make_vote(make_voter(sealed), pairs_of(sealed)[0])
    seal_all(sealed.queue.project)
    assert projects_with_unsealed() == [run.queue.project_id]


def test_waiting_ends_when_the_votes_are_sealed_or_the_time_is_up():
    run = make_run()
    voter = make_voter(run)
    make_vote(voter, pairs_of(run)[0])
    wait_until_sealed(voter, 0)
    seal_all(run.queue.project)
    wait_until_sealed(voter, 3600)
