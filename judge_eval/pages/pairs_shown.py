"""The pairs of a run as a list: which of them, in which order, and what stands next to one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet, TextField
from django.db.models.functions import Cast

from humanjudge.http import Problem
from judge_eval.findings.query import known_parts
from judge_eval.findings.slices import WHOLE, Slice, SliceInvalid, listed, parts_of_pairs
from judge_eval.models import Run
from voting.choices import VOTES_FOR
from voting.models import Comparison

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
    def parse(cls, order: str, part: str) -> Wanted:
        """Read what the address says.

        Raises
        ------
        Problem
        """
        try:
            wanted = Slice.parse(part)
        except SliceInvalid as invalid:
            raise Problem(400, f"{invalid}.") from invalid
        if order not in ORDERS or (wanted.kind and wanted.kind not in KINDS):
            raise Problem(400, f"sort: {DISPUTED} or nothing; part: tag:… or generator:….")
        return cls(order, wanted)

    @property
    def query(self) -> str:
        """What an address says to ask for the same."""
        said = {"sort": self.order, "part": str(self.part)}
        return urlencode({name: value for name, value in said.items() if value})


def places_wanted(run: Run, wanted: Wanted) -> QuerySet[Comparison, int] | list[int]:
    """Return where the pairs that are asked for stand in the run, in the order asked for.

    No more than the index holds: a deep page walks over all that come before it. Those of a part
    are found by their outputs, all of them at once: to count them first would take as long again.
    """
    pairs = _inside(run, wanted.part).order_by(*SORTED_BY[wanted.order])
    places = pairs.values_list("position", flat=True)
    return list(places) if wanted.part.kind else places


def pairs_at(run: Run, places: Sequence[int]) -> list[Comparison]:
    """Return pairs as the list shows them, without their outputs, which may be very long."""
    long = [f"{side}__{field}" for side in "ab" for field in ("output", "metadata")]
    pairs = Comparison.objects.filter(queue=run.queue_id, position__in=places).defer(*long)
    rows = {pair.position: pair for pair in pairs.select_related("a__picture", "b__picture")}
    return [rows[place] for place in places]


def _inside(run: Run, part: Slice) -> QuerySet[Comparison]:
    pairs = Comparison.objects.filter(queue=run.queue_id)
    if part.kind == "generator":
        return pairs.filter(Q(a__generator=part.value) | Q(b__generator=part.value))
    if part.kind != "tag":
        return pairs
    if connection.features.supports_json_field_contains:
        return pairs.filter(a__tags__contains=[part.value])
    # SQLite keeps the text as it was written, with the tag between quotation marks.
    as_text = pairs.alias(tags_text=Cast("a__tags", TextField()))
    return as_text.filter(tags_text__contains=json.dumps(part.value))


def beside(run: Run, wanted: Wanted, pair: Comparison) -> dict[str, UUID | None]:
    """Return the pairs before and after one in the order that is asked for."""
    pairs, order = _inside(run, wanted.part), SORTED_BY[wanted.order]
    back = [name.removeprefix("-") if name.startswith("-") else f"-{name}" for name in order]
    return {"previous": _next(pairs, pair, back), "next": _next(pairs, pair, order)}


def _next(pairs: QuerySet[Comparison], pair: Comparison, order: Sequence[str]) -> UUID | None:
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
    parts = known_parts(run) or {}
    return listed(parts_of_pairs(parts.get("tags", []), parts.get("generators", [])))


def majority(pair: Comparison) -> str:
    """Return what more than half of the counted votes on a pair chose, nothing where none is."""
    chosen = (c for c, column in VOTES_FOR.items() if 2 * getattr(pair, column) > pair.votes)
    return next(chosen, "")
