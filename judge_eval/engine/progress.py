"""How far a run is: what was asked, what came, what failed, what it cost, how long it will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from judge_eval.engine.providers import NANO
from judge_eval.models import Call, Run, Verdict
from judge_eval.selectors import used_pictures

RECENT = timedelta(seconds=60)
# The kind of event that says how many attempts were made before calls began theirs anew.
RETRIED = "retried"


@dataclass(frozen=True)
class Part:
    """One kind of work of a run."""

    done: int = 0
    failed: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        return self.done + self.failed + self.waiting


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands, from its rows."""

    outputs: Part
    pictures: Part
    # Calls for verdicts that were made so far, and verdicts, baselines' too.
    calls: Part
    verdicts: Part
    tokens_in: int
    tokens_out: int
    attempts: int
    reused: int
    repaired: int
    cost_usd: Decimal | None
    spent_usd: Decimal
    budget_usd: Decimal | None
    mean_latency_ms: float | None
    per_minute: int
    seconds_left: float | None


def progress_of(run: Run) -> RunProgress:
    """Count a run's work; four queries, whatever its size."""
    calls: dict[tuple[str, str], dict[str, Any]] = {
        (row["purpose"], row["state"]): dict(row)
        for row in run.calls.values("purpose", "state").annotate(
            n=Count("pk"),
            tokens_in=Sum("prompt_tokens"),
            tokens_out=Sum("completion_tokens"),
            cost=Sum("cost_nano"),
            unpriced=Count("pk", filter=Q(cost_nano__isnull=True, reused__isnull=True)),
            tries=Sum("attempts"),
            reused_n=Count("reused"),
            repaired=Count("pk", filter=Q(is_repaired=True)),
            latency=Sum("latency_ms"),
            timed=Count("latency_ms"),
            recent=Count("pk", filter=Q(done_at__gt=timezone.now() - RECENT)),
        )
    }
    rows: list[dict[str, Any]] = list(calls.values())

    def total(name: str) -> int:
        return sum(row[name] or 0 for row in rows)

    def of(purpose: str) -> Part:
        return _part({state: row["n"] for (p, state), row in calls.items() if p == purpose})

    done = [row for row in rows if row["state"] == Call.State.DONE]
    waiting = sum(row["n"] for row in rows if row["state"] == Call.State.WAITING)
    per_minute = total("recent")
    timed = total("timed")
    return RunProgress(
        outputs=of(Call.Purpose.GENERATE),
        pictures=_part(_counts(used_pictures(run))),
        calls=of(Call.Purpose.JUDGE),
        verdicts=_part(_counts(Verdict.objects.filter(judge__run=run))),
        tokens_in=total("tokens_in"),
        tokens_out=total("tokens_out"),
        attempts=total("tries") + _attempts_before(run),
        reused=total("reused_n"),
        repaired=total("repaired"),
        cost_usd=None if any(row["unpriced"] for row in done) else Decimal(total("cost")) / NANO,
        spent_usd=Decimal(run.spent_nano) / NANO,
        budget_usd=None if run.budget_nano is None else Decimal(run.budget_nano) / NANO,
        mean_latency_ms=sum(row["latency"] or 0 for row in rows) / timed if timed else None,
        per_minute=per_minute,
        seconds_left=60 * waiting / per_minute if waiting and per_minute else None,
    )


def _attempts_before(run: Run) -> int:
    """Return how many attempts were made that a later retry has taken off the calls."""
    retries = run.events.filter(kind=RETRIED).values_list("data", flat=True)
    return sum(data.get("attempts", 0) for data in retries)


def _counts(rows: QuerySet[Any]) -> dict[str, int]:
    return dict(rows.values_list("state").annotate(n=Count("pk")))


def _part(counts: Mapping[str, int]) -> Part:
    return Part(
        done=counts.get("done", 0), failed=counts.get("failed", 0), waiting=counts.get("waiting", 0)
    )
