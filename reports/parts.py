"""The parts of a run that a page of reports lets one choose from."""

from __future__ import annotations

from typing import Any

from judge_eval.analysis.slices import offered
from judge_eval.models import Findings, Run


def parts_of(run: Run, now: str = "") -> dict[str, Any] | None:
    """Return them, `now` being the one that is chosen; None while nothing is known of the run."""
    found = Findings.objects.filter(run=run, part="", data__isnull=False)
    parts = found.values_list("data__parts", flat=True).first()
    return parts and offered(parts.get("tags", []), parts.get("generators", []), now)
