"""What was voted on traces: of a model, of a benchmark, and its public leaderboard."""

from datetime import UTC, datetime, time
from typing import Annotated, Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Field, Query, Schema
from ninja.errors import HttpError

from humanjudge.lib.validation import ConfigInvalid
from judge_eval.api.access import KeyRouter, key_of
from reports.grandjury import selectors
from reports.grandjury.api.access import (
    EITHER_KEY,
    Named,
    benchmark_named,
    insist_on_patience,
    model_named,
)
from reports.grandjury.selectors import MOST_ROWS, Row, Window
from voting.models import ApiKey

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
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigInvalid.at(path, "is no date, such as 2026-03-01, or time") from None
    if len(text) <= len("2026-03-01"):
        at = datetime.combine(at, of_day)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


Page = Annotated[Paging, Query()]


def _rows(api_key: ApiKey, traces: Any, page: Paging, *, by_slug: bool = False) -> list[Row]:
    # Who reads with the key of a model is no person who might vote.
    reader = api_key.user if api_key.kind == ApiKey.Kind.PERSON else None
    if page.detail == "votes":
        return [_vote(row) for row in selectors.vote_rows(traces, reader, page.window())]
    rows = selectors.trace_rows(traces, reader, page.window())
    return [_trace(row, by_slug=by_slug) for row in rows]


def _trace(row: Row, *, by_slug: bool) -> Row:
    label = None if by_slug else row["metadata"].get("model")
    rate = selectors.pass_rate(row["pass_count"], row["total_votes"])
    return row | {"model": label or row["slug"], "pass_rate": rate}


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
    return _rows(api_key, selectors.model_traces(model, benchmark), page)


@results.get("/challenges", response=list[BenchmarkRow])
def challenges(request: HttpRequest) -> Any:
    """Benchmarks that models may enrol in."""
    key_of(request, ApiKey.Scope.READ)
    return selectors.open_benchmarks()


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
    traces = selectors.benchmark_traces(api_key, benchmark, names)
    return _rows(api_key, traces, page, by_slug=True)


@leaderboards.get("/benchmarks/{benchmark_id}/leaderboard", response=list[LeaderboardRow])
def leaderboard(request: HttpRequest, benchmark_id: Named) -> Any:
    """The models of a benchmark that is open to enrolment, the highest pass rate first."""
    insist_on_patience(request)
    benchmark = benchmark_named(benchmark_id)
    if not benchmark.is_open:
        raise HttpError(404, f"there is no benchmark {benchmark_id!r}")
    return selectors.leaderboard(benchmark)
