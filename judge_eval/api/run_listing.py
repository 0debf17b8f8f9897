"""Runs as lists and answers hold them, with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from judge_eval.models import Run
from voting.models import Comparison

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CursorInvalid(ValueError):
    """Not a cursor that a page of runs ended with."""


def counted(runs: QuerySet[Run]) -> QuerySet[Run]:
    """Count the usable pairs of runs as `total`; it costs the same however many there are."""
    pairs = Comparison.objects.filter(queue=OuterRef("queue"))
    last = pairs.order_by("-position").values("position")[:1]
    unusable = pairs.filter(~Q(unusable="")).values("queue").annotate(n=Count("pk")).values("n")
    nothing = Value(0, IntegerField())
    total = Coalesce(Subquery(last) + 1, nothing) - Coalesce(Subquery(unusable), nothing)
    return runs.select_related("board", "queue__project").annotate(
        total=total, done=F("queue__done")
    )


def page(project: UUID | None, cursor: str, limit: int) -> tuple[Sequence[Run], str | None]:
    """Return runs, the newest first, and the cursor of the next page if there is one."""
    runs = counted(Run.objects.order_by("-created_at", "-pk"))
    if project is not None:
        runs = runs.filter(queue__project=project)
    if cursor:
        at, pk = _read(cursor)
        runs = runs.filter(Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk))
    found = list(runs[: limit + 1])
    return found[:limit], _cursor(found[limit - 1]) if len(found) > limit else None


def _cursor(run: Run) -> str:
    return f"{(run.created_at - _EPOCH) // timedelta(microseconds=1)}-{run.pk.hex}"


def _read(cursor: str) -> tuple[datetime, UUID]:
    at, _, pk = cursor.partition("-")
    try:
        return _EPOCH + timedelta(microseconds=int(at)), UUID(hex=pk)
    except (ValueError, OverflowError) as error:
        raise CursorInvalid("cursor: not one that a page of runs ended with") from error
