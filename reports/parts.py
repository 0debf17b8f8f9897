"""The parts of a run that a page of reports lets one choose from."""

from __future__ import annotations

from typing import Any

from judge_eval.findings.query import known_parts
from judge_eval.findings.slices import offered
from judge_eval.models import Run


def parts_of(run: Run, now: str = "") -> dict[str, Any] | None:
    """Return them, `now` being the one that is chosen; None while nothing is known of the run."""
    parts = known_parts(run)
    return parts and offered(parts.get("tags", []), parts.get("generators", []), now)
