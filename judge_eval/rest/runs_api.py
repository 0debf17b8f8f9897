"""A run's life by REST: made, watched, started, stopped, resumed, tried again, simulated."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from ninja import Field, Router, Schema, Status
from ninja.errors import HttpError

from judge_eval.engine import lifecycle, simulation
from judge_eval.models import Run
from judge_eval.rest import run_listing, run_requests
from judge_eval.rest.access import ERRORS, Detail, KeyAuth, key_of, run_of
from judge_eval.rest.runs_schema import (
    Created,
    Detailed,
    Estimated,
    Problems,
    Retried,
    Runs,
    State,
    detailed,
    estimated,
    listed,
    nothing_to_ask,
    state,
)
from voting.models import ApiKey
from voting.services import VotingClosed
from voting.voters import voter_of_key

MOST_RUNS = 200
MANAGE, READ, VOTE = ApiKey.Scope.MANAGE, ApiKey.Scope.READ, ApiKey.Scope.VOTE

router = Router(auth=KeyAuth(), tags=["runs"])
# A config has a shape of its own, which is checked as a whole: every error is named by its path.
MADE = {201: Created, 422: Problems, frozenset({401, 403, 404, 409, 413}): Detail}
CONFIG = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {
                    "name": "Cats",
                    "mode": "judge_eval",
                    "models": [{"id": "model-a"}, {"id": "model-b"}],
                    "judges": ["judge-x", "longer-wins"],
                    "prompts": [{"id": "cat", "text": "A cat on a bicycle"}],
                    "generation": {"temperature": 0.7},
                    "project": "Demo",
                    "start": True,
                },
            }
        },
    }
}
DEMO = {
    "requestBody": {
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"kind": "svg", "name": "Drawings", "project": "Demo"},
            }
        }
    }
}


class Resume(Schema):
    budget_usd: Decimal | None = Field(None, gt=0, le=1_000_000)


class SimulateIn(Schema):
    choice: str = simulation.AUTO
    limit: int | None = Field(None, ge=1)
    seed: int = 0


class SimulateOut(Schema):
    voted: int
    skipped: int
    left: int
    simulated: bool = True


@router.post("", response=MADE, openapi_extra=CONFIG)
def create(request: HttpRequest) -> Any:
    """Make a run of a config. With `start` it begins at once, or is not made at all.

    `project` is a name or an identifier; it may be left out where a key knows only one.
    """
    api_key = key_of(request, MANAGE)
    asked = run_requests.read(run_requests.body_of(request))
    run = run_requests.make(asked, api_key)
    return Status(201, state(run) | estimated(asked.config))


@router.get("", response={200: Runs, **ERRORS})
def list_runs(request: HttpRequest, limit: int = 50, cursor: str = "") -> Any:
    """The runs that this key knows, the newest first; pass `next_cursor` on until it is null."""
    api_key = key_of(request, READ)
    if not 1 <= limit <= MOST_RUNS:
        raise HttpError(422, f"limit: 1 to {MOST_RUNS}, not {limit}")
    try:
        runs, following = run_listing.page(api_key.project_id, cursor, limit)
    except run_listing.CursorInvalid as invalid:
        raise HttpError(422, str(invalid)) from invalid
    return {"runs": [listed(run) for run in runs], "next_cursor": following}


@router.post(
    "/estimate",
    response={200: Estimated, 422: Problems, frozenset({401, 403, 413}): Detail},
    openapi_extra=CONFIG,
)
def estimate(request: HttpRequest) -> Any:
    """Check a config, say what it would ask for and cost, and write nothing."""
    key_of(request, READ)
    return estimated(run_requests.read(run_requests.body_of(request)).config)


@router.post("/demo", response=MADE, openapi_extra=DEMO)
def create_demo(request: HttpRequest) -> Any:
    """Make another run of the demo's stored outputs, judged by the baselines: no model is asked.

    `kind` is `svg` (the default) or `text`; the body may be left out.
    """
    run = run_requests.make_demo(run_requests.body_of(request), key_of(request, MANAGE))
    return Status(201, state(run) | nothing_to_ask(run.queue.comparisons.count()))


@router.get("/{run_id}", response={200: Detailed, **ERRORS})
def get_run(request: HttpRequest, run_id: str) -> Any:
    """Where a run stands: its state, its pairs and votes, its work, its cost, its judges."""
    run = run_of(key_of(request, READ), run_id)
    return detailed(run_listing.counted(Run.objects.filter(pk=run.pk)).get())


@router.post("/{run_id}/start", response={200: State, **ERRORS})
def start(request: HttpRequest, run_id: str) -> Any:
    """Start a draft."""
    return state(lifecycle.start(_managed(request, run_id).pk))


@router.post("/{run_id}/stop", response={200: State, **ERRORS})
def stop(request: HttpRequest, run_id: str) -> Any:
    """Make no more calls and take no more votes; calls that are out are still written down."""
    return state(lifecycle.stop(_managed(request, run_id).pk))


@router.post("/{run_id}/resume", response={200: State, **ERRORS})
def resume(request: HttpRequest, run_id: str, body: Resume | None = None) -> Any:
    """Go on where a run was stopped, with another budget if one is given."""
    budget = body.budget_usd if body else None
    return state(lifecycle.resume(_managed(request, run_id).pk, budget))


@router.post("/{run_id}/retry", response={200: Retried, **ERRORS})
def retry(request: HttpRequest, run_id: str) -> Any:
    """Ask again for everything that failed; `calls` says how many calls and drawings that is."""
    run = _managed(request, run_id)
    calls = lifecycle.retry_failed(run.pk)
    run.refresh_from_db()
    return state(run) | {"calls": calls}


@router.post("/{run_id}/duplicate", response={201: State, **ERRORS})
def duplicate(request: HttpRequest, run_id: str) -> Any:
    """Draft a run with the same config; calls that are the same are answered from storage."""
    return Status(201, state(lifecycle.duplicate(_managed(request, run_id).pk)))


def _managed(request: HttpRequest, run_id: str) -> Run:
    return run_of(key_of(request, MANAGE), run_id)


@router.post("/{run_id}/judge-eval/simulate", response={200: SimulateOut, **ERRORS})
def simulate(request: HttpRequest, run_id: str, body: SimulateIn) -> Any:
    """Cast pretend votes on the pairs that are pending for this key, to try a run out.

    The choice is one of the ballot, or `auto`: drawn for each pair by the seed, so the same seed
    makes the same votes. A run that holds such votes takes no others, and one in which people have
    voted takes none of them. At most 5,000 are cast at once: `left` says how many pairs want more.
    """
    api_key = key_of(request, VOTE, MANAGE)
    run = run_of(api_key, run_id)
    choices = (*run.queue.ballot, simulation.AUTO)
    if body.choice not in choices:
        raise HttpError(422, f"choice: {body.choice!r} is none of {', '.join(choices)}")
    voter = voter_of_key(run.queue.project_id, api_key)
    try:
        done = simulation.simulate(run, voter, body.choice, limit=body.limit, seed=body.seed)
    except VotingClosed as refused:
        raise HttpError(409, str(refused)) from refused
    return {"voted": done.voted, "skipped": done.skipped, "left": done.left}
