"""How a verdict came about: what was picked in each order, how often, and what that took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from humanjudge.lib.text import latency, usd
from judge_eval.models import Call, Verdict
from judge_eval.pages.calls_list import calls_of
from judge_eval.runs.providers import NANO
from voting.choices import short_name

_OTHER = {"A": "B", "B": "A"}


@dataclass(frozen=True)
class Pick:
    """What a judge said in one order, where A is what was shown first."""

    is_swapped: bool
    raw: str

    @property
    def meant(self) -> str:
        """What it picked of the pair as it is stored."""
        return _OTHER.get(self.raw, self.raw) if self.is_swapped else self.raw

    @property
    def rawshort_name(self) -> str:
        return short_name(self.raw)

    @property
    def meantshort_name(self) -> str:
        return short_name(self.meant)


def picks_of(verdict: Verdict) -> list[Pick]:
    """Return what was picked in each order that was asked, the stored one first."""
    both = (Verdict.Order.STORED, Verdict.Order.SWAPPED)
    orders = both if verdict.order == Verdict.Order.BOTH else (verdict.order,)
    return [
        Pick(is_swapped=order == Verdict.Order.SWAPPED, raw=raw)
        for order, raw in zip(orders, verdict.picks, strict=False)
    ]


@dataclass(frozen=True)
class ShownCall:
    """One call for a verdict."""

    call: Call

    @property
    def pick(self) -> Pick | None:
        swapped = self.call.order == Verdict.Order.SWAPPED
        return Pick(is_swapped=swapped, raw=self.call.winner) if self.call.winner else None

    @property
    def cost(self) -> str:
        return _cost([self.call])

    @property
    def latency(self) -> str:
        return latency(self.call.latency_ms)


@dataclass(frozen=True)
class ShownVerdict:
    """A verdict with all that was asked for it."""

    verdict: Verdict
    calls: Sequence[ShownCall]

    @property
    def picks(self) -> list[Pick]:
        return picks_of(self.verdict)

    @property
    def agreeing_samples(self) -> float | None:
        rate = self.verdict.sample_consistency
        return None if rate is None else 100 * rate

    @property
    def stored(self) -> Pick | None:
        return next((pick for pick in self.picks if not pick.is_swapped), None)

    @property
    def swapped(self) -> Pick | None:
        return next((pick for pick in self.picks if pick.is_swapped), None)

    @property
    def tokens(self) -> str:
        calls = [shown.call for shown in self.calls]
        total = sum((c.prompt_tokens or 0) + (c.completion_tokens or 0) for c in calls)
        return f"{total:,}"

    @property
    def cost(self) -> str:
        return _cost([shown.call for shown in self.calls])

    @property
    def latency(self) -> str:
        return latency(self.verdict.latency_ms)


def _cost(calls: Sequence[Call]) -> str:
    """Return what calls cost together; what was answered from storage cost nothing."""
    made = [call for call in calls if call.state == Call.State.DONE]
    if any(call.cost_nano is None and call.reused_id is None for call in made):
        return "price not known"
    return usd(Decimal(sum(call.cost_nano or 0 for call in calls)) / NANO)


def shown_verdicts(verdicts: Sequence[Verdict]) -> list[ShownVerdict]:
    calls = calls_of(verdicts)
    return [
        ShownVerdict(verdict, [ShownCall(call) for call in calls.get(verdict.pk, [])])
        for verdict in verdicts
    ]
