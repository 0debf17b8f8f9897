"""A bundle back into rows: the same runs, the same votes in the same order, the same board.

Numbers of rows stay what they were, so that links stay true; where a run of that number is here
already, in another project, everything gets a new one. It is written in steps, and its runs show
when all of it is there.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby, islice
from typing import Any, BinaryIO, Final, TypeAlias
from uuid import UUID, uuid4, uuid5

from django.contrib.auth.models import AnonymousUser
from django.db import DataError, IntegrityError, transaction
from django.db.models import Max, ProtectedError, QuerySet
from django.utils import timezone

from humanjudge.core.strict_json import JsonObject
from judge_eval.exports import bundle
from judge_eval.exports.bundle import BundleError
from judge_eval.imports.import_report import ImportReport
from judge_eval.imports.import_scratch import pieces
from judge_eval.imports.import_steps import (
    ImportPace,
    counted,
    finish,
    note,
    remove,
    remove_unused,
    step,
)
from judge_eval.imports.question import Columns
from judge_eval.imports.restore_rows import Lines, Rows, Start, lacks
from judge_eval.models import Import, Run
from voting.access.roles import can_make_projects, make_project, projects_where
from voting.items.choices import WRONG
from voting.items.kinds import kind_of
from voting.ledger import chain, ledger
from voting.ledger.decisions import VOTES_WANTED, payload_of, votes_required_in
from voting.models import Entry, Project, Queue, VoterPrompt

_COUNTED: Final = {"judge": "judges", "verdict": "verdicts", "vote": "votes"}

Numbered: TypeAlias = tuple[int, Any]


class Restoring:
    """Writes a bundle in steps, each of which may be the last before another worker goes on.

    `is_at_once`: within one transaction of whoever asks for it, which leaves nothing behind where
    it fails. So the ledger is not rehearsed, and each entry is checked when it is appended.
    """

    def __init__(self, job: Import, stream: BinaryIO, *, is_at_once: bool = False) -> None:
        self._job, self._stream, self._is_at_once = job, stream, is_at_once
        self._report, self._pace = ImportReport(), ImportPace()

    def read(self) -> JsonObject:
        """Look at all of it before anything is written, for which nobody waits."""
        return {"to_write": max(number for number, _ in self._lines())}

    def write(self) -> None:
        """Write what is not written yet; after a BundleError, that must be taken back."""
        lines = self._lines()
        _, header = next(lines)
        start = self._start() or self._new_start(header)
        if start is None:
            with transaction.atomic():
                finish(self._job, self._report)
            return
        rows = Rows(header, start)
        self._write_rows(lines, start, rows)
        appending = Ledger(rows, is_checked=self._is_at_once)
        entries = (line for line in self._lines() if bundle.is_of_ledger(line[1]))
        for chunk in self._chunks(entries):
            self._write(chunk, start, appending.append)
        with step(start.project):
            rows.finish()
            self._report.new["voters"] = start.new_voters().count()
            self._report.notes.append(appending.note())
            self._report.runs = [run.pk for run in rows.runs.values()]
            finish(self._job, self._report)

    def _start(self) -> Start | None:
        record = self._job.form.get("start")
        return Start.model_validate(record) if record else None

    def _new_start(self, header: bundle.Header) -> Start | None:
        """Settle where it goes; None where its runs are there already."""
        existing_runs: list[UUID] = []
        with transaction.atomic():
            project, is_made = _project(header, self._job)
            last = VoterPrompt.objects.aggregate(last=Max("pk"))["last"] or 0
            start = Start(
                project=project.pk,
                is_made=is_made,
                space=None,
                started_at=timezone.now(),
                last_rubric=last,
            )
            while clashes := Run.every.filter(pk__in=map(start.number, header.runs)):
                # One that was given up is in the way of nobody.
                complete_runs = clashes.exclude(state=Run.State.IMPORTING).filter(
                    queue__project=project
                )
                existing_runs += complete_runs.values_list("pk", flat=True)
                space = uuid5(start.space, "next") if start.space else project.pk
                start = start.model_copy(update={"space": space})
            if header.runs and len(existing_runs) == len(header.runs):
                self._report.runs = existing_runs
                self._report.notes.append("It is here already; nothing was changed.")
                return None
            if existing_runs:
                raise BundleError(
                    1, "runs", f"run {existing_runs[0]} is here already, others are not"
                )
            form = self._job.form | {"start": start.model_dump(mode="json")}
            note(self._job, form=form, written=1, attempts=0)
        return start

    def _write_rows(self, lines: Iterator[Numbered], start: Start, rows: Rows) -> None:
        with closing(Rehearsal(rows)) as rehearsal:
            for chunk in self._chunks(lines):
                last, record = chunk[-1]
                if not bundle.is_of_ledger(record):
                    if last <= self._job.written:
                        rows.write(chunk, is_new=False)
                    self._write(chunk, start, rows.write)
                elif last <= self._job.written:
                    return
                elif self._is_at_once:
                    rows.check()
                    return
                else:
                    rehearsal.append(chunk)
            rows.check()
            rehearsal.finish()

    def _write(self, chunk: Lines, start: Start, write: Callable[[Lines], None]) -> None:
        first, last = chunk[0][0], chunk[-1][0]
        if last > self._job.written:
            try:
                with step(start.project):
                    began = time.monotonic()
                    write(chunk)
                    note(self._job, written=last, attempts=0)
                    self._pace.note(len(chunk), time.monotonic() - began)
            except (IntegrityError, DataError) as error:
                reason = str(error).partition("\n")[0]
                message = f"lines {first} to {last} cannot be stored: {reason}"
                raise BundleError(first, None, message) from error
        for _, record in chunk:
            noun = _COUNTED.get(record.type)
            if record.type == "comparison":
                noun = "pairs" if record.b else "items"
            if noun:
                self._report.new[noun] += 1

    def take_back(self) -> bool:
        """Remove what is written, unless the ledger holds some of it; say whether it is gone."""
        start = self._start()
        if start is None or not Project.objects.filter(pk=start.project).exists():
            return True
        _, header = next(self._lines())
        if any(bundle.is_of_ledger(record) for _, record in self._written_lines()):
            return False
        unfinished_runs = Run.every.filter(
            pk__in=map(start.number, header.runs), state=Run.State.IMPORTING
        )
        for run in unfinished_runs.filter(queue__project=start.project).select_related("queue"):
            remove(run, self._job)
        rubrics = VoterPrompt.objects.filter(project=start.project, pk__gt=start.last_rubric)
        shared = (line for line in self._written_lines() if line[1].type in ("rubric", "inference"))
        for chunk in self._chunks(shared):
            with step(start.project):
                remove_unused(
                    [start.number(record.id) for _, record in chunk if record.type == "inference"]
                )
                for _, record in chunk:
                    if record.type == "rubric":
                        _remove(rubrics.filter(name=record.name, text=record.text))
                note(self._job)
        with step(start.project):
            _remove(start.new_voters())
            note(self._job)
        if start.is_made and not Import.objects.filter(project=start.project).exists():
            with step(start.project):
                _remove(Project.objects.filter(pk=start.project))
        return True

    def _lines(self) -> Iterator[Numbered]:
        self._stream.seek(0)
        return counted(self._job, bundle.read(self._stream))

    def _written_lines(self) -> Iterator[Numbered]:
        return islice(self._lines(), self._job.written)

    def _chunks(self, lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:

        def kind(line: Numbered) -> tuple[bool, bool]:
            return bundle.is_of_ledger(line[1]), line[0] <= self._job.written

        for _, group in groupby(lines, key=kind):
            yield from pieces(group, _text_of, lambda: self._pace.rows)


def _text_of(line: Numbered) -> int:
    _, record = line
    return len(record.output) + len(record.prompt) if record.type == "inference" else 0


def _project(header: bundle.Header, job: Import) -> tuple[Project, bool]:
    """Return where a bundle goes, and whether that was made for it.

    A project of its name is taken, of those in which whoever asked may make runs; a command may in
    every one.
    """
    record, requester = header.project, job.api_key or job.user or AnonymousUser()
    existing = Project.objects.all() if job.is_local else projects_where(requester, "run")
    project = job.project or existing.filter(name=record.name).order_by("created_at").first()
    if project is not None:
        return Project.objects.select_for_update(no_key=True).get(pk=project.pk), False
    if not (job.is_local or can_make_projects(requester)):
        reason = "there is none of this name in which you may make runs, and you may make none"
        raise BundleError(1, "project", reason)
    is_taken = Project.objects.filter(pk=record.id).exists()
    pk, creator = uuid4() if is_taken else record.id, job.api_key.user if job.api_key else job.user
    return make_project(record.name, creator, pk=pk, created_at=record.created_at), True


def _remove(rows: QuerySet[Any]) -> None:
    with suppress(ProtectedError):
        rows.delete()


# --- the ledger --------------------------------------------------------------------------------

_ANOTHER: Final = "entry {} is not the one it was made of"
# What is set of an entry here, by what its record says.
_MADE_ANEW: Final = ("seq", "hash", "rubric", "labels_sha256", "retracted", "target")


class Ledger:
    """Appends the entries of a bundle; `is_checked`: these must be the very ones of its file."""

    def __init__(self, rows: Rows, *, is_checked: bool = False) -> None:
        self._rows, self._is_checked = rows, is_checked
        self._last = 0

    def append(self, lines: Lines) -> None:
        lines = self._new_lines(lines)
        entries = list(self._entries(lines))
        ledger.append(self._rows.project.pk, entries)
        for (line, record), entry in zip(lines, entries, strict=True) if self._is_checked else ():
            if entry.seq != record.seq or bytes(entry.hash or b"").hex() != record.hash:
                raise BundleError(line, "hash", _ANOTHER.format(record.seq))

    def _new_lines(self, lines: Lines) -> Lines:
        """Leave out what is of no run and came with another run of the same project."""
        shared = {self._rows.number(record.id) for _, record in lines if record.run is None}
        rows = Entry.objects.filter(project=self._rows.project, uid__in=shared)
        existing = set(rows.values_list("uid", flat=True))
        return [line for line in lines if self._rows.number(line[1].id) not in existing]

    def note(self) -> str:
        self._rows.project.refresh_from_db()
        head, exported = self._rows.project.ledger_head, self._rows.header.project
        is_same = (head, self._rows.project.head_seq) == (exported.head, exported.head_seq)
        if self._is_checked and not is_same:
            raise BundleError(1, "project.head", f"the entries of the file end at {head}")
        if head == exported.head:
            return f"The ledger is the exported one; its head is {head}."
        return f"The entries have new numbers; the head is {head}."

    def _entries(self, lines: Lines) -> Iterator[Entry]:
        # What a chunk refers to is fetched here, each kind of row in one query.
        self._rows.look_up(lines)
        targets = [target for _, record in lines if (target := getattr(record, "target", None))]
        stored = self._stored(list(map(self._rows.number, targets)))
        self._existing = {entry.uid: entry for entry in stored}
        for line, record in lines:
            if record.seq <= self._last:
                raise BundleError(line, "seq", f"{record.seq} stands behind {self._last}")
            self._last = record.seq
            is_vote = record.type == "vote"
            entry = self._vote(line, record) if is_vote else self._other_entry(line, record)
            self._existing[entry.uid] = entry
            yield entry

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        stored = Entry.objects.filter(project=self._rows.project, uid__in=uids)
        return stored.select_related("voter")

    def _vote(self, line: int, record: bundle.VoteEntry) -> Entry:
        salt, comment, labels = record.salt, record.comment, record.labels
        if comment and chain.salted_hash(salt, comment) != record.comment_sha256:
            raise BundleError(line, "comment_sha256", "is not the hash of what was said")
        if labels and ledger.labels_sha256(salt, labels) != record.labels_sha256:
            raise BundleError(line, "labels_sha256", "is not the hash of what was said")
        fields = self._fields(line, record)
        if record.choice not in _offered_choices(fields["queue"], record.choice):
            raise BundleError(line, "choice", f"{record.choice!r} is no vote on its item")
        if record.labels_sha256:
            fields["payload"] = {"labels_sha256": record.labels_sha256}
        rubric = self._rows.rubric(line, record.rubric)
        return Entry(kind=Entry.Kind.VOTE, rubric=rubric, **fields)

    def _other_entry(self, line: int, record: bundle.EntryPart) -> Entry:
        fields = self._fields(line, record)
        target = self._existing.get(self._rows.number(record.target)) if record.target else None
        if record.kind == "retraction":
            is_own = target is not None and target.voter == fields.get("voter")
            _undo(line, target if is_own else None, "vote", "vote of this voter", "taken back")
        if record.is_settling:
            digest = str(record.payload.get("why", ""))
            if record.comment and chain.salted_hash(record.salt, record.comment) != digest:
                raise BundleError(line, "payload.why", "is not the hash of what was said")
            fields["comment_sha256"] = digest
            if record.payload.get("action") == "reverse":
                _undo(line, target, "decision", "decision", "reversed")
        if record.target:
            fields["target"] = target or lacks(line, "target", record.target)
        if payload := self._payload_here(line, record, fields["queue"]):
            fields["payload"] = payload
        return Entry(**fields)

    def _payload_here(self, line: int, record: bundle.EntryPart, queue: Queue | None) -> Any:
        """Return a payload with what it names as that is called here; None if it names nothing."""
        if record.is_settling and record.is_on_judge:
            return self._of_judge(line, record)
        if record.kind == "verdicts":
            return self._verdicts(line, record)
        if record.kind == "object":
            return self._object(line, record)
        if required := votes_required_in(record.payload) if record.kind == "parameters" else {}:
            return self._votes_required(line, record, required, queue)
        return None

    def _fields(self, line: int, record: bundle.LedgerRecord) -> Columns:
        fields = self._rows.columns(line, record, _MADE_ANEW)
        run = fields.pop("run", None)
        return fields | {
            "uid": fields.pop("id"),
            "project": self._rows.project,
            "queue": run and run.queue,
        }

    def _votes_required(
        self, line: int, record: bundle.EntryPart, required: Mapping[UUID, int], queue: Queue | None
    ) -> Any:
        votes_by_item = {self._rows.number(item): votes for item, votes in required.items()}
        existing = queue.items.values_list("pk", flat=True) if queue else ()
        if not votes_by_item.keys() <= set(existing):
            raise BundleError(line, "payload", "the run has no such item")
        votes = record.payload[VOTES_WANTED] | payload_of(votes_by_item)[VOTES_WANTED]
        return {**record.payload, VOTES_WANTED: votes}

    def _of_judge(self, line: int, record: bundle.EntryPart) -> Any:
        old = record.payload["judge"]
        judges = {str(number): judge for number, judge in self._rows.judges.items()}
        judge = judges.get(old) or lacks(line, "payload.judge", old)
        if record.run is None or judge.run != self._rows.runs.get(record.run):
            raise BundleError(line, "payload.judge", "is no judge of this entry's run")
        return {**record.payload, "judge": str(judge.pk)}

    def _object(self, line: int, record: bundle.EntryPart) -> Any:
        payload = dict(record.payload)
        existing = self._rows.runs if payload["type"] == "run" else self._rows.judges
        existing_object = existing.get(UUID(payload["id"])) or lacks(
            line, "payload.id", payload["id"]
        )
        # The chain names the queue alone: so it is bound to its run, and the run to its judges.
        run = record.run and self._rows.runs.get(record.run)
        if run not in (existing_object, getattr(existing_object, "run", None)):
            raise BundleError(line, "payload.id", f"is no {payload['type']} of this entry's queue")
        if self._rows.project.name != self._rows.header.project.name:
            payload.pop("project", None)
        return payload | {"id": str(existing_object.pk)}

    def _verdicts(self, line: int, record: bundle.EntryPart) -> Any:
        try:
            verdicts = [self._verdict(line, record, item) for item in record.payload["verdicts"]]
            run = self._rows.runs[UUID(record.payload["run"])]
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(line, "payload", "is not what verdicts are written as") from error
        if UUID(record.payload["run"]) != record.run:
            raise BundleError(line, "payload.run", "is another run than that of its item")
        # What claims are made of beside the verdicts.
        if [type(record.payload.get(name)) for name in ("prompt", "votes_wanted")] != [str, int]:
            raise BundleError(line, "payload", "names no prompt, or no number of votes wanted")
        return {**record.payload, "run": str(run.pk), "verdicts": verdicts}

    def _verdict(self, line: int, record: bundle.EntryPart, item: Any) -> Any:
        old = UUID(item["judge"])
        judge = self._rows.judges.get(old) or lacks(line, "judge", old)
        run = record.run and self._rows.runs.get(record.run)
        if judge.run != run or judge.position != item["position"]:
            raise BundleError(line, "payload", f"judge {judge.name} has no such place in this run")
        if item["winner"] not in (*_offered_choices(judge.run.queue, item["winner"]), WRONG, None):
            raise BundleError(line, "payload", f"{item['winner']!r} is no verdict")
        return {**item, "judge": str(judge.pk)}


def _offered_choices(queue: Queue, choice: str | None) -> Sequence[str | None]:
    """Return what may be said of an item; where words are free, whatever `said` is."""
    return kind_of(queue).choices or (choice,)


def _undo(line: int, target: Entry | None, kind: str, noun: str, done: str) -> None:
    if not target or target.kind != kind:
        raise BundleError(line, "target", f"is no {noun}")
    if target.retracted is True:
        raise BundleError(line, "target", f"was {done} before")
    # Nothing that follows in this chunk may undo it again.
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
        lines = self._new_lines(lines)
        # What stands in the ledger already and could contradict these lines.
        entries, number = Entry.objects.select_related("voter"), self._rows.number
        self._keep_existing(entries.filter(uid__in=[number(record.id) for _, record in lines]))
        for (line, record), entry in zip(lines, self._entries(lines), strict=True):
            self._keep(line, entry)
            self._check_hash(line, record, entry)

    def finish(self) -> None:
        record, head = self._rows.header.project, self._head.hex()
        if self._is_verbatim and self._seq == record.head_seq and head != record.head:
            raise BundleError(1, "project.head", f"the entries of the file end at {head}")

    def _stored(self, uids: Collection[UUID]) -> Iterable[Entry]:
        self._keep_existing(super()._stored(uids))
        marks = ", ".join("?" * len(uids))
        select = f"SELECT uid, kind, voter, stands FROM entry WHERE uid IN ({marks})"  # noqa: S608
        for uid, kind, voter, stands in self._db.execute(select, [uid.hex for uid in uids]):
            stored_voter = self._rows.voters.get(voter)
            yield Entry(uid=UUID(hex=uid), kind=kind, voter=stored_voter, retracted=not stands)

    def _keep_existing(self, entries: Iterable[Entry]) -> None:
        rows = map(_row, entries)
        self._db.executemany("INSERT OR IGNORE INTO entry VALUES (?, ?, ?, ?, ?)", rows)

    def _keep(self, line: int, entry: Entry) -> None:
        try:
            self._db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?)", _row(entry))
        except sqlite3.IntegrityError as error:
            if "uid" in str(error):
                raise BundleError(line, "id", f"{entry.uid} is here already") from error
            raise BundleError(line, "voter", "has voted on this before") from error
        if entry.target and (entry.kind == Entry.Kind.RETRACTION or ledger.reverses(entry)):
            gone = [entry.target.uid.hex]
            self._db.execute("UPDATE entry SET stands = FALSE WHERE uid = ?", gone)

    def _check_hash(self, line: int, record: bundle.LedgerRecord, entry: Entry) -> None:
        """Find what was changed in the file, as long as it is the same chain from its start."""
        self._seq += 1
        entry.seq = self._seq
        self._is_verbatim = self._is_verbatim and entry.seq == record.seq
        if self._is_verbatim:
            self._head = chain.extend(self._head, ledger.content(entry))
            if self._head.hex() != record.hash:
                raise BundleError(line, "hash", _ANOTHER.format(record.seq))


def _row(entry: Entry) -> tuple[object, ...]:
    can_stand = entry.kind in (Entry.Kind.VOTE, Entry.Kind.DECISION)
    return (
        entry.uid.hex,
        entry.kind,
        entry.voter and entry.voter.pseudonym,
        entry.item_id and entry.item_id.hex,
        can_stand and entry.retracted is not True,
    )
