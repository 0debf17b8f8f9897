"""How many votes that count each comparison has."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Count, F, Q

from voting.ledger import Difference
from voting.models import Comparison, Entry, Project, Queue
from voting.rows import insist

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
        by_change = defaultdict(list)
        for comparison, by in change.items():
            by_change[by].append(comparison)
        by_change.pop(0, None)
        for by, comparisons in by_change.items():
            rows = Comparison.objects.filter(pk__in=comparisons)
            insist(rows.update(votes=F("votes") + by), len(comparisons), "votes of comparisons")
        _count_done(change)

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


def _count_done(change: Mapping[UUID, int]) -> None:
    """Count the comparisons that a change of their votes has made done, or undone."""
    done: Counter[UUID] = Counter()
    changed = Comparison.objects.filter(pk__in=[pk for pk, by in change.items() if by])
    for pk, queue, votes, wanted in changed.values_list("pk", "queue", "votes", "votes_wanted"):
        done[queue] += (votes >= wanted) - (votes - change[pk] >= wanted)
    for queue, by in done.items():
        if by:
            Queue.objects.filter(pk=queue).update(done=F("done") + by)
