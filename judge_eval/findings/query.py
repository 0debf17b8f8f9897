"""Findings as somebody asks for them: of a part that there is, with what other parts there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from judge_eval.findings.cache import findings_of
from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Findings, Run


class PartUnknown(LookupError):
    """The run has no such tag or generator; the message says so."""


@dataclass(frozen=True)
class Asked:
    """What was asked for, what is known of it, and what is known of the whole run.

    While nothing is known of the run, it is not known either whether there is such a part: then
    `found` is what is known of the run, that is nothing.
    """

    part: Slice
    found: Findings
    whole: Findings

    @property
    def data(self) -> dict[str, Any] | None:
        """The figures; None while they are computed for the first time."""
        data: dict[str, Any] | None = self.found.data
        return data

    @property
    def tags(self) -> list[tuple[str, int]]:
        """Tags of the run's prompts, the most frequent first, with how many comparisons have it."""
        parts = (self.whole.data or {}).get("parts", {})
        return [(tag, number) for tag, number in parts.get("tags", [])]

    @property
    def generators(self) -> list[str]:
        parts = (self.whole.data or {}).get("parts", {})
        return list(parts.get("generators", []))


def known_parts(run: Run) -> dict[str, Any] | None:
    """Return a run's tags and generators without its figures; None while nothing is known of it."""
    parts = Findings.objects.filter(run=run, part=str(WHOLE)).values_list("data__parts", flat=True)
    return parts.first()


def findings_asked(run: Run, part: str) -> Asked:
    """Return the findings of a part of a run, and see to it that they are computed.

    Raises
    ------
    SliceInvalid, PartUnknown, TooManyParts
    """
    wanted = Slice.parse(part)
    whole = findings_of(run, WHOLE)
    if not wanted.kind or whole.data is None:
        return Asked(wanted, whole, whole)
    asked = Asked(wanted, whole, whole)
    known = {"tag": [tag for tag, _ in asked.tags], "generator": asked.generators}
    if wanted.value not in known.get(wanted.kind, [wanted.value]):
        raise PartUnknown(f"this run has no {wanted.kind} {wanted.value!r}")
    return Asked(wanted, findings_of(run, wanted), whole)
