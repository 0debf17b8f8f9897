"""The GrandJury protocol over HTTP, as the public client `grandjury` speaks it: `/api/v1`.

Models, their traces and enrolments, and what was voted on them; `figures` has the rest.
"""

import math
from datetime import UTC, datetime, time
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Query, Schema, Status
from ninja.errors import HttpError
from pydantic import AfterValidator, BaseModel

from humanjudge.core.http import Problem
from humanjudge.core.ratelimit import RateLimit
from humanjudge.core.validation import INTEGER, ConfigInvalid, Name, Storable, StorableJson, Text
from judge_eval.runs.api_access import KeyRouter, insist, key_of
from reports.grandjury import queries, services
from reports.grandjury.queries import MOST_ROWS, Row, Window
from reports.grandjury.services import TraceIn
from reports.models import Benchmark, Enrollment, TracedModel
from voting.access.login import address_of
from voting.models import ApiKey

EITHER_KEY: Final = (ApiKey.Kind.MODEL, ApiKey.Kind.PERSON)
# For who asks without a key, by address.
PUBLIC_LIMIT = RateLimit(per_second=2, burst=60)

# An identifier or a slug. What is none of either is answered as one that is not known.
Named: TypeAlias = Annotated[str, Field(pattern="^[0-9A-Za-z_-]{1,80}$")]


def insist_on_patience(request: HttpRequest) -> None:
    if seconds := PUBLIC_LIMIT.seconds(address_of(request)):
        wait = math.ceil(seconds)
        raise Problem(429, f"too many requests; wait {wait} s", retry_after=wait)


def person_key(request: HttpRequest) -> ApiKey:
    """Return the key of a person who may make and enrol models."""
    api_key = key_of(request)
    if api_key.kind != ApiKey.Kind.PERSON:
        raise HttpError(403, "this takes a person's key (gj_pat_…), not that of a model")
    return key_of(request, ApiKey.Scope.MANAGE)


def model_named(api_key: ApiKey, text: str) -> TracedModel:
    model = queries.find_model(api_key, text)
    if model is None:
        raise HttpError(404, f"this key knows no model {text!r}")
    return model


def benchmark_named(text: str) -> Benchmark:
    benchmark = queries.find_benchmark(text)
    if benchmark is None:
        raise HttpError(404, f"there is no benchmark {text!r}")
    return benchmark


MOST_BYTES: Final = 1 << 20

traces = KeyRouter("traces", EITHER_KEY)
models = KeyRouter("models", EITHER_KEY)

# --- traces: outputs that a model logs ----------------------------------------------------------

WholeNumber: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=10**15), INTEGER]


class Ingested(Schema):
    """One output, as `trace`, `observe` and `span` send it; what else comes is left aside."""

    gj_inference_id: Name
    name: Storable | None = None
    input: Storable | None = None
    output: Text
    model: Storable | None = None
    latency_ms: WholeNumber | None = None
    prompt_tokens: WholeNumber | None = None
    completion_tokens: WholeNumber | None = None
    metadata: StorableJson | None = None

    def about(self) -> Row:
        """Return what is kept beside input and output: what was said of the call."""
        values = self.model_dump(exclude={"gj_inference_id", "input", "output"}, exclude_none=True)
        return {key: value for key, value in values.items() if value != {}}


class Logged(Schema):
    gj_inference_id: str


@traces.post("/traces/ingest", response={200: Logged, 201: Logged})
def ingest(request: HttpRequest, body: Ingested) -> Any:
    """Put an output before the voters. The same `gj_inference_id` again is 200 and changes nothing.

    This takes the key of a model, which says whose output it is. At most 1 MiB.
    """
    api_key = key_of(request)
    if api_key.kind != ApiKey.Kind.MODEL:
        raise HttpError(403, "traces are logged with the key of a model (gj_sk_…), not a person's")
    key_of(request, ApiKey.Scope.INGEST)
    if len(request.body) > MOST_BYTES:
        raise HttpError(413, f"a trace of more than {MOST_BYTES:,} bytes")
    sent = TraceIn(body.gj_inference_id, body.input or "", body.output, body.about())
    is_new = services.ingest(api_key, sent)
    return Status(201 if is_new else 200, {"gj_inference_id": sent.trace_id})


