"""Entries on their way into the ledger as plain rows.

Sealing takes thousands in a second; model instances would take a quarter of its time.
"""

from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import QuerySet

from voting.models import Entry, Exposure, Voter, VoterPrompt


@dataclass(slots=True)
class EntryRow:
    """An entry with the names that `Entry` has for its parts.

    What is read comes first; the rest is looked up or settled while the entry is sealed.
    """

    id: int
    uid: UUID
    kind: str
    at: datetime
    queue_id: UUID | None
    item_id: UUID | None
    inference_id: UUID | None
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

    voter: Voter | None = None
    rubric: VoterPrompt | None = None
    target: "Entry | EntryRow | None" = None
    seq: int | None = None
    hash: bytes | None = None
    retracted: bool = False
    retracted_seq: int | None = None


# What a projection is handed: a row that was voted here, or a new entry of an import.
Fact: TypeAlias = Entry | EntryRow

_READ = [field.name for field in fields(EntryRow) if field.default is MISSING]


def read_rows(entries: QuerySet[Entry]) -> list[EntryRow]:
    rows = entries.annotate(exposed=Exposure.before_entry()).values_list(*_READ)
    return [EntryRow(*row) for row in rows]
