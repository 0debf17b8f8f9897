"""Does a report follow from its ledger? Everything in its bundle is computed anew and compared.

It wants a database of its own, which is empty: see the command `verify`.
"""

import shutil
from collections.abc import Iterator
from hashlib import file_digest
from math import isclose
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple, cast
from zipfile import ZipExtFile, ZipFile

from django.db import transaction
from django.utils import timezone
from pydantic import BaseModel

from humanjudge.lib.archives import UNREADABLE, check, read
from judge_eval.exchange.bundle import BundleError
from judge_eval.exchange.restore import Restoring
from judge_eval.findings import cache
from judge_eval.models import Findings, Import, Run
from judge_eval.objects import Objects
from reports.shares.bundle import LEDGER, MANIFEST, REPORT
from reports.shares.composites import define_again
from reports.shares.make import report_of
from reports.shares.report import Report
from voting.models import Project

TOLERANCE: Final = 1e-9
MOST_OF_MANIFEST: Final = 1_000_000
MOST_OF_REPORT: Final = 50_000_000
# What is no figure, or is not in a bundle: when and with what it was made, who has never voted, and
# what was said before and does not hold any more.
NOT_COMPARED: Final = {
    *("made_at", "told_since", "versions", "population", "withdrawn"),
    # What follows from the rest, or is set where a report is read.
    *("charts", "since"),
}


class Manifest(BaseModel):
    """What of a manifest is checked: the hashes of the other files."""

    sha256: dict[str, str]


class Difference(NamedTuple):
    """A value of a report that does not follow from its ledger: where, what it says, what is so."""

    path: str
    stated: object
    computed: object

    def __str__(self) -> str:
        return f"{self.path}: the report says {self.stated!r}, its ledger {self.computed!r}"


class NotVerified(Exception):
    """The bundle is not whole, or the report does not follow from it."""


class Verified(NamedTuple):
    """A report that follows from its ledger, and what of it no bundle holds enough to compute."""

    report: Report
    unchecked: list[str]
    # What its ledger has no hashes of: it is older than they are.
    gaps: list[str]


def verify(path: Path, head: str = "") -> Verified:
    """Return the report of a bundle whose every figure follows from its ledger.

    `head` is known from elsewhere; without it a ledger that was rewritten as a whole would pass.
    Raises NotVerified with the first thing that is wrong.
    """
    try:
        with ZipFile(path) as archive:
            check(archive)
            _check_sums(archive)
            report = Report.model_validate_json(read(archive, REPORT, MOST_OF_REPORT))
            project = _restored(archive)
    except (*UNREADABLE, KeyError, ValueError) as error:
        why = " ".join(str(error).split())
        raise NotVerified(f"{path.name} is no bundle of a report: {why}") from error
    try:
        return _compared(report, project, head)
    except NotVerified:
        raise
    except Exception as error:
        # Whoever forges a bundle may write anything into it, and gets one sentence.
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise NotVerified(f"{path.name} cannot be computed anew: {why}") from error


def _compared(report: Report, project: Project, head: str) -> Verified:
    if project.ledger_head != report.head.hash or (
        head and head.strip().lower() != project.ledger_head
    ):
        raise NotVerified(
            f"the ledger leads to the head {project.ledger_head}, not to the one stated"
        )
    with transaction.atomic():
        for change in Objects(project).rebuild(write=False):
            raise NotVerified(f"a row is not the one that its ledger holds: {change}")
    unchecked = _leave_out(report)
    for difference in differences(report, project):
        raise NotVerified(str(difference))
    return Verified(report, unchecked, Objects(project).gaps())


def _check_sums(archive: ZipFile) -> None:
    manifest = Manifest.model_validate_json(read(archive, MANIFEST, MOST_OF_MANIFEST))
    if sorted(archive.namelist()) != sorted({MANIFEST, *manifest.sha256}):
        raise NotVerified("the files in it are not those that its manifest names")
    for name, stated in manifest.sha256.items():
        with archive.open(name) as member:
            digest = file_digest(cast(ZipExtFile, member), "sha256")
        if digest.hexdigest() != stated:
            raise NotVerified(f"{name} is not the file that its manifest names")


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
    for each in reversed(report.runs):
        run = Run.objects.select_related("queue").get(pk=each.id)
        if each.composite and not define_again(run, each.composite):
            left_out.append(f"{each.composite.label} of {each.name}")
            each.composite = None
    return left_out


def differences(report: Report, project: Project) -> Iterator[Difference]:
    """Compute a report anew, and yield what in it is different."""
    for run in Run.objects.filter(queue__project=project):
        Findings.objects.get_or_create(run=run, part="")
        Findings.objects.filter(run=run).update(not_before=timezone.now())
        cache.compute(run.pk, "")
    of_run = None if report.counted else Run.objects.get(pk=report.runs[0].id)
    computed = report_of(project, of_run)
    return _different("", report.model_dump(mode="json"), computed.model_dump(mode="json"))


def _different(path: str, stated: Any, computed: Any) -> Iterator[Difference]:
    if isinstance(stated, dict) and isinstance(computed, dict):
        for name in sorted({*stated, *computed} - NOT_COMPARED):
            below = f"{path}.{name}".removeprefix(".")
            yield from _different(below, stated.get(name), computed.get(name))
    elif isinstance(stated, list) and isinstance(computed, list) and len(stated) == len(computed):
        for place, pair in enumerate(zip(stated, computed, strict=True)):
            yield from _different(f"{path}[{place}]", *pair)
    elif not _same(stated, computed):
        yield Difference(path, stated, computed)


def _same(stated: Any, computed: Any) -> bool:
    if isinstance(stated, float) and isinstance(computed, float):
        return isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(stated == computed)
