"""A bundle back into rows: the same runs, the same votes in the same order, the same board.

Numbers of rows stay what they were, so that links stay true; where a run of that number is here
already, in another project, everything gets a new one. All in one transaction, a chunk at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, BinaryIO, Final, TypeAlias
from uuid import uuid5

from django.db import DataError, IntegrityError, transaction

from judge_eval.interchange.rows import RowError
from judge_eval.models import Run
from judge_eval.transfer import bundle
from judge_eval.transfer import bundle_records as records
from judge_eval.transfer.bundle import BundleError
from judge_eval.transfer.import_report import ImportReport
from judge_eval.transfer.restoring_ledger import Ledger
from judge_eval.transfer.restoring_rows import Rows, Scope
from voting.models import Project

MOST_RECORDS: Final = 500
MOST_TEXT: Final = 4_000_000

Numbered: TypeAlias = tuple[int, Any]


def restore(stream: BinaryIO, name: str, project: Project | None = None) -> ImportReport:
    """Write a bundle into a project: the one given, or the one of its name, made if need be.

    A bundle whose runs are in that project already changes nothing.
    """
    report = ImportReport()
    try:
        with transaction.atomic():
            _restore(bundle.read(stream), project, report)
    except BundleError as error:
        report.nothing_written()
        report.fail(RowError(name, error.line, error.field, error.why))
    return report


def _restore(lines: Iterator[Numbered], given: Project | None, report: ImportReport) -> None:
    _, header = next(lines)
    project, is_new = _project(header, given)
    copies = {number: uuid5(project.pk, str(number)) for number in header.runs}
    here = Run.objects.filter(queue__project=project, pk__in=[*copies, *copies.values()])
    report.runs = list(here.values_list("pk", flat=True))
    if header.runs and len(report.runs) == len(header.runs):
        report.notes.append("It is here already; nothing was changed.")
        for _ in lines:
            pass  # a file that is broken further down is broken all the same
        return
    if report.runs:
        raise BundleError(1, "runs", f"run {report.runs[0]} is here already, others are not")
    scope = Scope(project, header, is_copy=Run.objects.filter(pk__in=copies).exists())
    _write(lines, Rows(scope, report), Ledger(scope, report, is_verbatim=is_new))
    report.runs = [run.pk for run in scope.runs.values()]


def _project(header: records.Header, given: Project | None) -> tuple[Project, bool]:
    """Return where to write to, locked, and whether its ledger must become the exported one."""
    stated = header.project
    project = given or Project.objects.filter(name=stated.name).order_by("created_at").first()
    if project is not None:
        return Project.objects.select_for_update(no_key=True).get(pk=project.pk), False
    fields: dict[str, Any] = {"name": stated.name, "created_at": stated.created_at}
    is_free = not Project.objects.filter(pk=stated.id).exists()
    if is_free:
        fields["pk"] = stated.id
    return Project.objects.create(**fields), is_free


def _write(lines: Iterator[Numbered], rows: Rows, ledger: Ledger) -> None:
    write: dict[str, Callable[[Sequence[Numbered]], None]] = {
        "rubric": rows.rubrics,
        "run": rows.runs,
        "judge": rows.judges,
        "inference": rows.outputs,
        "comparison": rows.pairs,
        "verdict": rows.verdicts,
        "voter": rows.voters,
        "flag": rows.flags,
        "vote": ledger.append,
        "entry": ledger.append,
    }
    for kind, of_kind in groupby(lines, key=lambda line: write[line[1].type]):
        for chunk in _chunks(of_kind):
            first, last = chunk[0][0], chunk[-1][0]
            try:
                kind(chunk)
            except (IntegrityError, DataError) as error:
                reason = str(error).partition("\n")[0]
                why = f"lines {first} to {last} cannot be stored: {reason}"
                raise BundleError(first, None, why) from error
    rows.finish()
    ledger.finish()


def _chunks(lines: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    chunk: list[Numbered] = []
    size = 0
    for number, record in lines:
        chunk.append((number, record))
        size += len(record.output) + len(record.prompt) if record.type == "inference" else 0
        if len(chunk) == MOST_RECORDS or size > MOST_TEXT:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
