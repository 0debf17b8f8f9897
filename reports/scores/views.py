"""Score files of a run: a page to request and download them, and the job that makes them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import sample
from secrets import token_hex
from shutil import make_archive
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Final, cast
from uuid import UUID

from django.conf import settings
from django.db import Error, IntegrityError, connection, transaction
from django.db.models import F, QuerySet
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.text import slugify

from humanjudge.celery import enqueue
from humanjudge.core import leases
from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.validation import ConfigInvalid
from judge_eval.board.cache import parts_of
from judge_eval.board.few import require_votes_first
from judge_eval.board.filters import Slice
from judge_eval.models import Run
from judge_eval.runs.queries import switched_off
from judge_eval.runs.run_page import run_action, run_page
from reports.models import ScoreReport
from reports.report.model import ScoreTable
from reports.scores.config import Reach, config_object, config_of_request, parse
from reports.scores.table import on_page
from voting.ballot.tuning import opened_at

LEASE: Final = timedelta(minutes=2)
RENEWED_EVERY: Final = timedelta(seconds=30)
MOST_ATTEMPTS: Final = 3
# Of each run; older ones are deleted when new ones are requested.
MOST_KEPT: Final = 20
# Named by their reports; while one is made, something follows the number.
FILES: Final = "-".join("[0-9a-f]" * digits for digits in (8, 4, 4, 4, 12)) + "*.zip"
# Of the files that are there, in one sweep.
LOOKED_AT: Final = 200
# What no worker has taken up by then was lost on its way to the workers.
TAKEN_UP_WITHIN: Final = timedelta(seconds=10)
_TASK: Final = "reports.tasks.make_score_files"


class ScoresRefused(ValueError):
    """Score files cannot be requested now; the message says why."""


# --- pages ----------------------------------------------------------------------------------------


@run_page("see calls")
def run_scores(request: HtmxRequest, run: Run) -> HttpResponse:
    # htmx asks for the list again while some are being made.
    template = "reports/scores/_score_files.html" if request.htmx else "reports/scores/scores.html"
    return render(request, template, _context(request, run))


@run_action("run")
def request_scores_page(request: HttpRequest, run: Run) -> HttpResponse:
    text, part = request.POST.get("config", "").strip(), request.POST.get("part", "")
    try:
        config = config_of_request(text.encode())
        request_scores(run, {"part": part} | config if part else config)
    except (ConfigInvalid, ScoresRefused) as refused:
        errors = str(refused).splitlines()
    else:
        return redirect("run-scores", run.pk)
    context = _context(request, run, part) | {"errors": errors, "config": text}
    return render(request, "reports/scores/scores.html", context, status=422)


@run_page("see calls")
def download_scores(request: HtmxRequest, run: Run, report_id: UUID) -> HttpResponse:
    done = reports_of(run).select_related("run").filter(state=ScoreReport.State.DONE)
    report = get_object_or_404(done, pk=report_id)
    require_votes_first(request, run, part_of(report))
    try:
        return cast(HttpResponse, zip_response(report))
    except FileNotFoundError as gone:
        raise Problem(404, "These files were deleted. Request them again.") from gone


def zip_response(report: ScoreReport) -> FileResponse:
    name, stream = f"{folder_name(report)}.zip", path_of(report).open("rb")
    return FileResponse(stream, as_attachment=True, filename=name, content_type="application/zip")


def _context(request: HttpRequest, run: Run, part: str = "") -> Context:
    reports = list(reports_of(run)[:MOST_KEPT])
    context: Context = {
        "run": run,
        "reports": [(report, part_of(report).in_words) for report in reports],
        "is_waiting": any(report.state == ScoreReport.State.WAITING for report in reports),
        "parts": parts_of(run),
        "chosen_part": part,
        "tab": "data",
    }
    if latest := next((report for report in reports if report.table), None):
        require_votes_first(request, run, part_of(latest))
        table = ScoreTable.model_validate(latest.table)
        context |= {"latest": latest, "as_of": table.as_of} | on_page(table)
    return context


# --- the job --------------------------------------------------------------------------------------


def request_scores(run: Run, config: object) -> ScoreReport:
    """Let a worker make score files of a run; None is the default configuration.

    Raises ConfigInvalid, or ScoresRefused while others of this run are being made.
    """
    config = config_object(config)
    # Whether the run has labels of those tasks, a worker looks up.
    parse(config, None, Reach(off=switched_off()))
    try:
        with transaction.atomic():
            report = ScoreReport.objects.create(run=run, config=config)
            enqueue(_TASK, str(report.pk))
    except IntegrityError as error:
        message = "Score files of this run are being made. Request more when they are done."
        raise ScoresRefused(message) from error
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
    """Return what was requested, the newest first; while judges are tuned not what was before."""
    reports = ScoreReport.objects.filter(run=run).order_by("-requested_at")
    opened = opened_at(run.queue)
    return reports.filter(requested_at__gte=opened) if opened else reports


def make(report_id: UUID) -> None:
    """Make the files, unless they are made or another worker is at it."""
    # Web processes import this module, and never make any.
    from judge_eval.judging.provider_access import make_embedder
    from reports.scores.files import ScoringFailed, make_report

    waiting = ScoreReport.objects.filter(pk=report_id, state=ScoreReport.State.WAITING)
    if not leases.claim(waiting, LEASE, attempts=F("attempts") + 1):
        return
    report = ScoreReport.objects.select_related("run__queue").get(pk=report_id)
    if report.attempts > MOST_ATTEMPTS:
        _fail(report, f"The job failed {MOST_ATTEMPTS} times.")
        return
    try:
        with _renewed(report), TemporaryDirectory() as place:
            folder = Path(place) / folder_name(report)
            folder.mkdir()
            embed = partial(make_embedder, project=report.run.queue.project_id)
            reach = Reach(embed=embed, off=switched_off())
            scores = make_report(report.run, report.config, folder, reach)
            _store_files(report, folder, scores.table)
    except (ConfigInvalid, ScoringFailed) as error:
        _fail(report, str(error) or type(error).__name__)
    except Exception as error:
        if report.attempts == MOST_ATTEMPTS:
            reason = f"an unexpected error occurred ({type(error).__name__}); the worker logged it"
            _fail(report, f"The files could not be made: {reason}.")
        raise


def requeue_lost() -> None:
    """Publish again what no worker is at: its task was lost, or its worker is gone."""
    lost = ScoreReport.objects.filter(
        leases.free(),
        state=ScoreReport.State.WAITING,
        requested_at__lt=timezone.now() - TAKEN_UP_WITHIN,
    )
    for pk in lost.values_list("pk", flat=True):
        enqueue(_TASK, str(pk))


def remove_left_behind() -> None:
    """Delete the files of reports that went with their run; of very many, some each time."""
    files = list((settings.DATA / "scores").glob(FILES))
    report_ids = {path: UUID(path.name[:36]) for path in sample(files, min(len(files), LOOKED_AT))}
    reports = ScoreReport.objects.in_bulk(report_ids.values())
    for path, pk in report_ids.items():
        report, is_partial = reports.get(pk), path.stem != str(pk)
        if report is None or (is_partial and report.state != ScoreReport.State.WAITING):
            path.unlink(missing_ok=True)


def _claimed_row(report: ScoreReport) -> QuerySet[ScoreReport]:
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
            # The next round tries again when the database is away for a moment.
            with suppress(Error):
                leases.renew(_claimed_row(report), LEASE)
            connection.close()

    thread = Thread(target=renew, name="score-files-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _fail(report: ScoreReport, error: str) -> None:
    state = ScoreReport.State.FAILED
    leases.release(_claimed_row(report), state=state, done_at=timezone.now(), error=error)


def _store_files(report: ScoreReport, folder: Path, table: ScoreTable) -> None:
    """Put the files where they are downloaded from, unless another worker is at them by now."""
    path = path_of(report)
    partial_path = path.with_name(f"{path.stem}.{token_hex(4)}.zip")
    try:
        make_archive(str(partial_path.with_suffix("")), "zip", folder.parent, folder.name)
        with transaction.atomic():
            if leases.release(
                _claimed_row(report),
                state=ScoreReport.State.DONE,
                done_at=timezone.now(),
                size=partial_path.stat().st_size,
                table=table.model_dump(),
            ):
                partial_path.replace(path)
    finally:
        partial_path.unlink(missing_ok=True)
