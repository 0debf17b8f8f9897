"""A report with all that it follows from, in one zip: written, and verified.

Texts of outputs, configs, reasons of judges and comments of people are left out: no figure needs
them, and the ledger holds their hashes. Of a frozen report the bundle has the ledger up to its
position; what stands beside the ledger was kept when it was frozen.

Whoever verifies a bundle computes everything in it anew and compares. That needs an empty database
of its own: see the command `verify`.
"""

import gzip
import json
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple, cast
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipExtFile, ZipFile

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from humanjudge.core.archives import UNREADABLE, check, read
from humanjudge.core.strict_json import JsonObject, loads
from humanjudge.core.text import number_of
from judge_eval.board.filters import WHOLE_RUN
from judge_eval.exports.bundle import BundleError, End
from judge_eval.exports.export import LedgerNotWhole, project_ledger, project_rows
from judge_eval.imports.restore import Restoring
from judge_eval.ledger.objects import UNASKED, Objects, unsealed_verdicts
from judge_eval.models import Findings, Import, Run, Verdict
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from reports.report.compare import ABSENT, Difference, computed_again, unequal
from reports.report.make import NotComputed, define_again, is_current, report_of
from reports.report.model import Report
from voting.ballot.tuning import refuse_whole_ledgers
from voting.models import NO_VOTE, Entry, Item, Project

REPORT: Final = "report.json"
LEDGER: Final = "project.jsonl"
MANIFEST: Final = "manifest.json"
# What is private, by the type of the record.
PRIVATE: Final[dict[str, tuple[str, ...]]] = {
    "run": ("config", "private_salt"),
    "inference": ("output", "metadata"),
    "verdict": ("feedback",),
    "vote": ("comment",),
    "entry": ("comment", "salt"),
    "flag": ("comment",),
}
_MOVED: Final = "Votes or verdicts are coming in while the bundle is made. Try again in a moment."
_NOT_WHOLE: Final = (
    "A run of this project was deleted or is being imported, so there is no whole ledger for a "
    "bundle."
)
_ERASED: Final = (
    "Answers of a person who was erased since are gone, so the bundle would not verify."
)

MOST_OF_MANIFEST: Final = 1_000_000
MOST_OF_REPORT: Final = 50_000_000


class NoBundle(NotComputed):
    """There is no bundle of what the report follows from, or not at this moment."""


def frozen_rows(project: Project) -> bytes:
    """Return what stands beside the ledger of a project now, for the bundle of a frozen report."""
    refuse_whole_ledgers(project.pk)
    lines = "".join(f"{public}\n" for line in project_rows(project) if (public := _public(line)))
    return gzip.compress(lines.encode(), mtime=0)


def bundle_file(report: Report, project: Project, rows: bytes | None = None) -> IO[bytes]:
    """Return a report's bundle as a file that goes when it is closed.

    `rows` are those that were kept of a frozen report. Raises NoBundle where the ledger has gone on
    behind the figures, or is not whole.
    """
    refuse_whole_ledgers(project.pk)
    if rows is None and not is_current(report):
        raise NoBundle(_MOVED)
    if _lacks_answers(project, report.head.seq):
        raise NoBundle(_ERASED)
    before = iter(gzip.decompress(rows).decode().splitlines()) if rows else project_rows(project)
    with ExitStack() as on_error:
        file = on_error.enter_context(TemporaryFile())
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            files = {REPORT: [report.as_json()], LEDGER: _lines(report, project, before)}
            sums = {name: _write_lines(archive, name, lines) for name, lines in files.items()}
            manifest = _manifest(report, sums)
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        file.seek(0)
        on_error.pop_all()
    return file


def _manifest(report: Report, sums: Mapping[str, str]) -> JsonObject:
    return {
        "schema": report.report_schema,
        "head": report.head.model_dump(mode="json"),
        "versions": dict(report.versions),
        "seeds": [run.id for run in report.runs],
        "sha256": sums,
    }


