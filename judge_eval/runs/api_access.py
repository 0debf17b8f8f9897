"""What every endpoint begins with: whose key it is, what it may do, and which run is meant."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest
from ninja import Router, Schema
from ninja.errors import HttpError
from ninja.security import HttpBearer
from pydantic import WithJsonSchema

from humanjudge.core import strict_json
from humanjudge.core.ratelimit import RateLimit
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import ConfigError, ConfigInvalid
from judge_eval.models import Run
from judge_eval.runs.access import can
from judge_eval.runs.queries import by_prefix
from voting.access import roles
from voting.access.keys import find_key
from voting.access.login import slow_down
from voting.access.roles import (
    Action,
    make_project,
    projects_of,
    projects_where,
    refusal_of,
    require_making,
)
from voting.ballot.services import wait_until_sealed
from voting.models import ApiKey, Project, Voter
from voting.people.voters import voter_of_key

BLIND: Final = (
    "you still have {noun}s to vote on, and this would tell you what others think; "
    "vote first, or use a key with the scope 'verdicts'"
)
OWN_VOTES_SECONDS = 0.5
# Of each address; a right key is never counted, whatever comes from beside it.
WRONG_KEYS = RateLimit(per_second=1 / 3, burst=30)
MOST_NAMED: Final = 20
MOST_BYTES: Final = 1_000_000

# A row's identifier or the beginning of one. What is none is answered as one that is not known.
Prefix = Annotated[str, WithJsonSchema({"type": "string", "pattern": "^[0-9A-Fa-f-]{1,36}$"})]


class Problem(Schema):
    """What every answer of 400 and above holds: what is wrong, in words or value by value."""

    detail: str | list[ConfigError]


class Counts(Schema):
    total: int
    done: int
    pending: int


class KeyAuth(HttpBearer):
    def __init__(self, *kinds: str) -> None:
        super().__init__()
        self._kinds = kinds

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        api_key = find_key(token, *self._kinds)
        if api_key is None:
            slow_down(WRONG_KEYS, request, "wrong API keys")
        return api_key


class KeyRouter(Router):
    """Operations for who has a key. What each may be refused with is declared here, for all.

    Without kinds of keys the operations are public.
    """

    def __init__(self, tag: str, kinds: Sequence[str] = (ApiKey.Kind.SCRIPT,)) -> None:
        super().__init__(auth=KeyAuth(*kinds) if kinds else None, tags=[tag])
        self._refused = {400, 422, 429, 500, 503} | ({401, 403} if kinds else set())

    def add_api_operation(
        self,
        path: str,
        methods: list[str],
        view_func: Callable[..., Any],
        *,
        response: Any = None,
        **options: Any,
    ) -> None:
        """Add an operation; `response` has its answers, and those refusals that others have not."""
        answers = response if isinstance(response, dict) else {200: response}
        refused = set(self._refused)
        if "{" in path:
            refused |= {404, 409}
        if methods != ["GET"]:
            refused |= {408, 409, 413}
        responses = answers | dict.fromkeys(sorted(refused), Problem)
        super().add_api_operation(path, methods, view_func, response=responses, **options)


def located(operation: str, **parameters: str) -> JsonObject:
    """Describe an answer of 202: the operation that `Location` leads to says what comes of it.

    `parameters` are those of the operation, by the names that their values have in the answer.
    """
    address = {"required": True, "schema": {"type": "string", "format": "uri-reference"}}
    values = {name: f"$response.body#/{field}" for name, field in parameters.items()}
    links = {operation: {"operationId": operation, "parameters": values}}
    return {"responses": {202: {"headers": {"Location": address}, "links": links}}}


def key_of(request: HttpRequest, *scopes: str) -> ApiKey:
    """Return the key that a request came with, if it has all of these scopes."""
    api_key: ApiKey = request.auth  # type: ignore[attr-defined]
    for scope in scopes:
        if scope not in api_key.scopes:
            raise HttpError(403, f"this key lacks the scope {str(scope)!r}")
    return api_key


def run_of(api_key: ApiKey, run_id: str, action: Action = "see") -> Run:
    """Return the run that an identifier, or the beginning of one, means to this key.

    What the key's scopes allow, its person's role may not.
    """
    runs = Run.objects.select_related("queue").filter(queue__project__in=projects_of(api_key))
    run = by_prefix(runs, run_id)
    if run is None:
        raise HttpError(404, f"there is no run {run_id!r}")
    insist(api_key, action, run.queue.project_id)
    return run


def project_of(api_key: ApiKey, project_id: str, action: Action) -> Project:
    """Return the project that an identifier, or the beginning of one, means to this key."""
    project = by_prefix(projects_of(api_key), project_id)
    if project is None:
        raise HttpError(404, f"there is no project {project_id!r}")
    insist(api_key, action, project.pk)
    return project


def insist(api_key: ApiKey, action: Action, project: UUID) -> None:
    if not roles.can(api_key, action, project):
        raise HttpError(403, refusal_of(action))


def project_for(
    api_key: ApiKey,
    text: str,
    action: Action = "run",
    *,
    may_be_new: bool = False,
    usual: str = "",
) -> Project:
    """Return the project with this name or identifier, or else the only one where a key may do it.

    Where that is one of several, nothing that is wanted means the `usual` one.
    With `may_be_new`, a key of all projects that asks for one that there is not is given it.
    """
    allowed = projects_where(api_key, action).order_by("created_at")
    if not text and allowed.count() != 1:
        text = usual
    fitting = allowed.filter(name=text) if text else allowed
    if not fitting.exists() and (row := by_prefix(allowed, text)):
        fitting = allowed.filter(pk=row.pk)
    if fitting.count() == 1:
        return fitting.get()
    if may_be_new and text.strip() and not api_key.project_id and not fitting.exists():
        require_making(api_key)
        return make_project(text.strip()[:200], api_key.user)
    if not allowed.exists():
        raise ConfigInvalid.at("project", "there is none yet; make one in the admin")
    if fitting.exists():
        raise ConfigInvalid.at("project", f"which one? {_named(fitting)}")
    raise ConfigInvalid.at("project", f"there is no {text!r}, but {_named(allowed)}")


def _named(projects: QuerySet[Project]) -> str:
    named = [f"{str(project.pk)[:8]} ({project.name})" for project in projects[:MOST_NAMED]]
    unnamed_count = projects.count() - len(named)
    return ", ".join(named) + (f" and {unnamed_count} more" if unnamed_count else "")


def own_votes(api_key: ApiKey, run: Run) -> tuple[Voter, bool]:
    """Return the key's own voter, and whether all its votes are counted, after a short wait.

    A script that has just voted reads figures with its own votes in them.
    """
    voter = voter_of_key(run.queue.project_id, api_key)
    return voter, wait_until_sealed(voter, OWN_VOTES_SECONDS)


def json_of(request: HttpRequest, most_bytes: int = MOST_BYTES) -> Any:
    """Read a body that is checked by hand; one that is too large is not read."""
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > most_bytes:
        raise HttpError(413, f"a body of more than {most_bytes:,} bytes")
    try:
        return strict_json.loads(request.read())
    except strict_json.NotJson as error:
        raise ConfigInvalid.at("", f"the body is not JSON: {error}") from error


def keep_blind(api_key: ApiKey, run: Run) -> None:
    """Refuse what tells a key what others think that is still to vote without knowing."""
    if not can(api_key, "see", run):
        raise HttpError(403, BLIND.format(noun=run.queue.noun))
