"""THE ledger: votes are inserted unsealed, this seals them, and every score follows from it.

Sealing takes a project's unsealed entries under one lock, gives each the next number, extends the
hash chain and hands the batch to every projection, all in one transaction. A task may ask for it
twice, late, or never: what is unsealed is a fact of the rows, and the lock and the guards in the
UPDATEs make one number per entry of it. What was voted elsewhere is appended, sealed as it comes.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta
from functools import cache, partial, reduce
from operator import attrgetter, or_
from typing import Any, Final, TypeAlias, TypedDict
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.expressions import DatabaseDefault
from django.utils import timezone
from django.utils.module_loading import import_string

from voting.items.kinds import COMPARISON, Kind, Label, kind_of
from voting.ledger import chain
from voting.ledger.bulk_sql import executemany, insist, update_many
from voting.ledger.decisions import (
    DecisionState,
    LedgerDecision,
    Subject,
    fold_decisions,
    subject_of,
)
from voting.ledger.scheduler import nudge
from voting.models import NO_VOTE, Entry, Exposure, Project, Queue, Voter, VoterPrompt

# By how much clocks of several machines may differ.
CLOCKS_APART = timedelta(seconds=5)
# The payload of a retraction whose voter had seen the verdicts: what was voted blind stays in the
# figures of judges, else changing votes after the reveal would delete blind disagreements.
AFTER_REVEAL: Final = {"unblinded": True}
# What sealing writes into an entry.
SETTLED = ("seq", "hash", "reputation", "unblinded", "excluded")


@dataclass(slots=True)
class EntryRow:
    """An entry on its way into the ledger, with the names that `Entry` has for its parts.

    Sealing takes thousands in a second; model instances would take a quarter of its time. What is
    read comes first; the rest is looked up or settled while the entry is sealed.
    """

    id: int
    uid: UUID
    kind: str
    at: datetime
    queue_id: UUID | None
    item_id: UUID | None
    voter_id: UUID | None
    rubric_id: int | None
    target_id: int | None
    choice: str
    value: int | None
    category: str
    left_side: str
    elapsed_ms: int | None
    reputation: int | None
    unblinded: bool
    simulated: bool
    comment_sha256: str
    payload: Any
    exposed: bool

    queue: Queue | None = None
    voter: Voter | None = None
    rubric: VoterPrompt | None = None
    target: "Entry | EntryRow | None" = None
    seq: int | None = None
    hash: bytes | None = None
    retracted: bool = False
    retracted_seq: int | None = None
    retracted_after_reveal: bool = False
    excluded: bool = False


# What a projection is handed: a row that was voted here, or a new entry of an import.
Fact: TypeAlias = Entry | EntryRow

_READ = [field.name for field in fields(EntryRow) if field.default is MISSING]


def read_rows(entries: QuerySet[Entry]) -> list[EntryRow]:
    rows = entries.annotate(exposed=Exposure.before_entry()).values_list(*_READ)
    return [EntryRow(*row) for row in rows]


@dataclass(frozen=True)
class Mismatch:
    """Where a projection is not what the entries say."""

    place: str
    stored: object
    replayed: object
    # Not so where the ledger holds a hash alone.
    is_correctable: bool = True

    def __str__(self) -> str:
        if not self.is_correctable and self.replayed is None and self.stored is not None:
            return f"{self.place}: no ledger entry is about it"
        if not self.is_correctable:
            return f"{self.place}: not as the last ledger entry about it has it"
        return f"{self.place}: stored {self.stored!r}, replayed {self.replayed!r}"


def correct(
    row: Model, place: str, replayed: Mapping[str, object], *, write: bool
) -> Iterator[Mismatch]:
    """Say which columns of a projection's row are not what the entries say, and write these."""
    wrong = {name: value for name, value in replayed.items() if getattr(row, name) != value}
    for name, value in wrong.items():
        yield Mismatch(f"{name} of {place}", getattr(row, name), value)
    if wrong and write:
        type(row)._default_manager.filter(pk=row.pk).update(**wrong)


