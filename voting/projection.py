"""How many votes that count each comparison has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Count, F, Q

from voting.ledger import Difference
from voting.models import Comparison, Entry, Project, Queue
from voting.rows import insist, key, update_many

# Votes that judges are measured by: sealed, standing, blind, and cast by a person.
COUNTED = Q(
    kind=Entry.Kind.VOTE,
    seq__isnull=False,
    retracted_seq__isnull=True,
    unblinded=False,
    simulated=False,
)


def counts(entry: Entry) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row."""
    return (
        entry.kind == Entry.Kind.VOTE
        and entry.retracted_seq is None
        and not entry.unblinded
        and not entry.simulated
    )


def uncounts(entry: Entry, first_seq: int) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    return (
        target is not None
        and target.seq is not None
        and target.seq < first_seq
        and not target.unblinded
        and not target.simulated
    )


class VoteCounts:
    """Keeps `Comparison.votes` and `Queue.done`: which pairs want votes, and how many do not."""

    def apply(self, project: Project, entries: Sequence[Entry]) -> None:
        first_seq = entries[0].seq or 0
        change: Counter[UUID] = Counter()
        for entry in entries:
            if entry.comparison_id and counts(entry):
                change[entry.comparison_id] += 1
            elif uncounts(entry, first_seq) and entry.target and entry.target.comparison_id:
                change[entry.target.comparison_id] -= 1
        _count({comparison: by for comparison, by in change.items() if by})

    def rebuild(self, project: Project, *, write: bool) -> list[Difference]:
        counted = dict(
            Entry.objects.filter(COUNTED, project=project, comparison__isnull=False)
            .values_list("comparison")
            .annotate(Count("pk"))
        )
        differences = []
        done: Counter[UUID] = Counter()
        for comparison in Comparison.objects.filter(queue__project=project):
            votes = counted.get(comparison.pk, 0)
            done[comparison.queue_id] += votes >= comparison.votes_wanted
            if comparison.votes != votes:
                where = f"votes on comparison {comparison.pk}"
                differences.append(Difference(where, comparison.votes, votes))
                if write:
                    Comparison.objects.filter(pk=comparison.pk).update(votes=votes)
        for queue in Queue.objects.filter(project=project):
            if queue.done != done[queue.pk]:
                where = f"comparisons done of queue {queue.pk}"
                differences.append(Difference(where, queue.done, done[queue.pk]))
                if write:
                    Queue.objects.filter(pk=queue.pk).update(done=done[queue.pk])
        return differences


def _count(change: Mapping[UUID, int]) -> None:
    """Add to the votes of comparisons; count those that are done by it, or undone."""
    rows = Comparison.objects.filter(pk__in=change)
    done: Counter[UUID] = Counter()
    votes_now = []
    for pk, queue, votes, wanted in rows.values_list("pk", "queue", "votes", "votes_wanted"):
        now = votes + change[pk]
        votes_now.append((now, key(pk)))
        done[queue] += (now >= wanted) - (votes >= wanted)
    insist(len(votes_now), len(change), "comparisons that were voted on")
    update_many(Comparison, ["votes"], votes_now)
    for queue, by in done.items():
        if by:
            Queue.objects.filter(pk=queue).update(done=F("done") + by)
