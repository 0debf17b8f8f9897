"""The composite of a run by REST: what it is made of, read and replaced."""

from datetime import datetime
from typing import Any

from django.http import HttpRequest
from ninja import Schema
from ninja.errors import HttpError

from humanjudge.lib.strict_json import JsonObject
from humanjudge.lib.validation import json_schema
from judge_eval.api.access import KeyRouter, Prefix, json_of, key_of, run_of
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


@router.get("/{run_id}/composite", response=CompositeOut)
def composite(request: HttpRequest, run_id: Prefix) -> Any:
    """What the composite of a run is made of; 404 where it has none."""
    # Here: what computes composites needs NumPy, which web processes start without.
    from reports.composite import sources

    run = run_of(key_of(request, ApiKey.Scope.READ), run_id)
    versions = sources.versions_of(run, 1)
    if not versions:
        raise HttpError(404, "this run has no composite")
    return _out(*versions[0])


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
