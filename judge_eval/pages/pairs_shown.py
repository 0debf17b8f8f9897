"""The pairs of a run as a list: which of them, in which order, and what stands next to one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.db import connection
from django.db.models import (
    Case,
    Count,
    F,
    FloatField,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce

from humanjudge.http import Problem
from judge_eval import selectors
from judge_eval.analysis.asked import known_parts
from judge_eval.analysis.slices import WHOLE, Slice, SliceInvalid, listed, parts_of_pairs
from judge_eval.models import Judge, Run, Verdict
from voting.models import Choice, Comparison

DISPUTED = "disagreement"
ORDERS = {"": "in the order of the run", DISPUTED: "most disputed first"}
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

    @property
    def is_plain(self) -> bool:
        return not self.query


def pairs_wanted(run: Run, wanted: Wanted) -> QuerySet[Comparison]:
    """Return pairs with how many answers of judges differ from votes, set beside each other."""
    pairs = selectors.pair_list(run).filter(_inside(wanted.part))
    answers = (
        Verdict.objects.filter(comparison=OuterRef("pk"), state=Verdict.State.DONE)
        .exclude(judge__provider=Judge.BASELINE)
        .order_by()
        .values("comparison")
    )
    alike = Case(
        *(When(winner=choice, then=F(f"comparison__votes_{choice.lower()}")) for choice in Choice),
        default=Value(0),
        output_field=IntegerField(),
    )
    given = Subquery(answers.annotate(n=Count("pk")).values("n"), output_field=IntegerField())
    right = Subquery(answers.annotate(n=Sum(alike)).values("n"), output_field=IntegerField())
    counted = pairs.annotate(of=F("votes") * Coalesce(given, 0)).annotate(
        wrong=F("of") - Coalesce(right, 0)
    )
    if wanted.order != DISPUTED:
        return counted
    share = Case(
        When(of__gt=0, then=Cast("wrong", FloatField()) / Cast("of", FloatField())),
        default=Value(-1.0),
    )
    return counted.annotate(share=share).order_by("-share", "-wrong", "position")


def _inside(part: Slice) -> Q:
    if part.kind == "generator":
        return Q(a__generator=part.value) | Q(b__generator=part.value)
    if part.kind != "tag":
        return Q()
    if connection.features.supports_json_field_contains:
        return Q(a__tags__contains=[part.value])
    # SQLite keeps the text as it was written, with the tag between quotation marks.
    return Q(pk__in=_tagged(json.dumps(part.value)))


def _tagged(text: str) -> QuerySet[Comparison, UUID]:
    tags = Cast("a__tags", TextField())
    found = Comparison.objects.annotate(tags_text=tags).filter(tags_text__contains=text)
    return found.values_list("pk", flat=True)


def beside(run: Run, wanted: Wanted, pair: Comparison) -> dict[str, UUID | None]:
    """Return the pairs before and after one in the order that is asked for."""
    if wanted.is_plain:
        pairs = Comparison.objects.filter(queue=run.queue_id).values_list("pk", flat=True)
        places = {"previous": pair.position - 1, "next": pair.position + 1}
        return {name: pairs.filter(position=at).first() for name, at in places.items()}
    order = list(pairs_wanted(run, wanted).values_list("pk", flat=True))
    if pair.pk not in order:
        return {"previous": None, "next": None}
    at = order.index(pair.pk)
    return {
        "previous": order[at - 1] if at else None,
        "next": order[at + 1] if at + 1 < len(order) else None,
    }


def choices_of(run: Run) -> dict[str, list[tuple[str, str]]]:
    """Return the parts that the list can be narrowed to, as far as the findings know them."""
    parts = known_parts(run) or {}
    return listed(parts_of_pairs(parts.get("tags", []), parts.get("generators", [])))


def majority(pair: Comparison) -> str:
    """Return what more than half of the counted votes on a pair chose, nothing where none is."""
    return next(
        (
            choice.value
            for choice in Choice
            if 2 * getattr(pair, f"votes_{choice.lower()}") > pair.votes
        ),
        "",
    )
