"""Pretend votes: cast by a script to try things out, in queues that hold nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from django.db import transaction

from voting.ballots import Ballot
from voting.ledger.bulk_sql import prepared
from voting.ledger.scheduler import nudge
from voting.models import Entry, Queue
from voting.services import VotingClosed, insert_vote


def make_simulated(queue: Queue) -> None:
    """Make a queue one of pretend votes, for good, unless somebody has really voted in it."""
    with transaction.atomic():
        # Not no_key: a vote that is being inserted holds, or waits for, a lock of the key.
        locked = Queue.objects.select_for_update().get(pk=queue.pk)
        if not locked.is_simulated:
            refuse_after_people(locked)
            Queue.objects.filter(pk=queue.pk).update(is_simulated=True)


def refuse_after_people(queue: Queue) -> None:
    """Refuse where somebody has really voted.

    A vote that was taken back is one: whoever reads the ledger finds it there.
    """
    real = Entry.objects.filter(queue=queue, kind=Entry.Kind.VOTE, simulated=False)
    # Each look has its index. Unsealed ones first: they may be sealed before the second look.
    unsealed = real.filter(seq__isnull=True, project=queue.project_id)
    if unsealed.exists() or real.filter(seq__isnull=False).exists():
        raise VotingClosed("People have voted in this run; make another run for simulated votes.")


def cast_simulated_votes(queue: Queue, votes: Iterable[tuple[Ballot, str]]) -> int:
    """Record pretend votes, given as (ballot, choice); return how many were new.

    A queue that is not one of pretend votes takes none of them.
    """
    with transaction.atomic():
        with prepared() as cursor:
            recorded = sum(
                insert_vote(cursor, ballot, choice, simulated=True) for ballot, choice in votes
            )
        transaction.on_commit(partial(nudge, queue.project_id))
    return recorded