class Projection:
    """A score made of a project's entries and of nothing else.

    One is made for each batch that is sealed, and takes it in by three steps inside the sealing
    transaction. What it wants to remember of earlier batches it keeps in tables of its own.
    """

    def __init__(self, project: Project) -> None:
        self.project = project

    def read(self, batch: Sequence[Fact]) -> None:
        """Read from the database what the numbered entries of a batch have to be set beside."""

    def compute(self) -> None:
        """Make the new figures, without the database."""

    def write(self) -> None:
        """Write the new figures."""

    def rebuild(self, *, write: bool) -> Iterable[Mismatch]:
        """Compute everything from the entries, say what differs, and write it if asked."""
        raise NotImplementedError

    def stored(self) -> Iterable[Mismatch]:
        """Say which stored figures are not those that are computed: long, so without the lock."""
        return ()

    def gaps(self) -> list[str]:
        """Say of what the ledger holds too little to compare it, as it is older than that."""
        return []


@cache
def projections() -> tuple[type[Projection], ...]:
    return tuple(import_string(path) for path in settings.LEDGER_PROJECTIONS)


def content(entry: Fact) -> chain.Content:
    fields: chain.Content = {
        "schema": chain.SCHEMA,
        "seq": entry.seq,
        "kind": entry.kind,
        "id": str(entry.uid),
        "at": chain.timestamp(entry.at),
    }
    if entry.queue_id:
        fields["queue"] = str(entry.queue_id)
    if entry.item_id:
        fields[_kind(entry).subject] = str(entry.item_id)
    if entry.voter is not None:
        fields["voter"] = entry.voter.pseudonym
    if entry.target is not None:
        fields["target"] = str(entry.target.uid)
    if entry.kind == Entry.Kind.VOTE:
        fields |= _vote_content(entry)
    else:
        fields["payload"] = entry.payload
    return fields


def _kind(entry: Fact) -> Kind:
    return kind_of(entry.queue) if entry.queue else COMPARISON


def _vote_content(entry: Fact) -> chain.Content:
    assert entry.rubric is not None  # the database refuses a vote without one
    fields: chain.Content = {
        "rubric": str(entry.rubric),
        "elapsed_ms": entry.elapsed_ms,
        "reputation": entry.reputation,
        "unblinded": entry.unblinded,
        "simulated": entry.simulated,
        "comment": entry.comment_sha256 or None,
    }
    if entry.payload:
        # Only where there are any: votes without further answers hash as they always did.
        fields["labels"] = entry.payload["labels_sha256"]
    if _kind(entry) is COMPARISON:
        return fields | {"choice": entry.choice, "left": entry.left_side or None}
    details = {"choice": entry.choice, "value": entry.value, "category": entry.category or None}
    return fields | details


def labels_sha256(salt: str, labels: Mapping[str, Label]) -> str:
    """Return what stands in the chain for the answers to further tasks; floats are their texts."""
    plain = {
        task: repr(label) if isinstance(label, float) else label for task, label in labels.items()
    }
    return chain.salted_hash(salt, chain.canonical(plain).decode())


class TextHashes(TypedDict):
    """What an entry keeps of its free texts in the chain, and the salt of their hashes."""

    salt: str
    comment_sha256: str
    payload: dict[str, str] | None


def hidden(comment: str, labels: Mapping[str, Label] | None) -> TextHashes:
    """Return what a vote keeps of its free texts in the chain, and the salt of their hashes.

    Erasing a person empties texts and salt, and the chain still verifies.
    """
    salt = secrets.token_hex(16) if comment or labels else ""
    return {
        "salt": salt,
        "comment_sha256": chain.salted_hash(salt, comment) if comment else "",
        "payload": {"labels_sha256": labels_sha256(salt, labels)} if labels else None,
    }


