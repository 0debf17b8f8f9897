"""What every endpoint begins with: whose key it is, what it may do, and which run is meant."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

from django.http import HttpRequest
from ninja import Schema
from ninja.errors import HttpError
from ninja.security import HttpBearer

from judge_eval.models import Run
from judge_eval.prefixes import Ambiguous, by_prefix
from voting.keys import find_key
from voting.models import ApiKey
from voting.selectors import open_to, released_by_me
from voting.voters import voter_of_key

BLIND = (
    "you still have pairs to vote on, and this would tell you what others think; "
    "vote first, or use a key with the scope 'verdicts'"
)


class KeyAuth(HttpBearer):
    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        return find_key(token)


class Detail(Schema):
    detail: str


ERRORS = {frozenset({401, 403, 404, 409, 422, 429}): Detail}


def key_of(request: HttpRequest, *scopes: str) -> ApiKey:
    """Return the key that a request came with, if it has all of these scopes."""
    api_key: ApiKey = request.auth  # type: ignore[attr-defined]
    for scope in scopes:
        if scope not in api_key.scopes:
            raise HttpError(403, f"this key lacks the scope {str(scope)!r}")
    return api_key


def run_of(api_key: ApiKey, run_id: str) -> Run:
    """Return the run that an identifier, or the beginning of one, means to this key."""
    runs = Run.objects.select_related("queue")
    if api_key.project_id:
        runs = runs.filter(queue__project=api_key.project_id)
    try:
        run = by_prefix(runs, run_id)
    except Ambiguous as ambiguous:
        raise HttpError(409, str(ambiguous)) from ambiguous
    if run is None:
        raise HttpError(404, f"there is no run {run_id!r}")
    return run


@lru_cache(maxsize=1000)
def queue_of(run: UUID) -> UUID:
    """Return the queue of a run, which it has for life."""
    return Run.objects.values_list("queue", flat=True).get(pk=run)


def keep_blind(api_key: ApiKey, run: Run) -> None:
    """Refuse what tells a key what others think that is still to vote without knowing."""
    if is_blind(api_key, run):
        raise HttpError(403, BLIND)


def is_blind(api_key: ApiKey, run: Run) -> bool:
    """Say whether a key votes without knowing what others think, and has pairs to vote on."""
    if ApiKey.Scope.VOTE not in api_key.scopes or ApiKey.Scope.VERDICTS in api_key.scopes:
        return False
    voter = voter_of_key(run.queue.project_id, api_key)
    return open_to(voter, run.queue).filter(released_by_me(voter)).exists()
