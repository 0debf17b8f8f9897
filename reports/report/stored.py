"""Figures that are stored: of boards, and in frozen reports. `replay --check` compares them."""

import subprocess
import sys
from collections.abc import Iterator
from tempfile import NamedTemporaryFile

from django.conf import settings
from django.db.models import F
from pydantic import ValidationError

from humanjudge.core.text import number_of
from judge_eval.board.model import RunFindings
from judge_eval.models import Findings, Run
from reports.models import Share
from reports.report.bundle import NoBundle, bundle_file
from reports.report.compare import computed_again, unequal
from reports.report.model import Report
from voting.ballot.tuning import is_tuned
from voting.ledger.ledger import Mismatch, Projection
from voting.models import Entry


class StoredFigures(Projection):
    """Computes stored figures anew; stands among the projections, and keeps nothing itself."""

    def rebuild(self, *, write: bool) -> Iterator[Mismatch]:
        # That takes long, and holds up nobody: see `stored`.
        return iter(())

    def gaps(self) -> list[str]:
        frozen = Share.objects.filter(project=self.project, frozen__isnull=False, rows=None)
        number = number_of(frozen.count(), "frozen report")
        return [f"{number}, of which no rows were kept"] if frozen else []

    def stored(self) -> Iterator[Mismatch]:
        rows = Findings.objects.filter(run__queue__project=self.project, is_behind=False)
        for row in rows.filter(data__isnull=False, seq=F("run__board__seq")).order_by("pk"):
            # What another version stored cannot be read, and is computed anew for whoever looks.
            if findings := RunFindings.read(row.data):
                run = Run.every.select_related("queue__project").get(pk=row.run_id)
                computed = computed_again(run, findings, row.part)
                pair = findings.model_dump(mode="json"), computed.model_dump(mode="json")
                # Votes that were sealed meanwhile are in the next figures.
                for difference in unequal(*pair) if computed.as_of.seq == row.seq else ():
                    place = f"{difference.path} of {run.name} ({computed.as_of.part})"
                    yield Mismatch(place, difference.reported, difference.computed)
        # While judges are tuned nobody is given a whole ledger.
        frozen = Share.objects.filter(project=self.project, frozen__isnull=False)
        for share in () if is_tuned(self.project.pk) else frozen:
            yield from _frozen_mismatches(share)


def _frozen_mismatches(share: Share) -> Iterator[Mismatch]:
    place = f"frozen report {share.prefix}…"
    try:
        report = Report.model_validate(share.frozen)
    except ValidationError:
        return  # another version froze it, and its page says that it cannot be read
    head = Entry.objects.filter(project=share.project_id, seq=report.head.seq)
    sealed = [bytes(entry_hash or b"").hex() for entry_hash in head.values_list("hash", flat=True)]
    if report.head.seq and [report.head.hash] != sealed:
        yield Mismatch(place, report.head.hash, sealed, is_correctable=False)
    elif hasattr(share, "rows"):
        try:
            file = bundle_file(report, share.project, bytes(share.rows.lines))
        except NoBundle:
            return
        with file, NamedTemporaryFile(suffix=".zip") as bundle:
            bundle.write(file.read())
            bundle.flush()
            # In an empty database of its own.
            command = [sys.executable, "-m", "humanjudge", "verify", bundle.name]
            command += ["--head", report.head.hash]
            done = subprocess.run(
                command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
            )
        if done.returncode:
            last_line = done.stderr.strip().splitlines()[-1:]
            yield Mismatch(f"{place}: {' '.join(last_line)}", None, "", is_correctable=False)
