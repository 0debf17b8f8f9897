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
from judge_eval.exchange.restore_rows import Lines, Scope, lacks
from voting.choices import VERDICTS
from voting.ledger import chain, ledger
from voting.models import Entry, Voter

_WINNERS: Final = (*VERDICTS, None)
_OF_VOTE: Final = set(
    "choice value category left_side elapsed_ms reputation unblinded simulated "
    "comment comment_sha256 salt labels".split()
)


class Ledger:
    """Makes entries of lines, checks what they refer to, and appends them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._last = 0

    def append(self, lines: Lines) -> None:
        ledger.append(self._scope.project.pk, list(self._entries(lines)))

    def note(self) -> str:
        """Say whether the project's ledger is the exported one."""
        self._scope.project.refresh_from_db()
        head = self._scope.project.head
        if head == self._scope.header.project.head:
            return f"The ledger is the exported one; its head is {head}."
        return f"The entries have new numbers; the head is {head}."

    def _entries(self, lines: Lines) -> Iterator[Entry]:
        self._look_up(lines)
        for line, stated in lines:
            if stated.seq <= self._last:
                raise BundleError(line, "seq", f"{stated.seq} stands behind {self._last}")
            self._last = stated.seq
            is_vote = stated.type == "vote"
            entry = self._vote(line, stated) if is_vote else self._other(line, stated)
            self._known[entry.uid] = entry
            yield entry

    def _look_up(self, lines: Lines) -> None:
        """Fetch what a chunk refers to, each kind of row in one query."""
        scope, stated = self._scope, [record for _, record in lines]
        self._voters = scope.voters({record.voter for record in stated if record.voter})
        self._queues = scope.queues({record.comparison for record in stated if record.comparison})
        self._outputs = scope.outputs({record.inference for record in stated if record.inference})
        targets = [scope.number(target) for r in stated if (target := getattr(r, "target", None))]
        self._known: dict[UUID, Entry] = {entry.uid: entry for entry in self._stored(targets)}

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        stored = Entry.objects.filter(project=self._scope.project, uid__in=uids)
        return stored.select_related("voter")

    def _vote(self, line: int, stated: records.Vote) -> Entry:
        salt, comment, labels = stated.salt, stated.comment, stated.labels
        if comment and chain.salted_hash(salt, comment) != stated.comment_sha256:
            raise BundleError(line, "comment_sha256", "is not the hash of what was said")
        if labels and ledger.labels_sha256(salt, labels) != stated.labels_sha256:
            raise BundleError(line, "labels_sha256", "is not the hash of what was said")
        payload = {"labels_sha256": stated.labels_sha256} if stated.labels_sha256 else None
        return Entry(
            **self._common(line, stated),
            kind=Entry.Kind.VOTE,
            rubric=self._scope.rubric(line, stated.rubric),
            payload=payload,
            **stated.model_dump(include=_OF_VOTE),
        )

    def _other(self, line: int, stated: records.EntryPart) -> Entry:
        fields = self._common(line, stated)
        if stated.kind == "retraction":
            self._refuse_retraction(line, stated, fields["voter"])
        if stated.target:
            target = self._known.get(self._scope.number(stated.target))
            fields["target"] = target or lacks(line, "target", stated.target)
        payload = stated.payload
        if stated.kind == "verdicts":
            payload = self._verdicts(line, stated)
        return Entry(**fields, kind=stated.kind, payload=payload)

    def _common(self, line: int, stated: records.LedgerRecord) -> dict[str, Any]:
        scope = self._scope
        run = scope.run(line, stated.run) if stated.run else None
        pair = scope.number(stated.comparison) if stated.comparison else None
        output = scope.number(stated.inference) if stated.inference else None
        if pair and (run is None or self._queues.get(pair) != run.queue_id):
            raise BundleError(line, "comparison", f"run {stated.run} has no such pair")
        if output and output not in self._outputs:
            raise BundleError(line, "inference", "does not stand before it in the file")
        if stated.voter and stated.voter not in self._voters:
            raise BundleError(line, "voter", "does not stand before it in the file")
        return {
            "uid": scope.number(stated.id),
            "project": scope.project,
            "at": stated.at,
            "queue": run and run.queue,
            "item_id": pair,
            "inference_id": output,
            "voter": stated.voter and self._voters[stated.voter],
        }

    def _refuse_retraction(self, line: int, stated: records.EntryPart, voter: Voter | None) -> None:
        target = stated.target and self._known.get(self._scope.number(stated.target))
        if not target or target.kind != Entry.Kind.VOTE or target.voter != voter:
            raise BundleError(line, "target", "is no vote of this voter")
        if target.retracted is True:
            raise BundleError(line, "target", "was taken back before")
        # Nothing that follows in this chunk may take it back again.
        target.retracted = True

    def _verdicts(self, line: int, stated: records.EntryPart) -> dict[str, Any]:
        try:
            verdicts = [self._verdict(line, stated, item) for item in stated.payload["verdicts"]]
            run = self._scope.runs[UUID(stated.payload["run"])]
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(line, "payload", "is not what verdicts are written as") from error
        return {**stated.payload, "run": str(run.pk), "verdicts": verdicts}

    def _verdict(self, line: int, stated: records.EntryPart, item: Any) -> dict[str, Any]:
        judge = self._scope.judge(line, UUID(item["judge"]))
        run = stated.run and self._scope.runs.get(stated.run)
        if judge.run != run or judge.position != item["position"]:
            raise BundleError(line, "payload", f"judge {judge.name} has no such place in this run")
        if item["winner"] not in _WINNERS:
            raise BundleError(line, "payload", f"{item['winner']!r} is no verdict")
        return {**item, "judge": str(judge.pk)}


class Rehearsal(Ledger):
    """Finds whatever is wrong with the entries of a bundle before the first of them is written."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._head, self._seq = chain.genesis(scope.project.pk), 0
        # Nobody may have written into a ledger that is to be the exported one.
        self._is_verbatim = scope.is_verbatim and scope.project.head_seq == 0
        # A file without a name, gone with the connection: memory is not for so many votes.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute("BEGIN")
        self._db.execute("CREATE TABLE entry (uid PRIMARY KEY, kind, voter, thing, stands)")
        self._db.execute("CREATE UNIQUE INDEX once ON entry (voter, thing) WHERE stands")

    def close(self) -> None:
        self._db.close()

    def append(self, lines: Lines) -> None:
        self._take_over(lines)
        for (line, stated), entry in zip(lines, self._entries(lines), strict=True):
            self._keep(line, entry)
            self._check_hash(line, stated, entry)

    def finish(self) -> None:
        stated, head = self._scope.header.project, self._head.hex()
        if self._is_verbatim and self._seq == stated.head_seq and head != stated.head:
            raise BundleError(1, "project.head", f"the entries of the file end at {head}")

    def _take_over(self, lines: Lines) -> None:
        """Keep what stands in the ledger already and could contradict these lines."""
        entries, number = Entry.objects.select_related("voter"), self._scope.number
        self._keep_known(entries.filter(uid__in=[number(record.id) for _, record in lines]))
        rated = [number(record.inference) for _, record in lines if record.inference]
        standing = entries.filter(kind=Entry.Kind.VOTE, retracted=False, inference__in=rated)
        self._keep_known(standing.filter(project=self._scope.project))

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        self._keep_known(super()._stored(uids))
        marks = ", ".join("?" * len(uids))
        select = f"SELECT uid, kind, voter, stands FROM entry WHERE uid IN ({marks})"  # noqa: S608
        for uid, kind, voter, stands in self._db.execute(select, [uid.hex for uid in uids]):
            who = self._voters.get(voter)
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
