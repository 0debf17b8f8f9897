"""A tryout as the draft's page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpRequest

from humanjudge.lib.text import latency, usd
from judge_eval.models import Judge, Run
from judge_eval.pages.run_access import may_read_verdicts
from judge_eval.runs import tryout
from judge_eval.runs.providers import NANO
from voting.choices import LABELS
from voting.models import Comparison


@dataclass(frozen=True)
class TriedPair:
    """One pair and what the judge said of it; nothing while it is asked."""

    pair: Comparison
    told: dict[str, Any] | None
    # Whether it is open to whoever reads this, who must vote on it blind.
    is_closed: bool

    @property
    def picked(self) -> str:
        winner = (self.told or {}).get("winner")
        return LABELS[winner] if winner else ""

    @property
    def cost(self) -> str:
        nano = (self.told or {}).get("cost_nano")
        return "price not known" if nano is None else usd(Decimal(nano) / NANO)

    @property
    def latency(self) -> str:
        return latency((self.told or {}).get("latency_ms"))


@dataclass(frozen=True)
class ShownTryout:
    """The last tryout of a draft."""

    judge: Judge
    pairs: Sequence[TriedPair]
    lost: str
    is_over: bool

    @property
    def seen(self) -> str:
        answered = sum(tried.told is not None for tried in self.pairs)
        return f"{answered}{'-over' if self.is_over else ''}"

    @property
    def answered(self) -> int:
        return sum(tried.told is not None for tried in self.pairs)


def shown_tryout(request: HttpRequest, run: Run) -> ShownTryout | None:
    """Return the last tryout of a run as whoever asks may see it."""
    last = tryout.latest(run)
    if last is None:
        return None
    about = Comparison.objects.select_related("queue__project", "queue__run", "a", "b")
    pairs = about.in_bulk(list(last.pairs))
    return ShownTryout(
        judge=last.judge,
        pairs=[
            _tried(request, pairs[pk], last.told.get(item)) for item, pk in enumerate(last.pairs)
        ],
        lost=last.lost,
        is_over=last.is_over,
    )


def _tried(request: HttpRequest, pair: Comparison, told: dict[str, Any] | None) -> TriedPair:
    closed = told is not None and not may_read_verdicts(request, pair)
    return TriedPair(pair, told, is_closed=closed)
