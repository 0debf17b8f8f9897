"""The page of a run's score files: ask for them, wait, fetch them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib import strict_json
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.models import Run
from judge_eval.pages.run_access import refuse_calls
from judge_eval.pages.run_views import find_run
from reports import score_files
from reports.models import ScoreReport
from reports.parts import parts_of
from reports.score_api import zip_response
from reports.score_shown import shown_report, shown_table


@never_cache
@require_safe
def run_scores(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """A run's score files; htmx asks for the list again while some are being made."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    template = "reports/_score_files.html" if request.htmx else "reports/scores.html"
    return render(request, template, _context(run))


@require_POST
@login_required
def ask_for_scores(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    text, part = request.POST.get("config", "").strip(), request.POST.get("part", "")
    try:
        score_files.ask(run, _with_part(strict_json.loads(text) if text else None, part))
    except ConfigInvalid as invalid:
        errors = [str(error) for error in invalid.errors]
    except (score_files.ScoresRefused, strict_json.NotJson) as refused:
        errors = [str(refused)]
    else:
        return redirect("run-scores", run.pk)
    context = _context(run, part) | {"errors": errors, "config": text}
    return render(request, "reports/scores.html", context, status=422)


@require_safe
@login_required
def download_scores(request: HttpRequest, run_id: UUID, report_id: UUID) -> HttpResponseBase:
    done = ScoreReport.objects.select_related("run").filter(state=ScoreReport.State.DONE)
    report = get_object_or_404(done, pk=report_id, run=run_id)
    response = zip_response(report)
    if response is None:
        raise Problem(404, "These files are not there any more. Ask for them again.")
    return response


def _with_part(config: object, part: str) -> object:
    """Return a configuration with the part that was chosen beside it, unless it names one."""
    if not part:
        return config
    if isinstance(config, list):
        return {"metrics": config, "part": part}
    return (
        {"part": part, **(config or {})} if config is None or isinstance(config, dict) else config
    )


def _context(run: Run, part: str = "") -> dict[str, Any]:
    reports = list(score_files.reports_of(run)[: score_files.MOST_KEPT])
    latest = next((report for report in reports if report.table), None)
    return {
        "run": run,
        "reports": [shown_report(report) for report in reports],
        "latest": latest,
        "figures": shown_table(latest.table) if latest and latest.table else None,
        "is_waiting": any(report.state == ScoreReport.State.WAITING for report in reports),
        "parts": parts_of(run, part),
        "tab": "scores",
    }
