"""The REST API: one OpenAPI document, errors as JSON that say what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError

from humanjudge.lib.validation import ConfigInvalid
from judge_eval.api.events import router as events
from judge_eval.api.exchange import imports
from judge_eval.api.exchange import router as transfer
from judge_eval.api.runs import router as runs
from judge_eval.api.votes import router as judge_eval
from judge_eval.runs.lifecycle import LifecycleRefused
from reports.scores.api import router as scores

api = NinjaAPI(
    title="HumanJudge",
    version="1",
    description="Runs, votes and judge standings. Send an API key as `Authorization: Bearer …`.",
    urls_namespace="api",
    docs_url="/docs",
)
# Django takes the first address that fits: fixed words stand before `/runs/{run_id}`.
for router in (judge_eval, events, transfer, runs, scores):
    api.add_router("/runs", router)
api.add_router("/imports", imports)


@api.exception_handler(ConfigInvalid)
def config_invalid(request: HttpRequest, invalid: ConfigInvalid) -> HttpResponse:
    detail = [asdict(error) for error in invalid.errors]
    return api.create_response(request, {"detail": detail}, status=422)


@api.exception_handler(ValidationError)
def value_invalid(request: HttpRequest, invalid: ValidationError) -> HttpResponse:
    detail = [{"path": _path(error["loc"]), "message": error["msg"]} for error in invalid.errors]
    return api.create_response(request, {"detail": detail}, status=422)


def _path(places: Sequence[str | int]) -> str:
    """Name a value as whoever sent it did: not by the argument of ours that takes the body."""
    source, *rest = places
    return ".".join(map(str, rest[1:] if source == "body" else rest))


@api.exception_handler(LifecycleRefused)
def lifecycle_refused(request: HttpRequest, refused: LifecycleRefused) -> HttpResponse:
    return api.create_response(request, {"detail": str(refused)}, status=409)


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return api.create_response(request, {"detail": f"more than {most:,} bytes"}, status=413)
