"""The pairs of a run as a list: which of them, in which order, and what stands next to one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.db import connection
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.text import Truncator
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import Problem
from judge_eval.access import is_voting, refuse_board
from judge_eval.findings.cache import parts_of
from judge_eval.findings.slices import WHOLE, Slice, SliceInvalid, pair_choices
from judge_eval.models import Run
from judge_eval.pages.runs import find_run
from voting.models import Item, Picture

PAIRS_PER_PAGE = 30
LETTERS_OF_PROMPT = 140
DISPUTED = "disagreement"
ORDERS = {"": "in the order of the run", DISPUTED: "most disputed first"}
SORTED_BY = {"": ("position",), DISPUTED: ("-disagreement", "-differing", "position")}
KINDS = {"tag", "generator"}


@dataclass(frozen=True)
class Wanted:
    """Which pairs are asked for, and in which order."""

    order: str = ""
    part: Slice = WHOLE

    @classmethod
    def of(cls, request: HttpRequest) -> Wanted:
        """Read what the address says.

        Raises
        ------
        Problem
        """
        order = request.GET.get("sort", "")
        try:
            wanted = Slice.parse(request.GET.get("part", ""))
        except SliceInvalid as invalid:
            raise Problem(400, f"{invalid}.") from invalid
        if order not in ORDERS or (wanted.kind and wanted.kind not in KINDS):
            raise Problem(400, f"sort: {DISPUTED} or nothing; part: tag:… or generator:….")
        return cls(order, wanted)

    @property
    def query(self) -> str:
        """What an address ends with to ask for the same."""
        options = {"sort": self.order, "part": str(self.part)}
        query = urlencode({name: value for name, value in options.items() if value})
        return f"?{query}" if query else ""


@dataclass(frozen=True)
class PairRow:
    """One line of the list."""

    pair: Item
    number: str
    title: str
    pictures: list[tuple[str, Picture | None]]
    # How many answers differ from votes, of how many; empty where that is not known or not shown.
    differing: str
    state: str


@never_cache
@require_safe
def run_pairs(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    refused = refuse_board(request, run)
    if refused is not None:
        return refused
    hides, wanted = is_voting(request, run), Wanted.of(request)
    if hides and wanted.order:
        raise Problem(403, "You still have pairs to vote on: vote first, then sort them.")
    page = Paginator(places_wanted(run, wanted), PAIRS_PER_PAGE).get_page(request.GET.get("page"))
    pairs = pairs_at(run, list(page.object_list))
    context = {
        "run": run,
        "page": page,
        "rows": [_row(pair, hides_answers=hides) for pair in pairs],
        "wanted": wanted,
        "part": str(wanted.part),
        "is_voting": hides,
        "orders": ORDERS,
        "choices": choices_of(run),
        "has_ids": any(pair.external_id for pair in pairs),
        "has_pictures": bool(pairs) and pairs[0].a.picture is not None,
        "empty": "There are no such pairs." if wanted.part.kind else "This run has no pairs.",
        "tab": "pairs",
    }
    return render(request, "judge_eval/pairs.html", context)


def _row(pair: Item, *, hides_answers: bool) -> PairRow:
    number = f"{pair.position + 1:,}"
    differ = f"{pair.differing} of {pair.compared}"
    return PairRow(
        pair,
        number,
        title=Truncator(pair.a.prompt).chars(LETTERS_OF_PROMPT) or f"Pair {number}",
        pictures=[(side, output.picture) for side, output in zip("AB", pair.pair, strict=True)],
        differing=differ if pair.compared and not hides_answers else "",
        state=_state(pair),
    )


def _state(pair: Item) -> str:
    if pair.unusable:
        return f"left out: {pair.unusable}"
    if not pair.opened_at:
        return "being prepared"
    return "enough votes" if pair.votes >= pair.votes_wanted else "open"


def places_wanted(run: Run, wanted: Wanted) -> QuerySet[Item, int] | list[int]:
    """Return where the pairs that are asked for stand in the run, in the order asked for.

    No more than the index holds: a deep page walks over all that come before it. Those of a part
    are found by their outputs, all of them at once: to count them first would take as long again.
    """
    pairs = _inside(run, wanted.part).order_by(*SORTED_BY[wanted.order])
    places = pairs.values_list("position", flat=True)
    return list(places) if wanted.part.kind else places


def pairs_at(run: Run, places: Sequence[int]) -> list[Item]:
    """Return pairs as the list shows them, without their outputs, which may be very long."""
    long = [f"{side}__{field}" for side in "ab" for field in ("output", "metadata")]
    pairs = Item.objects.filter(queue=run.queue_id, position__in=places).defer(*long)
    rows = {pair.position: pair for pair in pairs.select_related("a__picture", "b__picture")}
    return [rows[place] for place in places]


def _inside(run: Run, part: Slice) -> QuerySet[Item]:
    pairs = Item.objects.filter(queue=run.queue_id)
    if part.kind == "generator":
        return pairs.filter(Q(a__generator=part.value) | Q(b__generator=part.value))
    if part.kind != "tag":
        return pairs
    if connection.features.supports_json_field_contains:
        return pairs.filter(a__tags__contains=[part.value])
    # SQLite keeps the text as it was written, with the tag between quotation marks.
    as_text = pairs.alias(tags_text=Cast("a__tags", TextField()))
    return as_text.filter(tags_text__contains=json.dumps(part.value))


def beside(run: Run, wanted: Wanted, pair: Item) -> dict[str, UUID | None]:
    """Return the pairs before and after one in the order that is asked for."""
    pairs, order = _inside(run, wanted.part), SORTED_BY[wanted.order]
    back = [name.removeprefix("-") if name.startswith("-") else f"-{name}" for name in order]
    return {"previous": _next(pairs, pair, back), "next": _next(pairs, pair, order)}


def _next(pairs: QuerySet[Item], pair: Item, order: Sequence[str]) -> UUID | None:
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


def choices_of(run: Run) -> dict[str, list[tuple[str, str]]]:
    """Return the parts that the list can be narrowed to, as far as the findings know them."""
    parts = parts_of(run)
    return pair_choices(parts) if parts else {}
