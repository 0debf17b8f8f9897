"""Votes of people who were asked elsewhere: kept aside in a file, then appended to the ledger.

They come last, in the order of the source, behind all verdicts: so every vote meets the verdicts on
its pair whatever stood first in the files.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from tempfile import TemporaryFile
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from judge_eval.interchange.rows import Row, RowError
from judge_eval.models import Run
from judge_eval.transfer.import_report import ImportReport
from judge_eval.transfer.import_rows import first_difference, json_labels, shown
from voting import chain, ledger
from voting.models import Entry, Voter


@dataclass(frozen=True, slots=True)
class _Vote:
    """A vote as it waits in the file."""

    file: str
    line: int
    name: str
    pair: UUID
    voter: str
    choice: str
    at: datetime | None
    comment: str | None
    left: str | None
    labels: dict[str, Any] | None


class Votes:
    """Takes the votes of one run as they are read, and appends them when all is read."""

    def __init__(self, run: Run, report: ImportReport) -> None:
        self._run, self._report = run, report
        self._now = timezone.now()
        self._waiting = TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  closed by `close`

    def close(self) -> None:
        self._waiting.close()

    def take(self, rows: Sequence[tuple[Row, UUID]]) -> None:
        for row, pair in rows:
            if row.vote:
                self._waiting.write(json.dumps(_line(row, pair), ensure_ascii=False) + "\n")

    def append_to_ledger(self) -> None:
        self._waiting.seek(0)
        lines = iter(self._waiting)
        while votes := [_read(line) for line in islice(lines, settings.SEAL_BATCH)]:
            ledger.append(self._run.queue.project_id, list(self._fresh(votes)))

    def _fresh(self, votes: Sequence[_Vote]) -> Iterator[Entry]:
        """Yield the entries of votes that nobody has stored yet."""
        voters = self._voters({vote.voter for vote in votes})
        standing = Entry.objects.filter(
            kind=Entry.Kind.VOTE,
            retracted=False,
            voter__in=voters.values(),
            comparison__in={vote.pair for vote in votes},
        )
        known = {(entry.voter_id, entry.comparison_id): entry for entry in standing}
        for vote in votes:
            entry = self._entry(vote, voters[vote.voter])
            stored = known.setdefault((entry.voter_id, entry.comparison_id), entry)
            if stored is entry:
                self._report.new["votes"] += 1
                yield entry
            elif error := _contradiction(vote, stored):
                self._report.fail(error)
            else:
                self._report.already["votes"] += 1

    def _voters(self, names: set[str]) -> dict[str, Voter]:
        project = self._run.queue.project_id
        # The first condition is that of the index on the names.
        found = Voter.objects.filter(~Q(external_id=""), project=project, external_id__in=names)
        voters = {voter.external_id: voter for voter in found}
        fresh = [Voter(project_id=project, external_id=n) for n in sorted(names - voters.keys())]
        self._report.new["voters"] += len(fresh)
        return voters | {v.external_id: v for v in Voter.objects.bulk_create(fresh)}

    def _entry(self, vote: _Vote, voter: Voter) -> Entry:
        queue = self._run.queue
        return Entry(
            project_id=queue.project_id,
            kind=Entry.Kind.VOTE,
            at=vote.at or self._now,
            queue=queue,
            comparison_id=vote.pair,
            voter=voter,
            choice=vote.choice,
            left_side=vote.left or "",
            rubric=queue.rubric,
            reputation=voter.reputation,
            **_private(vote.comment, vote.labels),
        )


def _private(comment: str | None, labels: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what erasing a person empties, and the salted hashes of it, which the chain holds."""
    fields: dict[str, Any] = {}
    salt = secrets.token_hex(16)
    if comment or labels:
        fields["salt"] = salt
    if comment:
        fields |= {"comment": comment, "comment_sha256": chain.salted_hash(salt, comment)}
    if labels:
        fields["labels"] = labels
        fields["payload"] = {"labels_sha256": ledger.labels_sha256(salt, labels)}
    return fields


def _line(row: Row, pair: UUID) -> list[Any]:
    vote = row.vote
    assert vote is not None  # only votes wait
    at = vote.at.isoformat() if vote.at else None
    where = [row.file, row.line, row.pair.id, pair.hex]
    return [
        *where,
        vote.voter,
        vote.choice,
        at,
        vote.comment,
        vote.left,
        json_labels(row.labels),
    ]


def _read(line: str) -> _Vote:
    file, number, name, pair, voter, choice, at, *rest = json.loads(line)
    when = at and datetime.fromisoformat(at)
    return _Vote(file, number, name, UUID(hex=pair), voter, choice, when, *rest)


def _contradiction(vote: _Vote, stored: Entry) -> RowError | None:
    said = {
        "vote": vote.choice,
        "voted_at": vote.at,
        "comment": vote.comment,
        "left_side": vote.left,
        "labels": vote.labels,
    }
    before = {
        "vote": stored.choice,
        "voted_at": stored.at,
        "comment": stored.comment,
        "left_side": stored.left_side,
        "labels": stored.labels,
    }
    different = first_difference(said, before)
    if different is None:
        return None
    field, value, known = different
    why = f"{shown(value)}, but {vote.voter} said {shown(known)} on pair {vote.name!r} before"
    return RowError(vote.file, vote.line, field, why)
