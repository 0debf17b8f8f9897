"""The pages on which reports are shared: links are made, told once, listed and revoked."""

from datetime import timedelta
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from humanjudge.http import Context
from judge_eval.models import Run
from judge_eval.web import find_run
from reports.models import Share
from reports.shares import services
from reports.shares.make import NotComputed
from voting.access import require, require_login, user_of
from voting.models import Project

LIVE, FROZEN = "live", "frozen"


class ShareForm(forms.Form):
    label = forms.CharField(max_length=100, required=False, label="For whom (optional)")
    shows = forms.ChoiceField(
        label="It shows",
        choices=[
            (LIVE, "what holds whenever it is opened"),
            (FROZEN, "what holds now, for good: later votes and decisions do not change it"),
        ],
        initial=LIVE,
        widget=forms.RadioSelect(attrs={"class": "one-per-line"}),
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=services.MOST_DAYS,
        required=False,
        label="Expires after so many days (optional)",
    )
    shows_outputs = forms.BooleanField(
        required=False, label="It shows the outputs that divide people and judges"
    )
    is_public = forms.BooleanField(required=False, label="Search engines may list it")

    def __init__(self, sent: QueryDict | None = None, *, run: Run | None) -> None:
        super().__init__(sent, label_suffix="")
        if run is None:  # a project's report names no items
            del self.fields["shows_outputs"]


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_shares(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    require(request, "share", run.queue.project_id)
    return _page(request, run.queue.project, run)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def project_shares(request: HttpRequest, project_id: UUID) -> HttpResponse:
    require(request, "share", project_id)
    return _page(request, get_object_or_404(Project, pk=project_id), None)


def _page(request: HttpRequest, project: Project, run: Run | None) -> HttpResponse:
    form = ShareForm(request.POST if request.method == "POST" else None, run=run)
    context: Context = {"project": project, "run": run, "form": form, "tab": "share"}
    if form.is_valid():
        try:
            context |= {"link": _make(request, project, run, form), "form": ShareForm(run=run)}
        except NotComputed as pending:
            form.add_error("shows", str(pending))
    # The link is in this answer alone: a redirect would take it through a cookie or an address.
    shares = Share.objects.filter(project=project, run=run).select_related("made_by", "rows")
    shares = shares.defer("rows__lines").order_by("-made_at")
    context["shares"] = [(share, _state(share)) for share in shares[: services.MOST_LISTED]]
    return render(request, "reports/shares.html", context, status=422 if form.errors else 200)


def _make(request: HttpRequest, project: Project, run: Run | None, form: ShareForm) -> str:
    given = form.cleaned_data
    _, token = services.make_share(
        project,
        run,
        user_of(request),
        label=given["label"],
        expires_at=timezone.now() + timedelta(days=given["days"]) if given["days"] else None,
        is_frozen=given["shows"] == FROZEN,
        shows_outputs=given.get("shows_outputs", False),
        is_public=given["is_public"],
    )
    return request.build_absolute_uri(services.address_of(token))


def _state(share: Share) -> str:
    """Say why a link lets nobody in any more; nothing while it does."""
    if share.revoked_at is not None:
        return f"revoked on {share.revoked_at:%Y-%m-%d}"
    if share.expires_at is not None and share.expires_at <= timezone.now():
        return f"expired on {share.expires_at:%Y-%m-%d}"
    return ""


@require_POST
def revoke(request: HttpRequest, share_id: int) -> HttpResponse:
    require_login(request)
    share = get_object_or_404(Share, pk=share_id)
    require(request, "share", share.project_id)
    services.revoke_share(share, user_of(request))
    if share.run_id:
        return redirect("run-shares", share.run_id)
    return redirect("project-shares", share.project_id)
