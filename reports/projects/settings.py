"""The settings of a project: its name, and what else is set where."""

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from humanjudge.http import Context
from reports.projects.head import project_action, project_page, user_of
from voting.changes import rename
from voting.models import Project


class SettingsForm(forms.Form):
    name = forms.CharField(max_length=200)


@project_page("manage")
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    return _page(request, project, SettingsForm(initial={"name": project.name}, label_suffix=""))


def _page(request: HttpRequest, project: Project, form: SettingsForm) -> HttpResponse:
    context: Context = {"project": project, "tab": "settings", "form": form}
    status = 422 if form.errors else 200
    return render(request, "reports/project_settings.html", context, status=status)


@project_action("manage")
def save_settings(request: HttpRequest, project: Project) -> HttpResponse:
    form = SettingsForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _page(request, project, form)
    rename(project, form.cleaned_data["name"], user_of(request))
    messages.success(request, "Saved.")
    return redirect("project-settings", project.pk)
