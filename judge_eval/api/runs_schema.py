"""Runs as the API speaks of them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel

from humanjudge.lib.validation import json_schema
from judge_eval.api.run_requests import Beside, DemoRequest
from judge_eval.config.estimates import Estimate, Plan, estimate, plan
from judge_eval.config.run_config import RunConfig
from judge_eval.models import Judge, Run
from judge_eval.runs import providers
from judge_eval.runs.progress import progress_of


class PlanOut(Schema):
    generations: int
    pairs: int
    verdict_calls: int


class LineOut(Schema):
    role: str
    provider: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    usd: float | None


class EstimateOut(Schema):
    usd: float | None
    known_usd: float
    unpriced: list[str]


class EstimateLines(EstimateOut):
    lines: list[LineOut]


class Estimated(Schema):
    plan: PlanOut
    estimate: EstimateLines


class State(Schema):
    id: UUID
    name: str
    state: str
    note: str


class Created(State):
    plan: PlanOut
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
    """Return a run that `run_listing.counted` has counted."""
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