def seal(project_id: UUID, *, now: datetime | None = None) -> int:
    """Seal the oldest unsealed entries of a project, at most one batch; return how many."""
    now = now or timezone.now()
    young = now - timedelta(milliseconds=settings.SEAL_WINDOW_MS)
    # What is later than now by that much was not cast just now: a clock went back.
    due = Q(at__lte=young) | Q(at__gt=now + CLOCKS_APART)
    with transaction.atomic():
        project = locked(project_id)
        # Read after the lock, by what is unsealed and never by "id > last": a vote that committed
        # late may have a smaller id than one that is sealed already.
        unsealed = Entry.objects.filter(due, project=project, seq__isnull=True)
        batch = read_rows(unsealed.order_by("at", "id")[: settings.SEAL_BATCH])
        _fetch_related(batch)
        for entry in batch:
            # What is known only now: the voter's reputation, and whether the vote was blind.
            if entry.kind == Entry.Kind.VOTE and entry.voter is not None:
                entry.reputation = entry.voter.reputation
                entry.unblinded = entry.unblinded or entry.exposed
        if batch:
            _seal(project, batch)
            values = attrgetter(*SETTLED, "id")
            update_many(Entry, SETTLED, [values(entry) for entry in batch], while_null="seq")
    return len(batch)


def record(*entries: Entry) -> None:
    """Write entries that are not in the database yet, and have them sealed after this commit."""
    Entry.objects.bulk_create(entries)
    for project in {entry.project_id for entry in entries}:
        transaction.on_commit(partial(nudge, project))


def append(
    project_id: UUID,
    entries: Sequence[Entry],
    *,
    insert: Callable[[Sequence[Entry]], object] = Entry.objects.bulk_create,
) -> None:
    """Seal entries that are not in the database yet, in the order given, whatever their times.

    For what happened elsewhere and is imported: its order is a fact, and so is what was known of
    each vote then, its reputation and whether it was blind. What an entry points at must be set as
    objects; the vote that a retraction takes back may stand before it in the same call. `insert`
    writes a batch; it may be `bulk_sql.insert_many` where nobody asks for the keys of entries.
    """
    with transaction.atomic():
        project = locked(project_id)
        for start in range(0, len(entries), settings.SEAL_BATCH):
            batch = entries[start : start + settings.SEAL_BATCH]
            _set_defaults(batch)
            _seal(project, batch)
            # What is taken back first: its key is not known before, and what is behind holds it.
            late = [entry for entry in batch if entry.target is not None]
            insert([entry for entry in batch if entry.target is None])
            Entry.objects.bulk_create(late)


def _fetch_related(entries: Sequence[Fact]) -> None:
    models = (("queue", Queue), ("voter", Voter), ("rubric", VoterPrompt), ("target", Entry))
    for name, model in models:
        keys = [getattr(entry, f"{name}_id") for entry in entries]
        rows = model._default_manager.in_bulk(set(keys) - {None})
        for entry, key in zip(entries, keys, strict=True):
            if key is not None:
                setattr(entry, name, rows[key])


def locked(project_id: UUID) -> Project:
    """Return a project that nobody else seals entries of until the transaction ends."""
    return Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _set_defaults(batch: Sequence[Entry]) -> None:
    """Set what the database fills in by itself: it must be known before an entry is hashed."""
    for field in Entry._meta.concrete_fields:
        for entry in batch if field.has_db_default() else ():
            if isinstance(getattr(entry, field.attname), DatabaseDefault):
                setattr(entry, field.attname, field.db_default)


def _seal(project: Project, batch: Sequence[Fact]) -> None:
    first = project.head_seq + 1
    for seq, entry in enumerate(batch, start=first):
        entry.seq = seq
    _mark_retracted(batch)
    _mark_excluded(project, batch)
    for projection in projections():
        part = projection(project)
        part.read(batch)
        part.compute()
        part.write()
    head = bytes(project.head_hash)
    for entry in batch:
        entry.hash = head = chain.extend(head, content(entry))
    project.head_seq, project.head_hash = first - 1 + len(batch), head
    moved = Project.objects.filter(pk=project.pk, head_seq=first - 1).update(
        head_seq=project.head_seq, head_hash=head
    )
    insist(moved, 1, f"the head of {project.pk}")


