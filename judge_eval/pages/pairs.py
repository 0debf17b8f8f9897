"""The pairs of a run as a list, and one of them: its outputs, verdicts, calls and votes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import Context, HtmxRequest, Problem
from humanjudge.lib.tables import DASH, percent
from humanjudge.lib.text import latency, usd
from judge_eval.access import is_voting, refusal
from judge_eval.exchange.import_write import CHANGES
from judge_eval.findings.cache import parts_of
from judge_eval.findings.slices import WHOLE, Slice, SliceInvalid
from judge_eval.models import Call, Judge, Run, Verdict
from judge_eval.pages.runs import DONE, find_run, run_page
from judge_eval.runs.providers import NANO
from judge_eval.selectors import verdicts_on
from voting.choices import LABELS, SWAPPED, VOTES_FOR, short_name
from voting.models import Entry, Item

PAIRS_PER_PAGE = 30
DISPUTED = "disagreement"
ORDERS = {"": "in the order of the run", DISPUTED: "most disputed first"}
SORTED_BY = {"": ("position",), DISPUTED: ("-disagreement", "-differing", "position")}


class Wanted(NamedTuple):
    """Which pairs are asked for, and in which order."""

    order: str = ""
    part: Slice = WHOLE

    @property
    def query(self) -> str:
        """What an address ends with to ask the same."""
        options = {"sort": self.order, "part": str(self.part)}
        query = urlencode({name: value for name, value in options.items() if value})
        return f"?{query}" if query else ""

    def inside(self, run: Run) -> QuerySet[Item]:
        pairs, value = Item.objects.filter(queue=run.queue_id), self.part.value
        if self.part.kind == "generator":
            return pairs.filter(Q(a__generator=value) | Q(b__generator=value))
        if self.part.kind != "tag":
            return pairs
        if connection.features.supports_json_field_contains:
            return pairs.filter(a__tags__contains=[value])
        # SQLite keeps the text as it was written, with the tag between quotation marks.
        as_text = pairs.alias(tags_text=Cast("a__tags", TextField()))
        return as_text.filter(tags_text__contains=json.dumps(value))


def _wanted(request: HttpRequest) -> Wanted:
    order = request.GET.get("sort", "")
    try:
        part = Slice.parse(request.GET.get("part", ""))
    except SliceInvalid as invalid:
        raise Problem(400, f"{invalid}.") from invalid
    if order not in ORDERS or part.kind not in ("", "tag", "generator"):
        raise Problem(400, f"sort: {DISPUTED} or nothing; part: tag:… or generator:….")
    return Wanted(order, part)


@run_page("see board")
def run_pairs(request: HtmxRequest, run: Run) -> HttpResponse:
    hides, wanted = is_voting(request, run), _wanted(request)
    if hides and wanted.order:
        raise Problem(403, "You still have pairs to vote on: vote first, then sort them.")
    # No more than the index holds: a deep page walks over all that come before it. Those of a part
    # are found by their outputs, all of them at once: to count them first would take as long again.
    in_order = wanted.inside(run).order_by(*SORTED_BY[wanted.order])
    places = in_order.values_list("position", flat=True)
    paginator = Paginator(list(places) if wanted.part.kind else places, PAIRS_PER_PAGE)
    page = paginator.get_page(request.GET.get("page"))
    # Without their outputs, which may be very long.
    long = [f"{side}__{field}" for side in "ab" for field in ("output", "metadata")]
    found = Item.objects.filter(queue=run.queue_id, position__in=list(page.object_list))
    by_place = {
        pair.position: pair
        for pair in found.defer(*long).select_related("a__picture", "b__picture")
    }
    pairs, parts = [by_place[place] for place in page.object_list], parts_of(run)
    context = {
        "run": run,
        "page": page,
        "pairs": pairs,
        "wanted": wanted,
        "part": str(wanted.part),
        "is_voting": hides,
        "orders": ORDERS,
        "choices": parts.of_pairs if parts else {},
        "has_ids": any(pair.external_id for pair in pairs),
        "has_pictures": bool(pairs) and pairs[0].a.picture is not None,
        "empty": "There are no such pairs." if wanted.part.kind else "This run has no pairs.",
        "tab": "pairs",
    }
    return render(request, "judge_eval/pairs.html", context)


# --- one pair -----------------------------------------------------------------------------------


@never_cache
@require_safe
def run_pair(request: HtmxRequest, run_id: UUID, item_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    pair = get_object_or_404(
        Item.objects.select_related("a__picture", "b__picture"), pk=item_id, queue=run.queue_id
    )
    if refused := refusal(request, "see pair", run, pair):
        return refused
    wanted, verdicts = _wanted(request), verdicts_on(pair)
    # What more than half of the counted votes chose.
    chosen = (c for c, column in VOTES_FOR.items() if 2 * getattr(pair, column) > pair.votes)
    majority = next(chosen, "")
    calls = _calls_of(verdicts)
    rows = [_verdict_row(verdict, calls[verdict.pk], majority) for verdict in verdicts]
    votes = Entry.objects.filter(item=pair, kind=Entry.Kind.VOTE, retracted=False)
    in_order = ["the most disputed first"] if wanted.order else []
    of_part = [wanted.part.in_words] if wanted.part.kind else []
    order = SORTED_BY[wanted.order]
    back = [name.removeprefix("-") if name.startswith("-") else f"-{name}" for name in order]
    context = {
        "run": run,
        "pair": pair,
        "number": pair.position + 1,
        "wanted": wanted,
        "nav_label": ", ".join(["Pairs", *in_order, *of_part]),
        "previous": _next(wanted.inside(run), pair, back),
        "next": _next(wanted.inside(run), pair, order),
        "sides": _sides(pair),
        "majority": LABELS.get(majority, ""),
        "verdicts": rows,
        "asked": [row for row in rows if row["calls"]],
        "votes": votes.select_related("voter").order_by("id"),
        "tab": "pairs",
    }
    return render(request, "judge_eval/pair.html", context)


def _next(pairs: QuerySet[Item], pair: Item, order: Sequence[str]) -> UUID | None:
    """Return the pair behind one in an order."""
    behind, as_far = Q(), Q()
    for field in order:
        name, than = field.removeprefix("-"), "lt" if field.startswith("-") else "gt"
        value = getattr(pair, name)
        behind |= as_far & Q(**{f"{name}__{than}": value})
        as_far &= Q(**{name: value})
        if name == order[0].removeprefix("-"):
            # Implied by the rest, and what lets the database begin in the middle of its index.
            pairs = pairs.filter(**{f"{name}__{than}e": value})
    return pairs.filter(behind).order_by(*order).values_list("pk", flat=True).first()


def _sides(pair: Item) -> list[Context]:
    """Return the two outputs, and how each came about as far as it is known."""
    outputs = dict(zip("AB", pair.pair, strict=True))
    found = Call.objects.filter(inference__in=[pair.a_id, pair.b_id]).defer("reply")
    calls = {call.inference_id: call for call in found}
    return [
        {
            "side": side,
            "generator": output.generator,
            "output": output,
            "call": calls.get(output.pk),
            "changes": calls[output.pk].changes
            if output.pk in calls
            else output.metadata.get(CHANGES, []),
            # What its drawing refers to outside itself.
            "left_out": output.picture.left_out if output.picture else "",
        }
        for side, output in outputs.items()
    ]


def _calls_of(verdicts: Sequence[Verdict]) -> dict[int, list[Call]]:
    """Return each verdict's calls, order by order and sample by sample, without their replies."""
    calls: dict[int, list[Call]] = defaultdict(list)
    asked = [verdict.pk for verdict in verdicts if verdict.judge.provider != Judge.BASELINE]
    found = Call.objects.filter(verdict__in=asked).defer("reply").order_by("order", "sample")
    for call in found:
        assert call.verdict_id is not None  # it was asked for
        calls[call.verdict_id].append(call)
    return calls


