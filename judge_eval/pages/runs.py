"""The list of runs, what can be done with one, and its tab for voters; what views of runs share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from functools import wraps
from typing import Any, TypeAlias
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import Avg, Count, Max, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from humanjudge.http import Context, HtmxRequest, problem
from humanjudge.lib.leases import held
from judge_eval import selectors
from judge_eval.access import Action, refusal
from judge_eval.config.run_config import MOST_USD
from judge_eval.models import Call, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.lifecycle import LifecycleRefused
from voting import voters
from voting.forms import InviteForm
from voting.models import Invite
from voting.voters import remember

DONE, FAILED, WAITING = Call.State.DONE, Call.State.FAILED, Call.State.WAITING
THINGS = {Call.Purpose.GENERATE: "outputs", Call.Purpose.JUDGE: "verdicts"}
# Of a model that has answered nothing.
CONSEQUENCES = {
    Call.Purpose.GENERATE: "Without its outputs there are no pairs of this model.",
    Call.Purpose.JUDGE: "It has given no verdict: votes will say nothing about this judge.",
}
View: TypeAlias = Callable[..., HttpResponse]


def find_run(run_id: UUID) -> Run:
    runs = Run.objects.select_related("queue__project", "queue__rubric", "board")
    return get_object_or_404(runs, pk=run_id)


def run_page(action: Action) -> Callable[[View], View]:
    """Make a view a page of a run for those who may see it; it is read and never kept."""

    def decorated(view: View) -> View:
        @never_cache
        @require_safe
        @wraps(view)
        def page(request: HtmxRequest, /, run_id: UUID, **options: object) -> HttpResponse:
            run = find_run(run_id)
            return refusal(request, action, run) or view(request, run, **options)

        return page

    return decorated


def run_action(view: View) -> View:
    """Make a view something that who has a login can do with a run, or is told why not now."""

    @require_POST
    @login_required
    @wraps(view)
    def act(request: HttpRequest, run_id: UUID, **options: object) -> HttpResponse:
        run = find_run(run_id)
        try:
            return view(request, run, **options)
        except LifecycleRefused as refused:
            back = ("Back to the run", reverse("run-progress", args=[run.pk]))
            return problem(request, 409, str(refused), title="That cannot be done now", action=back)

    return act


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return redirect("runs") if request.user.is_authenticated else render(request, "home.html")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)


@require_safe
@login_required
def runs(request: HttpRequest) -> HttpResponse:
    every = Run.objects.select_related("board", "queue__project").order_by("-created_at")
    listed = list(every.defer("config"))  # it may be large
    failed = Call.objects.filter(state=FAILED, purpose__in=Call.Purpose.values)
    silent = alarms(calls_by_model(failed.filter(run__in=[r.pk for r in listed]).values("run")))
    models = {run.pk: [row["model"] for row in silent if row["run"] == run.pk] for run in listed}
    context = {"runs": [(run, models[run.pk]) for run in listed]}
    return render(request, "judge_eval/runs.html", context)


def calls_by_model(runs: Iterable[UUID] | QuerySet[Any, Any]) -> list[Context]:
    """Return a line for each model and role of some runs, those that generate first."""
    rows = (
        Call.objects.filter(run__in=runs, purpose__in=THINGS)
        .values("run", "purpose", "provider", "model")
        .annotate(
            total=Count("pk"),
            done=Count("pk", filter=Q(state=DONE)),
            failed=Count("pk", filter=Q(state=FAILED)),
            waiting=Count("pk", filter=Q(state=WAITING)),
            # Of those that wait: being made at this moment.
            out=Count("pk", filter=held() & Q(state=WAITING)),
            tokens_in=Sum("prompt_tokens", default=0),
            tokens_out=Sum("completion_tokens", default=0),
            nano=Sum("cost_nano", default=0),
            unpriced=Count("pk", filter=Q(state=DONE, cost_nano=None, reused=None)),
            mean_ms=Avg("latency_ms"),
            last_failed=Max("pk", filter=Q(state=FAILED)),
        )
    )
    return [dict(row) for row in rows.order_by("purpose", "provider", "model")]


def alarms(calls: Iterable[Context]) -> list[Context]:
    """Return models of which every call of a run has failed, in one role; nothing comes of them.

    Where more calls wait, three that failed are no accident.
    """
    silent = [
        row
        for row in calls
        if row["failed"] and not row["done"] and (row["failed"] >= 3 or not row["waiting"])
    ]
    last = Call.objects.filter(pk__in=[row["last_failed"] for row in silent])
    # As a rule it is the reason of all.
    reasons = dict(last.values_list("pk", "error")) if silent else {}
    return [
        {name: row[name] for name in ("run", "provider", "model", "failed")}
        | {
            "things": THINGS[row["purpose"]],
            "consequence": CONSEQUENCES[row["purpose"]],
            "reason": reasons[row["last_failed"]],
        }
        for row in silent
    ]


@run_action
def start_run(request: HttpRequest, run: Run) -> HttpResponse:
    lifecycle.start(run.pk)
    return redirect("run-progress", run.pk)


@run_action
def stop_run(request: HttpRequest, run: Run) -> HttpResponse:
    lifecycle.stop(run.pk)
    return redirect("run-progress", run.pk)


@run_action
def resume_run(request: HttpRequest, run: Run) -> HttpResponse:
    text = request.POST.get("budget_usd", "").strip()
    try:
        budget = Decimal(text) if text else None
    except InvalidOperation:
        budget = Decimal("NaN")
    if budget is not None and not (budget.is_finite() and 0 < budget <= MOST_USD):
        words = f"The budget must be a number above 0 and at most {MOST_USD:,}."
        back = ("Back to the run", reverse("run-progress", args=[run.pk]))
        return problem(request, 422, words, action=back)
    lifecycle.resume(run.pk, budget)
    return redirect("run-progress", run.pk)


@run_action
def retry_run(request: HttpRequest, run: Run) -> HttpResponse:
    if not lifecycle.retry_failed(run.pk):
        raise LifecycleRefused("Nothing failed that could be asked again.")
    return redirect("run-progress", run.pk)


@run_action
def duplicate_run(request: HttpRequest, run: Run) -> HttpResponse:
    return redirect("run-draft", lifecycle.duplicate(run.pk).pk)


# --- voters -------------------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def run_voting(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Who may vote, how far they are, and a way in for oneself; the form makes an invite."""
    run = find_run(run_id)
    form = InviteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        label, cap = form.cleaned_data["label"], form.cleaned_data["max_voters"]
        voters.make_invite(run.queue, label, form.expires_at(timezone.now()), cap)
        _record(request, run, "An invite was made", label)
        return redirect("run-voting", run.pk)
    members = Count("voters", distinct=True) + Count("guests", distinct=True)
    found = Invite.objects.filter(queue=run.queue_id).select_related("queue")
    invites = []
    for invite in found.annotate(members=members).order_by("created_at"):
        invite.joined = invite.members
        url = request.build_absolute_uri(reverse("join", args=[voters.invite_token(invite)]))
        invites.append((invite, url, voters.refusal(invite, timezone.now())))
    context = {
        "run": run,
        "can_vote": run.queue.is_open and run.state != Run.State.COMPLETE,
        "board": selectors.board(run),
        "invites": invites,
        "form": form,
        "tab": "vote",
    }
    return render(request, "judge_eval/voting.html", context)


def _record(request: HttpRequest, run: Run, what: str, label: str) -> None:
    named = f": {label}" if label else ""
    run.record("invite", f"{what} by {request.user.get_username()}{named}.")


@run_action
def withdraw_invite(request: HttpRequest, run: Run, invite_id: UUID) -> HttpResponse:
    invite = get_object_or_404(Invite, pk=invite_id, queue=run.queue_id)
    if invite.revoked_at is None:
        voters.withdraw(invite)
        _record(request, run, "An invite was withdrawn", invite.label)
    return redirect("run-voting", run.pk)


@run_action
def vote_as_user(request: HttpRequest, run: Run) -> HttpResponse:
    assert request.user.is_authenticated  # by `run_action`
    voter = voters.voter_of_user(run.queue.project, request.user)
    return remember(redirect("vote", run.queue_id), voter)
