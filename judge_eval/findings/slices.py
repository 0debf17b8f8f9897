"""Parts of a run that figures are wanted of: a tag of its prompts, a generator, some choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from judge_eval.findings.model import Parts
from voting.choices import CHOICES, WRONG, Choice

# Votes and verdicts for one side or the other; ties and both bad are left out on either part.
DECIDED: Final = "decided"
KINDS: Final = ("tag", "generator", "ballot")
LONGEST: Final = 300
MOST_OFFERED: Final = 150


class SliceInvalid(ValueError):
    """No part of a run is called that; the message says why."""


@dataclass(frozen=True)
class Slice:
    """One part of a run; an empty kind is the whole of it.

    Attributes
    ----------
    kind : {'', 'tag', 'generator', 'ballot'}
    value : str
        The tag, the generator that wrote one of the two outputs, or `DECIDED`.

    Examples
    --------
    >>> str(Slice("tag", "animals")), str(Slice()), Slice.parse("generator:gpt-4:free").value
    ('tag:animals', '', 'gpt-4:free')
    """

    kind: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}" if self.kind else ""

    @property
    def in_words(self) -> str:
        """Say what is in it."""
        if self.kind == "ballot":
            return "only votes and verdicts for A or B"
        words = {"": "all pairs", "tag": "prompts tagged", "generator": "pairs with"}
        return f"{words[self.kind]} {self.value}".strip()

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Which choices of people and judges count in it."""
        return CHOICES[:2] if self.kind == "ballot" else CHOICES

    def holds_verdict(self, winner: str) -> bool:
        """Tell whether a verdict that did not fail counts in it."""
        return winner in self.choices or (winner == WRONG and self.kind != "ballot")

    @classmethod
    def parse(cls, text: str) -> Slice:
        """Read what `str` wrote.

        Raises
        ------
        SliceInvalid
            When it is of no known kind, or has no value.

        Examples
        --------
        >>> Slice.parse("colour:red")
        Traceback (most recent call last):
        ...
        judge_eval.findings.slices.SliceInvalid: part: tag:…, generator:… or ballot:decided, not \
'colour:red'
        """
        if not text:
            return cls()
        kind, _, value = text.partition(":")
        is_known = kind in KINDS and bool(value) and (kind != "ballot" or value == DECIDED)
        if not is_known or len(text) > LONGEST:
            said = text if len(text) <= 80 else f"{text[:80]}…"
            raise SliceInvalid(f"part: tag:…, generator:… or ballot:{DECIDED}, not {said!r}")
        return cls(kind, value)

    def holds(self, tags: list[str], generators: tuple[str, str]) -> bool:
        """Say whether a comparison belongs to it.

        Examples
        --------
        >>> Slice("generator", "one").holds([], ("one", "two"))
        True
        """
        if self.kind == "tag":
            return self.value in tags
        return self.kind != "generator" or self.value in generators


WHOLE: Final = Slice()


@dataclass(frozen=True)
class PartChoices:
    """The parts that a page lets one choose from, as (value, words) in groups.

    Rarer tags are left to the address: `unlisted` counts them, `number` all that there are.
    """

    groups: Mapping[str, Sequence[tuple[str, str]]]
    unlisted: int
    number: int
    now: str


def part_choices(parts: Parts, now: str = "") -> PartChoices:
    """Return the parts of a run, `now` being the one that is chosen.

    Examples
    --------
    >>> part_choices(Parts(tags=[("animals", 3)])).groups["Prompts tagged"]
    [('tag:animals', 'animals (3)')]
    """
    sides = Slice("ballot", DECIDED)
    groups = pair_choices(parts)
    number = len(parts.tags) + len(parts.generators)
    return PartChoices(
        groups={"Votes": [(str(sides), sides.in_words)]} | groups,
        unlisted=number - sum(map(len, groups.values())),
        number=number,
        now=now,
    )


def pair_choices(parts: Parts) -> dict[str, list[tuple[str, str]]]:
    """Return the parts that are made of whole pairs, as many as a page has room for.

    Examples
    --------
    >>> pair_choices(Parts(tags=[("b" * 301, 1)], generators=["gpt-4"]))
    {'Pairs with an output of': [('generator:gpt-4', 'gpt-4')]}
    """
    groups = {
        "Prompts tagged": [(f"tag:{tag}", f"{tag} ({pairs:,})") for tag, pairs in parts.tags],
        "Pairs with an output of": [(f"generator:{name}", name) for name in parts.generators],
    }
    short = {
        title: [choice for choice in choices if len(choice[0]) <= LONGEST][:MOST_OFFERED]
        for title, choices in groups.items()
    }
    return {title: choices for title, choices in short.items() if choices}
