"""Runs in and out by REST: files with rows of items, verdicts and votes, or whole bundles."""

from typing import Any, Final, Literal, get_args
from uuid import UUID

from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from ninja import Schema, Status
from ninja.errors import HttpError

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import LONGEST_NAME, ConfigInvalid
from judge_eval.demo import load
from judge_eval.exports.files import FormatName
from judge_eval.exports.files import export as export_file
from judge_eval.imports import import_jobs
from judge_eval.imports.containers import Format, SourceFile
from judge_eval.imports.import_read import open_to_imports
from judge_eval.imports.import_report import ImportReport, json_text
from judge_eval.models import Import, Run
from judge_eval.runs.api_access import (
    KeyRouter,
    Prefix,
    Problem,
    key_of,
    located,
    project_for,
    run_of,
)
from voting.access.roles import can_make_projects, projects_where
from voting.models import ApiKey

MANAGE = ApiKey.Scope.MANAGE

router = KeyRouter("runs")
imports = KeyRouter("imports")

# --- what goes in and comes out ---------------------------------------------------------------


class Imported(Schema):
    """An import: how far it has come, and at last what came of it."""

    id: UUID
    state: Literal["waiting", "reading", "writing", "done", "refused", "failed"]
    run_id: UUID | None
    rows_read: int
    written: int
    to_write: int
    status: int | None
    detail: str
    report: ImportReport | None


# Of a new run alone; they are needed but for a bundle, which brings its own.
_LINE: Final = {"type": "string", "maxLength": LONGEST_NAME}
# Of what is imported first, where its project is not named.
FIRST_PROJECT: Final = "My project"
_NEW: Final = {"name": _LINE | {"minLength": 1}, "project": _LINE}


