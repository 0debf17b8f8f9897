"""One pair of a run: its outputs, what each judge said of it and how, and what people voted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.lib.text import latency, usd
from judge_eval import selectors
from judge_eval.access import refuse_pair
from judge_eval.exchange.import_pairs import CHANGES
from judge_eval.models import Call, Judge, Verdict
from judge_eval.pages.pairs import Wanted, beside
from judge_eval.pages.runs import find_run
from judge_eval.runs.providers import NANO
from voting.choices import LABELS, SWAPPED, VOTES_FOR, short_name
from voting.models import Inference, Item
from voting.shown import shown_output

LETTERS_OF_ERROR = 200


@dataclass(frozen=True)
class Pick:
    """What a judge said in one order, where A is what was shown first."""

    is_swapped: bool
    raw: str

    @property
    def meant(self) -> str:
        """What it picked of the pair as it is stored."""
        return SWAPPED[self.raw] if self.is_swapped and self.raw in SWAPPED else self.raw

    @property
    def in_words(self) -> str:
        said = f"said {short_name(self.raw)}"
        return said if self.raw == self.meant else f"{said}, which is {short_name(self.meant)} here"


def picks_of(verdict: Verdict) -> list[Pick]:
    """Return what was picked in each order that was asked, the stored one first."""
    both = (Verdict.Order.STORED, Verdict.Order.SWAPPED)
    orders = both if verdict.order == Verdict.Order.BOTH else (verdict.order,)
    return [
        Pick(is_swapped=order == Verdict.Order.SWAPPED, raw=raw)
        for order, raw in zip(orders, verdict.picks, strict=False)
    ]


@dataclass(frozen=True)
class CallLine:
    """One call for a verdict."""

    call: Call

    @property
    def order(self) -> str:
        return "swapped" if self.call.order == Verdict.Order.SWAPPED else "as stored"

    @property
    def outcome(self) -> str:
        """What came of it; empty where it was not made yet."""
        if self.call.winner:
            swapped = self.call.order == Verdict.Order.SWAPPED
            return Pick(is_swapped=swapped, raw=self.call.winner).in_words
        return Truncator(self.call.error).chars(LETTERS_OF_ERROR)

    @property
    def tags(self) -> list[str]:
        repaired = ["asked once more"] if self.call.is_repaired else []
        return [*repaired, *(["from storage"] if self.call.reused_id else [])]

    @property
    def cost(self) -> str:
        return _cost([self.call])

    @property
    def latency(self) -> str:
        return latency(self.call.latency_ms)


@dataclass(frozen=True)
class VerdictRow:
    """A verdict, whether most people chose the same, and the calls that were made for it.

    `agrees` is None where the judge chose nothing, or no choice has more than half of the votes.
    """

    verdict: Verdict
    agrees: bool | None
    calls: Sequence[CallLine]

    @property
    def winner(self) -> str:
        if self.verdict.winner:
            return self.verdict.get_winner_display()
        return "no verdict" if self.verdict.error else ""

    @property
    def stored(self) -> Pick | None:
        return next((pick for pick in picks_of(self.verdict) if not pick.is_swapped), None)

    @property
    def swapped(self) -> Pick | None:
        return next((pick for pick in picks_of(self.verdict) if pick.is_swapped), None)

    @property
    def consistency(self) -> str:
        if self.verdict.consistent is None:
            return ""
        return "yes" if self.verdict.consistent else f"no: scored as {self.winner}"

    @property
    def agreeing_samples(self) -> str:
        rate = self.verdict.sample_consistency
        return "" if rate is None else f"{100 * rate:.0f}\N{NO-BREAK SPACE}%"

    @property
    def tokens(self) -> str:
        calls = [line.call for line in self.calls]
        return f"{sum((c.prompt_tokens or 0) + (c.completion_tokens or 0) for c in calls):,}"

    @property
    def cost(self) -> str:
        return _cost([line.call for line in self.calls])

    @property
    def latency(self) -> str:
        return latency(self.verdict.latency_ms)


def _cost(calls: Sequence[Call]) -> str:
    """Return what calls cost together; what was answered from storage cost nothing."""
    made = [call for call in calls if call.state == Call.State.DONE]
    if any(call.cost_nano is None and call.reused_id is None for call in made):
        return "price not known"
    return usd(Decimal(sum(call.cost_nano or 0 for call in calls)) / NANO)


def verdict_rows(verdicts: Sequence[Verdict], most_chose: str) -> list[VerdictRow]:
    calls = calls_of(verdicts)
    return [
        VerdictRow(
            verdict,
            verdict.winner == most_chose if verdict.winner and most_chose else None,
            [CallLine(call) for call in calls.get(verdict.pk, [])],
        )
        for verdict in verdicts
    ]


@never_cache
@require_safe
def run_pair(request: HttpRequest, run_id: UUID, item_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    pair = get_object_or_404(
        Item.objects.select_related("a__picture", "b__picture"),
        pk=item_id,
        queue=run.queue_id,
    )
    refused = refuse_pair(request, run, pair)
    if refused is not None:
        return refused
    wanted, most_chose = Wanted.of(request), majority(pair)
    verdicts = verdict_rows(selectors.verdicts_on(pair), most_chose)
    made = made_of(pair)
    context = {
        "run": run,
        "pair": pair,
        "number": pair.position + 1,
        "wanted": wanted,
        "nav_label": _nav_label(wanted),
        "beside": beside(run, wanted, pair),
        "sides": [
            (side, output.generator, shown_output(output), made[side.lower()])
            for side, output in zip("AB", pair.pair, strict=True)
        ],
        "majority": LABELS.get(most_chose, ""),
        "verdicts": verdicts,
        "asked": [row for row in verdicts if row.calls],
        "votes": selectors.votes_on(pair),
        "tab": "pairs",
    }
    return render(request, "judge_eval/pair.html", context)


def _nav_label(wanted: Wanted) -> str:
    order = ["the most disputed first"] if wanted.order else []
    part = [wanted.part.in_words] if wanted.part.kind else []
    return ", ".join(["Pairs", *order, *part])


def majority(pair: Item) -> str:
    """Return what more than half of the counted votes on a pair chose, nothing where none is."""
    chosen = (c for c, column in VOTES_FOR.items() if 2 * getattr(pair, column) > pair.votes)
    return next(chosen, "")


@dataclass(frozen=True)
class Made:
    """How an output came about, as far as it is known."""

    call: Call | None
    changes: Sequence[str]
    # What its drawing refers to outside itself.
    left_out: str


def made_of(pair: Item) -> dict[str, Made]:
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


def calls_of(verdicts: Iterable[Verdict]) -> dict[int, list[Call]]:
    """Return each verdict's calls, order by order and sample by sample, without their replies."""
    calls: dict[int, list[Call]] = defaultdict(list)
    asked = [verdict.pk for verdict in verdicts if verdict.judge.provider != Judge.BASELINE]
    found = Call.objects.filter(verdict__in=asked).defer("reply").order_by("order", "sample")
    for call in found:
        assert call.verdict_id is not None  # it was asked for
        calls[call.verdict_id].append(call)
    return calls
