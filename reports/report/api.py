"""Reports by REST: score files are requested and downloaded; links are made, listed, revoked."""

from datetime import datetime
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Field, Path, Schema, Status
from ninja.errors import HttpError

from humanjudge.core.validation import INTEGER, Name, Part, json_schema
from judge_eval.board.few import require_votes_first
from judge_eval.models import Run
from judge_eval.runs.access import can
from judge_eval.runs.api_access import (
    KeyRouter,
    Prefix,
    keep_blind,
    key_of,
    located,
    project_of,
    run_of,
)
from judge_eval.runs.queries import by_prefix
from reports.models import ScoreReport, Share
from reports.report.model import ScoreTable
from reports.report.views import shares as report_shares
from reports.scores import views as scores_views
from reports.scores.config import Config, config_of_request
from voting.models import ApiKey, Project

of_scores = KeyRouter("scores")
of_runs, of_projects = KeyRouter("shares"), KeyRouter("shares")


# --- score files ----------------------------------------------------------------------------------

_SCHEMA = json_schema(Config)
# Code is named on the command line only.
_SCHEMA["properties"].pop("modules")
_BODY = {
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
    run: UUID = Field(alias="run_id")
    state: str
    error: str
    asked_at: datetime = Field(alias="requested_at")
    done_at: datetime | None
    bytes: int = Field(alias="size")
    location: str
    download: str | None
    figures: ScoreTable | None = Field(None, alias="table")

    @staticmethod
    def resolve_location(report: ScoreReport) -> str:
        return _address("score-files", report)

    @staticmethod
    def resolve_download(report: ScoreReport) -> str | None:
        is_done = report.state == ScoreReport.State.DONE
        return _address("score-files-zip", report) if is_done else None


def _address(view: str, report: ScoreReport) -> str:
    place = {"run_id": str(report.run_id), "report_id": str(report.pk)}
    return reverse(f"api:{view}", kwargs=place)


@of_scores.post("/{run_id}/scores", response={202: ScoresOut}, openapi_extra=_BODY)
def request_score_files(request: HttpRequest, response: HttpResponse, run_id: Prefix) -> Any:
    """Have how well the judges agree with people computed, as files.

    The body is a configuration as `manage.py score` reads it, in JSON; without one the metrics are
    those that suit the run's labels. Code cannot be named: a scorer of one's own is registered on
    the server. A worker makes the files: ask `location` until `state` is `done` or `failed`.
    """
    run = run_of(key_of(request, ApiKey.Scope.MANAGE), run_id, "run")
    report = scores_views.request_scores(run, config_of_request(request.body))
    response["Location"] = _address("score-files", report)
    return Status(202, report)


@of_scores.get(
    "/{run_id}/scores/{report_id}",
    response=ScoresOut,
    url_name="score-files",
    operation_id="score_files",
)
def score_files(request: HttpRequest, run_id: Prefix, report_id: Prefix) -> Any:
    """How far score files are; `error` says why they could not be made.

    `figures` is the summary that is in the files: `columns`, and of each judge a figure in each. It
    is null for a key that votes blindly and has pairs to vote on.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    report = _report(run, report_id)
    if report.table and can(api_key, "see", run):
        require_votes_first(api_key, run, scores_views.part_of(report))
    else:
        report.table = None
    return report


@of_scores.get(
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
    require_votes_first(api_key, run, scores_views.part_of(report))
    if report.state != ScoreReport.State.DONE:
        raise HttpError(409, report.error or "these files are still being made")
    try:
        return scores_views.zip_response(report)
    except FileNotFoundError as gone:
        raise HttpError(404, "these files were deleted; request them again") from gone


def _report(run: Run, report_id: str) -> ScoreReport:
    report = by_prefix(scores_views.reports_of(run).select_related("run"), report_id)
    if report is None:
        raise HttpError(404, f"this run has no score files {report_id!r}")
    return report


# --- links ----------------------------------------------------------------------------------------

ShareId: TypeAlias = Annotated[int, Path(ge=1, le=2**63 - 1)]


class ShareIn(Part):
    """What a link shows, to whom, and for how many days.

    `frozen`: for good what holds now. `outputs`: of a run, those that divide people and judges.
    `public`: search engines may list it.
    """

    label: Annotated[Name, Field(max_length=100)] = ""
    days: Annotated[int, Field(ge=1, le=report_shares.MOST_DAYS), INTEGER] | None = None
    frozen: bool = False
    outputs: bool = False
    public: bool = False


class ShareOut(Schema):
    """A link; `token_begins` tells it from others, `frozen_seq` at which entry it is frozen."""

    id: int
    project: UUID = Field(alias="project_id")
    run: UUID | None = Field(alias="run_id")
    label: str
    token_begins: str = Field(alias="prefix")
    frozen_seq: int | None
    outputs: bool = Field(alias="shows_outputs")
    public: bool = Field(alias="is_public")
    made_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    views: int
    viewed_at: datetime | None


class MadeOut(ShareOut):
    """A new link, which cannot be had again."""

    link: str


class Shares(Schema):
    shares: list[ShareOut]


@of_runs.post("/{run_id}/shares", response={201: MadeOut})
def share_run(request: HttpRequest, run_id: Prefix, body: ShareIn) -> Any:
    """Make a link to a run's report. `link` is in this answer alone: only its hash is kept.

    409 while the figures of the run are still being computed.
    """
    return _share_response(request, body, *_shared_subject(request, run_id=run_id))


@of_runs.get("/{run_id}/shares", response=Shares)
def shares_of_run(request: HttpRequest, run_id: Prefix) -> Any:
    """The links to a run's report, the newest first, with those that let nobody in any more."""
    return _listed(*_shared_subject(request, run_id=run_id))


@of_runs.post("/{run_id}/shares/{share_id}/revoke", response=ShareOut)
def revoke_share_of_run(request: HttpRequest, run_id: Prefix, share_id: ShareId) -> Any:
    """Let nobody in by a link any more."""
    return _revoked(request, share_id, *_shared_subject(request, run_id=run_id))


@of_projects.post("/{project_id}/shares", response={201: MadeOut})
def share_project(request: HttpRequest, project_id: Prefix, body: ShareIn) -> Any:
    """Make a link to a project's report. `link` is in this answer alone: only its hash is kept."""
    return _share_response(request, body, *_shared_subject(request, project_id=project_id))


@of_projects.get("/{project_id}/shares", response=Shares)
def shares_of_project(request: HttpRequest, project_id: Prefix) -> Any:
    """The links to a project's report, the newest first; those to its runs' are theirs."""
    return _listed(*_shared_subject(request, project_id=project_id))


@of_projects.post("/{project_id}/shares/{share_id}/revoke", response=ShareOut)
def revoke_share_of_project(request: HttpRequest, project_id: Prefix, share_id: ShareId) -> Any:
    """Let nobody in by a link any more."""
    return _revoked(request, share_id, *_shared_subject(request, project_id=project_id))


def _shared_subject(
    request: HttpRequest, *, run_id: str = "", project_id: str = ""
) -> tuple[Project, Run | None]:
    """Return what links are of; a key that is to vote blindly could read a report by its own."""
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    run = run_of(api_key, run_id, "share") if run_id else None
    project = run.queue.project if run else project_of(api_key, project_id, "share")
    if ApiKey.Scope.VOTE in api_key.scopes:
        runs = Run.objects.filter(queue__project=project).select_related("queue")
        for shared_run in [run] if run else runs:
            keep_blind(api_key, shared_run)
    return project, run


def _share_response(request: HttpRequest, body: ShareIn, project: Project, run: Run | None) -> Any:
    share, token = report_shares.make_share(
        project,
        run,
        key_of(request).user,
        label=body.label,
        expires_at=report_shares.in_days(body.days),
        is_frozen=body.frozen,
        shows_outputs=body.outputs,
        is_public=body.public,
    )
    link = request.build_absolute_uri(report_shares.address_of(token))
    return Status(201, ShareOut.from_orm(share).model_dump(by_alias=True) | {"link": link})


def _listed(project: Project, run: Run | None) -> dict[str, list[Share]]:
    shares = Share.objects.filter(project=project, run=run).order_by("-made_at")
    return {"shares": list(shares[: report_shares.MOST_LISTED])}


def _revoked(request: HttpRequest, share_id: int, project: Project, run: Run | None) -> Share:
    share = Share.objects.filter(pk=share_id, project=project, run=run).first()
    if share is None:
        raise HttpError(404, f"there is no link {share_id} here")
    report_shares.revoke_share(share, key_of(request).user)
    share.refresh_from_db()
    return share
