"""What the GrandJury protocol reads, with a fixed number of queries whatever the size."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef, Prefetch, Q, QuerySet, Sum

from judge_eval.models import Run
from judge_eval.runs.access import note_seen
from reports.models import Benchmark, Enrollment, Trace, TracedModel
from voting.access.roles import can, projects_of
from voting.ballot.queries import left_to
from voting.ballot.tuning import HIDDEN
from voting.ledger.counts import COUNTED
from voting.models import ApiKey, Entry, Item, Project, Voter

MOST_ROWS: Final = 1000
Row: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Window:
    """Which of many rows are wanted: those of a time, and so many behind so many."""

    since: datetime | None
    until: datetime | None
    limit: int
    offset: int

    def apply(self, rows: QuerySet[Any, Any], time_column: str) -> QuerySet[Any, Any]:
        if self.since is not None:
            rows = rows.filter(**{f"{time_column}__gte": self.since})
        if self.until is not None:
            rows = rows.filter(**{f"{time_column}__lte": self.until})
        return rows[self.offset : self.offset + self.limit]


# --- who is meant -------------------------------------------------------------------------------


def _name_filter(text: str, *columns: str) -> Q:
    """Return what holds for the rows that have this identifier in a column, or else this slug."""
    try:
        number = UUID(text)
    except ValueError:
        return Q(slug=text)
    return reduce(or_, (Q(**{column: number}) for column in columns))


def models_of(api_key: ApiKey) -> QuerySet[TracedModel]:
    """Return the models that a key reads: its own, or its person's.

    None of a project that the key's person has left: a model's key then only logs traces.
    """
    models = TracedModel.objects.filter(project__in=projects_of(api_key))
    if api_key.kind == ApiKey.Kind.MODEL:
        return models.filter(api_key=api_key)
    return models.filter(owner=api_key.user_id)


def person_of(api_key: ApiKey) -> User:
    return User.objects.get(pk=cast(int, api_key.user_id))


def project_of(api_key: ApiKey) -> Project | None:
    """Return the project that a key is for; None: for every project."""
    return Project.objects.filter(pk=api_key.project_id).first() if api_key.project_id else None


def find_model(api_key: ApiKey, text: str) -> TracedModel | None:
    return models_of(api_key).filter(_name_filter(text, "pk")).first()


def find_benchmark(text: str) -> Benchmark | None:
    """Return a benchmark by its slug, or the identifier of its project, queue or run."""
    benchmarks = Benchmark.objects.filter(_name_filter(text, "project", "queue", "queue__run"))
    return benchmarks.select_related("project", "queue").first()


def models_of_user(user: User) -> QuerySet[TracedModel]:
    enrolled = Prefetch(
        "enrollments",
        Enrollment.objects.select_related("benchmark__project", "benchmark__queue__run"),
    )
    models = TracedModel.objects.filter(owner=user).select_related("api_key", "project")
    return models.prefetch_related(enrolled).order_by("created_at", "pk")


def keys_of_user(user: User) -> QuerySet[ApiKey]:
    keys = ApiKey.objects.filter(user=user, kind=ApiKey.Kind.PERSON)
    return keys.select_related("project").order_by("created_at", "pk")


def benchmarks_of_user(user: User) -> QuerySet[Benchmark]:
    return Benchmark.objects.filter(owner=user).select_related("project").order_by("pk")


def open_benchmarks() -> QuerySet[Benchmark]:
    return Benchmark.objects.filter(is_open=True).select_related("project").order_by("pk")


def deletion_obstacle(run: Run) -> str:
    """Say why a run must not be deleted: models send their traces to its queue."""
    if Benchmark.objects.filter(queue=run.queue_id).exists():
        return "Models send their traces to this run, so it stays; it can be archived."
    return ""


def enrollments_of(model: TracedModel) -> QuerySet[Enrollment]:
    return model.enrollments.select_related("benchmark__project").order_by("created_at", "pk")


# --- traces and votes ---------------------------------------------------------------------------


def model_traces(model: TracedModel, benchmark: Benchmark | None) -> QuerySet[Trace]:
    traces = Trace.objects.filter(enrollment__model=model)
    return traces.filter(enrollment__benchmark=benchmark) if benchmark else traces


def benchmark_traces(
    api_key: ApiKey, benchmark: Benchmark, models: Sequence[str]
) -> QuerySet[Trace]:
    """Return the traces of a benchmark that a key reads.

    Who runs the benchmark reads those of all models, everybody else those of their own.
    """
    traces = Trace.objects.filter(enrollment__benchmark=benchmark)
    runs_it = api_key.user_id is not None and api_key.user_id == benchmark.owner_id
    if not (runs_it and can(api_key, "see", benchmark.project_id)):
        traces = traces.filter(enrollment__model__in=models_of(api_key))
    if models:
        named = TracedModel.objects.filter(
            reduce(or_, (_name_filter(text, "pk") for text in models))
        )
        traces = traces.filter(enrollment__model__in=named)
    return traces


def trace_rows(traces: QuerySet[Trace], reader: User | None, window: Window) -> list[Row]:
    """Return traces that were voted on, oldest first, with what was voted."""
    return _read(
        traces.filter(item__votes__gt=0).order_by("pk"),
        reader,
        window,
        "item__a__created_at",
        "trace_id",
        input=F("item__a__prompt"),
        output=F("item__a__output"),
        metadata=F("item__a__metadata"),
        slug=F("enrollment__model__slug"),
        pass_count=F("item__votes_pass"),
        flag_count=F("item__votes_flag"),
        total_votes=F("item__votes"),
    )


def vote_rows(traces: QuerySet[Trace], reader: User | None, window: Window) -> list[Row]:
    """Return the votes that count on traces, in the order of the ledger."""
    return _read(
        Entry.objects.filter(COUNTED, item__trace__in=traces).order_by("project", "seq"),
        reader,
        window,
        "at",
        "comment",
        trace_id=F("item__trace__trace_id"),
        voter_name=F("voter__pseudonym"),
        verdict=F("choice"),
        flag_category=F("category"),
        created_at=F("at"),
    )


def _read(
    rows: QuerySet[Any],
    reader: User | None,
    window: Window,
    time_column: str,
    *names: str,
    **columns: F,
) -> list[Row]:
    """Return what a person may read of a window, by the times in `time_column`; note it.

    What they have to vote on first is left out, and what is held out from everybody.
    """
    rows, voters = rows.exclude(HIDDEN), list(Voter.objects.filter(user=reader)) if reader else []
    if voters:
        rows = rows.filter(~Exists(left_to(voters).filter(pk=OuterRef("item"))))
    rows = window.apply(rows, time_column)
    read = list(rows.values("item", *names, **columns))
    _note_read(reader, read)
    return read


def _note_read(reader: User | None, rows: Iterable[Row]) -> None:
    """Note what others think that a person has read: a vote of theirs on it is not blind now."""
    if reader is None:
        return
    items = [row["item"] for row in rows]
    open_items = Item.objects.filter(pk__in=items, votes__lt=F("votes_wanted"))
    by_project: dict[Project, list[UUID]] = defaultdict(list)
    for item in open_items.select_related("queue__project"):
        by_project[item.queue.project].append(item.pk)
    for project, item_ids in by_project.items():
        note_seen(reader, project, item_ids)


def leaderboard(benchmark: Benchmark) -> list[Row]:
    """Return the models of a benchmark with their votes, the highest pass rate first."""
    counts = _counted(benchmark.pk, benchmark.project.ledger_head)
    rows = benchmark.enrollments.values_list("pk", "model__name", "model__slug")
    ranked = [_ranked(name, slug, *counts.get(pk, (0, 0))) for pk, name, slug in rows]
    return sorted(ranked, key=_place)


# Everybody may ask for it, and a benchmark may have very many traces; their votes change with the
# head of the ledger alone.
@lru_cache(maxsize=64)
def _counted(benchmark: int, head: str) -> dict[UUID, tuple[int, int]]:
    """Return how many votes and passes the models of a benchmark have, by enrolment."""
    traces = Trace.objects.filter(enrollment__benchmark=benchmark, item__votes__gt=0).order_by()
    sums = (
        traces.exclude(HIDDEN)
        .values_list("enrollment")
        .annotate(Sum("item__votes"), Sum("item__votes_pass"))
    )
    return {enrollment: (votes, passes) for enrollment, votes, passes in sums}


def _ranked(name: str, slug: str, votes: int, passes: int) -> Row:
    rate = pass_rate(passes, votes)
    return {"model_name": name, "model_slug": slug, "total_votes": votes, "pass_rate": rate}


def pass_rate(passes: int, votes: int) -> float | None:
    return passes / votes if votes else None


def _place(row: Row) -> tuple[float, int, str]:
    rate = row["pass_rate"]
    return (1.0 if rate is None else -rate, -row["total_votes"], row["model_name"])
