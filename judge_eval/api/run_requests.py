"""Requests for a run: a config or the demo, and in which project."""

from __future__ import annotations

from typing import Any, Literal

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from ninja.errors import HttpError

from humanjudge.lib import strict_json
from humanjudge.lib.validation import ConfigError, ConfigInvalid, Name, Part, validated
from judge_eval.config.run_config import RunConfig, parse
from judge_eval.models import Run
from judge_eval.prefixes import Ambiguous, by_prefix
from judge_eval.runs import lifecycle
from judge_eval.runs.demo import RUNS, spec
from judge_eval.services import create_run
from voting.models import ApiKey, Project

# As much as one line of a bundle may have: it holds the config of a run.
MOST_BYTES = 32_000_000
MOST_NAMED = 20


class Beside(Part):
    """What a request for a run says beside its config."""

    project: Name = ""
    start: bool = False


class DemoRequest(Part):
    """One more run of what the demo holds."""

    kind: Literal["svg", "text"] = "svg"
    name: Name = ""
    project: Name = ""


def body_of(request: HttpRequest) -> bytes:
    """Read a config, which may be larger than other bodies; one that is too large is not read."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise HttpError(413, f"a config of more than {MOST_BYTES:,} bytes")
    return request.read()


def read(body: bytes) -> tuple[RunConfig, Beside]:
    """Read a config and what stands beside it; raises ConfigInvalid."""
    data = _json(body)
    named = Beside.model_fields.keys() & data if isinstance(data, dict) else set()
    beside = validated(Beside, {name: data.pop(name) for name in sorted(named)})
    return parse(data), beside


def make(config: RunConfig, beside: Beside, api_key: ApiKey) -> Run:
    """Draft the run and start it, or do neither."""
    project = project_for(api_key, beside.project)
    with transaction.atomic():
        run = lifecycle.create_draft(project, config)
        return lifecycle.start(run.pk) if beside.start else run


def make_demo(body: bytes, api_key: ApiKey) -> Run:
    """Make one more run of what the demo holds: stored outputs, judged by the baselines."""
    wanted = validated(DemoRequest, _json(body) if body else {})
    made_of = spec(wanted.kind, wanted.name or RUNS[wanted.kind])
    return create_run(project_for(api_key, wanted.project), made_of)


def _json(body: bytes) -> Any:
    try:
        return strict_json.loads(body.decode())
    except (UnicodeDecodeError, strict_json.NotJson) as error:
        raise _invalid("", f"the body is not JSON: {error}") from error


def project_for(api_key: ApiKey, wanted: str, *, may_be_new: bool = False) -> Project:
    """Return the project with this name or identifier, or else the only one that a key knows.

    With `may_be_new`, a key of all projects that asks for one that there is not is given it.
    """
    known = Project.objects.order_by("created_at")
    if api_key.project_id:
        known = known.filter(pk=api_key.project_id)
    found = _meant(known, wanted) if wanted else known
    if found.count() == 1:
        return found.get()
    if may_be_new and wanted.strip() and not api_key.project_id and not found.exists():
        return Project.objects.create(name=wanted.strip()[:200])
    if not known.exists():
        raise _invalid("project", "there is none yet; make one in the admin")
    if found.exists():
        raise _invalid("project", f"which one? {_named(found)}")
    raise _invalid("project", f"there is no {wanted!r}, but {_named(known)}")


def _meant(known: QuerySet[Project], wanted: str) -> QuerySet[Project]:
    try:
        row = by_prefix(known, wanted)
    except Ambiguous as ambiguous:
        raise _invalid("project", str(ambiguous)) from ambiguous
    return known.filter(pk=row.pk) if row else known.filter(name=wanted)


def _named(projects: QuerySet[Project]) -> str:
    named = [f"{str(project.pk)[:8]} ({project.name})" for project in projects[:MOST_NAMED]]
    more = projects.count() - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _invalid(path: str, message: str) -> ConfigInvalid:
    return ConfigInvalid([ConfigError(path, message)])
