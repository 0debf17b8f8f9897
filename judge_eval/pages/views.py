"""The first page, the list of runs, and the board of one."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest
from judge_eval import selectors
from judge_eval.access import is_voting
from judge_eval.pages.board_shown import board_context, board_seen
from judge_eval.pages.calls_list import alarms
from judge_eval.pages.findings_page import (
    asked_for,
    findings_context,
    live_part,
    refuse,
    run_with_board,
)


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return redirect("runs") if request.user.is_authenticated else render(request, "home.html")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)


@require_safe
@login_required
def runs(request: HttpRequest) -> HttpResponse:
    listed = list(selectors.run_list())
    silent = alarms(listed)
    context = {"runs": [(run, silent.get(run.pk, [])) for run in listed]}
    return render(request, "judge_eval/runs.html", context)


@never_cache
@require_safe
def run_board(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    asked = asked_for(request, run)
    board = selectors.board(run)
    context = findings_context(run, asked) | board_context(run, board, asked) | {"tab": "board"}
    if is_voting(request, run):
        # On which pairs people and judges disagree says what to look for on the next one.
        context |= {"disputed": [], "is_voting": True}
    context["seen"] = f"{board_seen(run, board)}-{context['seen']}"
    if not request.htmx:
        return render(request, "judge_eval/board.html", context)
    return live_part(request, context, "judge_eval/_board.html")