# --- models: sources of outputs, each with its own key ------------------------------------------


class ModelRow(Schema):
    id: UUID = Field(alias="pk")
    name: str
    slug: str


class EnrollmentRow(Schema):
    enrollment_id: UUID = Field(alias="pk")
    evaluation_id: UUID = Field(alias="benchmark.queue_id")
    benchmark_id: UUID = Field(alias="benchmark.project_id")
    title: str = Field(alias="benchmark.project.name")
    slug: str = Field(alias="benchmark.slug")
    status: Literal["active"] = "active"


class ModelDetail(ModelRow):
    type: str
    description: str
    metadata: Row
    publishable_key: str
    created_at: datetime
    enrollments: list[EnrollmentRow]

    @staticmethod
    def resolve_enrollments(model: TracedModel) -> QuerySet[Enrollment]:
        return queries.enrollments_of(model)


class ModelIn(Schema):
    name: Name
    type: Annotated[Name, Field(max_length=40)] = "sdk"
    description: Storable | None = None
    metadata: StorableJson | None = None


class MadeModel(Schema):
    """`secret_key` is told only this once; `publishable_key` names the model and opens nothing."""

    id: UUID
    name: str
    type: str
    secret_key: str
    publishable_key: str


def _no_endpoint(value: object) -> None:
    if value is not None:
        words = "this server calls no models: leave it out, and log traces with the model's own key"
        raise ValueError(words)


class EnrollIn(BaseModel):
    endpoint_config: Annotated[Any, AfterValidator(_no_endpoint)] = None


class Enrolled(Schema):
    enrollment_id: UUID
    model_id: UUID
    evaluation_id: UUID
    status: Literal["active"] = "active"


@models.get("/models/me", response=list[ModelRow])
def my_models(request: HttpRequest) -> Any:
    """The models of the key's person, oldest first; to the key of a model, that model."""
    return queries.models_of(key_of(request, ApiKey.Scope.READ)).order_by("created_at", "pk")


@models.get("/models/{model_id}", response=ModelDetail)
def model(request: HttpRequest, model_id: Named) -> Any:
    """A model, and the benchmarks that it is enrolled in."""
    return model_named(key_of(request, ApiKey.Scope.READ), model_id)


@models.post("/models", response=MadeModel)
def make_model(request: HttpRequest, response: HttpResponse, body: ModelIn) -> Any:
    """Make a model in the key's project, or where the other models of its person are.

    Always 200: at 201 the public client would print the answer, with the secret in it.
    """
    api_key = person_key(request)
    owner, project = queries.person_of(api_key), queries.project_of(api_key)
    if project is not None:
        insist(api_key, "run", project.pk)
    model, secret = services.create_model(
        owner,
        project,
        body.name,
        kind=body.type,
        description=body.description or "",
        metadata=body.metadata,
    )
    response["Cache-Control"] = "no-store"
    return {
        "id": model.pk,
        "name": model.name,
        "type": model.type,
        "secret_key": secret,
        "publishable_key": model.publishable_key,
    }


@models.post("/models/{model_id}/enroll/{benchmark_id}", response=Enrolled)
def enroll(request: HttpRequest, model_id: Named, benchmark_id: Named, body: EnrollIn) -> Any:
    """Send a model's traces to a benchmark too. The second time is answered as the first."""
    api_key = person_key(request)
    model = model_named(api_key, model_id)
    insist(api_key, "run", model.project_id)
    enrollment = services.enroll(model, benchmark_named(benchmark_id))
    return {
        "enrollment_id": enrollment.pk,
        "model_id": model.pk,
        "evaluation_id": enrollment.benchmark.queue_id,
    }


# --- what was voted on them ---------------------------------------------------------------------

results = KeyRouter("results", EITHER_KEY)
leaderboards = KeyRouter("leaderboards", kinds=())


class TraceRow(Schema):
    trace_id: str
    input: str
    output: str
    model: str
    pass_count: int
    flag_count: int
    total_votes: int
    pass_rate: float


class VoteRow(Schema):
    """A vote; its voter is known by a pseudonym alone."""

    trace_id: str
    voter_id: str
    voter_name: str
    verdict: str
    flag_category: str | None
    feedback: str | None
    created_at: datetime


