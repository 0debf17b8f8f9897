"""The REST API: one OpenAPI document, errors as JSON that say what is wrong."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import ValidationError
from ninja.openapi.schema import OpenAPISchema

from humanjudge.core.validation import ConfigInvalid
from judge_eval.board.api import router as judge_eval
from judge_eval.board.cache import PartUnknown, TooManyParts
from judge_eval.board.filters import SliceInvalid
from judge_eval.extensions.api import router as extensions
from judge_eval.gate.api import router as gate
from judge_eval.imports.api import imports
from judge_eval.imports.api import router as transfer
from judge_eval.imports.import_report import ImportRefused, ImportTooLarge, TooManyWait
from judge_eval.planner.api import router as planner
from judge_eval.runs.api import router as runs
from judge_eval.runs.api_events import router as events
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.queries import Ambiguous
from judge_eval.workshop.api import router as variants
from judge_eval.workshop.api_prompts import router as prompts
from reports.composite.api import router as composite
from reports.grandjury import api as grandjury
from reports.grandjury import figures_api
from reports.grandjury.analysis import VoteInvalid
from reports.grandjury.services import EnrollmentRefused
from reports.quality.api import router as quality
from reports.report import api as report
from reports.report.make import NotComputed
from reports.review.api import router as review
from reports.scores.views import ScoresRefused
from voting.ballot.services import VoteConflict, VotingClosed
from voting.curating.services import AlreadyDecided, CannotDecide


class Api(NinjaAPI):
    """One whose document is made once: that takes half a second, and whoever likes may ask."""

    @cached_property
    def document(self) -> OpenAPISchema:
        return super().get_openapi_schema()

    def get_openapi_schema(self, **_: Any) -> OpenAPISchema:
        return self.document


api = Api(
    title="HumanJudge",
    version="1",
    description="Runs, votes and judge standings. Send an API key as `Authorization: Bearer …`.",
    urls_namespace="api",
    docs_url="/docs",
)
# Django takes the first address that fits: fixed words stand before `/runs/{run_id}`.
for router in (judge_eval, gate, events, transfer, variants, runs, report.of_scores, composite):
    api.add_router("/runs", router)
api.add_router("/default-prompts", prompts)
api.add_router("/extensions", extensions)
api.add_router("/imports", imports)
api.add_router("/planner", planner)
api.add_router("/review", review)
api.add_router("/runs", report.of_runs)
for router in (quality, report.of_projects):
    api.add_router("/projects", router)

# What the public client `grandjury` asks for, at the addresses that it has built in.
grandjury_api = Api(
    title="HumanJudge: GrandJury protocol",
    version="1",
    description="Traces, models, benchmarks and figures of votes, as the client `grandjury` asks.",
    urls_namespace="grandjury",
    docs_url="/docs",
)
for router in (
    *(figures_api.figures, figures_api.scoring),
    *(grandjury.traces, grandjury.models, grandjury.results, grandjury.leaderboards),
):
    grandjury_api.add_router("", router)


# The status of what is refused wherever it is asked for.
REFUSED: Final[dict[type[Exception], int]] = {
    PartUnknown: 404,
    AlreadyDecided: 409,
    Ambiguous: 409,
    CannotDecide: 409,
    EnrollmentRefused: 409,
    ImportRefused: 409,
    LifecycleRefused: 409,
    NotComputed: 409,
    ScoresRefused: 409,
    VoteConflict: 409,
    VotingClosed: 409,
    ImportTooLarge: ImportTooLarge.status,
    RequestDataTooBig: 413,
    ConfigInvalid: 422,
    SliceInvalid: 422,
    ValidationError: 422,
    VoteInvalid: 422,
    TooManyParts: 429,
    TooManyWait: TooManyWait.status,
}
# What is said of it, where that is not the exception's own text.
DETAILS: Final[dict[type[Exception], Callable[[Any], object]]] = {
    ConfigInvalid: lambda invalid: [asdict(error) for error in invalid.errors],
    RequestDataTooBig: lambda _: f"more than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes",
    ValidationError: lambda invalid: [
        {"path": _path(error["loc"]), "message": error["msg"]} for error in invalid.errors
    ],
    VoteInvalid: lambda vote: [{"path": f"data.{vote.row}.{vote.field}", "message": vote.message}],
}


def _path(places: Sequence[str | int]) -> str:
    """Name a value as whoever sent it did: not by the argument of ours that takes the body."""
    source, *rest = places
    return ".".join(map(str, rest[1:] if source == "body" else rest))


def refused(
    request: HttpRequest, error: Any, *, ninja_api: NinjaAPI, kind: type[Exception]
) -> HttpResponse:
    detail = DETAILS.get(kind, str)(error)
    return ninja_api.create_response(request, {"detail": detail}, status=REFUSED[kind])


for ninja_api in (api, grandjury_api):
    for kind in REFUSED:
        ninja_api.add_exception_handler(kind, partial(refused, ninja_api=ninja_api, kind=kind))