def _lacks_answers(project: Project, last: int) -> bool:
    """Say whether somebody was erased behind an entry whose answers stood in it or before it."""
    entries = Entry.objects.filter(project=project)
    behind = entries.filter(NO_VOTE, kind=Entry.Kind.ERASURE, payload__has_key="voter")
    behind = behind.filter(Q(seq__gt=last) | Q(seq=None))
    gone = list(behind.values_list("payload__voter", flat=True))
    answered = Q(kind=Entry.Kind.VOTE, payload__isnull=False, voter__pseudonym__in=gone)
    return bool(gone) and entries.filter(answered, seq__lte=last).exists()


def _write_lines(archive: ZipFile, name: str, lines: Iterable[str]) -> str:
    digest = sha256()
    with archive.open(name, "w", force_zip64=True) as member:
        for line in lines:
            text = f"{line}\n".encode()
            digest.update(text)
            member.write(text)
    return digest.hexdigest()


def _lines(report: Report, project: Project, before: Iterator[str]) -> Iterator[str]:
    first = next(before)
    header, number = json.loads(first), 0
    if header["project"]["head"] != report.head.hash:
        raise NoBundle(_MOVED)
    ledger = project_ledger(project, list(map(UUID, header["runs"])), report.head.seq)
    # Of what judges say there no ledger tells yet, and no figure.
    unopened = Item.objects.filter(queue__project=project).exclude(
        Exists(Entry.objects.filter(item=OuterRef("pk"), kind="verdicts", seq__lte=report.head.seq))
    )
    unknown = set(map(str, unopened.values_list("pk", flat=True)))
    try:
        for line in chain([first], before, ledger):
            if (public := _public(line, unknown)) is not None:
                number += 1
                yield public
    except LedgerNotWhole:
        raise NoBundle(_NOT_WHOLE) from None
    yield End(lines=number).model_dump_json()


def _public(line: str, unknown: Collection[str] = ()) -> str | None:
    """Return a line of a bundle without what is private; None of a verdict no entry tells of."""
    record = json.loads(line)
    is_to_come = record.get("state") == Verdict.State.WAITING or record.get("error") == UNASKED
    if record["type"] == "verdict" and (is_to_come or record["comparison"] in unknown):
        return None
    private = PRIVATE.get(record["type"], ())
    if not any(record[name] for name in private) and record["type"] != "vote":
        return line
    record |= {name: type(record[name])() for name in private}
    if record["type"] == "inference":
        # So nobody waits for a drawing of it where it is restored.
        record["metadata"] = {OUTPUT_ABSENT: True}
    # The salt of further answers is needed to check them; else it would help to guess comments.
    if record["type"] == "vote" and not record["labels"]:
        record["salt"] = ""
    return json.dumps(record, ensure_ascii=False)


# --- verified -------------------------------------------------------------------------------------


class NotVerified(Exception):
    """The bundle is not whole, or the report does not follow from it."""


class VerifiedReport(NamedTuple):
    """A report that follows from its ledger, and what of it no bundle holds enough to compute."""

    report: Report
    unchecked: list[str]
    # What its ledger has no hashes of: it is older than they are.
    gaps: list[str]


