"""A run's life by REST: made, watched, started, stopped, resumed, tried again, simulated."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Field, Schema, Status
from ninja.errors import HttpError
from pydantic import BaseModel, ConfigDict, computed_field

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import INTEGER, Name, Part, Text, json_schema, validated
from judge_eval.board.few import require_votes_first
from judge_eval.board.voter_stats import figures_of, pace_of, people_of
from judge_eval.demo import load
from judge_eval.judging import extension_check
from judge_eval.judging.config.estimates import Estimate, Plan, plan
from judge_eval.judging.config.run_config import JoiningJudges, RunConfig, Usd
from judge_eval.models import Judge, Run
from judge_eval.runs import exclusion, lifecycle
from judge_eval.runs.api_access import (
    Counts,
    KeyRouter,
    Prefix,
    json_of,
    key_of,
    project_for,
    run_of,
)
from judge_eval.runs.progress import Cost, Work, progress_of
from judge_eval.runs.queries import by_prefix
from voting.access.roles import projects_where
from voting.models import ApiKey, Item, Voter
from voting.people.voters import voter_of_key

# As much as one line of a bundle may have: it holds the config of a run.
MOST_BYTES = 32_000_000
MOST_RUNS = 200
MANAGE, READ, VOTE = ApiKey.Scope.MANAGE, ApiKey.Scope.READ, ApiKey.Scope.VOTE
_STATUS = {Run.State.VOTING.value: "complete", Run.State.STOPPED.value: "failed"}
# Where a run goes whose request names no project, of a key that knows not just one.
USUAL_PROJECT = "Default"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

router = KeyRouter("runs")


# --- what is answered -----------------------------------------------------------------------------


class Estimated(Schema):
    plan: Plan
    estimate: Estimate


class State(Schema):
    """`status` is the state in PathScore's words: `complete` is open for voting, or voted on."""

    id: UUID
    name: str
    state: str
    note: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def status(self) -> str:
        return _STATUS.get(self.state, self.state)


class Created(State, Estimated):
    pass


class Retried(State):
    calls: int


class Joined(State):
    verdicts: int


class Listed(State, Counts):
    question: str
    project: str = Field(alias="queue.project.name")
    project_id: UUID = Field(alias="queue.project_id")
    created_at: datetime
    votes: int = Field(alias="board.votes")
    simulated: bool = Field(alias="queue.is_simulated")


class JudgeOut(Schema):
    id: UUID
    name: str
    description: str
    baseline: bool = Field(alias="is_baseline")
    provider: str
    model: str
    reported_model: str


class LeftOutOut(Schema):
    """A judge that is left out of all figures, by whom, when and why."""

    id: UUID = Field(alias="judge.pk")
    name: str = Field(alias="judge.name")
    by: str = Field(alias="who")
    at: datetime
    why: str
    # Calls that are not made until it is taken back.
    held: int


class LeftOutJudges(Schema):
    judges: list[LeftOutOut]


class LeaveOutIn(Part):
    """`judge` is the name or the identifier of one of the run."""

    judge: Name
    why: Annotated[Text, Field(max_length=2_000)]


class IncludeIn(Part):
    judge: Name


class Detailed(Listed):
    started_at: datetime | None
    config: JsonObject | None
    progress: Work
    cost: Cost
    judges: list[JudgeOut]


class ShareOfVotesOut(Schema):
    value: float
    n: int
    interval: tuple[float, float] | None


class PersonOut(Schema):
    id: UUID
    name: str
    pseudonym: str
    group: str
    last_seen: datetime
    votes: int
    median_seconds: float | None
    agreement: ShareOfVotesOut | None
    left: ShareOfVotesOut | None
    skips: int
    flags: int
    is_excluded: bool


class People(Schema):
    people: list[PersonOut]
    votes_left: int
    forecast: str


# --- what is asked --------------------------------------------------------------------------------


class Beside(Part):
    """What a request for a run says beside its config."""

    project: Name = ""
    start: bool = False


