"""Links to reports: the page on which they are made, listed and revoked, and their tokens."""

import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from humanjudge.core.http import Context
from judge_eval.models import Run
from judge_eval.runs.run_page import find_run
from reports.models import FrozenRows, Share
from reports.report.before_tuning import is_waiting, report_before_tuning
from reports.report.bundle import frozen_rows
from reports.report.make import NotComputed, is_current, report_of
from reports.report.model import Report
from voting.access.changes import note_change
from voting.access.roles import require, require_login, user_of
from voting.ballot.tuning import is_tuned
from voting.ledger.bulk_sql import one_moment
from voting.models import Project, Queue

MOST_DAYS: Final = 3650
MOST_LISTED: Final = 500
LIVE, FROZEN = "live", "frozen"


# --- pages ----------------------------------------------------------------------------------------


class ShareForm(forms.Form):
    label = forms.CharField(max_length=100, required=False, label="For whom (optional)")
    shows = forms.ChoiceField(
        label="It shows",
        choices=[(LIVE, "Live"), (FROZEN, "Frozen as of now")],
        initial=LIVE,
        widget=forms.RadioSelect(attrs={"class": "one-per-line"}),
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        label="Expires after (days, optional)",
    )
    shows_outputs = forms.BooleanField(
        required=False, label="Show the outputs on which people and judges disagree most"
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
    context: Context = {
        "project": project,
        "run": run,
        "form": form,
        "tab": "data" if run else "share",
    }
    if form.is_valid():
        fields = form.cleaned_data
        is_frozen, expires_at = fields.pop("shows") == FROZEN, in_days(fields.pop("days"))
        maker = user_of(request)
        try:
            _, token = make_share(
                project, run, maker, is_frozen=is_frozen, expires_at=expires_at, **fields
            )
        except NotComputed as pending:
            form.add_error("shows", str(pending))
        else:
            # It is in this answer alone: a redirect would take it through a cookie or an address.
            link = request.build_absolute_uri(address_of(token))
            context |= {"link": link, "form": ShareForm(run=run)}
    shares = Share.objects.filter(project=project, run=run).select_related("made_by", "rows")
    shares = shares.defer("rows__lines").order_by("-made_at")
    context["shares"] = [(share, _state(share)) for share in shares[:MOST_LISTED]]
    return render(
        request, "reports/report/shares.html", context, status=422 if form.errors else 200
    )


def _state(share: Share) -> str:
    """Say why a link lets nobody in any more; nothing while it does."""
    if share.revoked_at:
        return f"revoked on {share.revoked_at:%Y-%m-%d}"
    is_over = share.expires_at and share.expires_at <= timezone.now()
    return f"expired on {share.expires_at:%Y-%m-%d}" if is_over else ""


@require_POST
def revoke(request: HttpRequest, share_id: int) -> HttpResponse:
    require_login(request)
    share = get_object_or_404(Share, pk=share_id)
    require(request, "share", share.project_id)
    revoke_share(share, user_of(request))
    return redirect(share.page)


# --- links and their tokens -----------------------------------------------------------------------


def address_of(token: str) -> str:
    return reverse("shared-report", args=[token])


def in_days(days: int | None) -> datetime | None:
    return timezone.now() + timedelta(days=days) if days else None


def make_share(
    project: Project, run: Run | None, user: User | None, *, is_frozen: bool = False, **fields: Any
) -> tuple[Share, str]:
    """Return the new link's row with these fields, and its token, which cannot be had again.

    Raises NotComputed where a report to freeze has no figures yet.
    """
    report, rows = _frozen(project, run) if is_frozen else (None, None)
    token = secrets.token_urlsafe(32)
    with transaction.atomic():
        share = Share.objects.create(
            project=project,
            run=run,
            token_sha256=_hash(token),
            prefix=token[:6],
            made_by=user,
            frozen=report and report.model_dump(mode="json"),
            **fields,
        )
        if rows:
            FrozenRows.objects.create(share=share, lines=rows)
        note_change(project, user, f"Link “{share}” made to a report of {run or project}.")
    return share, token


@one_moment()
def _frozen(project: Project, run: Run | None) -> tuple[Report, bytes | None]:
    """Return a report of one moment, and what its bundle will hold beside the ledger.

    While votes come faster than figures follow, these are of different ends of the ledger: then
    there is no bundle.
    """
    project = Project.objects.get(pk=project.pk)
    if is_waiting(project.pk, run):
        return report_before_tuning(project, run), None
    report = report_of(project, run)
    keeps_rows = is_current(report) and not is_tuned(project.pk)
    return report, frozen_rows(project) if keeps_rows else None


def _hash(token: str) -> str:
    # The token has 256 random bits, so a fast hash is as safe as a slow one.
    return sha256(token.encode()).hexdigest()


def find_share(token: str) -> Share | None:
    """Return the link of a token, None for a wrong, a revoked and an expired one alike."""
    lives = Q(expires_at__isnull=True) | Q(expires_at__gt=timezone.now())
    shares = Share.objects.select_related("project", "run__queue", "run__board")
    tuned = Queue.objects.filter(project=OuterRef("project"), is_tuning=True)
    shares = shares.annotate(is_found_tuned=Exists(tuned))
    return shares.filter(lives, token_sha256=_hash(token), revoked_at__isnull=True).first()


def count_view(share: Share) -> None:
    Share.objects.filter(pk=share.pk).update(views=F("views") + 1, viewed_at=timezone.now())


def forget_deleted_runs() -> None:
    """Forget what was kept for bundles that hold a run which was deleted since."""
    deleted = Queue.objects.filter(
        project=OuterRef("share__project"), deleted_at__gt=OuterRef("share__made_at")
    )
    FrozenRows.objects.filter(Exists(deleted)).delete()


def revoke_share(share: Share, actor: User | None = None) -> None:
    """Let nobody in by a link any more; the first time counts."""
    valid = Share.objects.filter(pk=share.pk, revoked_at__isnull=True)
    with transaction.atomic():
        if valid.update(revoked_at=timezone.now()):
            note_change(share.project, actor, f"Link “{share}” revoked.")