def verify(path: Path, head: str = "") -> VerifiedReport:
    """Return the report of a bundle whose every figure follows from its ledger.

    `head` comes from elsewhere; without it a ledger that was rewritten as a whole would pass.
    Raises NotVerified with the first thing that is wrong.
    """
    try:
        with ZipFile(path) as archive:
            check(archive)
            report = _report_in(archive)
            project = _restored(archive)
    except (*UNREADABLE, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise NotVerified(f"{path.name} is no bundle of a report: {reason}") from error
    try:
        return _compared(report, project, head)
    except NotVerified:
        raise
    except Exception as error:
        # Whoever forges a bundle may write anything into it, and gets one sentence.
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise NotVerified(f"{path.name} cannot be computed anew: {reason}") from error


def _compared(report: Report, project: Project, head: str) -> VerifiedReport:
    ledger_head = project.ledger_head
    if ledger_head != report.head.hash or (head and head.strip().lower() != ledger_head):
        raise NotVerified(f"the ledger leads to the head {ledger_head}, not to the given one")
    with transaction.atomic():
        for change in Objects(project).rebuild(write=False):
            raise NotVerified(f"a row is not the one that its ledger holds: {change}")
    if unknown := unsealed_verdicts(project).select_related("judge").first():
        raise NotVerified(f"no ledger entry is about a verdict of {unknown.judge.name}")
    if draft := Run.objects.filter(state=Run.State.DRAFT).first():
        raise NotVerified(f"no ledger entry is about the draft {draft.name}")
    unchecked = _leave_out(report)
    for difference in differences(report, project):
        raise NotVerified(str(difference))
    gaps = Objects(project).gaps()
    if left_out := report.counted and Run.objects.filter(archived_at__isnull=False).count():
        gaps.append(f"{number_of(left_out, 'run')} of the ledger, which the report leaves out")
    return VerifiedReport(report, unchecked, gaps)


def _report_in(archive: ZipFile) -> Report:
    manifest: Any = loads(read(archive, MANIFEST, MOST_OF_MANIFEST).decode())
    sums = manifest["sha256"]
    names = [LEDGER, MANIFEST, REPORT]
    if sorted(archive.namelist()) != sorted(names) or sorted({MANIFEST, *sums}) != sorted(names):
        raise NotVerified("the files in it are not those that its manifest names")
    for name, expected in sums.items():
        with archive.open(name) as member:
            digest = file_digest(cast(ZipExtFile, member), "sha256")
        if digest.hexdigest() != expected:
            raise NotVerified(f"{name} is not the file that its manifest names")
    text = read(archive, REPORT, MOST_OF_REPORT)
    report = Report.model_validate_json(text)
    for difference in unequal(loads(text.decode()), report.model_dump(mode="json"), beside=()):
        if difference.reported is not ABSENT:
            raise NotVerified(f"{REPORT}: {difference.path} is nothing that a report says")
    if manifest != _manifest(report, sums):
        raise NotVerified(f"{MANIFEST} says something else than {REPORT}")
    return report


def _restored(archive: ZipFile) -> Project:
    job = Import.objects.create(is_bundle=True, is_local=True, form={})
    # Not from the zip itself: it is read from its beginning twice.
    with archive.open(LEDGER) as packed, TemporaryFile() as lines, transaction.atomic():
        shutil.copyfileobj(packed, lines)
        try:
            Restoring(job, lines, is_at_once=True).write()
        except BundleError as error:
            raise NotVerified(f"{LEDGER}: {error}") from error
        # There are no other ones here.
        return Project.objects.get()


def _leave_out(report: Report) -> list[str]:
    """Take composites that ask for outputs, which no bundle holds, out of a report; name them."""
    left_out = []
    for results in reversed(report.runs):
        run = Run.objects.select_related("queue").get(pk=results.id)
        if results.composite and not define_again(run, results.composite):
            left_out.append(f"{results.composite.label} of {results.name}")
            results.composite = None
    return left_out


def differences(report: Report, project: Project) -> Iterator[Difference]:
    """Compute a report anew, and yield what in it is different."""
    reported = {run.id: run.findings for run in report.runs}
    runs = Run.objects.filter(queue__project=project)
    # Which runs are archived no ledger says.
    runs.exclude(pk__in=reported).update(archived_at=report.made_at)
    for run in runs.select_related("queue__project"):
        data = computed_again(run, reported.get(str(run.pk))).stored()
        Findings.objects.update_or_create({"data": data}, run=run, part=str(WHOLE_RUN))
    of_run = None if report.counted else Run.objects.get(pk=report.runs[0].id)
    computed = report_of(project, of_run)
    return unequal(report.model_dump(mode="json"), computed.model_dump(mode="json"))
