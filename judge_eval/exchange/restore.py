"""A bundle back into rows: the same runs, the same votes in the same order, the same board.

Numbers of rows stay what they were, so that links stay true; where a run of that number is here
already, in another project, everything gets a new one. It is written in steps, and its runs show
when all of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from itertools import groupby, islice
from typing import Any, BinaryIO, Final, TypeAlias
from uuid import UUID, uuid4, uuid5

from django.db import DataError, IntegrityError, transaction
from django.db.models import Max, ProtectedError, QuerySet
from django.utils import timezone

from judge_eval.exchange import bundle
from judge_eval.exchange.bundle import BundleError
from judge_eval.exchange.import_report import ImportReport
from judge_eval.exchange.import_scratch import pieces
from judge_eval.exchange.restore_ledger import Ledger, Rehearsal
from judge_eval.exchange.restore_rows import Lines, Rows, Start
from judge_eval.exchange.writing import counted, finish, note, remove, remove_unused, step
from judge_eval.models import Import, Run
from voting.models import Project, VoterPrompt

_COUNTED: Final = {"judge": "judges", "comparison": "pairs", "verdict": "verdicts", "vote": "votes"}

Numbered: TypeAlias = tuple[int, Any]


class Restoring:
    def __init__(self, job: Import, stream: BinaryIO) -> None:
        self._job, self._stream = job, stream
        self._report = ImportReport()

    def read(self) -> dict[str, Any]:
        """Look at all of it before anything is written, for which nobody waits."""
        return {"to_write": max(number for number, _ in self._lines())}

    def write(self) -> None:
        """Write what is not written yet; after a BundleError, that must be taken back."""
        lines = self._lines()
        _, header = next(lines)
        start = self._start() or self._begin(header)
        if start is None:
            with transaction.atomic():
                finish(self._job, self._report)
            return
        rows = Rows(header, start)
        self._write_rows(lines, start, rows)
        ledger = Ledger(rows)
        entries = (line for line in self._lines() if bundle.is_of_ledger(line[1]))
        for chunk in self._chunks(entries):
            self._write(chunk, start, ledger.append)
        with step(start.project):
            rows.finish()
            self._report.new["voters"] = start.new_voters().count()
            self._report.notes.append(ledger.note())
            self._report.runs = [run.pk for run in rows.runs.values()]
            finish(self._job, self._report)

    def _start(self) -> Start | None:
        stated = self._job.form.get("start")
        return Start.model_validate(stated) if stated else None

    def _begin(self, header: bundle.Header) -> Start | None:
        """Settle where it goes; None where its runs are there already."""
        here: list[UUID] = []
        with transaction.atomic():
            project, is_made = _project(header, self._job.project)
            last = VoterPrompt.objects.aggregate(last=Max("pk"))["last"] or 0
            start = Start(
                project=project.pk, is_made=is_made, space=None, at=timezone.now(), last_rubric=last
            )
            while taken := Run.every.filter(pk__in=map(start.number, header.runs)):
                # One that was given up is in the way of nobody.
                whole = taken.exclude(state=Run.State.IMPORTING).filter(queue__project=project)
                here += whole.values_list("pk", flat=True)
                space = uuid5(start.space, "next") if start.space else project.pk
                start = start.model_copy(update={"space": space})
            if header.runs and len(here) == len(header.runs):
                self._report.runs = here
                self._report.notes.append("It is here already; nothing was changed.")
                return None
            if here:
                raise BundleError(1, "runs", f"run {here[0]} is here already, others are not")
            form = self._job.form | {"start": start.model_dump(mode="json")}
            note(self._job, form=form, written=1, attempts=0)
        return start

    def _write_rows(self, lines: Iterator[Numbered], start: Start, rows: Rows) -> None:
        """Write all but the ledger; then rehearse that, unless it is begun."""
        with closing(Rehearsal(rows)) as rehearsal:
            for chunk in self._chunks(lines):
                last, record = chunk[-1]
                if not bundle.is_of_ledger(record):
                    if last <= self._job.written:
                        rows.write(chunk, is_new=False)
                    self._write(chunk, start, rows.write)
                elif last <= self._job.written:
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
                    write(chunk)
                    note(self._job, written=last, attempts=0)
            except (IntegrityError, DataError) as error:
                reason = str(error).partition("\n")[0]
                why = f"lines {first} to {last} cannot be stored: {reason}"
                raise BundleError(first, None, why) from error
        counted = (_COUNTED.get(record.type) for _, record in chunk)
        self._report.new.update(filter(None, counted))

    def take_back(self) -> bool:
        """Remove what is written, unless the ledger holds some of it; say whether it is gone."""
        start = self._start()
        if start is None or not Project.objects.filter(pk=start.project).exists():
            return True
        _, header = next(self._lines())
        if any(bundle.is_of_ledger(record) for _, record in self._written()):
            return False
        own = Run.every.filter(pk__in=map(start.number, header.runs), state=Run.State.IMPORTING)
        for run in own.filter(queue__project=start.project).select_related("queue"):
            remove(run, self._job)
        rubrics = VoterPrompt.objects.filter(project=start.project, pk__gt=start.last_rubric)
        shared = (line for line in self._written() if line[1].type in ("rubric", "inference"))
        for chunk in self._chunks(shared):
            with step(start.project):
                remove_unused([start.number(it.id) for _, it in chunk if it.type == "inference"])
                for _, stated in chunk:
                    if stated.type == "rubric":
                        _remove(rubrics.filter(name=stated.name, text=stated.text))
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

    def _written(self) -> Iterator[Numbered]:
        return islice(self._lines(), self._job.written)

    def _chunks(self, lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
        """Group lines so that a group and what is made of it stay small."""

        def kind(line: Numbered) -> tuple[bool, bool]:
            return bundle.is_of_ledger(line[1]), line[0] <= self._job.written

        for _, alike in groupby(lines, key=kind):
            yield from pieces(alike, _text_of)


def _text_of(line: Numbered) -> int:
    _, record = line
    return len(record.output) + len(record.prompt) if record.type == "inference" else 0


def _project(header: bundle.Header, given: Project | None) -> tuple[Project, bool]:
    stated = header.project
    project = given or Project.objects.filter(name=stated.name).order_by("created_at").first()
    if project is not None:
        return Project.objects.select_for_update(no_key=True).get(pk=project.pk), False
    is_taken = Project.objects.filter(pk=stated.id).exists()
    made = Project(name=stated.name, created_at=stated.created_at)
    made.pk = uuid4() if is_taken else stated.id
    made.save(force_insert=True)
    return made, True


def _remove(rows: QuerySet[Any]) -> None:
    with suppress(ProtectedError):
        rows.delete()
