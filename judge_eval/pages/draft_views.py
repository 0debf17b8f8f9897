"""Pages of a run before it starts: the forms, what it will do, a judge tried, and deletion."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.http import HtmxRequest, Problem
from judge_eval.config.run_config import RUBRICS
from judge_eval.models import Judge, Run
from judge_eval.pages.config_form import ConfigForm
from judge_eval.pages.draft_shown import draft_of, generation_messages, judge_messages
from judge_eval.pages.run_access import refuse_calls
from judge_eval.pages.run_forms import RunForm, as_json, empty_values, form_values
from judge_eval.pages.run_views import find_run, refusal, run_page
from judge_eval.pages.tryout_shown import shown_tryout
from judge_eval.runs import drafts, lifecycle, tryout
from judge_eval.runs.lifecycle import LifecycleRefused
from voting.models import Project

# A file of 5 MB and the largest form that Django reads.
MOST_BYTES = 8_000_000
COPY = " (copy)"


# The token is looked for in the body, and a body that is too large is not even read for that.
@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_run(request: HttpRequest) -> HttpResponse:
    _refuse_too_large(request)
    return _new_run(request)


@csrf_exempt
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new_run_config(request: HttpRequest) -> HttpResponse:
    _refuse_too_large(request)
    return _new_run_config(request)


def _refuse_too_large(request: HttpRequest) -> None:
    length = request.headers.get("Content-Length", "")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise Problem(413, "A file may have 5 MB. Nothing was stored: go back and take another.")
    try:
        request.POST  # noqa: B018  it is read here
    except RequestDataTooBig:
        raise Problem(413, "That is too much to paste. Go back and give it as a file.") from None


@csrf_protect
def _new_run(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _create(request, RunForm(request.POST, request.FILES))
    source = _source(request)
    values: dict[str, Any] | None = empty_values() | _only_project()
    if source is not None:
        values = form_values(lifecycle.config_of(source))
        if values is None:  # the form has no place for all that this config says
            return redirect(f"{reverse('new-run-config')}?from={source.pk}")
        values |= {"name": _copied(source), "project": source.queue.project_id}
    return _page(request, RunForm(initial=values))


@csrf_protect
def _new_run_config(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        return _create(request, ConfigForm(request.POST, request.FILES))
    source, values = _source(request), _only_project()
    if source is not None:
        config = as_json(lifecycle.config_of(source), name=_copied(source))
        values = {"config": config, "project": source.queue.project_id}
    return _page(request, ConfigForm(initial=values))


def _source(request: HttpRequest) -> Run | None:
    """Return the run whose config is to be changed, if one is named."""
    named = request.GET.get("from")
    if not named:
        return None
    try:
        run = find_run(UUID(named))
    except ValueError:
        raise Http404 from None
    if run.config is None:
        raise Http404
    return run


def _copied(run: Run) -> str:
    longest = Run._meta.get_field("name").max_length or 0
    return f"{run.name[: longest - len(COPY)]}{COPY}"


def _only_project() -> dict[str, Any]:
    """Choose the project where there is no choice."""
    projects = Project.objects.all()[:2]
    return {"project": projects[0] if len(projects) == 1 else None}


def _create(request: HttpRequest, form: RunForm | ConfigForm) -> HttpResponse:
    if form.is_valid() and form.run_config is not None:
        project = form.cleaned_data["project"] or form.cleaned_data["new_project"]
        return run_page(drafts.create(project, form.run_config))
    return _page(request, form, status=413 if form.is_too_large else 422)


def _page(request: HttpRequest, form: RunForm | ConfigForm, status: int = 200) -> HttpResponse:
    name = "new_run" if isinstance(form, RunForm) else "new_run_config"
    context = {"form": form, "source": request.GET.get("from", ""), "rubrics": dict(RUBRICS)}
    return render(request, f"judge_eval/{name}.html", context, status=status)


@never_cache
@require_safe
def run_draft(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """What a draft will do; htmx asks for its tryout again while a judge is asked."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    if run.state != Run.State.DRAFT:
        started = reverse("run-progress", args=[run.pk])
        return HttpResponseClientRedirect(started) if request.htmx else redirect(started)
    if run.config is None:
        raise Problem(409, "This draft has no config, so there is nothing to start.")
    tried = shown_tryout(request, run)
    judges = run.judges.exclude(provider=Judge.BASELINE).order_by("position")
    context = {"run": run, "tab": "draft", "tryout": tried, "judges": judges}
    if not request.htmx:
        return render(request, "judge_eval/draft.html", context | _draft_context(run))
    if tried is not None and request.GET.get("seen") == tried.seen:
        return HttpResponse(status=204)
    return render(request, "judge_eval/_tryout.html", context)


def _draft_context(run: Run) -> dict[str, Any]:
    draft = draft_of(run)
    return {
        "draft": draft,
        "baselines": run.judges.filter(provider=Judge.BASELINE).order_by("position"),
        "generation_messages": generation_messages(draft.config),
        "judge_messages": judge_messages(run, draft.config),
        "has_pairs": bool(tryout.pairs_for(run)),
    }


@require_POST
@login_required
def delete_draft(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    try:
        drafts.delete(run.pk)
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
    return redirect("runs")


@require_POST
@login_required
def try_judge(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    try:
        tryout.ask(run.pk, UUID(request.POST.get("judge", "")))
    except ValueError:
        raise Problem(422, "judge: choose one of the judges of this run.") from None
    except LifecycleRefused as refused:
        return refusal(request, run, refused)
    return redirect(f"{reverse('run-draft', args=[run.pk])}#tryout")
