"""The list of runs, and what can be done with one: start, stop, resume, retry, duplicate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import Count, Max, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from humanjudge.http import problem
from judge_eval import selectors
from judge_eval.config.run_config import MOST_USD
from judge_eval.models import Call, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused

DONE, FAILED, WAITING = Call.State.DONE, Call.State.FAILED, Call.State.WAITING


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


@dataclass(frozen=True)
class Alarm:
    """A model of which every call of a run has failed, in one role; nothing will come of it."""

    purpose: str
    provider: str
    model: str
    failed: int
    # The last reason: as a rule it is that of all.
    reason: str

    @property
    def headline(self) -> str:
        things = "verdicts" if self.purpose == Call.Purpose.JUDGE else "outputs"
        return f"Every call to {self.model} ({self.provider}) for {things} has failed"

    @property
    def consequence(self) -> str:
        if self.purpose == Call.Purpose.JUDGE:
            return "It has given no verdict: votes will say nothing about this judge."
        return "Without its outputs there are no pairs of this model."


_GROUP = ("run", "purpose", "provider", "model")
# Where more calls wait, so many that failed are no accident.
FEW = 3


def alarms(runs: Iterable[Run]) -> dict[UUID, list[Alarm]]:
    """Return which models of some runs fail whenever they are asked, in three queries at most."""
    failed = Call.objects.filter(
        run__in=[run.pk for run in runs], purpose__in=Call.Purpose.values, state=FAILED
    )
    rows = failed.values(*_GROUP).annotate(n=Count("pk"), last=Max("pk"))
    groups = {tuple(row[name] for name in _GROUP): row for row in rows.order_by("purpose", "model")}
    if not groups:
        return {}
    of_them = [Q(**dict(zip(_GROUP, group, strict=True))) for group in groups]
    others = Call.objects.filter(reduce(or_, of_them), state__in=(DONE, WAITING))
    known = set(others.values_list(*_GROUP, "state").distinct())
    silent = [
        (group, row)
        for group, row in groups.items()
        if (*group, DONE) not in known and (row["n"] >= FEW or (*group, WAITING) not in known)
    ]
    reasons = dict(
        Call.objects.filter(pk__in=[row["last"] for _, row in silent]).values_list("pk", "error")
    )
    found: dict[UUID, list[Alarm]] = defaultdict(list)
    for (run, purpose, provider, model), row in silent:
        found[run].append(Alarm(purpose, provider, model, row["n"], reasons[row["last"]]))
    return dict(found)


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


class BudgetInvalid(ValueError):
    """What was given is no budget; the text says what one is."""


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