class DemoRequest(Part):
    """One more run of what the demo holds."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"kind": "svg", "name": "Drawings", "project": "Demo"}}
    )

    kind: Literal["svg", "text"] = "svg"
    name: Name = ""
    project: Name = ""


class Resume(BaseModel):
    budget_usd: Usd | None = None


class SimulateIn(BaseModel, strict=True):
    """`choice` is one of the run's ballot, or `auto`."""

    model_config = ConfigDict(json_schema_extra={"example": {"choice": "auto", "limit": 10}})

    choice: str = "auto"
    limit: Annotated[int, Field(ge=1), INTEGER] | None = None
    seed: Annotated[int, INTEGER] = 0


_EXAMPLE = {
    "name": "Cats",
    "mode": "judge_eval",
    "models": [{"id": "model-a"}, {"id": "model-b"}],
    "judges": ["judge-x", "longer-wins"],
    "prompts": [{"id": "cat", "text": "A cat on a bicycle"}],
    "generation": {"temperature": 0.7},
    "project": "Demo",
    "start": True,
}
_SCHEMA = json_schema(RunConfig)
_SCHEMA["properties"] |= json_schema(Beside)["properties"]


def _described_body(schema: JsonObject, example: JsonObject) -> JsonObject:
    """Describe a body that is read by hand, so that all its mistakes are told at once."""
    content = {"application/json": {"schema": schema, "example": example}}
    return {"requestBody": {"required": True, "content": content}}


CONFIG = _described_body(_SCHEMA, _EXAMPLE)


def _config(request: HttpRequest) -> tuple[RunConfig, Beside]:
    data = json_of(request, MOST_BYTES)
    if isinstance(data, dict) and isinstance(data.get("config"), dict):
        # PathScore's client sends what its own form asks beside the config.
        data = data.pop("config") | data
    named = Beside.model_fields.keys() & data if isinstance(data, dict) else set()
    options = validated(Beside, {name: data.pop(name) for name in sorted(named)})
    return extension_check.new_config(data), options


def _estimated(config: RunConfig, project: UUID | None) -> JsonObject:
    return {"plan": plan(config), "estimate": lifecycle.cost_of(config, project)}


def _state(run: Run, **more: object) -> JsonObject:
    return State.from_orm(run).model_dump() | more


# --- addresses ------------------------------------------------------------------------------------


@router.post("", response={201: Created}, openapi_extra=CONFIG)
def create(request: HttpRequest) -> Any:
    """Make a run of a config. With `start` it begins at once, or is not made at all.

    `project` is a name or an identifier; one that is not there yet is made, if this key may.
    Without it a key that knows only one project uses that, and others one that is called Default.
    The body is the config, or has it in `config` and `name` and `mode` beside it.
    """
    api_key = key_of(request, MANAGE)
    config, options = _config(request)
    with transaction.atomic():
        project = project_for(api_key, options.project, may_be_new=True, usual=USUAL_PROJECT)
        run = lifecycle.create(project, config)
        run = lifecycle.start(run.pk) if options.start else run
    return Status(201, _state(run, **_estimated(config, project.pk)))


@router.get("", response=list[Listed])
def list_runs(
    request: HttpRequest,
    response: HttpResponse,
    limit: Annotated[int, Field(ge=1, le=MOST_RUNS)] = 50,
    # The moment and the number of the last run of a page.
    cursor: Annotated[str, Field(pattern="^([0-9]{1,17}-[0-9a-f]{32})?$")] = "",
    archived: bool = False,
) -> Any:
    """The runs that this key knows, the newest first, those that were archived apart.

    Where there are more, the header `Link` has the address of the next page as `rel="next"`.
    """
    api_key = key_of(request, READ)
    listed = Run.objects.filter(archived_at__isnull=not archived)
    runs = _with_totals(listed.order_by("-created_at", "-pk"))
    runs = runs.filter(queue__project__in=projects_where(api_key, "see"))
    if cursor:
        micros, _, number = cursor.partition("-")
        created_at, pk = _EPOCH + timedelta(microseconds=int(micros)), UUID(hex=number)
        runs = runs.filter(Q(created_at__lt=created_at) | Q(created_at=created_at, pk__lt=pk))
    rows = list(runs[: limit + 1])
    if len(rows) > limit:
        last = rows[limit - 1]
        micros_since = (last.created_at - _EPOCH) // timedelta(microseconds=1)
        query = request.GET.copy()
        query["cursor"] = f"{micros_since}-{last.pk.hex}"
        response["Link"] = f'<{request.path}?{query.urlencode()}>; rel="next"'
    return rows[:limit]


