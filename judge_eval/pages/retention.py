"""The page on which an owner says how long raw replies of models are kept."""

from datetime import timedelta
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from humanjudge.lib.text import number_of
from judge_eval.runs.retention import replies_older_than, set_retention
from voting.access import require
from voting.models import Project


class RetentionForm(forms.Form):
    days = forms.IntegerField(
        min_value=1,
        max_value=3650,
        required=False,
        label="Days to keep raw replies",
        help_text="Counted from the reply, of runs that are over. Empty: they are kept.",
    )


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def replies(request: HttpRequest, project_id: UUID) -> HttpResponse:
    require(request, "manage", project_id)
    project = get_object_or_404(Project, pk=project_id)
    given = request.POST if request.method == "POST" else None
    form = RetentionForm(given, label_suffix="", initial={"days": project.keep_replies_days})
    if form.is_valid():
        set_retention(project, form.cleaned_data["days"])
        messages.success(request, f"Saved. {_in_words(project)}")
        return redirect("replies", project.pk)
    context = {"project": project, "form": form, "words": _in_words(project)}
    return render(request, "judge_eval/retention.html", context, status=422 if form.errors else 200)


def _in_words(project: Project) -> str:
    days = project.keep_replies_days
    if days is None:
        return "Raw replies are kept."
    due = replies_older_than(project, timezone.now() - timedelta(days=days)).count()
    waiting = f" So old are {due:,} now, which go within the hour." if due else ""
    return f"Raw replies are removed {number_of(days, 'day')} after they came.{waiting}"
