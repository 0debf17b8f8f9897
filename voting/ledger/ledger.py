"""THE ledger: votes are inserted unsealed, this seals them, and every score follows from it.

Sealing takes a project's unsealed entries under one lock, gives each the next number, extends the
hash chain and hands the batch to every projection, all in one transaction. A task may ask for it
twice, late, or never: what is unsealed is a fact of the rows, and the lock and the guards in the
UPDATEs make one number per entry of it. What was voted elsewhere is appended, sealed as it comes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from typing import Any, Protocol, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Model
from django.db.models.expressions import DatabaseDefault
from django.utils import timezone
from django.utils.module_loading import import_string

from voting.ledger import chain
from voting.ledger.bulk_sql import executemany, insist, update_many
from voting.ledger.entries import EntryRow, Fact, read_facts
from voting.models import Entry, Project, Voter, VoterPrompt

AnyFact = TypeVar("AnyFact", Entry, EntryRow)

# What the database fills in by itself must be known before a new entry is hashed.
_DEFAULTS = {
    field.attname: field.db_default
    for field in Entry._meta.concrete_fields
    if field.has_db_default()
}


@dataclass(frozen=True)
class Difference:
    """Where a projection is not what the entries say."""

    where: str
    stored: object
    replayed: object

    def __str__(self) -> str:
        return f"{self.where}: stored {self.stored!r}, replayed {self.replayed!r}"


class Projection(Protocol):
    """A score made of a project's entries and of nothing else.

    One is made for each batch that is sealed, and takes it in by three steps inside the sealing
    transaction. What it wants to remember of earlier batches it keeps in tables of its own.
    """

    def __init__(self, project: Project) -> None: ...

    def read(self, batch: Sequence[Fact]) -> None:
        """Read from the database what the numbered entries of a batch have to be set beside."""

    def compute(self) -> None:
        """Make the new figures, without the database."""

    def write(self) -> None:
        """Write them."""

    def rebuild(self, *, write: bool) -> list[Difference]:
        """Compute everything from the entries, say what differs, and write it if asked."""


@cache
def projections() -> tuple[type[Projection], ...]:
    return tuple(import_string(path) for path in settings.LEDGER_PROJECTIONS)


def content(entry: Fact) -> dict[str, Any]:
    """Return what the hash of an entry covers."""
    fields: dict[str, Any] = {
        "schema": chain.SCHEMA,
        "seq": entry.seq,
        "kind": entry.kind,
        "id": str(entry.uid),
        "at": chain.timestamp(entry.at),
    }
    if entry.queue_id:
        fields["queue"] = str(entry.queue_id)
    if entry.item_id:
        fields["comparison"] = str(entry.item_id)
    if entry.inference_id:
        fields["inference"] = str(entry.inference_id)
    if entry.voter is not None:
        fields["voter"] = entry.voter.pseudonym
    if entry.target is not None:
        fields["target"] = str(entry.target.uid)
    if entry.kind == Entry.Kind.VOTE:
        fields |= _vote_content(entry)
    else:
        fields["payload"] = entry.payload
    return fields


def _vote_content(entry: Fact) -> dict[str, Any]:
    assert entry.rubric is not None  # the database refuses a vote without one
    fields = {
        "rubric": f"{entry.rubric.name} v{entry.rubric.version}",
        "elapsed_ms": entry.elapsed_ms,
        "reputation": entry.reputation,
        "unblinded": entry.unblinded,
        "simulated": entry.simulated,
        "comment": entry.comment_sha256 or None,
    }
    if entry.payload:
        # Only where there are any: votes without further answers hash as they always did.
        fields["labels"] = entry.payload["labels_sha256"]
    if entry.item_id:
        return fields | {"choice": entry.choice, "left": entry.left_side or None}
    return fields | {"value": entry.value, "category": entry.category or None}


def labels_sha256(salt: str, labels: Mapping[str, Any]) -> str:
    """Return what stands in the chain for the answers to further tasks; floats are their texts."""
    plain = {task: repr(said) if isinstance(said, float) else said for task, said in labels.items()}
    return chain.salted_hash(salt, chain.canonical(plain).decode())


def seal(project_id: UUID, *, now: datetime | None = None) -> int:
    """Seal the oldest unsealed entries of a project, at most one batch; return how many."""
    young = (now or timezone.now()) - timedelta(milliseconds=settings.SEAL_WINDOW_MS)
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        # Read after the lock, by what is unsealed and never by "id > last": a vote that committed
        # late may have a smaller id than one that is sealed already.
        unsealed = Entry.objects.filter(project=project, seq__isnull=True, at__lte=young)
        batch = read_facts(unsealed.order_by("at", "id")[: settings.SEAL_BATCH])
        if batch:
            _fetch_related(batch)
            _settle(batch)
            _seal(project, batch, _write)
    return len(batch)


def append(project_id: UUID, entries: Sequence[Entry]) -> None:
    """Seal entries that are not in the database yet, in the order given, whatever their times.

    For what happened elsewhere and is imported: its order is a fact, and so is what was known of
    each vote then, its reputation and whether it was blind. What an entry points at must be set as
    objects; the vote that a retraction takes back may stand before it in the same call.
    """
    with transaction.atomic():
        project = Project.objects.select_for_update(no_key=True).get(pk=project_id)
        for start in range(0, len(entries), settings.SEAL_BATCH):
            batch = entries[start : start + settings.SEAL_BATCH]
            _fill_in(batch)
            _seal(project, batch, _insert)


def _fill_in(batch: Sequence[Entry]) -> None:
    for entry in batch:
        for name, value in _DEFAULTS.items():
            if isinstance(getattr(entry, name), DatabaseDefault):
                setattr(entry, name, value)


def _fetch_related(entries: Sequence[EntryRow] | Sequence[Entry]) -> None:
    """Fetch what entries point at, each row once."""
    related: dict[str, type[Model]] = {"voter": Voter, "rubric": VoterPrompt, "target": Entry}
    for name, model in related.items():
        key_name = f"{name}_id"
        keys = {getattr(entry, key_name) for entry in entries} - {None}
        rows = model._default_manager.in_bulk(keys) if keys else {}
        for entry in entries:
            setattr(entry, name, rows.get(getattr(entry, key_name)))


def _seal(
    project: Project,
    batch: Sequence[AnyFact],
    write: Callable[[bytes, Sequence[AnyFact]], bytes],
) -> None:
    old_seq = project.head_seq
    for seq, entry in enumerate(batch, start=old_seq + 1):
        entry.seq = seq
    _mark_retracted(batch)
    _apply_projections(project, batch)
    head = write(bytes(project.head_hash), batch)
    project.head_seq, project.head_hash = old_seq + len(batch), head
    moved = Project.objects.filter(pk=project.pk, head_seq=old_seq).update(
        head_seq=project.head_seq, head_hash=head
    )
    insist(moved, 1, f"the head of {project.pk}")


def _apply_projections(project: Project, batch: Sequence[Fact]) -> None:
    for projection in projections():
        part = projection(project)
        part.read(batch)
        part.compute()
        part.write()


def _hash(head: bytes, entries: Sequence[Fact]) -> bytes:
    for entry in entries:
        entry.hash = head = chain.extend(head, content(entry))
    return head


def _settle(batch: Sequence[EntryRow]) -> None:
    """Write into votes what is known only now: the voter's reputation, and whether it was blind."""
    for entry in batch:
        if entry.kind == Entry.Kind.VOTE:
            assert entry.voter is not None
            entry.reputation = entry.voter.reputation
            entry.unblinded = entry.unblinded or entry.exposed


