"""Runs as the API speaks of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from ninja import Schema

from judge_eval.config.estimates import Estimate, Plan, estimate, plan
from judge_eval.config.parts import (
    KINDS,
    MODES,
    REVEALS,
    VERDICT_ORDERS,
    RunConfig,
)
from judge_eval.config.run_config import (
    LONGEST_NAME,
    LONGEST_PROVIDER,
    LONGEST_TEXT,
    MOST_JUDGES,
    MOST_MODELS,
    MOST_PROMPTS,
    MOST_TAGS,
    MOST_TOKENS,
    MOST_USD,
)
from judge_eval.models import Judge, Run
from judge_eval.prompts.judge import VERSIONS
from judge_eval.runs import providers
from judge_eval.runs.demo import RUNS
from judge_eval.runs.progress import progress_of
from voting.choices import CHOICES


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


# --- requests, as `config.run_config` checks them: it says all that is wrong at once --------------


def _line(longest: int = LONGEST_NAME) -> dict[str, Any]:
    printable = r"[^\u0000-\u001f\u007f]*"
    return _text(longest) | {"pattern": rf"^{printable}\S{printable}$"}


def _text(longest: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": r"\S"}


def _choice(options: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(options)}


def _whole(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def _number(most: float) -> dict[str, Any]:
    return {"type": ["number", "null"], "minimum": 0, "maximum": most}


def _list(items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _object(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    shape = {"type": "object", "properties": properties, "additionalProperties": False}
    return shape | ({"required": list(required)} if required else {})


def _or_alone(key: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """An object, or the one of its values that is needed, alone."""
    return {"anyOf": [properties[key], _object(key, **properties)]}


def _body(schema: dict[str, Any], example: dict[str, Any], *, required: bool) -> dict[str, Any]:
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": required, "content": content}}


_PROMPT = _or_alone(
    "text",
    id=_line(),
    text=_text(LONGEST_TEXT),
    tags=_list(_line(), 0, MOST_TAGS),
)
CONFIG = _body(
    _object(
        *("name", "models", "judges", "prompts"),
        name=_line(),
        mode=_choice(MODES),
        kind=_choice(KINDS),
        models=_list(_or_alone("id", id=_line()), 1, MOST_MODELS),
        judges=_list(_or_alone("id", id=_line(), provider=_line(LONGEST_PROVIDER)), 1, MOST_JUDGES),
        prompts=_list(_PROMPT, 1, MOST_PROMPTS),
        rubric=_text(LONGEST_TEXT),
        ballot=_list(_choice(CHOICES), 2, len(CHOICES)) | {"uniqueItems": True},
        votes_per_pair=_whole(100),
        overlap=_object(share=_number(1), votes=_whole(100)),
        reveal=_choice(REVEALS),
        verdict_orders=_choice(VERDICT_ORDERS),
        generation=_object(temperature=_number(2), max_tokens=_whole(MOST_TOKENS)),
        judging=_object(
            temperature=_number(2),
            prompt_version=_choice(VERSIONS),
            max_tokens=_whole(MOST_TOKENS),
            samples=_whole(25),
        ),
        provider=_line(LONGEST_PROVIDER),
        budget_usd={"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MOST_USD},
        project=_line(),
        start={"type": "boolean"},
    ),
    {
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
    _object(kind=_choice(RUNS), name=_line(), project=_line()),
    {"kind": "svg", "name": "Drawings", "project": "Demo"},
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
