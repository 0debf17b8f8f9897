"""What owners set: a project's name, how long raw replies are kept, and its keys.

A key is shown once, listed with what it may do, and revoked.
"""

from datetime import datetime, timedelta
from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from humanjudge.core.http import Context, Problem
from humanjudge.core.listing import Column, Listing
from humanjudge.core.tables import DASH, Cell, name_cell
from humanjudge.core.text import listed
from judge_eval.board.cache import set_families
from judge_eval.board.families import parse_families
from judge_eval.runs.deletion import replies_older_than, set_retention
from reports.grandjury.views import show_secret
from reports.projects.page_header import project_action, project_page
from reports.report.views.shares import MOST_DAYS, in_days
from voting.access.changes import rename
from voting.access.keys import ScopesExceeded, create_project_key, revoke_project_key
from voting.access.roles import scopes_within, user_of
from voting.models import ApiKey, Project

# Traces are logged by the key of a model, which the page of models makes.
OFFERED: Final = [scope for scope in ApiKey.Scope if scope != ApiKey.Scope.INGEST]


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)
    days = forms.IntegerField(
        min_value=1,
        max_value=MOST_DAYS,
        required=False,
        label="Days to keep raw replies of models",
        help_text="Counted from the reply; only for finished runs. Leave empty to keep them.",
    )
    families = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "house-7b = meta"}),
        label="Families of models whose names do not show them",
        help_text="One per line: the start of a name, then its family. A judge may favour its own.",
    )

    def clean_families(self) -> dict[str, str]:
        try:
            return parse_families(self.cleaned_data["families"])
        except ValueError as wrong:
            raise forms.ValidationError(f"{wrong}.") from wrong


@project_page("manage")
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    families = "\n".join(map(" = ".join, sorted(project.model_families.items())))
    initial = {"name": project.name, "days": project.keep_replies_days, "families": families}
    return _settings_page(request, project, SettingsForm(initial=initial, label_suffix=""))


def _settings_page(request: HttpRequest, project: Project, form: SettingsForm) -> HttpResponse:
    context: Context = {"project": project, "tab": "settings", "form": form}
    if days := project.keep_replies_days:
        before = timezone.now() - timedelta(days=days)
        context["due"] = replies_older_than(project, before).count()
    status = 422 if form.errors else 200
    return render(request, "reports/projects/project_settings.html", context, status=status)


@project_action("manage")
def save_settings(request: HttpRequest, project: Project) -> HttpResponse:
    form = SettingsForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _settings_page(request, project, form)
    rename(project, form.cleaned_data["name"], user_of(request))
    set_retention(project, form.cleaned_data["days"], user_of(request))
    set_families(project, form.cleaned_data["families"], user_of(request))
    messages.success(request, "Saved.")
    return redirect("project-settings", project.pk)


# --- keys ----------------------------------------------------------------------------------------


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
        label="Expires after (days, optional)",
    )

    def __init__(self, project: Project, request: HttpRequest) -> None:
        super().__init__(request.POST or None, label_suffix="")
        allowed = scopes_within(request.user, project)
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = [(scope, scope.label) for scope in OFFERED if scope in allowed]


def _moment(moment: datetime) -> str:
    return f"{moment:%-d %b %Y %H:%M} UTC"


def _is_live(key: ApiKey) -> bool:
    is_expired = key.expires_at is not None and key.expires_at <= timezone.now()
    return key.revoked_at is None and not is_expired


def _key_origin(key: ApiKey) -> str:
    maker = f" by {key.user.get_username()}" if key.user else ""
    return f"{key.created_at:%-d %b %Y}{maker}, for {key.get_kind_display()}"


def _ends(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {_moment(key.revoked_at)}"
    if key.expires_at is None:
        return DASH
    return f"{'expires' if _is_live(key) else 'expired'} {_moment(key.expires_at)}"


def _revoke_cell(key: ApiKey) -> Cell:
    if not _is_live(key):
        return Cell()
    address = reverse("revoke-project-key", args=[key.project_id, key.pk])
    return Cell("Revoke", after=f" the key {key.name} {key.prefix}", action=address, css="")


KEYS: Final = Listing[ApiKey](
    "Keys",
    [
        Column("Key", lambda key: name_cell(key.name, small=f"{key.kind}_{key.prefix}…")),
        Column(
            "It may",
            lambda key: (
                listed(ApiKey.Scope(s).label for s in key.scopes if s in ApiKey.Scope.values)
                or "do nothing"
            ),
        ),
        Column("Made", _key_origin),
        Column(
            "Last used", lambda key: _moment(key.last_used_at) if key.last_used_at else "never used"
        ),
        Column("Ends", _ends),
        Column("", _revoke_cell),
    ],
    row_css=lambda key: "" if _is_live(key) else "left-out",
)


@project_page("manage")
def keys(request: HttpRequest, project: Project) -> HttpResponse:
    return _keys_page(request, project, KeyForm(project, request))


def _keys_page(request: HttpRequest, project: Project, form: KeyForm) -> HttpResponse:
    rows = ApiKey.objects.filter(project=project).select_related("user")
    context: Context = {
        **KEYS.context(rows.order_by("-created_at", "-pk"), request.GET),
        "project": project,
        "tab": "keys",
        "form": form,
    }
    return render(
        request, "reports/projects/project_keys.html", context, status=422 if form.errors else 200
    )


@project_action("manage")
def make_key(request: HttpRequest, project: Project) -> HttpResponse:
    form = KeyForm(project, request)
    if not form.is_valid():
        return _keys_page(request, project, form)
    fields, maker = form.cleaned_data, user_of(request)
    expires_at = in_days(fields["days"])
    try:
        key, text = create_project_key(project, fields["name"], fields["scopes"], expires_at, maker)
    except ScopesExceeded as refused:
        raise Problem(403, str(refused)) from refused
    back = ("To the keys of the project", reverse("project-keys", args=[project.pk]))
    return show_secret(request, f"The key “{key.name}”", text, back)


@project_action("manage")
def revoke_key(request: HttpRequest, project: Project, key_id: int) -> HttpResponse:
    keys = ApiKey.objects.select_related("project")
    revoke_project_key(get_object_or_404(keys, pk=key_id, project=project), user_of(request))
    return redirect("project-keys", project.pk)
