"""The page of a run's score files: ask for them, wait, fetch them, see the latest figures."""

from typing import cast
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from humanjudge.http import Context, HtmxRequest, Problem
from humanjudge.lib.text import number_of
from humanjudge.lib.validation import ConfigInvalid
from judge_eval.findings.cache import parts_of
from judge_eval.findings.few import keep_few_from
from judge_eval.models import Run
from judge_eval.web import run_action, run_page
from reports.models import ScoreReport
from reports.scores import jobs
from reports.scores.api import zip_response
from reports.scores.config import sent
from reports.scores.table import ScoreTable, on_page


@run_page("see calls")
def run_scores(request: HtmxRequest, run: Run) -> HttpResponse:
    """A run's score files; htmx asks for the list again while some are being made."""
    template = "reports/_score_files.html" if request.htmx else "reports/scores.html"
    return render(request, template, _context(request, run))


@run_action("run")
def ask_for_scores(request: HttpRequest, run: Run) -> HttpResponse:
    text, part = request.POST.get("config", "").strip(), request.POST.get("part", "")
    try:
        config = sent(text.encode())
        jobs.ask(run, {"part": part} | config if part else config)
    except ConfigInvalid as invalid:
        errors = [str(error) for error in invalid.errors]
    except jobs.ScoresRefused as refused:
        errors = [str(refused)]
    else:
        return redirect("run-scores", run.pk)
    context = _context(request, run, part) | {"errors": errors, "config": text}
    return render(request, "reports/scores.html", context, status=422)


@run_page("see calls")
def download_scores(request: HtmxRequest, run: Run, report_id: UUID) -> HttpResponse:
    done = ScoreReport.objects.select_related("run").filter(state=ScoreReport.State.DONE)
    report = get_object_or_404(done, pk=report_id, run=run)
    keep_few_from(request, run, jobs.part_of(report))
    response = zip_response(report)
    if response is None:
        raise Problem(404, "These files are not there any more. Ask for them again.")
    return cast(HttpResponse, response)


def _context(request: HttpRequest, run: Run, part: str = "") -> Context:
    reports = list(jobs.reports_of(run)[: jobs.MOST_KEPT])
    parts = [jobs.part_of(report).in_words for report in reports]
    context: Context = {
        "run": run,
        "reports": list(zip(reports, parts, strict=True)),
        "is_waiting": any(report.state == ScoreReport.State.WAITING for report in reports),
        "parts": parts_of(run),
        "chosen_part": part,
        "tab": "scores",
    }
    latest = next((report for report in reports if report.table), None)
    if latest is None:
        return context
    keep_few_from(request, run, jobs.part_of(latest))
    table = ScoreTable.model_validate(latest.table)
    context |= {"latest": latest} | on_page(table)
    if as_of := table.as_of:
        context["as_of"] = (
            f"As of {number_of(as_of.votes, 'vote')} {as_of}, ledger entry {as_of.ledger_seq:,}."
        )
    return context