class Pick(NamedTuple):
    """What a judge said in one order, where A is what was shown first, and what it meant."""

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
        Pick(order == Verdict.Order.SWAPPED, raw)
        for order, raw in zip(orders, verdict.picks, strict=False)
    ]


def scores_in_words(a: float | None, b: float | None) -> str:
    """Return the scores of two outputs, a dash for a missing one; nothing where both are."""
    if a is None and b is None:
        return ""
    return " : ".join(DASH if score is None else str(score) for score in (a, b))


def _verdict_row(verdict: Verdict, calls: Sequence[Call], majority: str) -> Context:
    """Return a verdict, whether most people chose the same, and the calls made for it."""
    picks = {pick.is_swapped: pick.in_words for pick in picks_of(verdict)}
    rate = verdict.sample_consistency
    return {
        "verdict": verdict,
        "winner": verdict.get_winner_display() or ("no verdict" if verdict.error else ""),
        # None where the judge chose nothing, or no choice has more than half of the votes.
        "agrees": verdict.winner == majority if verdict.winner and majority else None,
        "stored": picks.get(False, ""),
        "swapped": picks.get(True, ""),
        "samples": "" if rate is None else percent(rate),
        "tokens": sum((call.prompt_tokens or 0) + (call.completion_tokens or 0) for call in calls),
        "cost": _cost(calls),
        "latency": latency(verdict.latency_ms),
        "calls": [
            {
                "call": call,
                "said": Pick(call.order == Verdict.Order.SWAPPED, call.winner).in_words
                if call.winner
                else "",
                "cost": _cost([call]),
                "latency": latency(call.latency_ms),
            }
            for call in calls
        ],
    }


def _cost(calls: Sequence[Call]) -> str:
    """Return what calls cost together; what was answered from storage cost nothing."""
    made = [call for call in calls if call.state == DONE]
    if any(call.cost_nano is None and call.reused_id is None for call in made):
        return "price not known"
    return usd(Decimal(sum(call.cost_nano or 0 for call in calls)) / NANO)
