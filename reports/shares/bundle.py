"""A report with all that it follows from, in one zip: the figures, the ledger, the verdicts.

Texts of outputs, configs, reasons of judges and comments of people are left out: no figure needs
them, and the ledger holds their hashes. Of a frozen report the ledger is given away to its
position; what stands beside the ledger was kept when it was frozen.
"""

import gzip
import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import chain
from tempfile import TemporaryFile
from typing import IO, Any, Final
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from judge_eval.exchange.bundle import End
from judge_eval.exchange.export import LedgerNotWhole, project_ledger, project_rows
from judge_eval.runs.lifecycle import OUTPUT_ABSENT
from reports.shares.make import NotComputed, is_current
from reports.shares.report import Report
from voting.models import Project

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
_MOVED: Final = (
    "Votes or verdicts are coming while the bundle is put together: ask again in a moment."
)
_NOT_WHOLE: Final = (
    "A run of this project was deleted, or is being imported, so its ledger cannot be given away "
    "whole."
)


class NoBundle(NotComputed):
    """What the report follows from cannot be given away, or not at this moment."""


def frozen_rows(project: Project) -> bytes:
    """Return what stands beside the ledger of a project now, for the bundle of a frozen report."""
    lines = "".join(f"{_public(line)}\n" for line in project_rows(project))
    return gzip.compress(lines.encode(), mtime=0)


def bundle_file(report: Report, project: Project, rows: bytes | None = None) -> IO[bytes]:
    """Return a report's bundle as a file that goes when it is closed; raises NoBundle as below."""
    file = TemporaryFile()  # noqa: SIM115  who gets it closes it
    try:
        write_bundle(report, project, file, rows)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def write_bundle(
    report: Report, project: Project, file: IO[bytes], rows: bytes | None = None
) -> None:
    """Write a report's bundle; `rows` are those that were kept of a frozen one.

    Raises NoBundle where the ledger has gone on behind the figures, or is not whole.
    """
    if rows is None and not is_current(report):
        raise NoBundle(_MOVED)
    before = iter(gzip.decompress(rows).decode().splitlines()) if rows else project_rows(project)
    sums = {}
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        contents = ((REPORT, iter([report.as_json()])), (LEDGER, _lines(report, project, before)))
        for name, lines in contents:
            digest = sha256()
            with archive.open(name, "w", force_zip64=True) as member:
                for line in lines:
                    whole = f"{line}\n".encode()
                    digest.update(whole)
                    member.write(whole)
            sums[name] = digest.hexdigest()
        manifest = {
            "schema": report.report_schema,
            "head": report.head.model_dump(mode="json"),
            "versions": dict(report.versions),
            "seeds": [run.id for run in report.runs],
            "sha256": sums,
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))


def _lines(report: Report, project: Project, before: Iterator[str]) -> Iterator[str]:
    first = next(before)
    header, number = json.loads(first), 0
    if header["project"]["head"] != report.head.hash:
        raise NoBundle(_MOVED)
    ledger = project_ledger(project, list(map(UUID, header["runs"])), report.head.seq)
    try:
        for line in chain([first], before, ledger):
            number += 1
            yield _public(line)
    except LedgerNotWhole:
        raise NoBundle(_NOT_WHOLE) from None
    yield End(lines=number).model_dump_json()


def _public(line: str) -> str:
    """Return a line of a bundle without what is private."""
    record: dict[str, Any] = json.loads(line)
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
