"""How many votes that count each comparison has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Count, F, Q

from voting.ledger import Difference
from voting.models import Comparison, Entry, Project, Queue
from voting.rows import insist, key, update_many

# Votes that judges are measured by: sealed, standing, and of their queue's own kind, which is
# blind votes of people or, in a queue that holds nothing else, pretend votes. Nobody looks at a
# verdict to make up a vote, so the latter need not be blind.
_STANDING = Q(kind=Entry.Kind.VOTE, seq__isnull=False, retracted_seq__isnull=True)
_PEOPLES = _STANDING & Q(simulated=False, unblinded=False)
_PRETEND = _STANDING & Q(simulated=True)
COUNTED = _PEOPLES & Q(queue__is_simulated=False) | _PRETEND & Q(queue__is_simulated=True)


def counted_in(queue: Queue) -> Q:
    """Return `COUNTED` for the entries of one queue: without a join, they are read by an index."""
    return _PRETEND if queue.is_simulated else _PEOPLES


def counts(entry: Entry, *, is_simulated: bool) -> bool:
    """Say of a numbered entry what `COUNTED` says of a row; the flag is its queue's."""
    return (
        entry.kind == Entry.Kind.VOTE
        and entry.retracted_seq is None
        and _is_of_its_kind(entry, is_simulated)
    )


def uncounts(entry: Entry, first_seq: int, *, is_simulated: bool) -> bool:
    """Say whether this retraction takes back a vote that an earlier batch has counted."""
    target = entry.target if entry.kind == Entry.Kind.RETRACTION else None
    return (
        target is not None
        and target.seq is not None
        and target.seq < first_seq
        and _is_of_its_kind(target, is_simulated)
    )


def _is_of_its_kind(vote: Entry, is_simulated: bool) -> bool:
    return vote.simulated if is_simulated else not (vote.simulated or vote.unblinded)


class VoteCounts:
    """Keeps `Comparison.votes` and `Queue.done`: which pairs want votes, and how many do not."""

    def apply(self, project: Project, entries: Sequence[Entry]) -> None:
        first_seq = entries[0].seq or 0
        pretend = _simulated_queues(entries)
        change: Counter[UUID] = Counter()
        for entry in entries:
            subject = entry.target or entry
            is_simulated = subject.queue_id in pretend
            if entry.comparison_id and counts(entry, is_simulated=is_simulated):
                change[entry.comparison_id] += 1
            elif uncounts(entry, first_seq, is_simulated=is_simulated) and subject.comparison_id:
                change[subject.comparison_id] -= 1
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


def _simulated_queues(entries: Sequence[Entry]) -> set[UUID]:
    queues = {(entry.target or entry).queue_id for entry in entries}
    simulated = Queue.objects.filter(pk__in=[pk for pk in queues if pk], is_simulated=True)
    return set(simulated.values_list("pk", flat=True))


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
