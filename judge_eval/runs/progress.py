"""How far a run is: what was asked, what came, what failed, what it cost, how long it will take."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Min, Q, QuerySet, Sum
from django.utils import timezone
from pydantic import computed_field

from judge_eval.judging.config.estimates import Usd, calls_per_verdict, plan
from judge_eval.judging.config.run_config import parse
from judge_eval.judging.provider_access import NANO
from judge_eval.models import TRIALS, Call, Run
from judge_eval.runs.queries import used_pictures, verdicts_of
from judge_eval.runs.state import judges_of_new_items, unasked_verdicts

RECENT = timedelta(seconds=60)
# How long a run still takes is told from so many answers, over so many seconds at least.
ENOUGH_ANSWERS = 10
ENOUGH_SECONDS = 10.0
# The kind of event that says how many attempts were made before calls began theirs anew.
RETRIED = "retried"


@dataclass(frozen=True)
class Part:
    """One kind of work of a run."""

    done: int = 0
    failed: int = 0
    waiting: int = 0

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        return self.done + self.failed + self.waiting


@dataclass(frozen=True, kw_only=True)
class Work:
    """How far a run is."""

    outputs: Part
    pictures: Part
    # Calls for verdicts, and verdicts, baselines' too: those as well whose pairs are still to come.
    calls: Part
    verdicts: Part
    per_minute: int
    seconds_left: float | None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a run's calls took."""

    cost_usd: Usd | None
    spent_usd: Usd
    budget_usd: Usd | None
    tokens_in: int
    tokens_out: int
    attempts: int
    reused: int
    repaired: int
    mean_latency_ms: float | None


@dataclass(frozen=True, kw_only=True)
class RunProgress(Work, Cost):
    """Where a run stands, from its rows."""


def progress_of(run: Run) -> RunProgress:
    """Count a run's work; eight queries at most, whatever its size."""
    now = timezone.now()
    is_recent = Q(done_at__gt=now - RECENT)
    rows: list[Any] = list(
        run.calls.exclude(purpose__in=TRIALS)
        .values("purpose", "state")
        .annotate(
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
            recent=Count("pk", filter=is_recent),
            since=Min("done_at", filter=is_recent),
        )
    )
    counts = {
        purpose: {row["state"]: row["n"] for row in rows if row["purpose"] == purpose}
        for purpose in Call.Purpose.values
    }
    names = "tokens_in tokens_out cost tries reused_n repaired latency timed recent".split()
    total = {name: sum(row[name] or 0 for row in rows) for name in names}
    done = [row for row in rows if row["state"] == Call.State.DONE]
    since = min((row["since"] for row in done if row["since"]), default=now)
    # How many attempts were made that a later retry has taken off the calls.
    retries = run.events.filter(kind=RETRIED).values_list("data", flat=True)
    to_come = _to_come(run)
    outputs = _part(counts[Call.Purpose.GENERATE])
    verdict_calls = _part(counts[Call.Purpose.JUDGE], to_come["calls"])
    return RunProgress(
        outputs=outputs,
        pictures=_part(_counts(used_pictures(run)), outputs.waiting * to_come["drawn"]),
        calls=verdict_calls,
        verdicts=_part(_counts(verdicts_of(run)), to_come["verdicts"]),
        tokens_in=total["tokens_in"],
        tokens_out=total["tokens_out"],
        attempts=total["tries"] + sum(data.get("attempts", 0) for data in retries),
        reused=total["reused_n"],
        repaired=total["repaired"],
        cost_usd=None if any(r["unpriced"] for r in done) else Decimal(total["cost"]) / NANO,
        spent_usd=Decimal(run.spent_nano) / NANO,
        budget_usd=run.budget_usd,
        mean_latency_ms=total["latency"] / total["timed"] if total["timed"] else None,
        per_minute=total["recent"],
        seconds_left=_seconds_left(
            waiting=outputs.waiting + verdict_calls.waiting,
            answers=sum(row["recent"] for row in done),
            seconds=(now - since).total_seconds(),
        ),
    )


def _seconds_left(*, waiting: int, answers: int, seconds: float) -> float | None:
    """Return how long calls take at the rate of the last answers, None where these tell little.

    >>> _seconds_left(waiting=100, answers=20, seconds=40.0)
    200.0
    >>> _seconds_left(waiting=100, answers=2, seconds=40.0)
    """
    if not waiting or answers < ENOUGH_ANSWERS or seconds < ENOUGH_SECONDS:
        return None
    return waiting * seconds / answers


def _to_come(run: Run) -> Counter[str]:
    """Count what no row says yet: outputs are paired, and judges asked, as outputs come."""
    if not run.config or run.state not in (*Run.AT_WORK, Run.State.STOPPED):
        return Counter()
    config = parse(run.config)
    unpaired = run.calls.filter(purpose=Call.Purpose.GENERATE, is_paired=False)
    prompts = unpaired.aggregate(n=Count("prompt", distinct=True))["n"]
    calls_each = {judge.id: calls_per_verdict(config, judge) for judge in config.judges}
    calls = sum(len(judge.models) * calls_each[judge.id] for judge in config.judges)
    left = unasked_verdicts(run).values_list("judge__name").annotate(n=Count("pk"))
    pairs = plan(config).pairs * prompts // max(len(config.prompts), 1)
    return Counter(
        verdicts=pairs * judges_of_new_items(run, run.config).count(),
        calls=pairs * calls
        + sum(calls_each.get(name, 1) * number for name, number in left.order_by()),
        drawn=int(config.kind == "svg"),
    )


def _counts(rows: QuerySet[Any]) -> dict[str, int]:
    return dict(rows.values_list("state").annotate(n=Count("pk")))


def _part(counts: Mapping[str, int], to_come: int = 0) -> Part:
    done, failed, waiting = (counts.get(state, 0) for state in ("done", "failed", "waiting"))
    return Part(done, failed, waiting + to_come)
