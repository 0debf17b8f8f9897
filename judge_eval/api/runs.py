"""A run's life by REST: made, watched, started, stopped, resumed, tried again, simulated."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Field, Schema, Status
from ninja.errors import HttpError
from pydantic import BaseModel, ConfigDict, WithJsonSchema

from judge_eval.api import run_requests
from judge_eval.api.access import WHOLE, KeyRouter, Prefix, Problem, key_of, run_of
from judge_eval.api.runs_schema import (
    CONFIG,
    DEMO,
    Created,
    CursorInvalid,
    Detailed,
    Estimated,
    Retried,
    Runs,
    State,
    counted,
    detailed,
    estimated,
    listed,
    nothing_to_ask,
    page,
    state,
)
from judge_eval.config.run_config import MOST_USD
from judge_eval.models import Run
from judge_eval.runs import lifecycle, simulation
from voting.choices import CHOICES
from voting.models import ApiKey
from voting.services import VotingClosed
from voting.voters import voter_of_key

MOST_RUNS = 200
MANAGE, READ, VOTE = ApiKey.Scope.MANAGE, ApiKey.Scope.READ, ApiKey.Scope.VOTE

router = KeyRouter("runs")
Cursor = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": "^([0-9]{1,17}-[0-9a-f]{32})?$"})
]


class Resume(BaseModel):
    model_config = ConfigDict(strict=True)

    budget_usd: float | None = Field(None, gt=0, le=MOST_USD)


class SimulateIn(BaseModel):
    model_config = ConfigDict(strict=True)

    choice: Annotated[
        str, WithJsonSchema({"type": "string", "enum": [*CHOICES, simulation.AUTO]})
    ] = simulation.AUTO
    limit: Annotated[int, Field(ge=1), WHOLE] | None = None
    seed: Annotated[int, WHOLE] = 0


class SimulateOut(Schema):
    voted: int
    skipped: int
    left: int
    simulated: bool = True


@router.post("", response={201: Created, 409: Problem}, openapi_extra=CONFIG)
def create(request: HttpRequest) -> Any:
    """Make a run of a config. With `start` it begins at once, or is not made at all.

    `project` is a name or an identifier; it may be left out where a key knows only one.
    """
    api_key = key_of(request, MANAGE)
    config, beside = run_requests.read(run_requests.body_of(request))
    run = run_requests.make(config, beside, api_key)
    return Status(201, state(run) | estimated(config))


@router.get("", response=Runs)
def list_runs(
    request: HttpRequest,
    limit: Annotated[int, Field(ge=1, le=MOST_RUNS)] = 50,
    cursor: Cursor = "",
) -> Any:
    """The runs that this key knows, the newest first; pass `next_cursor` on until it is null."""
    api_key = key_of(request, READ)
    try:
        runs, following = page(api_key.project_id, cursor, limit)
    except CursorInvalid as invalid:
        raise HttpError(422, str(invalid)) from invalid
    return {"runs": [listed(run) for run in runs], "next_cursor": following}


@router.post("/estimate", response=Estimated, openapi_extra=CONFIG)
def estimate(request: HttpRequest) -> Any:
    """Check a config, say what it would ask for and cost, and write nothing."""
    key_of(request, READ)
    config, _ = run_requests.read(run_requests.body_of(request))
    return estimated(config)


@router.post("/demo", response={201: Created}, openapi_extra=DEMO)
def create_demo(request: HttpRequest) -> Any:
    """Make another run of the demo's stored outputs, judged by the baselines: no model is asked.

    `kind` is `svg` (the default) or `text`; the body may be left out.
    """
    run = run_requests.make_demo(run_requests.body_of(request), key_of(request, MANAGE))
    return Status(201, state(run) | nothing_to_ask(run.queue.items.count()))


@router.get("/{run_id}", response=Detailed)
def get_run(request: HttpRequest, run_id: Prefix) -> Any:
    """Where a run stands: its state, its pairs and votes, its work, its cost, its judges."""
    run = run_of(key_of(request, READ), run_id)
    return detailed(counted(Run.objects.filter(pk=run.pk)).get())


@router.post("/{run_id}/start", response=State)
def start(request: HttpRequest, run_id: Prefix) -> Any:
    """Start a draft."""
    return state(lifecycle.start(_managed(request, run_id).pk))


@router.post("/{run_id}/stop", response=State)
def stop(request: HttpRequest, run_id: Prefix) -> Any:
    """Make no more calls and take no more votes; calls that are out are still written down."""
    return state(lifecycle.stop(_managed(request, run_id).pk))


@router.post("/{run_id}/resume", response=State)
def resume(request: HttpRequest, run_id: Prefix, body: Resume | None = None) -> Any:
    """Go on where a run was stopped, with another budget if one is given."""
    budget = None if body is None or body.budget_usd is None else Decimal(repr(body.budget_usd))
    return state(lifecycle.resume(_managed(request, run_id).pk, budget))


@router.post("/{run_id}/retry", response=Retried)
def retry(request: HttpRequest, run_id: Prefix) -> Any:
    """Ask again for everything that failed; `calls` says how many calls and drawings that is."""
    run = _managed(request, run_id)
    calls = lifecycle.retry_failed(run.pk)
    run.refresh_from_db()
    return state(run) | {"calls": calls}


@router.post("/{run_id}/duplicate", response={201: State})
def duplicate(request: HttpRequest, run_id: Prefix) -> Any:
    """Draft a run with the same config; calls that are the same are answered from storage."""
    return Status(201, state(lifecycle.duplicate(_managed(request, run_id).pk)))


def _managed(request: HttpRequest, run_id: Prefix) -> Run:
    return run_of(key_of(request, MANAGE), run_id)


@router.post("/{run_id}/judge-eval/simulate", response=SimulateOut)
def simulate(request: HttpRequest, run_id: Prefix, body: SimulateIn) -> Any:
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
