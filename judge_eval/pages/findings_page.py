"""What the pages of a run's findings share: which part, as of when, and who may look."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django_htmx.http import HttpResponseClientRefresh

from humanjudge.http import HtmxRequest, Problem
from judge_eval.access import refuse_board
from judge_eval.findings.cache import TooManyParts
from judge_eval.findings.query import Asked, PartUnknown, findings_asked
from judge_eval.findings.slices import SliceInvalid, offered
from judge_eval.models import Run

# Of which tab a chart is, by which name it is kept, and what it is called where it is a file.
CHARTS = (
    ("board", "agreement", "agreement"),
    ("board", "ratings", "ratings"),
    ("board", "same_verdict", "same verdict"),
    ("alt-test", "winning_rates", "winning rates"),
    ("models", "model_ratings", "ratings"),
)
BUSY = "Many parts of this run are being looked at. Look at the whole run, or come back later."


def run_with_board(run_id: UUID) -> Run:
    runs = Run.objects.select_related("queue__project", "board")
    return get_object_or_404(runs, pk=run_id)


def refuse(request: HtmxRequest, run: Run) -> HttpResponse | None:
    """Return the answer to who may not see a run's findings, None to who may."""
    refused = refuse_board(request, run)
    if refused is not None and refused.status_code == 302 and request.htmx:
        return HttpResponseClientRefresh()  # the login has ended: not its form amid the page
    return refused


def asked_for(request: HtmxRequest, run: Run) -> Asked:
    try:
        return findings_asked(run, request.GET.get("part", ""))
    except SliceInvalid as invalid:
        raise Problem(400, f"{invalid}.") from invalid
    except PartUnknown as unknown:
        raise Problem(404, f"{unknown}.") from unknown
    except TooManyParts as busy:
        raise Problem(429, BUSY) from busy


def live_part(request: HtmxRequest, context: dict[str, Any], template: str) -> HttpResponse:
    """Answer htmx with the live part of a page, or with nothing when nothing is new."""
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    number = context["parts"]["number"] if context["parts"] else ""
    context["has_new_parts"] = request.GET.get("parts", "") != str(number)
    return render(request, template, context)


def findings_context(run: Run, asked: Asked) -> dict[str, Any]:
    """Return what every page of findings shows, whether there are any yet or not."""
    found = asked.found
    is_behind = found.seq < run.board.seq
    seen = f"{found.computed_at.timestamp():.6f}-{is_behind:d}" if found.computed_at else "none"
    return {
        "run": run,
        "asked": asked,
        "findings": found,
        "data": asked.data,
        "parts": _parts(asked),
        "as_of": _as_of(asked.data["as_of"]) if asked.data else "",
        "drawn": [chart for chart in CHARTS if chart[1] in asked.found.charts],
        "is_behind": is_behind,
        "seen": seen,
    }


def _as_of(counts: Mapping[str, Any]) -> str:
    """Say of how many votes the figures are."""
    votes, people = counts["votes"], counts["people"]
    cast = f"{votes:,} {'vote' if votes == 1 else 'votes'}"
    by = f"{people:,} {'person' if people == 1 else 'people'}"
    voted = f"{counts['voted']:,} of {counts['comparisons']:,} pairs"
    return f"As of {cast} by {by} on {voted}, ledger entry {counts['seq']:,}"


def _parts(asked: Asked) -> dict[str, Any] | None:
    """Return the parts there are to choose from; None while nothing is known of the run."""
    if asked.whole.data is None:
        return None
    return offered(asked.tags, asked.generators, str(asked.part))
