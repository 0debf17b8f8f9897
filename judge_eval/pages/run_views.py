"""Pages of a run that was started: how far it is, what failed, and what can be done about it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.http import HtmxRequest, Problem, problem
from judge_eval.access import refuse_pair
from judge_eval.config.run_config import MOST_USD
from judge_eval.models import Call, Run
from judge_eval.pages.calls_list import failed_calls, failed_verdicts, pairs_with
from judge_eval.pages.run_access import pairs_to_vote_on, refuse_calls
from judge_eval.pages.run_shown import progress_context
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused

CALLS_PER_PAGE = 50
MOST_VERDICTS = 50
LONGEST_SHOWN_REPLY = 20_000


class BudgetInvalid(ValueError):
    """What was given is no budget; the text says what one is."""


def find_run(run_id: UUID) -> Run:
    return get_object_or_404(
        Run.objects.select_related("queue__project", "queue__rubric"), pk=run_id
    )


def run_page(run: Run) -> HttpResponse:
    """Lead to where a run's life is shown."""
    return redirect("run-draft" if run.state == Run.State.DRAFT else "run-progress", run.pk)


def refusal(request: HttpRequest, run: Run, refused: LifecycleRefused) -> HttpResponse:
    """Say why a run cannot do what was asked of it now."""
    context = {
        "status": 409,
        "title": "That cannot be done now",
        "message": str(refused),
        "action": ("Back to the run", reverse("run-progress", args=[run.pk])),
    }
    return render(request, "problem.html", context, status=409)


@never_cache
@require_safe
def run_progress(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """How far a run is; htmx asks for its live part again while calls are made."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    if run.state == Run.State.DRAFT:
        draft = reverse("run-draft", args=[run.pk])
        return HttpResponseClientRedirect(draft) if request.htmx else redirect(draft)
    context = progress_context(run)
    if not request.htmx:
        return render(request, "judge_eval/run_progress.html", context)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    # What can be pressed stays as it is, with its focus, until it changes.
    context["is_new_stance"] = request.GET.get("stance") != context["stance"]
    return render(request, "judge_eval/_progress.html", context)


@never_cache
@require_safe
def run_calls(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The calls that failed, each with its reason."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    page = Paginator(failed_calls(run), CALLS_PER_PAGE).get_page(request.GET.get("page"))
    verdicts = list(failed_verdicts(run)[: MOST_VERDICTS + 1])
    about = [call.verdict.comparison_id for call in page if call.verdict is not None]
    context = {
        "run": run,
        "page": page,
        "verdicts": verdicts[:MOST_VERDICTS],
        "has_more_verdicts": len(verdicts) > MOST_VERDICTS,
        "closed": pairs_to_vote_on(request, run, [*about, *(v.comparison_id for v in verdicts)]),
        "tab": "progress",
    }
    return render(request, "judge_eval/calls.html", context)


@never_cache
@require_safe
def run_call(request: HtmxRequest, run_id: UUID, call_id: int) -> HttpResponse:
    """The raw reply of a call; what a judge said only to who may see its pair."""
    run = find_run(run_id)
    calls = Call.objects.select_related("verdict__comparison").exclude(state=Call.State.WAITING)
    call = get_object_or_404(calls, pk=call_id, run=run)
    refused = refuse_calls(request, run)
    if refused is None and call.verdict is not None:
        refused = refuse_pair(request, run, call.verdict.comparison)
    if refused is not None:
        return refused
    if pairs_to_vote_on(request, run, pairs_with(call.inference_id)):
        raise Problem(403, "You have this output open for voting; who made it is shown after that.")
    context = {
        "run": run,
        "call": call,
        "reply": call.reply[:LONGEST_SHOWN_REPLY],
        "is_cut": len(call.reply) >= LONGEST_SHOWN_REPLY,
        "tab": "progress",
    }
    template = "judge_eval/_reply.html" if request.htmx else "judge_eval/call.html"
    return render(request, template, context)


def _act(request: HttpRequest, run_id: UUID, act: Callable[[UUID], Any]) -> HttpResponse:
    run = find_run(run_id)
    try:
        act(run.pk)
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
    return redirect("run-progress", run.pk)


@require_POST
@login_required
def start_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    return _act(request, run_id, lifecycle.start)


@require_POST
@login_required
def stop_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    return _act(request, run_id, lifecycle.stop)


@require_POST
@login_required
def resume_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    try:
        budget = _budget(request.POST.get("budget_usd", "").strip())
    except BudgetInvalid as invalid:
        back = ("Back to the run", reverse("run-progress", args=[run_id]))
        return problem(request, 422, str(invalid), action=back)
    return _act(request, run_id, lambda pk: lifecycle.resume(pk, budget))


def _budget(text: str) -> Decimal | None:
    if not text:
        return None
    try:
        budget = Decimal(text)
    except InvalidOperation:
        budget = Decimal("NaN")
    if not (budget.is_finite() and 0 < budget <= MOST_USD):
        raise BudgetInvalid(f"The budget must be a number above 0 and at most {MOST_USD:,}.")
    return budget


@require_POST
@login_required
def retry_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    return _act(request, run_id, _retry)


def _retry(run_id: UUID) -> None:
    if not lifecycle.retry_failed(run_id):
        raise LifecycleRefused("Nothing failed that could be asked again.")


@require_POST
@login_required
def duplicate_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    try:
        return run_page(lifecycle.duplicate(run.pk))
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
