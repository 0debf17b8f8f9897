"""Data without a shell: files are brought, looked at, mapped and imported; a run is exported."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import sha256
from typing import Final, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from humanjudge.core.http import Context, HtmxRequest
from humanjudge.core.text import in_words, number_of, ordinal
from humanjudge.core.validation import ConfigInvalid
from judge_eval.exports import files
from judge_eval.imports import import_jobs
from judge_eval.imports.formats import READERS
from judge_eval.imports.forms import IN_WORDS, ImportForm
from judge_eval.imports.import_read import open_to_imports
from judge_eval.imports.import_report import ImportRefused, ImportReport
from judge_eval.imports.preview import LOOKED_AT, Preview, grouped
from judge_eval.models import Import, Run
from judge_eval.runs.run_page import citation_of, find_run, run_page
from voting.access.roles import projects_where, require, require_login, require_making_runs, user_of

MOST_FAULTS: Final = 100
LISTED: Final = 10


# --- bringing files -----------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def upload_files(request: HttpRequest, run_id: UUID | None = None) -> HttpResponse:
    """The form that takes files, for a new run or one that there is; what is brought is kept."""
    run, error, status = find_run(run_id) if run_id else None, "", 200
    if run is not None:
        require(request, "run", run.queue.project_id)
    else:
        require_making_runs(request)
    if request.method == "POST":
        try:
            return redirect("import", _save_upload(request, run).pk)
        except ConfigInvalid as invalid:
            error, status = invalid.errors[0].message, 422
        except ImportRefused as refused:
            error, status = str(refused), refused.status
    left = imports_of(user_of(request)).exclude(state=Import.State.DONE).exclude(user=None)
    context = {
        "run": run,
        "tab": "data",
        "error": error,
        "left": left.order_by("-requested_at")[:LISTED],
        "most_files": settings.IMPORT_MAX_FILES,
        "formats": sorted((reader.title for reader in READERS.values()), key=str.lower),
    }
    return render(request, "judge_eval/imports/import_files.html", context, status=status)


def _save_upload(request: HttpRequest, run: Run | None) -> Import:
    import_jobs.check_length(request.headers.get("Content-Length", ""))
    sources = import_jobs.sources_of(request.FILES.getlist("file"))
    job = Import(user=user_of(request))
    if run is not None:
        job.run, job.project = open_to_imports(Run.objects.filter(pk=run.pk)), run.queue.project
    import_jobs.save_upload(job, sources)
    form = ImportForm(job, None, user=user_of(request))
    if form.shape_name and not job.form["mapping"]:
        # What is shown is read as the columns are chosen at first.
        with suppress(ConfigInvalid):
            import_jobs.change(job, job.form | {"mapping": form.chosen_mapping()})
    return job


# --- one import ---------------------------------------------------------------------------------


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def import_page(request: HtmxRequest, import_id: UUID) -> HttpResponse:
    """What files are taken for, to be changed; then how far their import is; then its result."""
    job = _import_of(request, import_id)
    if job.can_be_changed and not request.htmx:
        return _draft(request, job)
    if request.method == "POST":
        return redirect("import", job.pk)
    return _progress(request, job)


def imports_of(user: User) -> QuerySet[Import]:
    """Return the imports into projects that somebody runs, and those of theirs that have none yet.

    Of the latter superusers see all.
    """
    homeless = Q(project=None) if user.is_superuser else Q(project=None, user=user)
    return Import.objects.filter(Q(project__in=projects_where(user, "run")) | homeless)


def _import_of(request: HttpRequest, import_id: UUID) -> Import:
    require_login(request)
    visible = imports_of(user_of(request)).select_related("project", "run__queue")
    return get_object_or_404(visible, pk=import_id)


def _draft(request: HttpRequest, job: Import) -> HttpResponse:
    posted = request.POST if request.method == "POST" else job.form.get("choices")
    form, status = ImportForm(job, posted, user=user_of(request)), 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                _change_or_start(job, form)
                return redirect("import", job.pk)
        except ImportRefused as refused:
            form.add_error(None, str(refused))
            status = refused.status
    preview = Preview.model_validate(job.form["preview"])
    recognised = form.recognised or f"{IN_WORDS[preview.shape]}, by columns"
    about = {
        "job": job,
        "form": form,
        "seen": preview,
        "noun": preview.shape,
        "recognised": recognised,
        "sentence": "" if job.is_bundle else _preview_in_words(preview, form),
        "wrong": sum(1 + fault.more for fault in preview.faults),
    }
    context = {"faults": preview.faults} | _result(job) | about
    return render(request, "judge_eval/imports/import_draft.html", context, status=status)


def _preview_in_words(preview: Preview, form: ImportForm) -> str:
    counts, columns = preview.counts, len(preview.columns)
    if form.is_unknown and columns:
        named = "this column is" if columns == 1 else f"these {in_words(columns)} columns are"
        return f"Say what {named}."
    if form.is_unknown or not counts.items:
        return "No row could be read yet."
    people = "one person" if counts.voters == 1 else f"{counts.voters:,} people"
    judges = "one judge" if counts.judges == 1 else f"{counts.judges:,} judges"
    parts = [number_of(counts.items, preview.shape)]
    parts += [f"{number_of(counts.votes, 'vote')} of {people}"] if counts.votes else []
    parts += [f"{number_of(counts.verdicts, 'verdict')} of {judges}"] if counts.verdicts else []
    start = "" if counts.is_all else f"In the first {LOOKED_AT} rows: "
    missing = ["", " One name is missing.", " Two names are missing."][form.questions]
    return f"{start}{', '.join(parts)}.{missing}"


def _change_or_start(job: Import, form: ImportForm) -> None:
    if not form.is_import:
        import_jobs.change(job, form.form)
        return
    chosen_project = form.cleaned_data.get("project") or job.project
    import_jobs.check_room(chosen_project.pk if chosen_project else None)
    project = form.make_project()
    name = form.cleaned_data.get("name", "").strip()
    if import_jobs.change(job, form.form, project=project, name=name):
        import_jobs.start(job)


def _progress(request: HtmxRequest, job: Import) -> HttpResponse:
    state, line = job.state, _place_in_line(request, job)
    page_version = f"{job.rows_read}-{job.written}"
    if line:
        page_version += f"-{sha256(line.encode()).hexdigest()[:8]}"
    if request.htmx:
        if request.GET.get("state") != state:
            return HttpResponseClientRefresh()
        if request.GET.get("seen") == page_version:
            return HttpResponse(status=204)
    # What is written is more than one thing a row; it is told in rows of the file.
    rows = job.rows_read or job.to_write
    context = _result(job) | {
        "job": job,
        "rows": rows,
        "rows_written": rows * job.written // max(job.to_write, 1),
        "seen": page_version,
        "line": line,
        "is_live": state in Import.UNFINISHED,
        "can_stop": state in (Import.State.WAITING, Import.State.READING),
        "share": f"{100 * job.written / job.to_write:.0f}" if job.to_write else "",
    }
    template = (
        "judge_eval/imports/_import.html" if request.htmx else "judge_eval/imports/import.html"
    )
    return render(request, template, context)


def _place_in_line(request: HtmxRequest, job: Import) -> str:
    """Say for what a waiting import waits; the files of others are not named."""
    if job.state != Import.State.WAITING:
        return ""
    line = import_jobs.in_order_of_turns()
    ahead = line[: line.index(job)] if job in line else []
    if not ahead:
        return "Next in line: a worker starts it now."
    first = ahead[0]
    is_visible = imports_of(user_of(request)).filter(pk=first.pk).exists()
    name = first.form["files"][0] if is_visible else "another import"
    if first.state == Import.State.WRITING and first.to_write:
        name += f" ({100 * first.written // first.to_write} % done)"
    elif first.state == Import.State.READING:
        name += f" ({number_of(first.rows_read, 'row')} read)"
    others = f" and {in_words(len(ahead) - 1)} more" if len(ahead) > 1 else ""
    return f"{ordinal(len(ahead) + 1).capitalize()} in line, behind {name}{others}."


def _result(job: Import) -> Context:
    """Return what an import says at last, each fault once."""
    columns = job.form.get("mapping")
    context: Context = {"mapping_text": json.dumps(columns, indent=1) if columns else ""}
    if job.report is None:
        return context
    report = ImportReport.model_validate(job.report)
    faults, left_out = grouped(report.errors), grouped(report.left_out)
    counted = [(name, report.new[name], report.already[name]) for name in report.counted]
    return context | {
        "report": report,
        "counted": counted,
        "came": ", ".join(
            number_of(new, name.removesuffix("s")) for name, new, _ in counted if new
        ),
        "faults": faults[:MOST_FAULTS],
        "more_faults": len(faults) - MOST_FAULTS,
        "left_out": left_out[:MOST_FAULTS],
        "runs": Run.objects.filter(pk__in=report.runs).select_related("queue"),
    }


@require_POST
def stop_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    import_jobs.cancel(_import_of(request, import_id))
    return redirect("import", import_id)


@require_POST
def discard_import(request: HttpRequest, import_id: UUID) -> HttpResponse:
    import_jobs.discard(_import_of(request, import_id))
    return redirect("import-files")


# --- export -------------------------------------------------------------------------------------


@run_page("export")
def run_data(request: HtmxRequest, run: Run) -> HttpResponse:
    """Everything that gives the data of a run to others, or brings more."""
    formats = {
        name: export_format
        for name, export_format in files.FORMATS.items()
        if run.queue.kind in export_format.kinds
    }
    context = {"run": run, "tab": "data", "formats": formats}
    context |= {"citation": citation_of(request, run)}
    return render(request, "judge_eval/imports/data.html", context)


@run_page("export")
def run_file(request: HtmxRequest, run: Run, form: str) -> HttpResponse:
    if form not in files.FORMATS:
        raise Http404
    name = cast(files.FormatName, form)
    return cast(HttpResponse, files.export(run, name, request))
