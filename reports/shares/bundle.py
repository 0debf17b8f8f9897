"""A report with all that it follows from, in one zip: the figures, the ledger, the verdicts.

Texts of outputs, reasons of judges and comments of people are left out: no figure needs them, and
the ledger holds their hashes.
"""

import json
from collections.abc import Iterator
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any, Final
from zipfile import ZIP_DEFLATED, ZipFile

from judge_eval.exchange.export import export_project
from reports.shares.make import NotComputed
from reports.shares.report import Report
from voting.models import Project

REPORT: Final = "report.json"
LEDGER: Final = "project.jsonl"
MANIFEST: Final = "manifest.json"
# What is private, by the type of the record.
PRIVATE: Final[dict[str, tuple[str, ...]]] = {
    "inference": ("output", "metadata"),
    "verdict": ("feedback",),
    "vote": ("comment",),
    "entry": ("comment", "salt"),
    "flag": ("comment",),
}


class Moved(NotComputed):
    """Votes came while the report was put together."""


def bundle_file(report: Report, project: Project) -> IO[bytes]:
    """Return a report's bundle as a file that goes when it is closed; raises Moved as below."""
    file = TemporaryFile()  # noqa: SIM115  who gets it closes it
    try:
        write_bundle(report, project, file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return file


def write_bundle(report: Report, project: Project, file: IO[bytes]) -> None:
    """Write a report's bundle; raises Moved where the ledger has gone on behind its figures."""
    sums = {}
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, lines in (
            (REPORT, [report.model_dump_json(indent=1)]),
            (LEDGER, _lines(project)),
        ):
            digest = sha256()
            with archive.open(name, "w", force_zip64=True) as member:
                for number, line in enumerate(lines):
                    if name == LEDGER and not number:
                        _check_head(report, json.loads(line))
                    whole = f"{line}\n".encode()
                    digest.update(whole)
                    member.write(whole)
            sums[name] = digest.hexdigest()
        manifest = {
            "schema": report.report_schema,
            "head": report.head.model_dump(),
            "versions": dict(report.versions),
            "sha256": sums,
        }
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))


def _check_head(report: Report, header: Any) -> None:
    if header["project"]["head"] != report.head.hash:
        raise Moved("Votes came while the bundle was put together: ask again in a moment.")


def _lines(project: Project) -> Iterator[str]:
    for line in export_project(project):
        record = json.loads(line)
        private = PRIVATE.get(record["type"], ())
        if not any(record[name] for name in private) and record["type"] != "vote":
            yield line
            continue
        record |= {name: type(record[name])() for name in private}
        # The salt of further answers is needed to check them; else it would help to guess comments.
        if record["type"] == "vote" and not record["labels"]:
            record["salt"] = ""
        yield json.dumps(record, ensure_ascii=False)
