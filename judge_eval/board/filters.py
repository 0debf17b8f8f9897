"""Parts of a run that figures are wanted of: a tag, a generator, some choices, some voters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, StrIndex
from pydantic import BaseModel

from humanjudge.core.http import Problem
from humanjudge.core.text import number_of
from judge_eval.models import Run
from voting.items.choices import CHOICES, VERDICTS, Choice
from voting.items.kinds import COMPARISON, is_ordered, kind_of
from voting.models import Entry, Item

# Votes and verdicts for one side or the other; ties and both bad are left out on either part.
DECIDED: Final = "decided"
KINDS: Final = ("tag", "generator", "ballot", "group", "at")
# A half of a run on which judges are tuned; nobody names it by an address.
HALF: Final = "half"
TUNING: Final = "tuning"
HELD_OUT: Final = "held-out"
LONGEST: Final = 300
MOST_OFFERED: Final = 150
# The number of an entry of the ledger, written in one way only.
ENTRY: Final = re.compile("0|[1-9][0-9]{0,17}")


class SliceInvalid(Problem, ValueError):
    """No part of a run is called that; a page that is asked for one answers with why."""

    code = 400

    def __init__(self, reason: str) -> None:
        super().__init__(self.code, reason)


@dataclass(frozen=True)
class Slice:
    """One part of a run; an empty kind is the whole of it.

    The value is a tag, the generator that wrote one of the two outputs, `DECIDED`, a group of
    voters, or the last entry of the ledger whose votes are in it.

    Examples
    --------
    >>> str(Slice("tag", "animals")), str(Slice()), Slice.parse("generator:gpt-4:free").value
    ('tag:animals', '', 'gpt-4:free')
    """

    kind: str = ""
    value: str = ""
    # What an item of the run is called.
    noun: str = field(default="pair", compare=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.kind else ""

    @classmethod
    def parse(cls, text: str, noun: str = "pair") -> Slice:
        if not text:
            return cls(noun=noun)
        kind, _, value = text.partition(":")
        is_part = kind in KINDS and bool(value) and (kind != "ballot" or value == DECIDED)
        is_entry = kind != "at" or bool(ENTRY.fullmatch(value))
        if not is_part or not is_entry or len(text) > LONGEST:
            short = text if len(text) <= 80 else f"{text[:80]}…"
            forms = f"tag:…, generator:…, group:… or ballot:{DECIDED}"
            raise SliceInvalid(f"part: {forms}, not {short!r}")
        return cls(kind, value, noun)

    @classmethod
    def stored(cls, text: str, noun: str = "pair") -> Slice:
        """Return a part by what its findings are stored under, also one that nobody may name."""
        kind, _, value = text.partition(":")
        return cls(kind, value, noun) if kind == HALF else cls.parse(text, noun)

    @property
    def in_words(self) -> str:
        return {
            "": f"all {self.noun}s",
            "tag": f"prompts tagged {self.value}",
            "generator": f"{self.noun}s {'with' if self.noun == 'pair' else 'by'} {self.value}",
            "ballot": "only votes and verdicts for A or B",
            "group": f"votes of the group {self.value}",
            "at": f"votes up to entry {self.value} of the ledger",
            HALF: f"the {self.value} half",
        }[self.kind]

    @property
    def is_of_votes(self) -> bool:
        """Whether it is made of some votes on all items, and not of all votes on some items."""
        return self.kind in ("ballot", "group", "at")

    @property
    def up_to(self) -> int | None:
        return int(self.value) if self.kind == "at" else None

    @property
    def choices(self) -> tuple[Choice, ...]:
        return CHOICES[:2] if self.kind == "ballot" else CHOICES

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Which verdicts that did not fail count in it."""
        return self.choices if self.kind == "ballot" else VERDICTS

    def pairs(self, run: Run) -> QuerySet[Item]:
        """Return the items it is of; of a couple both or none."""
        inside, run_items = self._pairs(run), Item.objects.filter(queue=run.queue_id)
        if not is_ordered(run.queue) or self.kind not in ("tag", "generator"):
            return inside
        outside = run_items.filter(is_coupled=True).exclude(pk__in=inside.values("pk"))
        return inside.exclude(is_coupled=True, prompt_key__in=outside.values("prompt_key"))

    def _pairs(self, run: Run) -> QuerySet[Item]:
        if "\0" in self.value:  # which PostgreSQL does not even compare
            return Item.objects.none()
        pairs = Item.objects.filter(queue=run.queue_id)
        if self.kind == HALF:
            return pairs.filter(is_held_out=self.value == HELD_OUT)
        if run.queue.is_tuning:
            pairs = pairs.filter(is_held_out=False)
        if self.kind == "generator":
            return pairs.filter(Q(a__generator=self.value) | Q(b__generator=self.value))
        if self.kind != "tag":
            return pairs
        if connection.features.supports_json_field_contains:
            return pairs.filter(a__tags__contains=[self.value])
        # SQLite keeps the text as it was written, with the tag between quotation marks.
        place = StrIndex(Cast("a__tags", TextField()), Value(json.dumps(self.value)))
        return pairs.alias(place=place).filter(place__gt=0)

    def within(self, votes: QuerySet[Entry], run: Run) -> QuerySet[Entry]:
        """Return those votes of a run that are part of it, and may be shown."""
        if run.queue.is_tuning and self.kind != HALF:
            votes = votes.filter(item__is_held_out=False)
        if self.kind == "group":
            # A NUL, which PostgreSQL does not even compare, is in no name.
            return votes.filter(voter__group=self.value) if "\0" not in self.value else votes.none()
        if self.kind == "ballot":
            return votes.filter(choice__in=self.choices)
        if self.kind == "at":
            return votes.filter(seq__lte=self.up_to)
        return votes.filter(item__in=self.pairs(run)) if self.kind else votes

    def voted(self, run: Run) -> QuerySet[Entry, UUID]:
        votes = Entry.objects.filter(
            queue=run.queue_id, kind=Entry.Kind.VOTE, seq__isnull=False, retracted=False
        )
        return self.within(votes, run).order_by().values_list("item", flat=True).distinct()


