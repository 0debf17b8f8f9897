"""What run pages read of calls, with a fixed number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Avg, Count, Exists, Max, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from judge_eval.exchange.import_pairs import CHANGES
from judge_eval.models import Call, Judge, Run, Verdict
from voting.models import Comparison, Inference

DONE, FAILED, WAITING = Call.State.DONE, Call.State.FAILED, Call.State.WAITING


@dataclass(frozen=True)
class ModelCalls:
    """What one model was asked in one role."""

    purpose: str
    provider: str
    model: str
    done: int
    failed: int
    waiting: int
    # Of those that wait: being made at this moment.
    out: int
    tokens_in: int
    tokens_out: int
    # None as soon as one call has no known price.
    cost_nano: int | None
    mean_latency_ms: float | None

    @property
    def total(self) -> int:
        return self.done + self.failed + self.waiting


def calls_by_model(run: Run) -> list[ModelCalls]:
    """Return a line for each model and role, those that generate first."""
    rows = (
        run.calls.values("purpose", "provider", "model")
        .annotate(
            done=Count("pk", filter=Q(state=DONE)),
            failed=Count("pk", filter=Q(state=FAILED)),
            waiting=Count("pk", filter=Q(state=WAITING)),
            out=Count("pk", filter=Q(state=WAITING, leased_until__gt=timezone.now())),
            tokens_in=Sum("prompt_tokens", default=0),
            tokens_out=Sum("completion_tokens", default=0),
            cost=Sum("cost_nano", default=0),
            unpriced=Count("pk", filter=Q(state=DONE, cost_nano=None, reused=None)),
            mean_latency_ms=Avg("latency_ms"),
        )
        .order_by("purpose", "provider", "model")
    )
    return [_model_calls(dict(row)) for row in rows]


def _model_calls(row: dict[str, Any]) -> ModelCalls:
    cost, unpriced = row.pop("cost"), row.pop("unpriced")
    return ModelCalls(**row, cost_nano=None if unpriced else cost)


@dataclass(frozen=True)
class Alarm:
    """A model of which every call of a run has failed, in one role; nothing will come of it."""

    purpose: str
    provider: str
    model: str
    failed: int
    # The last reason: as a rule it is that of all.
    reason: str

    @property
    def headline(self) -> str:
        things = "verdicts" if self.purpose == Call.Purpose.JUDGE else "outputs"
        return f"Every call to {self.model} ({self.provider}) for {things} has failed"

    @property
    def consequence(self) -> str:
        if self.purpose == Call.Purpose.JUDGE:
            return "It has given no verdict: votes will say nothing about this judge."
        return "Without its outputs there are no pairs of this model."


_GROUP = ("run", "purpose", "provider", "model")
# Where more calls wait, so many that failed are no accident.
FEW = 3


def alarms(runs: Iterable[Run]) -> dict[UUID, list[Alarm]]:
    """Return which models of some runs fail whenever they are asked, in three queries at most."""
    failed = Call.objects.filter(
        run__in=[run.pk for run in runs], purpose__in=Call.Purpose.values, state=FAILED
    )
    rows = failed.values(*_GROUP).annotate(n=Count("pk"), last=Max("pk"))
    groups = {tuple(row[name] for name in _GROUP): row for row in rows.order_by("purpose", "model")}
    if not groups:
        return {}
    of_them = [Q(**dict(zip(_GROUP, group, strict=True))) for group in groups]
    others = Call.objects.filter(reduce(or_, of_them), state__in=(DONE, WAITING))
    known = set(others.values_list(*_GROUP, "state").distinct())
    silent = [
        (group, row)
        for group, row in groups.items()
        if (*group, DONE) not in known and (row["n"] >= FEW or (*group, WAITING) not in known)
    ]
    reasons = dict(
        Call.objects.filter(pk__in=[row["last"] for _, row in silent]).values_list("pk", "error")
    )
    found: dict[UUID, list[Alarm]] = defaultdict(list)
    for (run, purpose, provider, model), row in silent:
        found[run].append(Alarm(purpose, provider, model, row["n"], reasons[row["last"]]))
    return dict(found)


def failed_calls(run: Run) -> QuerySet[Call]:
    """Calls that failed for good, the latest first, without their long replies."""
    return (
        run.calls.filter(state=FAILED)
        .select_related("verdict__comparison")
        .defer("reply")
        .order_by("-pk")
    )


def failed_verdicts(run: Run) -> QuerySet[Verdict]:
    """Verdicts that failed although no call did: a baseline's, or orders that do not fit."""
    failed = Call.objects.filter(verdict=OuterRef("pk"), state=FAILED)
    return (
        Verdict.objects.filter(
            ~Exists(failed), judge__run=run, state=Verdict.State.FAILED, comparison__unusable=""
        )
        .select_related("judge", "comparison")
        .order_by("-pk")
    )


@dataclass(frozen=True)
class Made:
    """How an output came about, as far as it is known."""

    call: Call | None
    changes: Sequence[str]
    # What its drawing refers to outside itself.
    left_out: str


def made_of(pair: Comparison) -> dict[str, Made]:
    """Return how the outputs of a pair came about, by their sides."""
    found = Call.objects.filter(inference__in=[pair.a_id, pair.b_id]).defer("reply")
    calls = {call.inference_id: call for call in found}
    return {
        side: _made(output, calls.get(output.pk))
        for side, output in zip("ab", pair.pair, strict=True)
    }


def _made(output: Inference, call: Call | None) -> Made:
    changes = call.changes if call else output.metadata.get(CHANGES, [])
    return Made(call, changes, output.picture.left_out if output.picture else "")


def pairs_with(output: UUID | None) -> list[UUID]:
    """Return the pairs that an output is in."""
    pairs = (
        Comparison.objects.filter(Q(a=output) | Q(b=output))
        if output
        else Comparison.objects.none()
    )
    return list(pairs.values_list("pk", flat=True))


def calls_of(verdicts: Iterable[Verdict]) -> dict[int, list[Call]]:
    """Return each verdict's calls, order by order and sample by sample, without their replies."""
    calls: dict[int, list[Call]] = defaultdict(list)
    asked = [verdict.pk for verdict in verdicts if verdict.judge.provider != Judge.BASELINE]
    found = Call.objects.filter(verdict__in=asked).defer("reply").order_by("order", "sample")
    for call in found:
        assert call.verdict_id is not None  # it was asked for
        calls[call.verdict_id].append(call)
    return calls
