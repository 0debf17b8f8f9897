"""Models, their traces and their enrolments, as the public client `grandjury` asks for them."""

from datetime import datetime
from typing import Annotated, Any, Final, Literal, TypeAlias
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Schema, Status
from ninja.errors import HttpError
from pydantic import AfterValidator, BaseModel

from humanjudge.lib.validation import WHOLE, Name, Storable, StorableJson, Text
from judge_eval.api.access import KeyRouter, insist, key_of
from reports.grandjury import selectors, services
from reports.grandjury.api.access import (
    EITHER_KEY,
    Named,
    benchmark_named,
    model_named,
    person_key,
)
from reports.grandjury.selectors import Row
from reports.grandjury.services import TraceIn
from reports.models import Enrollment, TracedModel
from voting.models import ApiKey

MOST_BYTES: Final = 1 << 20

traces = KeyRouter("traces", EITHER_KEY)
models = KeyRouter("models", EITHER_KEY)

# --- traces: outputs that a model logs ----------------------------------------------------------

Whole: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=10**15), WHOLE]


class Ingested(Schema):
    """One output, as `trace`, `observe` and `span` send it; what else comes is left aside."""

    gj_inference_id: Name
    name: Storable | None = None
    input: Storable | None = None
    output: Text
    model: Storable | None = None
    latency_ms: Whole | None = None
    prompt_tokens: Whole | None = None
    completion_tokens: Whole | None = None
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
        return selectors.enrollments_of(model)


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
        why = "this server calls no models: leave it out, and log traces with the model's own key"
        raise ValueError(why)


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
    return selectors.models_of(key_of(request, ApiKey.Scope.READ)).order_by("created_at", "pk")


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
    owner, project = selectors.person_of(api_key), selectors.project_of(api_key)
    if project is not None:
        insist(api_key, "run", project.pk)
    made, secret = services.create_model(
        owner,
        project,
        body.name,
        kind=body.type,
        description=body.description or "",
        metadata=body.metadata,
    )
    response["Cache-Control"] = "no-store"
    return {
        "id": made.pk,
        "name": made.name,
        "type": made.type,
        "secret_key": secret,
        "publishable_key": made.publishable_key,
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
