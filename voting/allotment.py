"""Which pairs a voter gets next, and the leases that keep two people off the last one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import Count

from voting.ballots import Ballot
from voting.models import Assignment, Comparison, Queue, Voter
from voting.selectors import live_leases, open_to, released_by_me, skips_of
from voting.sides import keyed_number, left_side

# So many of the pairs with the fewest votes are looked at; up to here the shuffle is complete.
CANDIDATES = 1000


def next_pairs(
    voter: Voter, queue: Queue, have: Collection[UUID], limit: int, now: datetime
) -> list[Comparison]:
    """Lease and return the voter's next pairs, fewest votes first, then in the voter's shuffle.

    `have` are the pairs the voter's page already holds: their leases are renewed.
    """
    until = now + timedelta(minutes=settings.LEASE_MINUTES)
    with transaction.atomic():
        # Two voters who ask at once must not both be given the last pair.
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        chosen = _in_order(voter, queue, have, now)[:limit] if limit else []
        Assignment.objects.filter(voter=voter, comparison__in=have).update(leased_until=until)
        Assignment.objects.bulk_create(
            [Assignment(voter=voter, comparison_id=pk, leased_until=until) for pk in chosen],
            update_conflicts=True,
            unique_fields=["voter", "comparison"],
            update_fields=["leased_until"],
        )
    pairs = Comparison.objects.select_related("a__picture", "b__picture").in_bulk(chosen)
    return [pairs[pk] for pk in chosen]


def _in_order(voter: Voter, queue: Queue, have: Collection[UUID], now: datetime) -> list[UUID]:
    waiting = open_to(voter, queue).filter(released_by_me(voter)).order_by("votes", "pk")
    start = 0
    # One round as a rule; another only where a crowd holds all that the last one looked at.
    while True:
        rows = list(waiting.values_list("pk", "votes", "votes_wanted")[start:][:CANDIDATES])
        free = [pk for pk in _shuffled(voter, rows, now) if pk not in have]
        if free or len(rows) < CANDIDATES:
            return free
        start += CANDIDATES


def _shuffled(voter: Voter, rows: Sequence[tuple[UUID, int, int]], now: datetime) -> list[UUID]:
    """Return the pairs that have a place, unskipped first, then fewest votes first."""
    candidates = [pk for pk, _, _ in rows]
    skips = skips_of(voter, candidates)
    leased = dict(
        live_leases(candidates, now)
        .exclude(voter=voter)
        .values_list("comparison")
        .annotate(Count("pk"))
    )
    free = [
        (skips.get(pk, 0), votes, keyed_number(settings.SECRET_KEY, "shuffle", voter.pk, pk), pk)
        for pk, votes, wanted in rows
        if votes + leased.get(pk, 0) < wanted
    ]
    return [pk for *_, pk in sorted(free)]


def ballot_for(voter: Voter, queue: Queue, comparison: Comparison) -> Ballot:
    return Ballot(
        uid=uuid4(),
        project=queue.project_id,
        queue=queue.pk,
        comparison=comparison.pk,
        voter=voter.pk,
        rubric=queue.rubric_id,
        left=left_side(settings.SECRET_KEY, voter.pk, comparison.pk),
        choices=tuple(queue.ballot),
    )
