"""Links to reports by REST: made, listed and revoked."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated, Any, TypeAlias
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from ninja import Field, Path, Schema, Status
from ninja.errors import HttpError

from humanjudge.lib.validation import WHOLE, Name, Part
from judge_eval.api.access import KeyRouter, Prefix, keep_blind, key_of, project_of, run_of
from judge_eval.models import Run
from reports.models import Share
from reports.shares import services
from voting.models import ApiKey, Project

of_runs, of_projects = KeyRouter("shares"), KeyRouter("shares")

ShareId: TypeAlias = Annotated[int, Path(ge=1, le=2**63 - 1)]


class ShareIn(Part):
    """What a link shows, to whom, and for how many days.

    `frozen`: for good what holds now. `outputs`: of a run, those that divide people and judges.
    `public`: search engines may list it.
    """

    label: Annotated[Name, Field(max_length=100)] = ""
    days: Annotated[int, Field(ge=1, le=services.MOST_DAYS), WHOLE] | None = None
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
    run = _run(request, run_id)
    return _made(request, run.queue.project, run, body)


@of_runs.get("/{run_id}/shares", response=Shares)
def shares_of_run(request: HttpRequest, run_id: Prefix) -> Any:
    """The links to a run's report, the newest first, with those that let nobody in any more."""
    run = _run(request, run_id)
    return {"shares": _listed(Share.objects.filter(run=run))}


@of_runs.post("/{run_id}/shares/{share_id}/revoke", response=ShareOut)
def revoke_share_of_run(request: HttpRequest, run_id: Prefix, share_id: ShareId) -> Any:
    """Let nobody in by a link any more."""
    run = _run(request, run_id)
    return _revoked(request, Share.objects.filter(run=run), share_id)


@of_projects.post("/{project_id}/shares", response={201: MadeOut})
def share_project(request: HttpRequest, project_id: Prefix, body: ShareIn) -> Any:
    """Make a link to a project's report. `link` is in this answer alone: only its hash is kept."""
    return _made(request, _project(request, project_id), None, body)


@of_projects.get("/{project_id}/shares", response=Shares)
def shares_of_project(request: HttpRequest, project_id: Prefix) -> Any:
    """The links to a project's report, the newest first; those to its runs' are theirs."""
    project = _project(request, project_id)
    return {"shares": _listed(Share.objects.filter(project=project, run=None))}


@of_projects.post("/{project_id}/shares/{share_id}/revoke", response=ShareOut)
def revoke_share_of_project(request: HttpRequest, project_id: Prefix, share_id: ShareId) -> Any:
    """Let nobody in by a link any more."""
    project = _project(request, project_id)
    return _revoked(request, Share.objects.filter(project=project, run=None), share_id)


def _run(request: HttpRequest, run_id: str) -> Run:
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    run = run_of(api_key, run_id, "share")
    _keep_blind(api_key, [run])
    return run


def _project(request: HttpRequest, project_id: str) -> Project:
    api_key = key_of(request, ApiKey.Scope.MANAGE)
    project = project_of(api_key, project_id, "share")
    _keep_blind(api_key, Run.objects.filter(queue__project=project).select_related("queue"))
    return project


def _keep_blind(api_key: ApiKey, runs: Iterable[Run]) -> None:
    """Refuse a key that is to vote blindly: it could read the report by its own link."""
    if ApiKey.Scope.VOTE in api_key.scopes:
        for run in runs:
            keep_blind(api_key, run)


def _made(request: HttpRequest, project: Project, run: Run | None, body: ShareIn) -> Any:
    share, token = services.make_share(
        project,
        run,
        key_of(request).user,
        label=body.label,
        expires_at=timezone.now() + timedelta(days=body.days) if body.days else None,
        is_frozen=body.frozen,
        shows_outputs=body.outputs,
        is_public=body.public,
    )
    link = request.build_absolute_uri(services.address_of(token))
    return Status(201, ShareOut.from_orm(share).model_dump(by_alias=True) | {"link": link})


def _listed(shares: QuerySet[Share]) -> list[Share]:
    return list(shares.order_by("-made_at")[: services.MOST_LISTED])


def _revoked(request: HttpRequest, shares: QuerySet[Share], share_id: int) -> Share:
    share = shares.filter(pk=share_id).first()
    if share is None:
        raise HttpError(404, f"there is no link {share_id} here")
    services.revoke_share(share, key_of(request).user)
    share.refresh_from_db()
    return share