def _with_totals(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Count the usable pairs of runs as `total`; it costs the same however many there are."""
    pairs = Item.objects.filter(queue=OuterRef("queue"))
    last = pairs.order_by("-position").values("position")[:1]
    unusable = pairs.filter(~Q(unusable="")).values("queue").annotate(n=Count("pk")).values("n")
    total = Coalesce(Subquery(last) + 1, 0) - Coalesce(Subquery(unusable), 0)
    counted = runs.annotate(total=total, done=F("queue__done"), pending=F("total") - F("done"))
    return counted.select_related("board", "queue__project")


@router.post("/estimate", response=Estimated, openapi_extra=CONFIG)
def estimate(request: HttpRequest) -> Any:
    """Check a config, say what it would ask for and cost in a project, and write nothing."""
    api_key = key_of(request, READ)
    config, options = _config(request)
    if not options.project:
        return _estimated(config, api_key.project_id)
    return _estimated(config, project_for(api_key, options.project, "see").pk)


@router.post("/demo", response={201: Created})
def create_demo(request: HttpRequest, body: DemoRequest | None = None) -> Any:
    """Make another run of the demo's stored outputs, judged by the baselines: no model is asked.

    `kind` is `svg` (the default) or `text`; the body may be left out. Of several projects it joins
    the demo's, unless it names another.
    """
    api_key = key_of(request, MANAGE)
    options = body or DemoRequest()
    project = project_for(api_key, options.project, usual=load.PROJECT)
    run = load.make_run(project, options.kind, options.name or load.RUNS[options.kind])
    plan, cost = Plan(0, run.queue.items.count(), 0), Estimate(Decimal(0), Decimal(0), (), ())
    return Status(201, _state(run, plan=plan, estimate=cost))


@router.get("/{run_id}", response=Detailed)
def get_run(request: HttpRequest, run_id: Prefix) -> Any:
    """Where a run stands: its state, its pairs and votes, its work, its cost, its judges."""
    run = _with_totals(Run.objects.filter(pk=run_of(key_of(request, READ), run_id).pk)).get()
    progress = progress_of(run)
    return Listed.from_orm(run).model_dump(by_alias=True) | {
        "started_at": run.started_at,
        "config": _without_answers(run.config),
        "progress": progress,
        "cost": progress,
        "judges": list(run.judges.order_by("position")),
    }


def _without_answers(config: JsonObject | None) -> JsonObject | None:
    """Leave out what people said of examples: the reader may have to vote on them yet."""
    if config is None:
        return None
    judges = [dict(judge) for judge in config["judges"]]
    for judge in judges:
        if "examples" in judge:
            judge["examples"] = [{"item": example["item"]} for example in judge["examples"]]
    return config | {"judges": judges}


@router.post("/{run_id}/start", response=State)
def start(request: HttpRequest, run_id: Prefix) -> Any:
    """Start a draft."""
    return lifecycle.start(_run_to_manage(request, run_id).pk)


@router.post("/{run_id}/stop", response=State)
def stop(request: HttpRequest, run_id: Prefix) -> Any:
    """Stop calls and voting; answers under way are kept."""
    return lifecycle.stop(_run_to_manage(request, run_id).pk)


@router.post("/{run_id}/resume", response=State)
def resume(request: HttpRequest, run_id: Prefix, body: Resume | None = None) -> Any:
    """Go on where a run was stopped, with another budget if one is given."""
    return lifecycle.resume(_run_to_manage(request, run_id).pk, body.budget_usd if body else None)


_JOINING = {"judges": ["always-first"], "provider": "default"}


@router.post(
    "/{run_id}/judges",
    response=Joined,
    openapi_extra=_described_body(json_schema(JoiningJudges), _JOINING),
)
def add_judges(request: HttpRequest, run_id: Prefix) -> Any:
    """Ask more judges about the items that a run has; `verdicts` says how many are wanted.

    Its outputs may have been imported, or logged by a client; what comes later is judged too.
    """
    run = _run_to_manage(request, run_id)
    judges = validated(JoiningJudges, json_of(request, MOST_BYTES))
    verdicts = lifecycle.add_judges_to(run.pk, judges)
    run.refresh_from_db()
    return _state(run, verdicts=verdicts)


@router.get("/{run_id}/left-out", response=LeftOutJudges)
def left_out(request: HttpRequest, run_id: Prefix) -> Any:
    """The judges that somebody left out of all figures of a run."""
    return {"judges": exclusion.left_out_of(run_of(key_of(request, MANAGE), run_id, "see people"))}


@router.post("/{run_id}/left-out", response=LeftOutJudges)
def leave_out(request: HttpRequest, run_id: Prefix, body: LeaveOutIn) -> Any:
    """Leave a judge out of all figures of a run; the ledger has an entry of it."""
    run, judge, curator = _judge_to_decide_on(request, run_id, body.judge)
    exclusion.leave_out(judge, curator, body.why)
    return {"judges": exclusion.left_out_of(run)}


@router.post("/{run_id}/left-out/take-back", response=LeftOutJudges)
def include(request: HttpRequest, run_id: Prefix, body: IncludeIn) -> Any:
    """Let a judge count again that was left out."""
    run, judge, curator = _judge_to_decide_on(request, run_id, body.judge)
    exclusion.include(judge, curator)
    return {"judges": exclusion.left_out_of(run)}


def _judge_to_decide_on(request: HttpRequest, run_id: str, named: str) -> tuple[Run, Judge, Voter]:
    api_key = key_of(request, MANAGE)
    run = run_of(api_key, run_id, "decide")
    judge = run.judges.filter(name=named).first() or by_prefix(run.judges.all(), named)
    if judge is None:
        raise HttpError(404, f"there is no judge {named!r} in this run")
    return run, judge, voter_of_key(run.queue.project_id, api_key)


@router.post("/{run_id}/retry", response=Retried)
def retry(request: HttpRequest, run_id: Prefix) -> Any:
    """Ask again for everything that failed; `calls` says how many calls and drawings that is."""
    run = _run_to_manage(request, run_id)
    calls = lifecycle.retry_failed(run.pk)
    run.refresh_from_db()
    return _state(run, calls=calls)


@router.post("/{run_id}/duplicate", response={201: State})
def duplicate(request: HttpRequest, run_id: Prefix) -> Any:
    """Draft a run with the same config; calls that are the same are answered from storage."""
    return Status(201, lifecycle.duplicate(_run_to_manage(request, run_id).pk))


@router.get("/{run_id}/people", response=People)
def people(request: HttpRequest, run_id: Prefix) -> Any:
    """Who votes in a run and how, by name, and when the votes that are missing may be in."""
    api_key = key_of(request, MANAGE)
    run = run_of(api_key, run_id, "see people")
    require_votes_first(api_key, run)
    queue = run.queue
    figures = figures_of(run)
    people, pace = people_of(queue, figures), pace_of(queue, timezone.now(), figures)
    return {"people": people, "votes_left": pace.votes_left, "forecast": pace.forecast}


def _run_to_manage(request: HttpRequest, run_id: Prefix) -> Run:
    return run_of(key_of(request, MANAGE), run_id, "run")


@router.post("/{run_id}/judge-eval/simulate", response=load.Simulated)
def simulate(request: HttpRequest, run_id: Prefix, body: SimulateIn) -> Any:
    """Cast pretend votes on the pairs that are pending for this key, to try a run out.

    The choice is one of the ballot, or `auto`: drawn for each pair by the seed, so the same seed
    makes the same votes. A run that holds such votes takes no others, and one in which people have
    voted takes none of them. At most 5,000 are cast at once: `left` says how many pairs want more.
    """
    api_key = key_of(request, VOTE, MANAGE)
    run = run_of(api_key, run_id, "run")
    choices = (*run.queue.ballot, load.AUTO)
    if body.choice not in choices or not run.queue.ballot:
        raise HttpError(422, f"choice: {body.choice!r} must be one of {', '.join(choices)}")
    voter = voter_of_key(run.queue.project_id, api_key)
    return load.simulate(run, voter, body.choice, limit=body.limit, seed=body.seed)