def _multipart(properties: JsonObject) -> JsonObject:
    json = {"type": "string", "contentMediaType": "application/json"}
    file = {"type": "string", "format": "binary"}
    most = settings.IMPORT_MAX_FILES
    fields = properties | {
        "file": {"type": "array", "minItems": 1, "maxItems": most, "items": file},
        "format": {"type": "string", "enum": [*get_args(Format)]},
        "mapping": json,
        "options": json,
    }
    schema = {"type": "object", "required": ["file"], "properties": fields}
    body = {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    return {"requestBody": body, **located("import_state", import_id="id")}


_TEXT: Final = {"schema": {"type": "string"}}
_CONTENT: Final = {
    "application/jsonl": _TEXT,
    "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
    "text/csv": _TEXT,
    "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
}
EXPORTED: Final = {"responses": {200: {"description": "A file", "content": _CONTENT}}}
ACCEPTED: Final = {202: Imported, 429: Problem}


# --- addresses --------------------------------------------------------------------------------


@router.post("/import", response=ACCEPTED, openapi_extra=_multipart(_NEW))
def import_new(request: HttpRequest, response: HttpResponse) -> Any:
    """Make a run of files: rows of pairs or single items with verdicts and votes, or one bundle.

    `name` names the run and `project` its project, by name or identifier (a new one is made for a
    key of all projects); a bundle brings both. Where nothing but the demo is there, a run whose
    project is not named is of "My project", which is made.
    `mapping` says which column is what, `options` how the run is made. A worker does it; the
    address in `Location` says how far it has come, and at last what was imported. Where one row is
    wrong, nothing is, unless the options say `"skip_errors": true`; a file that cannot be read to
    its end is refused all the same. A key that brings verdicts in has seen them: what it votes on
    these pairs is not blind.
    """
    api_key = key_of(request, MANAGE)
    files, project_name = _files(request), request.POST.get("project", "")
    job = Import(api_key=api_key)
    import_jobs.recognise(job, files)
    if job.is_bundle:
        if project_name or api_key.project_id:
            job.project = project_for(api_key, project_name)
        return _accepted(response, job, files)
    job.name = request.POST.get("name", "").strip()
    for path, line, least in (("name", job.name, 1), ("project", project_name, 0)):
        if not least <= len(line) <= LONGEST_NAME or not line.isprintable():
            raise ConfigInvalid.at(
                path, f"a line of {least} to {LONGEST_NAME} characters is needed"
            )
    job.form = _form(request, files)
    own_projects = projects_where(api_key, "run").exclude(name__in=(*load.PROJECTS, FIRST_PROJECT))
    usual = "" if own_projects.exists() else FIRST_PROJECT
    job.project = project_for(api_key, project_name, may_be_new=True, usual=usual)
    return _accepted(response, job, files)


@router.post("/{run_id}/import", response=ACCEPTED, openapi_extra=_multipart({}))
def import_more(request: HttpRequest, response: HttpResponse, run_id: Prefix) -> Any:
    """Add items, verdicts and votes to a run. What it holds already is not added again."""
    api_key = key_of(request, MANAGE)
    run, files = run_of(api_key, run_id, "run"), _files(request)
    job = Import(api_key=api_key, run=run, project_id=run.queue.project_id)
    import_jobs.recognise(job, files)
    job.form = _form(request, files)
    open_to_imports(Run.objects.filter(pk=run.pk))
    return _accepted(response, job, files)


@imports.get("/{import_id}", response=Imported, operation_id="import_state")
def import_state(request: HttpRequest, import_id: UUID) -> Any:
    """How far an import has come: `waiting`, `reading`, `writing`; then `done`, with its report;
    or `refused` or `failed`, with the reason in `detail` and the status that says it in `status`.
    """
    return _import_of(key_of(request, MANAGE), import_id)


@imports.post("/{import_id}/stop", response=Imported)
def import_stop(request: HttpRequest, import_id: UUID) -> Any:
    """Stop an import that is not being written yet; one that is goes on to its end."""
    job = _import_of(key_of(request, MANAGE), import_id)
    import_jobs.cancel(job)
    job.refresh_from_db()
    return job


@router.get("/{run_id}/export", response=None, openapi_extra=EXPORTED)
def export(
    request: HttpRequest,
    run_id: Prefix,
    format: FormatName = "jsonl",  # noqa: A002  as the address calls it
) -> Any:
    """Everything of a run as a bundle (`jsonl`); its items, verdicts and votes as a table (`csv`,
    or `rows` as JSON Lines), or all `labels` as a matrix of items by people and judges (CSV;
    `labels-parquet` has types).

    What most people agree on for trainers: `dpo`, `kto`, `judge-training`. Tasks and records for
    `label-studio` and `argilla`, `votes` for the GrandJury client. The sealed `ledger` is that of
    the whole project and can be verified. docs/exporting.md shows each.

    It shows the judges' verdicts and other people's votes, so it needs the scope `manage`; and a
    key that may also vote is noted as having seen every pair: what it votes then is not blind.
    """
    api_key = key_of(request, MANAGE)
    return export_file(run_of(api_key, run_id, "export"), format, api_key)


def _files(request: HttpRequest) -> list[SourceFile]:
    import_jobs.check_length(request.META.get("CONTENT_LENGTH", ""))
    return import_jobs.sources_of(request.FILES.getlist("file"))


def _form(request: HttpRequest, files: list[SourceFile]) -> JsonObject:
    fields = {
        path: json_text(path, request.POST[path])
        for path in ("options", "mapping")
        if request.POST.get(path)
    }
    columns, file_format = fields.get("mapping"), request.POST.get("format")
    return import_jobs.form_of(files, fields.get("options", {}), columns, file_format)


def _accepted(response: HttpResponse, job: Import, files: list[SourceFile]) -> Any:
    import_jobs.check_room(job.project_id)
    import_jobs.submit(job, files)
    response.headers["Location"] = f"/api/imports/{job.pk}"
    return Status(202, job)


def _import_of(api_key: ApiKey, import_id: UUID) -> Import:
    visible = Q(project__in=projects_where(api_key, "run"))
    if can_make_projects(api_key):
        # A bundle that brings its project is only for those who may make one.
        visible |= Q(project=None, api_key__user=api_key.user)
    submitted_imports = Import.objects.exclude(state=Import.State.DRAFT)
    job = submitted_imports.filter(visible, pk=import_id).first()
    if job is None:
        raise HttpError(404, f"there is no import {str(import_id)!r}")
    return job
