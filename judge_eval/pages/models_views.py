"""The tab of a run that ranks the models which wrote the outputs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest
from judge_eval.findings.query import Asked
from judge_eval.models import Run
from judge_eval.pages.findings_page import (
    asked_for,
    findings_context,
    live_part,
    refuse,
    run_with_board,
)
from judge_eval.pages.models_shown import models_shown


@never_cache
@require_safe
def run_models(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The boards; htmx asks for them again while votes come in."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    context = _context(request, run, asked_for(request, run))
    if not request.htmx:
        return render(request, "judge_eval/models.html", context)
    return live_part(request, context, "judge_eval/_models.html")


def _context(request: HtmxRequest, run: Run, asked: Asked) -> dict[str, Any]:
    data = asked.data or {}
    stored = data.get("models")
    return findings_context(run, asked) | {
        "tab": "models",
        "models": models_shown(stored, request.GET.get("by", "")) if stored else None,
        "why": data.get("models_why"),
        "is_standard": (run.config or {}).get("mode") == "standard",
    }
