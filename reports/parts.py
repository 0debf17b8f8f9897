"""The parts of a run that a page of reports lets one choose from."""

from __future__ import annotations

from typing import Any

from judge_eval.analysis.slices import DECIDED, LONGEST, Slice
from judge_eval.models import Findings, Run

# Rarer tags are left to the address, and to the configuration.
MOST_CHOICES = 150


def parts_of(run: Run, now: str = "") -> dict[str, Any] | None:
    """Return the parts as (value, words) in groups; None while nothing is known of the run.

    `now` is the one that is chosen.
    """
    found = Findings.objects.filter(run=run, part="", data__isnull=False)
    parts = found.values_list("data__parts", flat=True).first()
    if parts is None:
        return None
    sides = Slice("ballot", DECIDED)
    tags = [(f"tag:{tag}", f"{tag} ({pairs:,})") for tag, pairs in parts.get("tags", [])]
    writers = [(f"generator:{name}", name) for name in parts.get("generators", [])]
    groups = {
        "Votes": [(str(sides), sides.in_words)],
        "Prompts tagged": _choices(tags),
        "Pairs with an output of": _choices(writers),
    }
    return {
        "groups": {title: choices for title, choices in groups.items() if choices},
        "unlisted": sum(len(every) - len(_choices(every)) for every in (tags, writers)),
        "now": now,
    }


def _choices(choices: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [choice for choice in choices if len(choice[0]) <= LONGEST][:MOST_CHOICES]
