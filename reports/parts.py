"""The parts of a run that a page of reports lets one choose from."""

from __future__ import annotations

from judge_eval.findings import cache
from judge_eval.findings.slices import PartChoices, part_choices
from judge_eval.models import Run


def parts_of(run: Run, now: str = "") -> PartChoices | None:
    """Return them, `now` being the one that is chosen; None while nothing is known of the run."""
    parts = cache.parts_of(run)
    return part_choices(parts, now) if parts else None