def _mark_retracted(batch: Sequence[Fact]) -> None:
    sealed_now: dict[int | None, Fact] = {entry.id: entry for entry in batch if entry.id}
    rows = []
    for entry in batch:
        if entry.kind == Entry.Kind.RETRACTION:
            target = sealed_now.get(entry.target_id) or entry.target
            assert target is not None
            target.retracted, target.retracted_seq = True, entry.seq
            # Projections look at the target through the retraction: one object for both.
            entry.target = target
            if target.id:
                rows.append((entry.seq, target.id))
    executemany(
        "UPDATE voting_entry SET retracted = TRUE, retracted_seq = %s "
        "WHERE id = %s AND retracted_seq IS NULL",
        rows,
    )


def _write(head: bytes, batch: Sequence[EntryRow]) -> bytes:
    """Write what sealing made of rows; return the new head."""
    head = _hash(head, batch)
    names = ("seq", "hash", "reputation", "unblinded")
    values = attrgetter(*names, "id")
    update_many(Entry, names, [values(entry) for entry in batch], while_null="seq")
    return head


def _insert(head: bytes, batch: Sequence[Entry]) -> bytes:
    head = _hash(head, batch)
    # Votes first: their keys are not known before, and a retraction behind one holds its key.
    late = [entry for entry in batch if entry.kind == Entry.Kind.RETRACTION]
    Entry.objects.bulk_create(e for e in batch if e.kind != Entry.Kind.RETRACTION)
    Entry.objects.bulk_create(late)
    return head


def replay(project: Project, *, write: bool) -> list[Difference]:
    """Rebuild every projection from the entries; say where the stored figures differed.

    Holds the project's lock, so no batch is sealed meanwhile; votes are still accepted.
    """
    with transaction.atomic():
        locked = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        return [
            difference
            for projection in projections()
            for difference in projection(locked).rebuild(write=write)
        ]


def export(project: Project, chunk: int = 2000) -> Iterator[str]:
    """Yield the sealed ledger as JSON Lines that `voting.ledger.chain.verify` takes."""
    yield json.dumps(chain.header(project.pk))
    after = 0
    while True:
        sealed = Entry.objects.filter(project=project, seq__gt=after, seq__lte=project.head_seq)
        entries = list(sealed.order_by("seq")[:chunk])
        if not entries:
            return
        _fetch_related(entries)
        for entry in entries:
            assert entry.hash is not None and entry.seq is not None  # noqa: PT018
            record = {"entry": content(entry), "hash": bytes(entry.hash).hex()}
            yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))
            after = entry.seq
