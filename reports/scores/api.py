"""Score files by REST: asked for, waited for, fetched."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import FileResponse, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Schema, Status
from ninja.errors import HttpError

from humanjudge.lib.validation import json_schema
from judge_eval.access import can
from judge_eval.api.access import KeyRouter, Prefix, keep_blind, key_of, located, run_of
from judge_eval.findings.few import keep_few_from
from judge_eval.models import Run
from judge_eval.selectors import by_prefix
from reports.models import ScoreReport
from reports.scores import jobs
from reports.scores.config import Config, sent
from reports.scores.table import ScoreTable
from voting.models import ApiKey

router = KeyRouter("scores")

_SCHEMA = json_schema(Config)
# Code is named on the command line only.
_SCHEMA["properties"].pop("modules")
_ASKED = {
    "requestBody": {
        "required": False,
        "description": "Which metrics, as docs/results.md describes; nothing for the default.",
        "content": {
            "application/json": {
                "schema": {"anyOf": [_SCHEMA, _SCHEMA["properties"]["metrics"], {"type": "null"}]},
                "example": {"metrics": [{"scorer": "cohen_kappa", "task_names": ["winner"]}]},
            }
        },
    },
    **located("score_files", run_id="run", report_id="id"),
}
_ZIP = {
    "responses": {
        200: {
            "description": "The files.",
            "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
        }
    }
}


class ScoresOut(Schema):
    id: UUID
    run: UUID
    state: str
    error: str
    asked_at: datetime
    done_at: datetime | None
    bytes: int
    location: str
    download: str | None
    figures: ScoreTable | None = None


@router.post("/{run_id}/scores", response={202: ScoresOut}, openapi_extra=_ASKED)
def ask(request: HttpRequest, response: HttpResponse, run_id: Prefix) -> Any:
    """Have how well the judges agree with people computed, as files.

    The body is a configuration as `manage.py score` reads it, in JSON; without one the metrics are
    those that suit the run's labels. Code cannot be named: a scorer of one's own is registered on
    the server. A worker makes the files: ask `location` until `state` is `done` or `failed`.
    """
    run = run_of(key_of(request, ApiKey.Scope.MANAGE), run_id, "run")
    report = jobs.ask(run, sent(request.body))
    answer = _out(report)
    response["Location"] = answer.location
    return Status(202, answer)


@router.get(
    "/{run_id}/scores/{report_id}",
    response=ScoresOut,
    url_name="score-files",
    operation_id="score_files",
)
def state(request: HttpRequest, run_id: Prefix, report_id: Prefix) -> Any:
    """How far score files are; `error` says why they could not be made.

    `figures` is the summary that is in the files: `columns`, and of each judge a figure in each. It
    is null for a key that votes blindly and has pairs to vote on.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    report = _report(run, report_id)
    is_shown = report.table and can(api_key, "see", run)
    if is_shown:
        keep_few_from(api_key, run, jobs.part_of(report))
    return _out(report, report.table if is_shown else None)


@router.get(
    "/{run_id}/scores/{report_id}/download",
    response=None,
    openapi_extra=_ZIP,
    url_name="score-files-zip",
)
def download(request: HttpRequest, run_id: Prefix, report_id: Prefix) -> Any:
    """The files as a zip.

    A key that votes blindly, with the scope `vote` and without `verdicts`, is refused while it has
    pairs to vote on.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    keep_blind(api_key, run)
    report = _report(run, report_id)
    keep_few_from(api_key, run, jobs.part_of(report))
    if report.state != ScoreReport.State.DONE:
        raise HttpError(409, report.error or "these files are still being made")
    response = zip_response(report)
    if response is None:
        raise HttpError(404, "these files are not there any more; ask for them again")
    return response


def zip_response(report: ScoreReport) -> FileResponse | None:
    try:
        stream = jobs.path_of(report).open("rb")
    except FileNotFoundError:
        return None
    name = f"{jobs.folder_name(report)}.zip"
    return FileResponse(stream, as_attachment=True, filename=name, content_type="application/zip")


def _report(run: Run, report_id: str) -> ScoreReport:
    report = by_prefix(jobs.reports_of(run).select_related("run"), report_id)
    if report is None:
        raise HttpError(404, f"this run has no score files {report_id!r}")
    return report


def _out(report: ScoreReport, figures: Any = None) -> ScoresOut:
    place = {"run_id": str(report.run_id), "report_id": str(report.pk)}
    is_done = report.state == ScoreReport.State.DONE
    return ScoresOut(
        id=report.pk,
        run=report.run_id,
        state=report.state,
        error=report.error,
        asked_at=report.asked_at,
        done_at=report.done_at,
        bytes=report.size,
        location=reverse("api:score-files", kwargs=place),
        download=reverse("api:score-files-zip", kwargs=place) if is_done else None,
        figures=figures,
    )