def _mark_retracted(batch: Sequence[Fact]) -> None:
    sealed_now: dict[int | None, Fact] = {entry.id: entry for entry in batch if entry.id}
    rows = []
    for entry in batch:
        if entry.kind == Entry.Kind.RETRACTION or reverses(entry):
            # Projections look at the target through the retraction: one object for both.
            entry.target = target = sealed_now.get(entry.target_id) or entry.target
            assert target is not None
            target.retracted, target.retracted_seq = True, entry.seq
            is_blind = not (target.unblinded or target.simulated)
            target.retracted_after_reveal = is_blind and entry.payload == AFTER_REVEAL
            if target.id:
                rows.append((entry.seq, target.retracted_after_reveal, target.id))
    executemany(
        "UPDATE voting_entry SET retracted = TRUE, retracted_seq = %s, retracted_after_reveal = %s "
        "WHERE id = %s AND retracted_seq IS NULL",
        rows,
    )


def reverses(entry: Fact) -> bool:
    """Say whether an entry is the decision of a curator that takes another one back."""
    target = entry.target if entry.kind == Entry.Kind.DECISION else None
    if target is None or target.kind != Entry.Kind.DECISION:
        return False
    return isinstance(entry.payload, Mapping) and entry.payload.get("action") == "reverse"


def decided_items(batch: Iterable[Fact]) -> set[UUID]:
    return {e.item_id for e in batch if e.kind == Entry.Kind.DECISION and e.item_id}


def votes_decided_on(batch: Iterable[Fact]) -> Q:
    """Say of rows of votes that decisions in a batch are about their items or their voters."""
    decisions = [e for e in batch if e.kind == Entry.Kind.DECISION]
    subjects = {subject_of(e.item_id, e.queue_id, e.voter_id) for e in decisions}
    return _votes_on(subject for subject in subjects if subject is not None)


def _votes_on(subjects: Iterable[Subject]) -> Q:
    items, voters = set(), defaultdict(set)
    for subject in subjects:
        if isinstance(subject, tuple):
            voters[subject[0]].add(subject[1])
        else:
            items.add(subject)
    by_voters = (Q(queue=queue, voter__in=ids) for queue, ids in voters.items())
    return reduce(or_, by_voters, Q(item__in=items))


def recounted_items(batch: Iterable[Fact]) -> set[UUID]:
    """Return the items of which decisions in a batch may change how many votes count."""
    items = decided_items(batch)
    about = votes_decided_on(e for e in batch if not e.item_id)
    votes = Entry.objects.filter(about, kind=Entry.Kind.VOTE, seq__isnull=False)
    return items | set(votes.values_list("item_id", flat=True))


def _decisions(project: Project) -> QuerySet[Entry]:
    about = {"project": project, "kind": Entry.Kind.DECISION, "seq__isnull": False}
    return Entry.objects.filter(NO_VOTE, **about)


def decision_states(
    project: Project, about: Q, batch: Iterable[Fact] = ()
) -> dict[Subject, DecisionState]:
    """Return what stands of all decisions `about` something: the sealed ones, and a batch's."""
    rows = _decisions(project).filter(about).order_by("seq")
    names = ("item_id", "queue_id", "voter_id", "payload", "retracted_seq")
    decisions = [LedgerDecision(subject_of(*row[:3]), *row[3:]) for row in rows.values_list(*names)]
    for e in batch:
        if e.kind == Entry.Kind.DECISION:
            subject = subject_of(e.item_id, e.queue_id, e.voter_id)
            decisions.append(LedgerDecision(subject, e.payload, e.retracted_seq))
    return fold_decisions(decisions)


