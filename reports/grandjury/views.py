"""The page of an evaluator's models and keys: made here, told once, and revoked."""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from django import forms
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.core.http import Context
from reports.grandjury import queries, services
from reports.models import Benchmark, TracedModel
from voting.access.keys import revoke
from voting.access.roles import (
    Action,
    can_make_projects,
    can_make_runs,
    projects_where,
    require,
    require_login,
    require_making_runs,
    user_of,
)
from voting.models import ApiKey
from voting.people.forms import ProjectField

EVERY_PROJECT = "every project"
SCOPES: Mapping[str, str] = {
    ApiKey.Scope.READ: "read results",
    ApiKey.Scope.MANAGE: "make and enrol models",
}


class _ProjectForm(forms.Form):
    """Offers those projects in which somebody may do what it is about."""

    action: Action = "run"

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(data)
        project = cast("ProjectField", self.fields["project"])
        project.queryset = projects_where(user, self.action).order_by("name")


class ModelForm(_ProjectForm):
    prefix = "model"

    name = forms.CharField(max_length=200)
    project = ProjectField(label="Sends its outputs to", empty_label="a project of my own models")

    def __init__(self, user: User, data: QueryDict | None = None) -> None:
        super().__init__(user, data)
        if not can_make_projects(user):
            self.fields["project"].required = True


class PersonKeyForm(_ProjectForm):
    prefix = "key"
    action = "see"

    name = forms.CharField(max_length=100)
    project = ProjectField(label="For models of", empty_label=EVERY_PROJECT)
    scopes = forms.MultipleChoiceField(
        choices=[*SCOPES.items()],
        initial=services.PERSON_SCOPES,
        widget=forms.CheckboxSelectMultiple,
        label="May",
    )


@never_cache
@require_safe
def models_page(request: HttpRequest) -> HttpResponse:
    return _page(request)


def _page(
    request: HttpRequest,
    *,
    model_form: ModelForm | None = None,
    key_form: PersonKeyForm | None = None,
    status: int = 200,
) -> HttpResponse:
    user = _user(request)
    context = {
        "models": [_model_row(model) for model in queries.models_of_user(user)],
        "keys": [_key_row(key) for key in queries.keys_of_user(user)],
        "may_make": can_make_runs(user),
        "benchmarks": list(queries.benchmarks_of_user(user)),
        "model_form": model_form or ModelForm(user),
        "key_form": key_form or PersonKeyForm(user),
        "base_url": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "reports/grandjury/models.html", context, status=status)


def _user(request: HttpRequest) -> User:
    require_login(request)
    return user_of(request)


def _model_row(model: TracedModel) -> Context:
    return {
        "model": model,
        "key": _key_state(model.api_key),
        "has_key": model.api_key is not None and model.api_key.revoked_at is None,
        "enrollments": list(model.enrollments.all()),
    }


def _key_row(key: ApiKey) -> Context:
    return {
        "key": key,
        "state": _key_state(key),
        "may": ", ".join(SCOPES.get(scope, scope) for scope in key.scopes) or "do nothing",
        "where": key.project.name if key.project else EVERY_PROJECT,
    }


def _key_state(key: ApiKey | None) -> str:
    """Say when a key was used, which is noted once a minute, or that it is good no more."""
    if key is None:
        return "no key"
    if key.revoked_at is not None:
        return f"revoked on {key.revoked_at:%Y-%m-%d}"
    last_use = f"{key.last_used_at:%Y-%m-%d %H:%M} UTC" if key.last_used_at else "never"
    return f"{key.kind}_{key.prefix}…, last used: {last_use}"


# --- what can be done ---------------------------------------------------------------------------


@never_cache
@require_POST
def make_model(request: HttpRequest) -> HttpResponse:
    require_making_runs(request)
    form = ModelForm(_user(request), request.POST)
    if not form.is_valid():
        return _page(request, model_form=form, status=422)
    project, name = form.cleaned_data["project"], form.cleaned_data["name"]
    model, secret = services.create_model(_user(request), project, name)
    return show_secret(request, f"The key of the model {model.name}", secret)


@never_cache
@require_POST
def renew_model_key(request: HttpRequest, model_id: UUID) -> HttpResponse:
    model = _own_model(request, model_id)
    require(request, "run", model.project_id)
    return show_secret(request, f"The new key of {model.name}", services.renew_key(model))


@require_POST
def revoke_model_key(request: HttpRequest, model_id: UUID) -> HttpResponse:
    services.revoke_key(_own_model(request, model_id))
    return redirect("traced-models")


def _own_model(request: HttpRequest, model_id: UUID) -> TracedModel:
    return get_object_or_404(queries.models_of_user(_user(request)), pk=model_id)


@never_cache
@require_POST
def make_person_key(request: HttpRequest) -> HttpResponse:
    form = PersonKeyForm(_user(request), request.POST)
    if not form.is_valid():
        return _page(request, key_form=form, status=422)
    fields = form.cleaned_data
    key, text = services.create_person_key(
        _user(request), fields["name"], fields["scopes"], fields["project"]
    )
    return show_secret(request, f"Your key {key.name}", text)


@require_POST
def revoke_person_key(request: HttpRequest, key_id: int) -> HttpResponse:
    revoke(get_object_or_404(queries.keys_of_user(_user(request)), pk=key_id))
    return redirect("traced-models")


@require_POST
def open_benchmark(request: HttpRequest, benchmark_id: int) -> HttpResponse:
    benchmarks = queries.benchmarks_of_user(_user(request))
    benchmark: Benchmark = get_object_or_404(benchmarks, pk=benchmark_id)
    require(request, "share", benchmark.project_id)
    services.open_to_enrolment(benchmark, request.POST.get("open") == "yes")
    return redirect("traced-models")


def show_secret(
    request: HttpRequest, title: str, secret: str, back: tuple[str, str] | None = None
) -> HttpResponse:
    """Show a key in this answer alone: a redirect would take it through a cookie or an address.

    The view must be one that is never cached. `back` is the way on, as (words, address).
    """
    context = {
        "title": title,
        "secret": secret,
        "base_url": request.build_absolute_uri("/").rstrip("/"),
        "kind": next(kind.name for kind in ApiKey.Kind if secret.startswith(f"{kind}_")),
        "back": back or ("To your models and keys", reverse("traced-models")),
    }
    return render(request, "reports/projects/new_secret.html", context)
