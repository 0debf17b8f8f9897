"""What run pages and the API read, with a fixed number of queries."""

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple, TypedDict, TypeVar, cast
from uuid import UUID

from django.db.models import (
    Avg,
    Count,
    Exists,
    IntegerField,
    Max,
    Min,
    Model,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
)
from django.db.models.functions import Coalesce

from humanjudge.core import leases
from judge_eval.models import (
    REPEATED,
    Board,
    Call,
    Extension,
    JudgeRating,
    RatingPoint,
    Run,
    Verdict,
)
from judge_eval.stats import elo
from voting.ballot.queries import queue_counts, unusable_pairs
from voting.ledger.counts import counted_in
from voting.models import Entry, Item, Picture, Project

Row = TypeVar("Row", bound=Model)
# Of calls: what one cost is not known.
UNPRICED: Final = Q(cost_nano__isnull=True, state=Call.State.DONE)
# Of verdicts: by a judge that was tuned on the votes on that very item.
TUNED_ON: Final = Q(judge__is_tuned=True, item__is_held_out=False)
# What the calls of a run bring.
THINGS: dict[str, str] = {Call.Purpose.GENERATE: "outputs", Call.Purpose.JUDGE: "verdicts"}
# Of failed calls, as many groups are listed.
MOST_REASONS: Final = 12
# Of a model that has answered nothing.
CONSEQUENCES = {
    Call.Purpose.GENERATE: "Without its outputs there is nothing of this model to vote on.",
    Call.Purpose.JUDGE: "It has given no verdict: votes will say nothing about this judge.",
}


class Ambiguous(ValueError):
    """More than one row begins like this."""


def by_prefix(rows: QuerySet[Row], text: str) -> Row | None:
    """Return the row whose UUID is, or begins with, the text."""
    digits = text.replace("-", "").lower()
    if not re.fullmatch("[0-9a-f]{1,32}", digits):
        return None
    first, last = UUID(hex=digits.ljust(32, "0")), UUID(hex=digits.ljust(32, "f"))
    matches = list(rows.filter(pk__gte=first, pk__lte=last)[:2])
    if len(matches) > 1:
        raise Ambiguous(f"more than one begins with {text!r}; give more characters")
    return matches[0] if matches else None


def project_of(text: str) -> Project | None:
    """Return the project that this identifies, or else the oldest of this name."""
    named = Project.objects.filter(name=text).order_by("created_at")
    return named.first() or by_prefix(Project.objects.all(), text)


def used_pictures(run: Run) -> QuerySet[Picture]:
    """Return the pictures of a run's items, and of outputs that are still to be paired."""
    # One list, read once: asked of every picture anew, an item with either takes seconds.
    items = Item.objects.filter(queue=run.queue_id)
    a, b = (items.filter(**{f"{side}__picture__isnull": False}) for side in ("a", "b"))
    to_pair = run.calls.filter(is_paired=False, inference__picture__isnull=False)
    pairs = a.values("a__picture").union(b.values("b__picture"))
    return Picture.objects.filter(pk__in=pairs.union(to_pair.values("inference__picture")))


def is_drawn(item: str = "") -> Q:
    """Say of items, or of rows that have one by this name, that all their pictures are there."""
    undrawn = Picture.objects.exclude(state=Picture.State.DONE)
    a, b = f"{item}a__picture__in", f"{item}b__picture__in"
    return ~Q(**{a: undrawn}) & ~Q(**{b: undrawn})


def with_costs(verdicts: QuerySet[Verdict]) -> QuerySet[Verdict]:
    """Add what the calls of verdicts cost: they stay here, and what they cost is on the board."""
    verdict_calls = Call.objects.exclude(REPEATED).filter(verdict=OuterRef("pk"))
    calls = verdict_calls.exclude(state=Call.State.WAITING)
    calls_by_verdict = calls.order_by().values("verdict")
    nano = calls_by_verdict.annotate(nano=Sum("cost_nano")).values("nano")
    unpriced = calls_by_verdict.annotate(unpriced=Count("pk", filter=UNPRICED)).values("unpriced")
    return verdicts.annotate(
        all_nano=Coalesce(Subquery(nano), "cost_nano"),
        all_unpriced=Coalesce(Subquery(unpriced), "unpriced", output_field=IntegerField()),
    )


