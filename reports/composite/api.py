from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest
from ninja import Schema
from ninja.errors import HttpError
from pydantic import Field

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import json_schema
from judge_eval.board.few import require_votes_first
from judge_eval.runs.access import hidden_from
from judge_eval.runs.api_access import KeyRouter, Prefix, json_of, key_of, run_of
from reports.composite.config import CompositeConfig
from voting.models import ApiKey

router = KeyRouter("composite")

_EXAMPLE = {
    "label": "helpfulness",
    "weights": {"preferred": {"weight": 1, "reason": "People choose it."}},
    "gates": ["rendered"],
    "sources": {"preferred": "win_rate", "rendered": "rendered"},
    "check": "win_rate",
}
_CONTENT = {"schema": json_schema(CompositeConfig), "example": _EXAMPLE}
_CONFIG = {"requestBody": {"required": True, "content": {"application/json": _CONTENT}}}


class CompositeOut(Schema):
    version: str
    created_at: datetime
    config: JsonObject


class GateOut(Schema):
    """On how many outputs a gate is below 1, and on how many it has no value."""

    failed: int
    no_value: int


class OutputOut(Schema):
    id: UUID
    value: float | None
    reason: str
    # Whether the gate that makes it 0 has no value.
    is_missing: bool
    components: dict[str, float | None]


class QuarterOut(Schema):
    """Spearman's correlation of the composite with people's votes of a quarter."""

    quarter: str
    votes: int
    outputs: int
    correlation: float | None
    interval: tuple[float, float] | None
    note: str


class CompositeFigures(CompositeOut):
    """What it comes to: outputs with open items of the key's own are left out of the list."""

    mean: float | None
    with_value: int
    without_value: int
    gates: dict[str, GateOut]
    drift: list[QuarterOut]
    drift_in_words: str
    outputs: list[OutputOut]
    pages: int


@router.get("/{run_id}/composite", response=CompositeFigures)
def composite(request: HttpRequest, run_id: Prefix, page: Annotated[int, Field(ge=1)] = 1) -> Any:
    """What the composite of a run is made of and comes to, its outputs 200 a page, the highest
    first; 404 where it has none.
    """
    # Here: what computes composites needs NumPy, which web processes start without.
    from reports.composite import compute, sources, views

    api_key = key_of(request, ApiKey.Scope.READ)
    run = run_of(api_key, run_id)
    require_votes_first(api_key, run)
    versions = sources.versions_of(run, 1)
    if not versions:
        raise HttpError(404, "this run has no composite")
    definition, config = versions[0]
    read = sources.Outputs(run, [config])
    components = read.components(config)
    ranked = views.ranked_by(components, config, read)
    totals, check = compute.totals_of(ranked.values()), views.check_of(config, ranked, read)
    pages = Paginator(list(ranked), 200)
    listed = pages.get_page(page)
    pairs = {pair for output in listed for pair in read.pairs[output]}
    closed = hidden_from(api_key, run.queue.project, pairs)
    return _out(definition, config).model_dump() | {
        "mean": totals.mean,
        "with_value": totals.items,
        "without_value": totals.without,
        "gates": {
            name: {"failed": totals.failed[name], "no_value": totals.missing[name]}
            for name in config.gates
        },
        "drift": [
            {
                "quarter": row.quarter,
                "votes": row.votes,
                "outputs": row.figure.n,
                "correlation": row.figure.value,
                "interval": row.figure.interval,
                "note": row.note,
            }
            for row in check.get("quarters", [])
        ],
        "drift_in_words": check["result"],
        "outputs": [
            {"id": output, "components": components[output], **ranked[output]._asdict()}
            for output in listed
            if closed.isdisjoint(read.pairs[output])
        ],
        "pages": pages.num_pages,
    }


@router.put("/{run_id}/composite", response=CompositeOut, openapi_extra=_CONFIG)
def replace_composite(request: HttpRequest, run_id: Prefix) -> Any:
    """Make this the composite of a run.

    Other weights, gates or sources make a new version; earlier ones stay in the check.
    """
    from reports.composite import sources

    run = run_of(key_of(request, ApiKey.Scope.MANAGE), run_id, "run")
    config = sources.read_config(run, json_of(request))
    return _out(sources.store(run, config), config)


def _out(definition: Any, config: CompositeConfig) -> CompositeOut:
    return CompositeOut(
        version=definition.version, created_at=definition.created_at, config=config.as_data
    )
