"""Parts of a run that figures are wanted of: a tag of its prompts, a generator, some choices."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from django.db import connection
from django.db.models import Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, StrIndex
from pydantic import BaseModel

from humanjudge.http import Problem
from judge_eval.models import Run
from voting.choices import CHOICES, VERDICTS, Choice
from voting.models import Item

# Votes and verdicts for one side or the other; ties and both bad are left out on either part.
DECIDED: Final = "decided"
KINDS: Final = ("tag", "generator", "ballot")
LONGEST: Final = 300
MOST_OFFERED: Final = 150


class SliceInvalid(Problem, ValueError):
    """No part of a run is called that; a page that is asked for one answers with why."""

    code = 400

    def __init__(self, why: str) -> None:
        super().__init__(self.code, why)


@dataclass(frozen=True)
class Slice:
    """One part of a run; an empty kind is the whole of it.

    The value is a tag, the generator that wrote one of the two outputs, or `DECIDED`.

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
        is_known = kind in KINDS and bool(value) and (kind != "ballot" or value == DECIDED)
        if not is_known or len(text) > LONGEST:
            short = text if len(text) <= 80 else f"{text[:80]}…"
            raise SliceInvalid(f"part: tag:…, generator:… or ballot:{DECIDED}, not {short!r}")
        return cls(kind, value, noun)

    @property
    def in_words(self) -> str:
        return {
            "": f"all {self.noun}s",
            "tag": f"prompts tagged {self.value}",
            "generator": f"{self.noun}s {'with' if self.noun == 'pair' else 'by'} {self.value}",
            "ballot": "only votes and verdicts for A or B",
        }[self.kind]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Which choices of people and judges count in it."""
        return CHOICES[:2] if self.kind == "ballot" else CHOICES

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Which verdicts that did not fail count in it."""
        return self.choices if self.kind == "ballot" else VERDICTS

    def pairs(self, run: Run) -> QuerySet[Item]:
        if "\0" in self.value:  # which PostgreSQL does not even compare
            return Item.objects.none()
        pairs = Item.objects.filter(queue=run.queue_id)
        if self.kind == "generator":
            return pairs.filter(Q(a__generator=self.value) | Q(b__generator=self.value))
        if self.kind != "tag":
            return pairs
        if connection.features.supports_json_field_contains:
            return pairs.filter(a__tags__contains=[self.value])
        # SQLite keeps the text as it was written, with the tag between quotation marks.
        place = StrIndex(Cast("a__tags", TextField()), Value(json.dumps(self.value)))
        return pairs.alias(place=place).filter(place__gt=0)


WHOLE: Final = Slice()
Groups = dict[str, list[tuple[str, str]]]


class Parts(BaseModel):
    """What `part` may be: `tag:…` with how many pairs have the tag, `generator:…`."""

    tags: list[tuple[str, int]] = []
    generators: list[str] = []
    # Votes for a side there are of pairs only.
    is_single: bool = False

    def __contains__(self, part: Slice) -> bool:
        if part.kind == "ballot":
            return not self.is_single
        values = {"tag": dict(self.tags), "generator": self.generators}
        return part.kind not in values or part.value in values[part.kind]

    @property
    def number(self) -> int:
        return len(self.tags) + len(self.generators)

    @property
    def of_pairs(self) -> Groups:
        """The parts made of whole pairs, as many as a page has room for: (value, words) in groups.

        Examples
        --------
        >>> Parts(tags=[("animals", 3), ("b" * 301, 1)]).of_pairs
        {'Prompts tagged': [('tag:animals', 'animals (3)')]}
        """
        whose = f"{'Outputs' if self.is_single else 'Pairs with an output'} of"
        groups = {
            "Prompts tagged": [(f"tag:{tag}", f"{tag} ({pairs:,})") for tag, pairs in self.tags],
            whose: [(f"generator:{name}", name) for name in self.generators],
        }
        for title, choices in groups.items():
            groups[title] = [choice for choice in choices if len(choice[0]) <= LONGEST]
        return {title: choices[:MOST_OFFERED] for title, choices in groups.items() if choices}

    @property
    def groups(self) -> Groups:
        sides = Slice("ballot", DECIDED)
        votes = {} if self.is_single else {"Votes": [(str(sides), sides.in_words)]}
        return votes | self.of_pairs

    @property
    def unlisted(self) -> int:
        """How many rarer ones are left to the address."""
        return self.number - sum(map(len, self.of_pairs.values()))
