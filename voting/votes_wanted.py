"""How many votes items want, and how leads raise or lower that while voting goes on.

A change is one entry of the ledger (see `voting.ledger.decisions`); sealing it changes the items.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from voting.disputes import is_disputed
from voting.kinds import options_of
from voting.ledger import ledger
from voting.ledger.counts import votes_on
from voting.ledger.decisions import VOTES_WANTED, Rules, payload_of
from voting.models import Entry, Queue, Voter
from voting.order import wants_overlap


def votes_for(item: UUID, rules: Rules | Queue) -> int:
    """Return how many votes an item wants by some rules; a keyed hash decides which want more."""
    overlaps = wants_overlap(settings.SECRET_KEY, item, rules.overlap_share)
    return rules.overlap_votes if overlaps else rules.votes_per_item


def by_rules(queue: Queue, rules: Rules) -> dict[UUID, int]:
    items = queue.items.order_by("position").values_list("pk", flat=True)
    return {pk: votes_for(pk, rules) for pk in items}


def disputed(queue: Queue) -> list[UUID]:
    """Return the items about which people disagree by now."""
    critical = options_of(queue).critical_variance
    votes = votes_on(Q(queue=queue.pk))
    return [item for item, said in votes.items() if is_disputed(said, critical)]


class Cost(NamedTuple):
    """What a change comes to, as the votes stand now."""

    # Votes that are to come, after the change and before it.
    left: int
    left_before: int
    # Items that want votes again, and items that want none any more.
    reopened: int
    closed: int


def cost_of(queue: Queue, wanted: Mapping[UUID, int]) -> Cost:
    usable = queue.items.filter(unusable="").values_list("pk", "votes", "votes_wanted")
    left = left_before = reopened = closed = 0
    for pk, votes, before in usable:
        missing_before = max(0, before - votes)
        missing = max(0, wanted.get(pk, before) - votes)
        left, left_before = left + missing, left_before + missing_before
        reopened += missing > 0 == missing_before
        closed += missing == 0 < missing_before
    return Cost(left, left_before, reopened, closed)


def change_for_all(queue: Queue, rules: Rules, by: Voter) -> Entry:
    """Let all items of a queue, and those that are added later, want votes by other rules."""
    with transaction.atomic():
        # Whoever adds items holds it too: none is added between the list of all and the new rules.
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        Queue.objects.filter(pk=queue.pk).update(**dict(rules))
        return _change(queue, by, by_rules(queue, rules), rules)


def change_for_disputed(queue: Queue, votes: int, by: Voter) -> Entry:
    """Let the items about which people disagree by now want so many votes."""
    with transaction.atomic():
        return _change(queue, by, dict.fromkeys(disputed(queue), votes), None)


def _change(queue: Queue, by: Voter, wanted: Mapping[UUID, int], rules: Rules | None) -> Entry:
    entry = Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.PARAMETERS,
        at=timezone.now(),
        queue=queue,
        voter=by,
        payload=payload_of(wanted, rules),
    )
    ledger.record(entry)
    return entry


class Change(NamedTuple):
    """A change that was made; it has rules if it was for all items."""

    at: datetime
    by: str
    votes_per_item: int | None
    overlap_share: str | None
    overlap_votes: int | None

    @property
    def overlap_percent(self) -> float:
        return 100 * float(self.overlap_share or 0)


def latest_changes(queue: Queue, most: int) -> list[Change]:
    """Return who has changed when how many votes items want, the latest first."""
    of_queue = Entry.objects.filter(
        project=queue.project_id, queue=queue, kind=Entry.Kind.PARAMETERS
    )
    made = of_queue.filter(payload__has_key=VOTES_WANTED).order_by("-at", "-pk")
    said = [f"payload__{VOTES_WANTED}__{name}" for name in Rules.model_fields]
    return [Change(*row) for row in made.values_list("at", "voter__name", *said)[:most]]
