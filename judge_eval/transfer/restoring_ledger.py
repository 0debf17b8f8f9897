"""The ledger of a bundle, appended in its order: votes, verdicts, and what was taken back."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from judge_eval.transfer import bundle_records as records
from judge_eval.transfer.bundle import BundleError
from judge_eval.transfer.import_report import ImportReport
from judge_eval.transfer.restoring_rows import Lines, Scope
from voting import chain, ledger
from voting.models import Choice, Entry, Voter
from voting.sides import WRONG

_WINNERS: Final = (*Choice.values, WRONG, None)
_OF_VOTE: Final = set(
    "choice value category left_side elapsed_ms reputation unblinded simulated "
    "comment comment_sha256 salt labels".split()
)


class Ledger:
    """Appends entries, and checks them as far as their numbers are those of the export."""

    def __init__(self, scope: Scope, report: ImportReport, *, is_verbatim: bool) -> None:
        self._scope, self._report = scope, report
        self._is_verbatim = is_verbatim
        self._last = 0

    def append(self, lines: Lines) -> None:
        self._look_up(lines)
        entries: list[Entry] = []
        for line, stated in lines:
            if stated.seq <= self._last:
                raise BundleError(line, "seq", f"{stated.seq} stands behind {self._last}")
            self._last = stated.seq
            is_vote = stated.type == "vote"
            entry = self._vote(line, stated) if is_vote else self._other(line, stated)
            self._known[entry.uid] = entry
            entries.append(entry)
            self._report.new["votes"] += is_vote
        ledger.append(self._scope.project.pk, entries)
        self._check(lines, entries)

    def finish(self) -> None:
        project = self._scope.project
        project.refresh_from_db()
        stated = self._scope.header.project
        if project.head == stated.head:
            self._report.notes.append(f"The ledger is the exported one; its head is {stated.head}.")
        elif self._is_verbatim and project.head_seq == stated.head_seq:
            raise BundleError(1, "project.head", f"the entries of the file end at {project.head}")
        else:
            self._report.notes.append(f"The entries have new numbers; the head is {project.head}.")

    def _look_up(self, lines: Lines) -> None:
        """Fetch what a chunk refers to, each kind of row in one query."""
        scope, stated = self._scope, [record for _, record in lines]
        self._voters = scope.voters({record.voter for record in stated if record.voter})
        self._queues = scope.queues({record.comparison for record in stated if record.comparison})
        self._outputs = scope.outputs({record.inference for record in stated if record.inference})
        targets = [scope.number(target) for r in stated if (target := getattr(r, "target", None))]
        found = Entry.objects.filter(project=scope.project, uid__in=targets).select_related("voter")
        self._known: dict[UUID, Entry] = {entry.uid: entry for entry in found}

    def _vote(self, line: int, stated: records.Vote) -> Entry:
        for said, hashed in ((stated.comment, "comment_sha256"), (stated.labels, "labels_sha256")):
            if said and _hash(stated.salt, said) != getattr(stated, hashed):
                raise BundleError(line, hashed, "is not the hash of what was said")
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
            fields["target"] = self._known[self._scope.number(stated.target)]
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
            "comparison_id": pair,
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
            said = [self._verdict(line, stated, item) for item in stated.payload["verdicts"]]
            run = self._scope.runs[UUID(stated.payload["run"])]
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(line, "payload", "is not what verdicts are written as") from error
        return {**stated.payload, "run": str(run.pk), "verdicts": said}

    def _verdict(self, line: int, stated: records.EntryPart, item: Any) -> dict[str, Any]:
        judge = self._scope.judge(line, UUID(item["judge"]))
        run = stated.run and self._scope.runs.get(stated.run)
        if judge.run != run or judge.position != item["position"]:
            raise BundleError(line, "payload", f"judge {judge.name} has no such place in this run")
        if item["winner"] not in _WINNERS:
            raise BundleError(line, "payload", f"{item['winner']!r} is no verdict")
        return {**item, "judge": str(judge.pk)}

    def _check(self, lines: Lines, entries: list[Entry]) -> None:
        """Find what was changed in the file, as long as it is the same chain from its start."""
        for (line, stated), entry in zip(lines, entries, strict=True):
            self._is_verbatim = self._is_verbatim and entry.seq == stated.seq
            if self._is_verbatim and bytes(entry.hash or b"").hex() != stated.hash:
                raise BundleError(line, "hash", f"entry {stated.seq} is not the one it was made of")


def _hash(salt: str, said: Any) -> str:
    if isinstance(said, dict):
        return ledger.labels_sha256(salt, said)
    return chain.salted_hash(salt, said)
