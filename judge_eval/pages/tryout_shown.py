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

DASH = "\N{EN DASH}"


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
    def scores_and_reason(self) -> str:
        """What stands behind the choice."""
        told = self.told or {}
        scores = [told.get("score_a"), told.get("score_b")]
        given = " : ".join(DASH if score is None else str(score) for score in scores)
        reason = f": {told['reason']}" if told.get("reason") else ""
        return reason if scores == [None, None] else f" ({given}){reason}"

    @property
    def details(self) -> str:
        """Whose outputs these are, and what the answer took."""
        told = self.told or {}
        nano = told.get("cost_nano")
        tokens = [
            DASH if told.get(f"{side}_tokens") is None else told[f"{side}_tokens"]
            for side in ("prompt", "completion")
        ]
        parts = [
            "A: {}, B: {}".format(*(output.generator for output in self.pair.pair)),
            *([f"answered as {told['model']}"] if told.get("model") else []),
            "{} tokens in, {} out".format(*(DASH if n is None else n for n in tokens)),
            "price not known" if nano is None else usd(Decimal(nano) / NANO),
            latency(told.get("latency_ms")),
        ]
        return " · ".join(parts)


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