class BenchmarkRow(Schema):
    id: UUID = Field(alias="project_id")
    title: str = Field(alias="project.name")
    slug: str


class LeaderboardRow(Schema):
    model_name: str
    model_slug: str
    total_votes: int
    pass_rate: float | None


class Paging(Schema):
    """Rows of a time, both ends included, and a page of them. A day is all of it, in UTC."""

    detail: Literal["traces", "votes"] = "traces"
    from_date: str | None = None
    to_date: str | None = None
    limit: int = Field(MOST_ROWS, ge=1, le=MOST_ROWS)
    offset: int = Field(0, ge=0, le=10**9)

    def window(self) -> Window:
        since = _moment("from_date", self.from_date, time.min)
        until = _moment("to_date", self.to_date, time.max)
        return Window(since, until, self.limit, self.offset)


def _moment(path: str, text: str | None, of_day: time) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigInvalid.at(path, "is no date, such as 2026-03-01, or time") from None
    if len(text) <= len("2026-03-01"):
        moment = datetime.combine(moment, of_day)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Page = Annotated[Paging, Query()]


def _rows(api_key: ApiKey, traces: Any, page: Paging, *, by_slug: bool = False) -> list[Row]:
    # Who reads with the key of a model is no person who might vote.
    reader = api_key.user if api_key.kind == ApiKey.Kind.PERSON else None
    if page.detail == "votes":
        return [_vote(row) for row in queries.vote_rows(traces, reader, page.window())]
    rows = queries.trace_rows(traces, reader, page.window())
    for row in rows:
        label = None if by_slug else row["metadata"].get("model")
        row["model"] = label or row["slug"]
        row["pass_rate"] = queries.pass_rate(row["pass_count"], row["total_votes"])
    return rows


def _vote(row: Row) -> Row:
    return row | {
        "voter_id": row["voter_name"],
        "flag_category": row["flag_category"] or None,
        "feedback": row["comment"] or None,
    }


@results.get("/models/{model_id}/evaluations", response=list[TraceRow] | list[VoteRow])
def evaluations(
    request: HttpRequest, model_id: Named, page: Page, evaluation_id: Named | None = None
) -> Any:
    """A model's traces that were voted on, or with `detail=votes` the votes on them.

    Left out is what the key's person was given to vote on and has not voted on. `model` of a
    trace is what its client called it, or else the model's slug.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    model = model_named(api_key, model_id)
    benchmark = benchmark_named(evaluation_id) if evaluation_id else None
    return _rows(api_key, queries.model_traces(model, benchmark), page)


@results.get("/challenges", response=list[BenchmarkRow])
def challenges(request: HttpRequest) -> Any:
    """Benchmarks that models may enrol in."""
    key_of(request, ApiKey.Scope.READ)
    return queries.open_benchmarks()


@results.get("/benchmarks/{benchmark_id}/votes", response=list[TraceRow] | list[VoteRow])
def benchmark_votes(
    request: HttpRequest,
    benchmark_id: Named,
    page: Page,
    model: Annotated[str, Field(pattern="^[0-9A-Za-z_,-]*$", max_length=4000)] = "",
) -> Any:
    """A benchmark's traces that were voted on, or with `detail=votes` the votes on them.

    `model` is a slug or identifier, or several with commas between. Who runs the benchmark reads
    all models, everybody else their own. `model` of a trace is the model's slug.
    """
    api_key = key_of(request, ApiKey.Scope.READ)
    benchmark = benchmark_named(benchmark_id)
    names = [name for name in model.split(",") if name]
    traces = queries.benchmark_traces(api_key, benchmark, names)
    return _rows(api_key, traces, page, by_slug=True)


@leaderboards.get("/benchmarks/{benchmark_id}/leaderboard", response=list[LeaderboardRow])
def leaderboard(request: HttpRequest, benchmark_id: Named) -> Any:
    """The models of a benchmark that is open to enrolment, the highest pass rate first."""
    insist_on_patience(request)
    benchmark = benchmark_named(benchmark_id)
    if not benchmark.is_open:
        raise HttpError(404, f"there is no benchmark {benchmark_id!r}")
    return queries.leaderboard(benchmark)
