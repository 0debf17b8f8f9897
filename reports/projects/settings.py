"""The settings of a project: its name, how long raw replies are kept, and what is set elsewhere."""

from datetime import timedelta

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from humanjudge.http import Context
from humanjudge.lib.text import number_of
from judge_eval.runs.deletion import replies_older_than, set_retention
from reports.projects.page_header import project_action, project_page
from voting.access import user_of
from voting.changes import rename
from voting.models import Project


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)
    days = forms.IntegerField(
        min_value=1,
        max_value=3650,
        required=False,
        label="Days to keep raw replies of models",
        help_text="Counted from the reply, of runs that are over. Empty: they are kept.",
    )


@project_page("manage")
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    initial = {"name": project.name, "days": project.keep_replies_days}
    return _page(request, project, SettingsForm(initial=initial, label_suffix=""))


def _page(request: HttpRequest, project: Project, form: SettingsForm) -> HttpResponse:
    replies = _replies_in_words(project)
    context: Context = {"project": project, "tab": "settings", "form": form, "replies": replies}
    status = 422 if form.errors else 200
    return render(request, "reports/project_settings.html", context, status=status)


@project_action("manage")
def save_settings(request: HttpRequest, project: Project) -> HttpResponse:
    form = SettingsForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _page(request, project, form)
    rename(project, form.cleaned_data["name"], user_of(request))
    set_retention(project, form.cleaned_data["days"], user_of(request))
    messages.success(request, "Saved.")
    return redirect("project-settings", project.pk)


def _replies_in_words(project: Project) -> str:
    days = project.keep_replies_days
    if days is None:
        return "Raw replies are kept."
    due = replies_older_than(project, timezone.now() - timedelta(days=days)).count()
    waiting = f" So old are {due:,} now, which go within the hour." if due else ""
    return f"Raw replies are removed {number_of(days, 'day')} after they came.{waiting}"
