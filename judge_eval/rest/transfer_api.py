"""Runs in and out by REST: files with rows of pairs, verdicts and votes, or whole bundles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, cast

from django.http import HttpRequest, StreamingHttpResponse
from django.utils import timezone
from django.utils.text import slugify
from ninja import Router, Status
from ninja.errors import HttpError

from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.interchange import mapping_config
from judge_eval.interchange.mapping import ColumnMapping
from judge_eval.interchange.reading import read
from judge_eval.interchange.rows import Item
from judge_eval.interchange.sources import UnknownFormat
from judge_eval.models import Run
from judge_eval.rest.access import ERRORS, KeyAuth, key_of, run_of
from judge_eval.rest.run_requests import LONGEST_NAME, project_for
from judge_eval.rest.transfer_schema import EXPORTED, FORM, IMPORTED, Shape
from judge_eval.transfer import bundle, import_options
from judge_eval.transfer.exporting import export_run
from judge_eval.transfer.import_report import ImportRefused, ImportReport
from judge_eval.transfer.importing import import_into, import_run
from judge_eval.transfer.restoring import restore
from judge_eval.transfer.vote_exports import grandjury_votes, votes_csv
from voting import ledger
from voting.models import ApiKey, Project
from voting.services import record_exposure
from voting.voters import voter_of_key

MOST_FILES = 4
MOST_BYTES = 64 * 1024 * 1024
MANAGE, VOTE = ApiKey.Scope.MANAGE, ApiKey.Scope.VOTE
_BLOCK = 64 * 1024
_PAIRS_AT_ONCE = 1000

router = Router(auth=KeyAuth(), tags=["runs"])


class File(NamedTuple):
    name: str
    stream: BinaryIO


@router.post("/import", response=IMPORTED, openapi_extra=FORM)
def import_new(request: HttpRequest) -> Any:
    """Make a run of files: rows of pairs, verdicts and votes, or one bundle that was exported.

    `name` names the run and `project` its project, by name or identifier; a bundle brings both.
    `mapping` says which column is what, `options` how the run is made. Where one row is wrong,
    nothing is written, unless the options say `"skip_errors": true`; a file that cannot be read to
    its end is refused all the same. A key that brings verdicts in has seen them: what it votes on
    these pairs is not blind.
    """
    api_key = key_of(request, MANAGE)
    files, project = _files(request), request.POST.get("project", "")
    if bundle.is_bundle(files[0].stream):
        return _restored(api_key, files, project)
    name = request.POST.get("name", "").strip()
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise _invalid("name", f"a line of 1 to {LONGEST_NAME} characters is needed")
    options, items = _options(request), _items(request, files)
    where = project_for(api_key, project)
    return _imported(201, api_key, lambda: import_run(where, name, items, options=options))


@router.post("/{run_id}/import", response=IMPORTED, openapi_extra=FORM)
def import_more(request: HttpRequest, run_id: str) -> Any:
    """Add pairs, verdicts and votes to a run. What it holds already is not added again."""
    api_key = key_of(request, MANAGE)
    run, files = run_of(api_key, run_id), _files(request)
    if bundle.is_bundle(files[0].stream):
        raise _invalid("file", "a bundle is a run of its own: POST it to /api/runs/import")
    options, items = _options(request), _items(request, files)
    return _imported(200, api_key, lambda: import_into(run.pk, items, options=options))


@router.get("/{run_id}/export", response=ERRORS, openapi_extra=EXPORTED)
def export(
    request: HttpRequest,
    run_id: str,
    format: Shape = "jsonl",  # noqa: A002  as the address calls it
) -> Any:
    """Everything of a run as a bundle (`jsonl`); or its votes as a table (`csv`), or `votes` as the
    GrandJury client reads them; or the sealed `ledger` of its project, which can be verified.

    It shows the judges' verdicts and other people's votes, so it needs the scope `manage`; and a
    key that may also vote is noted as having seen every pair: what it votes then is not blind.
    """
    api_key = key_of(request, MANAGE)
    run = run_of(api_key, run_id)
    project = run.queue.project
    shown = Run.objects.filter(queue__project=project) if format == "ledger" else [run]
    _remember_seen(api_key, shown)
    lines, kind, ending = {
        "jsonl": (_with_ends(export_run(run)), "application/jsonl", ".jsonl"),
        "csv": (votes_csv(run), "text/csv; charset=utf-8", ".csv"),
        "votes": (grandjury_votes(run), "text/csv; charset=utf-8", "-votes.csv"),
        "ledger": (_with_ends(ledger.export(project)), "application/jsonl", "-ledger.jsonl"),
    }[format]
    name = f"{slugify(run.name) or 'run'}-{str(run.pk)[:8]}{ending}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingHttpResponse(_blocks(lines), content_type=kind, headers=headers)


def _files(request: HttpRequest) -> list[File]:
    # Before the form is looked at: Django would write all of it to the disk.
    if int(request.META.get("CONTENT_LENGTH") or 0) > MOST_FILES * MOST_BYTES:
        raise HttpError(413, f"at most {MOST_FILES} files of {MOST_BYTES // 2**20} MB each")
    files = request.FILES.getlist("file")
    if not 0 < len(files) <= MOST_FILES:
        raise _invalid("file", f"1 to {MOST_FILES} files are needed, in a multipart form")
    for file in files:
        if (file.size or 0) > MOST_BYTES:
            raise HttpError(413, f"{file.name} has more than {MOST_BYTES // 2**20} MB")
    return [File(file.name or "file", cast(BinaryIO, file.file)) for file in files]


def _options(request: HttpRequest) -> Any:
    text = request.POST.get("options", "")
    return import_options.parse(import_options.json_text("options", text) if text else {})


def _items(request: HttpRequest, files: list[File]) -> Iterator[Item]:
    mapping, file_format = _mapping(request), request.POST.get("format") or None
    try:
        return chain.from_iterable(
            # The first records are looked at here, all others when they are imported.
            [read(file.stream, file.name, mapping, file_format) for file in files]
        )
    except UnknownFormat as error:
        raise _invalid("format", str(error)) from error


def _mapping(request: HttpRequest) -> ColumnMapping | None:
    text = request.POST.get("mapping", "")
    if not text:
        return None
    try:
        return mapping_config.parse(import_options.json_text("mapping", text))
    except mapping_config.MappingError as error:
        problems = [ConfigError(f"mapping.{path}", why) for path, why in error.problems]
        raise ConfigInvalid(problems) from error


def _restored(api_key: ApiKey, files: list[File], wanted: str) -> Any:
    if len(files) > 1:
        raise _invalid("file", "a bundle comes alone")
    project: Project | None = None
    if wanted or api_key.project_id:
        project = project_for(api_key, wanted)
    report = restore(files[0].stream, files[0].name, project)
    return _answer(201 if report.changed else 200, report, api_key)


def _imported(status: int, api_key: ApiKey, do: Callable[[], ImportReport]) -> Any:
    try:
        return _answer(status, do(), api_key)
    except ImportRefused as refused:
        raise HttpError(409, str(refused)) from refused


def _answer(status: int, report: ImportReport, api_key: ApiKey) -> Any:
    if report.new["verdicts"] or report.already["verdicts"]:
        _remember_seen(api_key, Run.objects.filter(pk__in=report.runs))
    if report.run or not report.failures:
        return Status(status, report.as_dict())
    return Status(422, report.as_dict() | {"detail": report.refusal()})


def _invalid(path: str, message: str) -> ConfigInvalid:
    return ConfigInvalid([ConfigError(path, message)])


def _remember_seen(api_key: ApiKey, runs: Iterable[Run]) -> None:
    """Note that whoever has the key knows what judges say, if it may vote at all."""
    if VOTE not in api_key.scopes:
        return
    for run in runs:
        voter, position = voter_of_key(run.queue.project_id, api_key), -1
        pairs = run.queue.comparisons.order_by("position").values_list("position", "pk")
        while chunk := list(pairs.filter(position__gt=position)[:_PAIRS_AT_ONCE]):
            record_exposure(voter.pk, [pk for _, pk in chunk], timezone.now())
            position = chunk[-1][0]


def _with_ends(lines: Iterator[str]) -> Iterator[str]:
    return (f"{line}\n" for line in lines)


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    """Put lines together: each piece of an answer costs the server some work."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line.encode())
        size += len(block[-1])
        if size > _BLOCK:
            yield b"".join(block)
            block, size = [], 0
    yield b"".join(block)
