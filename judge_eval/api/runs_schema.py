"""Runs as the API lists, describes and answers them, with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from ninja import Schema
from pydantic import BaseModel

from humanjudge.lib.validation import json_schema
from judge_eval.api.run_requests import Beside, DemoRequest
from judge_eval.config.estimates import Estimate, Plan, estimate, plan
from judge_eval.config.run_config import RunConfig
from judge_eval.models import Judge, Run
from judge_eval.runs import providers
from judge_eval.runs.progress import progress_of
from voting.models import Item


class EstimateOut(Schema):
    """An estimate without its lines."""

    usd: float | None
    known_usd: float
    unpriced: list[str]


class Estimated(Schema):
    plan: Plan
    estimate: Estimate


class State(Schema):
    id: UUID
    name: str
    state: str
    note: str


class Created(State):
    plan: Plan
    estimate: EstimateOut


class Retried(State):
    calls: int


class Listed(State):
    project: str
    project_id: UUID
    created_at: datetime
    total: int
    done: int
    pending: int
    votes: int
    simulated: bool


class Runs(Schema):
    runs: list[Listed]
    next_cursor: str | None


class PartOut(Schema):
    done: int
    failed: int
    waiting: int
    total: int


class Progress(Schema):
    outputs: PartOut
    pictures: PartOut
    calls: PartOut
    verdicts: PartOut
    per_minute: int
    seconds_left: float | None


class Cost(Schema):
    cost_usd: float | None
    spent_usd: float
    budget_usd: float | None
    tokens_in: int
    tokens_out: int
    attempts: int
    reused: int
    repaired: int
    mean_latency_ms: float | None


class JudgeOut(Schema):
    id: UUID
    name: str
    baseline: bool
    provider: str
    model: str
    reported_model: str

    @staticmethod
    def resolve_baseline(judge: Judge) -> bool:
        return judge.is_baseline


class Detailed(Listed):
    started_at: datetime | None
    config: dict[str, Any] | None
    progress: Progress
    cost: Cost
    judges: list[JudgeOut]


def _body(*models: type[BaseModel], example: dict[str, Any], required: bool) -> dict[str, Any]:
    """Describe a body that is read as one JSON object with the fields of all these models."""
    schemas = [json_schema(model) for model in models]
    shape = schemas[0] | {
        "properties": {k: v for each in schemas for k, v in each["properties"].items()}
    }
    content = {"application/json": {"schema": shape, "example": example}}
    return {"requestBody": {"required": required, "content": content}}


CONFIG = _body(
    RunConfig,
    Beside,
    example={
        "name": "Cats",
        "mode": "judge_eval",
        "models": [{"id": "model-a"}, {"id": "model-b"}],
        "judges": ["judge-x", "longer-wins"],
        "prompts": [{"id": "cat", "text": "A cat on a bicycle"}],
        "generation": {"temperature": 0.7},
        "project": "Demo",
        "start": True,
    },
    required=True,
)
DEMO = _body(
    DemoRequest,
    example={"kind": "svg", "name": "Drawings", "project": "Demo"},
    required=False,
)


# --- answers --------------------------------------------------------------------------------------


def state(run: Run) -> dict[str, Any]:
    return {"id": run.pk, "name": run.name, "state": run.state, "note": run.note}


def listed(run: Any) -> dict[str, Any]:
    """Return a run that `counted` has counted."""
    return state(run) | {
        "project": run.queue.project.name,
        "project_id": run.queue.project_id,
        "created_at": run.created_at,
        "total": run.total,
        "done": run.done,
        "pending": run.total - run.done,
        "votes": run.board.votes,
        "simulated": run.queue.is_simulated,
    }


def detailed(run: Run) -> dict[str, Any]:
    progress = progress_of(run)
    return listed(run) | {
        "started_at": run.started_at,
        "config": run.config,
        "progress": progress,
        "cost": progress,
        "judges": list(run.judges.order_by("position")),
    }


def estimated(config: RunConfig) -> dict[str, Any]:
    """Return what a run will ask for and cost, as far as prices are known."""
    names = {config.provider} | {judge.provider for judge in config.judges}
    return {"plan": plan(config), "estimate": estimate(config, providers.prices(names))}


def nothing_to_ask(pairs: int) -> dict[str, Any]:
    """Return the same of a run whose outputs are there and whose judges answer here."""
    nothing = Decimal(0)
    return {"plan": Plan(0, pairs, 0), "estimate": Estimate(nothing, nothing, (), ())}


# --- lists ----------------------------------------------------------------------------------------

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CursorInvalid(ValueError):
    """Not a cursor that a page of runs ended with."""


def counted(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Count the usable pairs of runs as `total`; it costs the same however many there are."""
    pairs = Item.objects.filter(queue=OuterRef("queue"))
    last = pairs.order_by("-position").values("position")[:1]
    unusable = pairs.filter(~Q(unusable="")).values("queue").annotate(n=Count("pk")).values("n")
    nothing = Value(0, IntegerField())
    total = Coalesce(Subquery(last) + 1, nothing) - Coalesce(Subquery(unusable), nothing)
    return runs.select_related("board", "queue__project").annotate(
        total=total, done=F("queue__done")
    )


def page(project: UUID | None, cursor: str, limit: int) -> tuple[Sequence[Run], str | None]:
    """Return runs, the newest first, and the cursor of the next page if there is one."""
    runs = counted(Run.objects.order_by("-created_at", "-pk"))
    if project is not None:
        runs = runs.filter(queue__project=project)
    if cursor:
        at, pk = _read(cursor)
        runs = runs.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))
    found = list(runs[: limit + 1])
    return found[:limit], _cursor(found[limit - 1]) if len(found) > limit else None


def _cursor(run: Run) -> str:
    return f"{(run.created_at - _EPOCH) // timedelta(microseconds=1)}-{run.pk.hex}"


def _read(cursor: str) -> tuple[datetime, UUID]:
    at, _, pk = cursor.partition("-")
    try:
        return _EPOCH + timedelta(microseconds=int(at)), UUID(hex=pk)
    except (ValueError, OverflowError) as error:
        raise CursorInvalid("cursor: not one that a page of runs ended with") from error
