"""Groups of voters as the ledger has them: who is in which, and which boards that concerns.

What an entry of them looks like is in `voting.ledger.decisions`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from voting.ledger import ledger
from voting.ledger.bulk_sql import key, update_many
from voting.ledger.decisions import GROUPS, group_name, groups_in
from voting.models import Entry, Project, Queue, Voter

AT_ONCE: Final = 500
# Of rows of entries.
STATES_GROUPS: Final = Q(kind=Entry.Kind.PARAMETERS, payload__has_key=GROUPS)


def groups_entry(project: UUID, groups: Mapping[str, str], curator: Voter | None = None) -> Entry:
    """Return the entry, not stored yet, that puts voters into groups."""
    kind = Entry.Kind.PARAMETERS
    payload = {GROUPS: {pseudonym: group_name(name) for pseudonym, name in groups.items()}}
    return Entry(project_id=project, kind=kind, at=timezone.now(), voter=curator, payload=payload)


def group_entries(entries: QuerySet[Entry]) -> Iterator[tuple[int | None, dict[str, str]]]:
    """Yield the number and the groups of each entry that states some, in the ledger's order."""
    ordered = entries.filter(STATES_GROUPS).order_by(F("seq").asc(nulls_last=True), "at", "pk")
    return ((seq, groups_in(payload)) for seq, payload in ordered.values_list("seq", "payload"))


def group_of(voter: Voter) -> str:
    """Return a voter's group, also where the entry that says it is not sealed yet."""
    # What waits is looked up first: sealed in between, it is in the column.
    waiting = Entry.objects.filter(project=voter.project_id, seq__isnull=True)
    pseudonym = voter.pseudonym
    names = [groups[pseudonym] for _, groups in group_entries(waiting) if pseudonym in groups]
    return names[-1] if names else Voter.objects.values_list("group", flat=True).get(pk=voter.pk)


def groups_at(project: UUID, seq: int | None = None) -> dict[str, str]:
    """Return the groups by pseudonym as they stood at an entry of the ledger, or at its head."""
    groups_by_voter: dict[str, str] = {}
    sealed = Entry.objects.filter(project=project, seq__isnull=False)
    for _, groups in group_entries(sealed.filter(seq__lte=seq) if seq is not None else sealed):
        groups_by_voter |= groups
    return groups_by_voter


def regrouped_queues(
    project: Project, entry: ledger.Fact, batch: Sequence[ledger.Fact]
) -> set[UUID | None]:
    """Return the queues in which voters whose groups an entry states have voted before it.

    Figures of these change with it; the votes of its own batch are not stored yet.
    """
    groups = groups_in(entry.payload) if states_groups(entry) else {}
    if not groups:
        return set()
    votes = Entry.objects.filter(project=project, kind=Entry.Kind.VOTE, seq__isnull=False)
    before = votes.filter(voter__pseudonym__in=groups).values_list("queue", flat=True).distinct()
    now = (
        fact.queue_id
        for fact in batch
        if fact.kind == Entry.Kind.VOTE and fact.voter and fact.voter.pseudonym in groups
        if (fact.seq or 0) < (entry.seq or 0)
    )
    return {*before, *now}


def last_regrouping(queue: Queue) -> int:
    """Return the last sealed entry with a queue among its `regrouped_queues`, 0 without one."""
    votes = Entry.objects.filter(queue=queue, kind=Entry.Kind.VOTE, seq__isnull=False)
    first = dict(votes.order_by().values_list("voter__pseudonym").annotate(Min("seq")))
    sealed = Entry.objects.filter(project=queue.project_id, seq__isnull=False)
    numbers = [
        seq
        for seq, groups in group_entries(sealed)
        if seq and any(first.get(pseudonym, seq) < seq for pseudonym in groups)
    ]
    return max(numbers, default=0)


def states_groups(entry: ledger.Fact) -> bool:
    return entry.kind == Entry.Kind.PARAMETERS and GROUPS in (entry.payload or {})


class VoterGroups(ledger.Projection):
    """Keeps `Voter.group`: what the last entry says of each."""

    def read(self, batch: Sequence[ledger.Fact]) -> None:
        self.groups = {
            pseudonym: name
            for entry in batch
            if states_groups(entry)
            for pseudonym, name in groups_in(entry.payload).items()
        }

    def write(self) -> None:
        voters = Voter.objects.filter(project=self.project)
        names = list(self.groups)
        for start in range(0, len(names), AT_ONCE):
            chunk = voters.filter(pseudonym__in=names[start : start + AT_ONCE])
            rows = chunk.values_list("pseudonym", "pk")
            update_many(Voter, ["group"], [(self.groups[name], key(pk)) for name, pk in rows])

    def rebuild(self, *, write: bool) -> Iterator[ledger.Mismatch]:
        groups = groups_at(self.project.pk)
        for voter in Voter.objects.filter(project=self.project).iterator():
            replayed = {"group": groups.get(voter.pseudonym, "")}
            place = f"voter {voter.pseudonym}"
            yield from ledger.correct(voter, place, replayed, write=write)
