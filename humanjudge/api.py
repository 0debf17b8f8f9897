"""The REST API: one OpenAPI document, errors as JSON that say what is wrong."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final

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
from judge_eval.exchange.import_report import ImportRefused
from judge_eval.findings.cache import PartUnknown, TooManyParts
from judge_eval.findings.slices import SliceInvalid
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.selectors import Ambiguous
from reports.scores.api import router as scores
from reports.scores.jobs import ScoresRefused
from voting.services import VoteConflict, VotingClosed

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


# The status of what is refused wherever it is asked for; the exception says why.
REFUSED: Final[dict[type[Exception], int]] = {
    PartUnknown: 404,
    Ambiguous: 409,
    ImportRefused: 409,
    LifecycleRefused: 409,
    ScoresRefused: 409,
    VoteConflict: 409,
    VotingClosed: 409,
    SliceInvalid: 422,
    TooManyParts: 429,
}


def refused(request: HttpRequest, error: Any, *, status: int) -> HttpResponse:
    return api.create_response(request, {"detail": str(error)}, status=status)


for kind, status in REFUSED.items():
    api.add_exception_handler(kind, partial(refused, status=status))


@api.exception_handler(RequestDataTooBig)
def too_large(request: HttpRequest, error: RequestDataTooBig) -> HttpResponse:
    most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    return api.create_response(request, {"detail": f"more than {most:,} bytes"}, status=413)