class BoardView(NamedTuple):
    """All that the board shows, as of one ledger entry; its rows are in the run's order."""

    run: Run
    rows: list[JudgeRating]
    votes: int
    unblinded: int
    seq: int
    done: int
    total: int
    preparing: int
    unusable: int
    withheld: str = ""

    @property
    def elo(self) -> dict[str, float]:
        """The ELO of each judge; of none where it would tell single votes."""
        return {str(row.judge.pk): row.elo for row in self.rows if not self.withheld}

    @property
    def pending(self) -> int:
        return self.total - self.done

    @property
    def ready(self) -> int:
        return self.total - self.preparing


def counts_as_judge(judge: str = "") -> Q:
    """Say of judges, or of rows that have one by this name, that nobody left them out."""
    return ~Q(**{f"{judge}rating__is_left_out": True})


def stands_on_board(run: Run, judge: str = "") -> Q:
    """Say of judges, or of rows that have one by this name, that a run's board has them.

    Of those tuned here it has, once the tuning has ended, whoever judged the half held out.
    """
    untuned, counts = Q(**{f"{judge}is_tuned": False}), counts_as_judge(judge)
    if run.queue.held_out_from is None:
        return counts
    if run.queue.is_tuning:
        return untuned & counts
    judged = Verdict.objects.filter(judge=OuterRef(f"{judge}pk"), item__is_held_out=True)
    return counts & (untuned | Q(Exists(judged.exclude(state=Verdict.State.WAITING))))


def board(
    run: Run, counted: tuple[int, int, int] | None = None, *, is_live: bool = True
) -> BoardView:
    """Return the board of a run; `counted` are its items, where they were counted already.

    What moves with every vote is withheld unless it `is_live`, and while judges are tuned.
    """
    withheld = elo.TUNED if run.queue.is_tuning else "" if is_live else elo.VOTE_FIRST
    ratings = JudgeRating.objects.filter(judge__run=run).select_related("judge")
    rows = list(ratings.filter(stands_on_board(run, "judge__")).order_by("judge__position"))
    if withheld:
        for row in rows:  # they would tell each vote as it comes
            row.agree = row.disagree = 0
    counts, unusable = Board.objects.get(run=run), unusable_pairs(run.queue).count()
    votes = (counts.votes, counts.unblinded, counts.seq)
    counted = counted or queue_counts(run.queue)
    return BoardView(run, rows, *votes, *counted, unusable, withheld)


def voted_items(run: Run, up_to: int | None = None) -> QuerySet[Item]:
    """Return the items of a run with votes that count; `up_to` an entry of the ledger, or all."""
    items = run.queue.items.filter(votes__gt=0, opened_at__isnull=False, unusable="")
    if up_to is None:
        return items
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id, seq__lte=up_to)
    return items.filter(pk__in=votes.values("item"))


def verdicts_of(run: Run) -> QuerySet[Verdict]:
    """Return a run's verdicts by its judges' numbers: joined, PostgreSQL may read those of all."""
    return Verdict.objects.filter(judge__in=list(run.judges.values_list("pk", flat=True)))


def failures_of(judges: Collection[UUID]) -> dict[UUID, str]:
    """Return an error of each of these judges that has some verdict that failed."""
    failed = Verdict.objects.filter(judge__in=judges, state=Verdict.State.FAILED)
    return dict(failed.order_by().values_list("judge").annotate(Max("error")))


def left_out(run: Run) -> list[tuple[str, int]]:
    """Return why pairs of a run cannot be voted on, and how many each reason holds back."""
    reasons = unusable_pairs(run.queue).values_list("unusable")
    return list(reasons.annotate(pairs=Count("pk")).order_by("-pairs", "unusable"))


def rating_series(run: Run, votes: int) -> list[tuple[int, list[float]]]:
    """Return at most about 130 points (votes so far, ratings in judge order), oldest first."""
    stride = elo.graph_stride(votes)
    steps = range(stride, votes + 1, stride)
    points = RatingPoint.objects.filter(run=run, votes__in=list(steps)).order_by("votes")
    return list(points.values_list("votes", "ratings"))


def verdicts_on(item: Item) -> list[Verdict]:
    verdicts = Verdict.objects.filter(counts_as_judge("judge__"), item=item)
    verdicts = verdicts.select_related("judge__rating")
    return list(verdicts.order_by("judge__position"))


class ModelCalls(TypedDict):
    """The calls of a run to a model in one role, and what came of them."""

    run: UUID
    purpose: str
    provider: str
    model: str
    things: str
    total: int
    done: int
    failed: int
    waiting: int
    # Of those that wait: being made at this moment.
    out: int
    tokens_in: int
    tokens_out: int
    nano: int
    unpriced: int
    mean_ms: float | None
    last_failed: int | None
    # Of judges that are left out; and of those that failed, not made.
    left_out: int
    held: int


