"""The first page, the list of runs, and the board of one."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.http import require_safe

from judge_eval import selectors
from judge_eval.pages.calls_list import alarms


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
