"""The ledger of a bundle, appended in its order: votes, verdicts, and what was taken back.

What is in the ledger stays, so all of it is rehearsed before the first entry is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from judge_eval.exchange import bundle as records
from judge_eval.exchange.bundle import BundleError
from judge_eval.exchange.restore_rows import Columns, Lines, Rows, lacks
from voting.choices import VERDICTS
from voting.ledger import chain, ledger
from voting.models import Entry, Voter

# What is set of an entry here, by what its record says.
_MADE_ANEW: Final = ("seq", "hash", "rubric", "labels_sha256", "retracted", "target")


class Ledger:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._last = 0

    def append(self, lines: Lines) -> None:
        ledger.append(self._rows.project.pk, list(self._entries(lines)))

    def note(self) -> str:
        self._rows.project.refresh_from_db()
        head = self._rows.project.head
        if head == self._rows.header.project.head:
            return f"The ledger is the exported one; its head is {head}."
        return f"The entries have new numbers; the head is {head}."

    def _entries(self, lines: Lines) -> Iterator[Entry]:
        # What a chunk refers to is fetched here, each kind of row in one query.
        self._rows.look_up(lines)
        targets = [target for _, record in lines if (target := getattr(record, "target", None))]
        stored = self._stored(list(map(self._rows.number, targets)))
        self._known = {entry.uid: entry for entry in stored}
        for line, record in lines:
            if record.seq <= self._last:
                raise BundleError(line, "seq", f"{record.seq} stands behind {self._last}")
            self._last = record.seq
            is_vote = record.type == "vote"
            entry = self._vote(line, record) if is_vote else self._other(line, record)
            self._known[entry.uid] = entry
            yield entry

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        stored = Entry.objects.filter(project=self._rows.project, uid__in=uids)
        return stored.select_related("voter")

    def _vote(self, line: int, stated: records.Vote) -> Entry:
        salt, comment, labels = stated.salt, stated.comment, stated.labels
        if comment and chain.salted_hash(salt, comment) != stated.comment_sha256:
            raise BundleError(line, "comment_sha256", "is not the hash of what was said")
        if labels and ledger.labels_sha256(salt, labels) != stated.labels_sha256:
            raise BundleError(line, "labels_sha256", "is not the hash of what was said")
        fields = self._fields(line, stated)
        if stated.labels_sha256:
            fields["payload"] = {"labels_sha256": stated.labels_sha256}
        rubric = self._rows.rubric(line, stated.rubric)
        return Entry(kind=Entry.Kind.VOTE, rubric=rubric, **fields)

    def _other(self, line: int, stated: records.EntryPart) -> Entry:
        fields = self._fields(line, stated)
        target = self._known.get(self._rows.number(stated.target)) if stated.target else None
        if stated.kind == "retraction":
            _retract(line, target, fields.get("voter"))
        if stated.target:
            fields["target"] = target or lacks(line, "target", stated.target)
        if stated.kind == "verdicts":
            fields["payload"] = self._verdicts(line, stated)
        return Entry(**fields)

    def _fields(self, line: int, stated: records.LedgerRecord) -> Columns:
        fields = self._rows.columns(line, stated, _MADE_ANEW)
        run = fields.pop("run", None)
        return fields | {
            "uid": fields.pop("id"),
            "project": self._rows.project,
            "queue": run and run.queue,
        }

    def _verdicts(self, line: int, stated: records.EntryPart) -> Any:
        try:
            verdicts = [self._verdict(line, stated, item) for item in stated.payload["verdicts"]]
            run = self._rows.runs[UUID(stated.payload["run"])]
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(line, "payload", "is not what verdicts are written as") from error
        return {**stated.payload, "run": str(run.pk), "verdicts": verdicts}

    def _verdict(self, line: int, stated: records.EntryPart, item: Any) -> Any:
        old = UUID(item["judge"])
        judge = self._rows.judges.get(old) or lacks(line, "judge", old)
        run = stated.run and self._rows.runs.get(stated.run)
        if judge.run != run or judge.position != item["position"]:
            raise BundleError(line, "payload", f"judge {judge.name} has no such place in this run")
        if item["winner"] not in (*VERDICTS, None):
            raise BundleError(line, "payload", f"{item['winner']!r} is no verdict")
        return {**item, "judge": str(judge.pk)}


def _retract(line: int, target: Entry | None, voter: Voter | None) -> None:
    if not target or target.kind != Entry.Kind.VOTE or target.voter != voter:
        raise BundleError(line, "target", "is no vote of this voter")
    if target.retracted is True:
        raise BundleError(line, "target", "was taken back before")
    # Nothing that follows in this chunk may take it back again.
    target.retracted = True


class Rehearsal(Ledger):
    def __init__(self, rows: Rows) -> None:
        super().__init__(rows)
        project, start = rows.project, rows.start
        self._head, self._seq = chain.genesis(project.pk), 0
        # Whether the ledger is to be the exported one: nobody may have written into it.
        is_same = start.is_made and start.space is None and project.pk == rows.header.project.id
        self._is_verbatim = is_same and project.head_seq == 0
        # A file without a name, gone with the connection: memory is not for so many votes.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("BEGIN")
        self._db.execute("CREATE TABLE entry (uid PRIMARY KEY, kind, voter, thing, stands)")
        self._db.execute("CREATE UNIQUE INDEX once ON entry (voter, thing) WHERE stands")

    def close(self) -> None:
        self._db.close()

    def append(self, lines: Lines) -> None:
        # What stands in the ledger already and could contradict these lines.
        entries, number = Entry.objects.select_related("voter"), self._rows.number
        self._keep_known(entries.filter(uid__in=[number(record.id) for _, record in lines]))
        rated = [number(record.inference) for _, record in lines if record.inference]
        standing = entries.filter(kind=Entry.Kind.VOTE, retracted=False, inference__in=rated)
        self._keep_known(standing.filter(project=self._rows.project))
        for (line, stated), entry in zip(lines, self._entries(lines), strict=True):
            self._keep(line, entry)
            self._check_hash(line, stated, entry)

    def finish(self) -> None:
        stated, head = self._rows.header.project, self._head.hex()
        if self._is_verbatim and self._seq == stated.head_seq and head != stated.head:
            raise BundleError(1, "project.head", f"the entries of the file end at {head}")

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        self._keep_known(super()._stored(uids))
        marks = ", ".join("?" * len(uids))
        select = f"SELECT uid, kind, voter, stands FROM entry WHERE uid IN ({marks})"  # noqa: S608
        for uid, kind, voter, stands in self._db.execute(select, [uid.hex for uid in uids]):
            who = self._rows.voters.get(voter)
            yield Entry(uid=UUID(hex=uid), kind=kind, voter=who, retracted=not stands)

    def _keep_known(self, entries: Iterable[Entry]) -> None:
        rows = map(_row, entries)
        self._db.executemany("INSERT OR IGNORE INTO entry VALUES (?, ?, ?, ?, ?)", rows)

    def _keep(self, line: int, entry: Entry) -> None:
        try:
            self._db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", _row(entry))
        except sqlite3.IntegrityError as error:
            if "uid" in str(error):
                raise BundleError(line, "id", f"{entry.uid} is here already") from error
            raise BundleError(line, "voter", "has voted on this before") from error
        if entry.kind == Entry.Kind.RETRACTION and entry.target:
            gone = [entry.target.uid.hex]
            self._db.execute("UPDATE entry SET stands = FALSE WHERE uid = ?", gone)

    def _check_hash(self, line: int, stated: records.LedgerRecord, entry: Entry) -> None:
        """Find what was changed in the file, as long as it is the same chain from its start."""
        self._seq += 1
        entry.seq = self._seq
        self._is_verbatim = self._is_verbatim and entry.seq == stated.seq
        if self._is_verbatim:
            self._head = chain.extend(self._head, ledger.content(entry))
            if self._head.hex() != stated.hash:
                raise BundleError(line, "hash", f"entry {stated.seq} is not the one it was made of")


def _row(entry: Entry) -> tuple[object, ...]:
    is_vote = entry.kind == Entry.Kind.VOTE
    thing = entry.item_id or entry.inference_id
    return (
        entry.uid.hex,
        entry.kind,
        entry.voter and entry.voter.pseudonym,
        thing and thing.hex,
        is_vote and entry.retracted is not True,
    )
