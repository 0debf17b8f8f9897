"""Score files that are asked for over the web: made by a worker, kept as a zip."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from shutil import make_archive
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error, IntegrityError, connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.text import slugify

from humanjudge.celery import enqueue
from humanjudge.lib import leases
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.findings.slices import Slice
from judge_eval.models import Run
from judge_eval.selectors import switched_off
from reports.models import ScoreReport
from reports.scores.config import Reach, parse, whole

LEASE = timedelta(minutes=2)
RENEWED_EVERY = timedelta(seconds=30)
MOST_ATTEMPTS = 3
# Of each run; older ones are deleted when another is asked for.
MOST_KEPT = 20
# A report that nobody has taken up by then was lost on its way to the workers.
TAKEN_UP_WITHIN = timedelta(seconds=10)
_TASK = "reports.tasks.make_score_files"


class ScoresRefused(ValueError):
    """It cannot be asked for now; the message says why."""


def ask(run: Run, config: object) -> ScoreReport:
    """Let a worker make score files of a run; None is the default configuration.

    Raises ConfigInvalid, or ScoresRefused while others of this run are being made.
    """
    config = whole(config)
    # Whether the run has labels of those tasks, a worker looks up.
    parse(config, None, Reach(off=switched_off()))
    try:
        with transaction.atomic():
            report = ScoreReport.objects.create(run=run, config=config)
            enqueue(_TASK, str(report.pk))
    except IntegrityError as error:
        why = "Score files of this run are being made; ask again when they are done."
        raise ScoresRefused(why) from error
    for old in reports_of(run)[MOST_KEPT:]:
        path_of(old).unlink(missing_ok=True)
        old.delete()
    return report


def path_of(report: ScoreReport) -> Path:
    return settings.DATA / "scores" / f"{report.pk}.zip"


def folder_name(report: ScoreReport) -> str:
    return f"scores-{slugify(report.run.name)[:80] or 'run'}-{str(report.pk)[:8]}"


def part_of(report: ScoreReport) -> Slice:
    return Slice.parse((report.config or {}).get("part", ""))


def reports_of(run: Run) -> QuerySet[ScoreReport]:
    return ScoreReport.objects.filter(run=run).order_by("-asked_at")


def make(report_id: UUID) -> None:
    """Make the files, unless they are made or another worker is at it."""
    # Web processes import this module, and never make any.
    from judge_eval.runs.providers import make_embedder
    from reports.scores.make import ScoringFailed, make_report

    waiting = ScoreReport.objects.filter(pk=report_id, state=ScoreReport.State.WAITING)
    if not leases.claim(waiting, LEASE, attempts=F("attempts") + 1):
        return
    report = ScoreReport.objects.select_related("run__queue").get(pk=report_id)
    if report.attempts > MOST_ATTEMPTS:
        _finish(report, ScoreReport.State.FAILED, error=f"The import failed {MOST_ATTEMPTS} times.")
        return
    try:
        with _renewed(report), TemporaryDirectory() as place:
            folder = Path(place) / folder_name(report)
            folder.mkdir()
            embed = partial(make_embedder, project=report.run.queue.project_id)
            reach = Reach(embed=embed, off=switched_off())
            made = make_report(report.run, report.config, folder, reach)
            _keep(report, folder, made.table.model_dump())
    except (ConfigInvalid, ScoringFailed) as error:
        _finish(report, ScoreReport.State.FAILED, error=str(error) or type(error).__name__)
    except Exception as error:
        if report.attempts == MOST_ATTEMPTS:
            why = f"an unexpected error occurred ({type(error).__name__}); the worker logged it"
            _finish(report, ScoreReport.State.FAILED, error=f"They could not be made: {why}.")
        raise


def ask_again_for_lost() -> None:
    """Publish again what no worker is at: its task was lost, or its worker is gone."""
    lost = ScoreReport.objects.filter(
        leases.free(),
        state=ScoreReport.State.WAITING,
        asked_at__lt=timezone.now() - TAKEN_UP_WITHIN,
    )
    for pk in lost.values_list("pk", flat=True):
        enqueue(_TASK, str(pk))


def remove_left_behind() -> None:
    """Delete the files of reports that went with their run."""
    files = {path.stem: path for path in (settings.DATA / "scores").glob("*.zip")}
    known = ScoreReport.objects.values_list("pk", flat=True)
    for name in files.keys() - set(map(str, known)):
        files[name].unlink(missing_ok=True)


def _mine(report: ScoreReport) -> QuerySet[ScoreReport]:
    """Return the row while nobody else has taken it up: each who does counts an attempt."""
    return ScoreReport.objects.filter(
        pk=report.pk, state=ScoreReport.State.WAITING, attempts=report.attempts
    )


@contextmanager
def _renewed(report: ScoreReport) -> Iterator[None]:
    """Keep the lease for as long as it takes; a worker that is killed loses it soon."""
    done = Event()

    def renew() -> None:
        while not done.wait(RENEWED_EVERY.total_seconds()):
            # A database that is away for a moment is asked again.
            with suppress(Error):
                leases.renew(_mine(report), LEASE)
            connection.close()

    thread = Thread(target=renew, name="score-files-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _finish(report: ScoreReport, state: str, **made: Any) -> bool:
    return bool(leases.release(_mine(report), state=state, done_at=timezone.now(), **made))


def _keep(report: ScoreReport, folder: Path, table: object) -> None:
    """Put the files where they are fetched from, unless another worker is at them by now."""
    path = path_of(report)
    partial = path.with_name(f"{path.stem}.{token_hex(4)}.zip")
    try:
        make_archive(str(partial.with_suffix("")), "zip", folder.parent, folder.name)
        with transaction.atomic():
            size = partial.stat().st_size
            if _finish(report, ScoreReport.State.DONE, size=size, table=table):
                partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
