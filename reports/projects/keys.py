"""Keys of a project: made here and shown once, listed with what they may do, and revoked."""

from datetime import timedelta
from typing import Final, NamedTuple

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from humanjudge.http import Context, Problem
from humanjudge.lib.text import listed
from reports.grandjury.pages import told_once
from reports.projects.page_header import project_action, project_page
from voting.access import scopes_within, user_of
from voting.keys import ScopesExceeded, create_project_key, revoke_project_key
from voting.models import ApiKey, Project

PER_PAGE: Final = 50
MOST_DAYS: Final = 3_650
# Traces are logged by the key of a model, which the page of models makes.
OFFERED: Final = [scope for scope in ApiKey.Scope if scope != ApiKey.Scope.INGEST]


class KeyForm(forms.Form):
    name = forms.CharField(max_length=100, label="What it is for")
    scopes = forms.MultipleChoiceField(
        label="It may",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose what it may do."},
    )
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        label="Expires after so many days (optional)",
    )

    def __init__(self, project: Project, request: HttpRequest) -> None:
        super().__init__(request.POST or None, label_suffix="")
        allowed = scopes_within(request.user, project)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(scope, scope.label) for scope in OFFERED if scope in allowed]


class KeyRow(NamedTuple):
    key: ApiKey
    may: str
    facts: str
    is_live: bool


@project_page("manage")
def keys(request: HttpRequest, project: Project) -> HttpResponse:
    return _page(request, project, KeyForm(project, request))


def _page(request: HttpRequest, project: Project, form: KeyForm) -> HttpResponse:
    rows = ApiKey.objects.filter(project=project).select_related("user")
    page = Paginator(rows.order_by("-created_at", "-pk"), PER_PAGE).get_page(
        request.GET.get("page")
    )
    context: Context = {
        "project": project,
        "tab": "keys",
        "page": page,
        "keys": [_row(key) for key in page],
        "form": form,
    }
    return render(request, "reports/project_keys.html", context, status=422 if form.errors else 200)


def _row(key: ApiKey) -> KeyRow:
    may = listed(ApiKey.Scope(s).label for s in key.scopes if s in ApiKey.Scope.values)
    expired = key.expires_at is not None and key.expires_at <= timezone.now()
    used = f"last used {key.last_used_at:%-d %b %Y %H:%M} UTC" if key.last_used_at else "never used"
    by = f" by {key.user.get_username()}" if key.user else ""
    facts = [f"for {key.get_kind_display()}", f"made {key.created_at:%-d %b %Y}{by}", used]
    if key.expires_at is not None:
        word = "expired" if expired else "expires"
        facts.append(f"{word} {key.expires_at:%-d %b %Y %H:%M} UTC")
    if key.revoked_at is not None:
        facts.append(f"revoked {key.revoked_at:%-d %b %Y %H:%M} UTC")
    return KeyRow(
        key, may or "do nothing", ", ".join(facts), not expired and key.revoked_at is None
    )


@project_action("manage")
def make_key(request: HttpRequest, project: Project) -> HttpResponse:
    form = KeyForm(project, request)
    if not form.is_valid():
        return _page(request, project, form)
    given, days = form.cleaned_data, form.cleaned_data["days"]
    expires_at = timezone.now() + timedelta(days=days) if days else None
    try:
        key, text = create_project_key(
            project, given["name"], given["scopes"], expires_at, user_of(request)
        )
    except ScopesExceeded as refused:
        raise Problem(403, str(refused)) from refused
    back = ("To the keys of the project", reverse("project-keys", args=[project.pk]))
    return told_once(request, f"The key “{key.name}”", text, back)


@project_action("manage")
def revoke_key(request: HttpRequest, project: Project, key_id: int) -> HttpResponse:
    keys = ApiKey.objects.select_related("project")
    revoke_project_key(get_object_or_404(keys, pk=key_id, project=project), user_of(request))
    return redirect("project-keys", project.pk)