def votes_left_out(project: Project) -> Q:
    """Say of rows of votes that what stands of all decisions excludes them."""
    return _votes_on(_excluded(project, Q(), ()))


def _excluded(project: Project, about: Q, batch: Iterable[Fact]) -> set[Subject]:
    stands = decision_states(project, about, batch)
    return {subject for subject in stands if stands[subject].is_excluded}


def _mark_excluded(project: Project, batch: Sequence[Fact]) -> None:
    votes = [e for e in batch if e.kind == Entry.Kind.VOTE]
    has_decisions = any(e.kind == Entry.Kind.DECISION for e in batch)
    if not has_decisions and not _decisions(project).exists():
        return
    about = Q(item__in={vote.item_id for vote in votes}) | Q(
        item=None, voter__in={vote.voter_id for vote in votes}
    )
    # A decision may change what is said of earlier votes: then all that stands is looked up.
    excluded = _excluded(project, Q() if has_decisions else about, batch)
    for vote in votes:
        by_voter = (vote.queue_id, vote.voter_id)
        vote.excluded = vote.item_id in excluded or by_voter in excluded
    if has_decisions:
        sealed = Entry.objects.filter(kind=Entry.Kind.VOTE, seq__isnull=False)
        decided, left_out = sealed.filter(votes_decided_on(batch)), _votes_on(excluded)
        decided.filter(left_out, excluded=False).update(excluded=True)
        decided.filter(~left_out, excluded=True).update(excluded=False)


def replay(project: Project, *, write: bool) -> list[Mismatch]:
    """Rebuild every projection from the entries; say where the stored figures differed.

    Holds the project's lock, so no batch is sealed meanwhile; votes are still accepted.
    """
    with transaction.atomic():
        locked_project = locked(project.pk)
        return [
            difference
            for projection in projections()
            for difference in projection(locked_project).rebuild(write=write)
        ]


def stored_figures(project: Project) -> list[Mismatch]:
    return [gap for projection in projections() for gap in projection(project).stored()]


def gaps(project: Project) -> list[str]:
    return [gap for projection in projections() for gap in projection(project).gaps()]


def changed_entries(project: Project) -> Iterator[Mismatch]:
    """Verify the chain of a project as it is stored, and the texts whose hashes it holds."""
    try:
        chain.verify(export(project), head=project.ledger_head)
    except chain.ChainBroken as error:
        yield Mismatch(f"the ledger ({error})", None, None, is_correctable=False)
    has_texts = ~Q(comment="") | Q(labels__isnull=False)
    for entry in Entry.objects.filter(has_texts, project=project, seq__isnull=False).iterator():
        payload = entry.payload or {}
        sealed = payload.get("why") if entry.kind == Entry.Kind.DECISION else entry.comment_sha256
        if entry.comment and chain.salted_hash(entry.salt, entry.comment) != sealed:
            yield Mismatch(f"the comment of entry {entry.seq}", None, None, is_correctable=False)
        if entry.labels and labels_sha256(entry.salt, entry.labels) != payload["labels_sha256"]:
            yield Mismatch(f"the answers of entry {entry.seq}", None, None, is_correctable=False)


def export(project: Project, chunk: int = 2000) -> Iterator[str]:
    """Yield the sealed ledger as JSON Lines that `voting.ledger.chain.verify` takes."""
    yield json.dumps(chain.header(project.pk))
    for after in range(0, project.head_seq, chunk):
        last = min(after + chunk, project.head_seq)
        sealed = Entry.objects.filter(project=project, seq__gt=after, seq__lte=last)
        entries = list(sealed.order_by("seq"))
        _fetch_related(entries)
        for entry in entries:
            assert entry.hash is not None
            record = {"entry": content(entry), "hash": bytes(entry.hash).hex()}
            yield json.dumps(record, ensure_ascii=False, separators=(",", ":"))