WHOLE_RUN: Final = Slice()
TUNING_HALF: Final = Slice(HALF, TUNING)
Groups = dict[str, list[tuple[str, str]]]


class Parts(BaseModel):
    """What `part` may be: tags with their pairs, generators, groups with the people who voted."""

    tags: list[tuple[str, int]] = []
    generators: list[str] = []
    voter_groups: list[tuple[str, int]] = []
    # The kind of its items.
    kind: str = COMPARISON.name

    def __contains__(self, part: Slice) -> bool:
        if part.kind == "ballot":
            return len(kind_of(self).sides) > 1
        values = {
            "tag": dict(self.tags),
            "generator": self.generators,
            "group": dict(self.voter_groups),
        }
        return part.kind not in values or part.value in values[part.kind]

    @property
    def number(self) -> int:
        return len(self.tags) + len(self.generators) + len(self.voter_groups)

    @property
    def of_pairs(self) -> Groups:
        """The parts made of whole pairs, as many as a page has room for: (value, words) in groups.

        Examples
        --------
        >>> Parts(tags=[("animals", 3), ("b" * 301, 1)]).of_pairs
        {'Prompts tagged': [('tag:animals', 'animals (3)')]}
        """
        groups = {
            "Prompts tagged": [(f"tag:{tag}", f"{tag} ({pairs:,})") for tag, pairs in self.tags],
            "With an output of": [(f"generator:{name}", name) for name in self.generators],
        }
        for title, choices in groups.items():
            groups[title] = [choice for choice in choices if len(choice[0]) <= LONGEST]
        return {title: choices[:MOST_OFFERED] for title, choices in groups.items() if choices}

    @property
    def groups(self) -> Groups:
        sides = Slice("ballot", DECIDED)
        votes = {"Votes": [(str(sides), sides.in_words)]} if sides in self else {}
        listed = self.voter_groups[:MOST_OFFERED]
        people = [(f"group:{name}", f"{name} ({number_of(n, 'voter')})") for name, n in listed]
        return votes | ({"Votes of a group": people} if people else {}) | self.of_pairs

    @property
    def unlisted(self) -> int:
        """How many rarer ones are left to the address."""
        listed = sum(map(len, self.of_pairs.values())) + len(self.voter_groups[:MOST_OFFERED])
        return self.number - listed