class Alarm(NamedTuple):
    """A model of which every call of a run has failed in one role, and what follows."""

    run: UUID
    things: str
    provider: str
    model: str
    failed: int
    held_calls: int
    consequence: str
    reason: str


def calls_by_model(runs: Iterable[UUID] | QuerySet[Any, Any]) -> list[ModelCalls]:
    """Return a line for each model and role of some runs, those that generate first."""
    rows = (
        Call.objects.filter(run__in=runs, purpose__in=THINGS)
        .values("run", "purpose", "provider", "model")
        .annotate(
            total=Count("pk"),
            done=Count("pk", filter=Q(state=Call.State.DONE)),
            failed=Count("pk", filter=Q(state=Call.State.FAILED)),
            waiting=Count("pk", filter=Q(state=Call.State.WAITING)),
            out=Count("pk", filter=leases.active() & Q(state=Call.State.WAITING)),
            tokens_in=Sum("prompt_tokens", default=0),
            tokens_out=Sum("completion_tokens", default=0),
            nano=Sum("cost_nano", default=0),
            unpriced=Count("pk", filter=Q(state=Call.State.DONE, cost_nano=None, reused=None)),
            mean_ms=Avg("latency_ms"),
            last_failed=Max("pk", filter=Q(state=Call.State.FAILED)),
            held=Count("pk", filter=Q(state=Call.State.FAILED, attempts=0)),
            left_out=Count("pk", filter=Q(verdict__judge__rating__is_left_out=True)),
        )
    )
    in_order = rows.order_by("purpose", "provider", "model")
    return [cast("ModelCalls", row | {"things": THINGS[row["purpose"]]}) for row in in_order]


class FailedCalls(TypedDict):
    """Calls of a run to one model in one role that failed for good, for one reason."""

    provider: str
    model: str
    purpose: str
    error: str
    things: str
    number: int
    first: datetime | None
    last: datetime | None
    # The number of the latest such call, and what it was about.
    example: int
    item: UUID | None


def failed_calls(run: Run) -> list[FailedCalls]:
    """Return what failed by model, role and reason, the largest groups first; two queries."""
    failed = run.calls.filter(purpose__in=THINGS, state=Call.State.FAILED)
    rows = list(
        failed.values("provider", "model", "purpose", "error")
        .annotate(number=Count("pk"), first=Min("done_at"), last=Max("done_at"), example=Max("pk"))
        .order_by("-number", "model", "-example")[:MOST_REASONS]
    )
    examples = Call.objects.filter(pk__in=[row["example"] for row in rows])
    items = dict(examples.values_list("pk", "verdict__item"))
    return [
        cast(
            "FailedCalls",
            row | {"things": THINGS[row["purpose"]], "item": items.get(row["example"])},
        )
        for row in rows
    ]


def same_failure(call: Call) -> Q:
    """Say of calls that they failed as this one did: the same model, role and reason."""
    columns = ("provider", "model", "purpose", "error", "state")
    return Q(**{column: getattr(call, column) for column in columns})


def silent_models(runs: Iterable[UUID] | QuerySet[Any, Any]) -> dict[UUID, list[str]]:
    """Return, by run, the models of which every call has failed; only of runs that have some."""
    failed = Call.objects.filter(run__in=runs, purpose__in=THINGS, state=Call.State.FAILED)
    by_run: dict[UUID, list[str]] = {}
    for row in alarms(calls_by_model(failed.values("run"))):
        by_run.setdefault(row.run, []).append(row.model)
    return by_run


def alarms(calls: Iterable[ModelCalls]) -> list[Alarm]:
    """Return models of which every call of a run has failed, in one role; nothing comes of them.

    Where more calls wait, three that failed are no accident.
    """
    silent = [
        row
        for row in calls
        if row["failed"] and not row["done"] and (row["failed"] >= 3 or not row["waiting"])
        if row["left_out"] < row["total"]
    ]
    last = Call.objects.filter(pk__in=[row["last_failed"] for row in silent])
    reasons = dict(last.values_list("pk", "error"))  # as a rule it is the reason of all
    return [
        Alarm(
            run=row["run"],
            things=row["things"],
            provider=row["provider"],
            model=row["model"],
            failed=row["failed"] - row["held"],
            held_calls=row["held"],
            consequence=CONSEQUENCES[Call.Purpose(row["purpose"])],
            reason=reasons[row["last_failed"] or 0],
        )
        for row in silent
    ]


def switched_off() -> frozenset[str]:
    """Return the extensions that may not be used here."""
    return frozenset(Extension.objects.filter(is_enabled=False).values_list("pk", flat=True))
