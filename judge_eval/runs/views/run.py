"""The list of runs; the progress of one, and what can be done with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from operator import itemgetter
from typing import Any, Final, cast
from uuid import UUID

from django import forms
from django.core.exceptions import ValidationError
from django.core.paginator import Page
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from humanjudge.core.http import Context, HtmxRequest, Problem, problem
from humanjudge.core.listing import Column, Listing
from humanjudge.core.tables import Cell, name_cell
from humanjudge.core.text import duration, latency, number_of, usd
from judge_eval.gate import drift
from judge_eval.judging import leases
from judge_eval.judging.config.run_config import MOST_USD, ConfigInvalid
from judge_eval.judging.provider_access import NANO
from judge_eval.models import Call, Judge, Provider, Run
from judge_eval.runs import deletion, exclusion, lifecycle, queries
from judge_eval.runs.forms import JoiningForm
from judge_eval.runs.progress import RunProgress, progress_of
from judge_eval.runs.queries import ModelCalls
from judge_eval.runs.run_page import (
    find_run,
    invites_address,
    lead_to,
    not_now,
    run_action,
    run_page,
)
from judge_eval.runs.state import PROGRESS
from voting.access.roles import can, can_make_runs, projects_where, require, require_login, user_of
from voting.ballot.queries import queue_counts
from voting.models import Picture
from voting.people.voters import voter_of_user

DONE, FAILED, WAITING = Call.State.DONE, Call.State.FAILED, Call.State.WAITING
BUDGET = forms.DecimalField(required=False, min_value=Decimal("1e-9"), max_value=MOST_USD)
NEWEST = "newest"
LONGEST_WHY = 2_000
EVENTS = 8
# They have lists or figures of their own.
UNLISTED_EVENTS = ("call_failed", PROGRESS)
STATES = {
    Run.State.GENERATING: "Outputs are being asked for.",
    Run.State.JUDGING: "Outputs are drawn and judged.",
    Run.State.VOTING: "Every {noun} that can be voted on is open.",
    Run.State.COMPLETE: "Every {noun} has enough votes.",
}


@dataclass(frozen=True)
class RunLine:
    """A run of the list, its models that never answered, and what somebody may do with it."""

    run: Run
    silent: Sequence[str]
    may_vote: bool
    may_look: bool


def _name_cell(line: RunLine) -> Cell:
    is_draft = line.may_look and line.run.state == Run.State.DRAFT
    address = reverse("run-draft" if is_draft else "run", args=[line.run.pk])
    return Cell(line.run.name, css="", href=address, is_head=True)


def _state_cell(line: RunLine) -> Cell:
    run, state = line.run, line.run.get_state_display()
    if line.may_look and run.state != Run.State.DRAFT:
        address, after = reverse("run-progress", args=[run.pk]), f": progress of {run.name}"
        words = '<a href="{}">{}<span class="visually-hidden">{}</span></a>'
        state = format_html(words, address, state, after)
    alarm = '<br><strong class="alarm">{}: every call failed</strong>'
    alarms = format_html_join("", alarm, ((model,) for model in line.silent))
    return Cell(format_html("{}{}", state, alarms), css="")


def _vote_cell(line: RunLine) -> Cell:
    if not line.may_vote:
        return Cell()
    words, address = f"Vote on {line.run.queue.noun}s", invites_address(line.run)
    return Cell(words, after=f" of {line.run.name}", href=address, css="nowrap")


RUNS: Final = Listing[RunLine](
    "Runs",
    [
        Column("Run", _name_cell, orders={"name": ("name", "-created_at", "pk")}),
        Column(
            "Project",
            lambda line: line.run.queue.project.name,
            orders={"project": ("queue__project__name", "-created_at", "pk")},
        ),
        Column("State", _state_cell, orders={"state": ("state", "-created_at", "pk")}),
        Column(
            "Votes",
            lambda line: Cell(
                f"{line.run.board.votes:,}",
                small="simulated" if line.run.queue.is_simulated else "",
            ),
            css="num",
            orders={"votes": ("-board__votes", "-created_at", "pk")},
        ),
        Column(
            "Created",
            lambda line: f"{line.run.created_at:%-d %b %Y}",
            css="nowrap",
            orders={NEWEST: ("-created_at", "pk")},
        ),
        Column("", _vote_cell),
    ],
    usual=NEWEST,
    search=("name", "queue__project__name"),
)


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    require_login(request)
    visible = Run.objects.filter(queue__project__in=projects_where(request.user, "see"))
    is_archived = bool(request.GET.get("archived"))
    # The config may be large.
    rows = visible.filter(archived_at__isnull=not is_archived).defer("config")
    rows = rows.select_related("board", "queue__project")
    context: Context = {
        **RUNS.context(rows, request.GET, lambda page: _run_lines(request, page)),
        "is_archived": is_archived,
        "archived": visible.filter(archived_at__isnull=False).count(),
        "may_make": can_make_runs(request.user),
    }
    return render(request, "judge_eval/runs/runs.html", context)


def _run_lines(request: HttpRequest, page: Page[Run]) -> list[RunLine]:
    silent = queries.silent_models([run.pk for run in page])
    return [
        RunLine(
            run,
            silent.get(run.pk, []),
            run.queue.is_open
            and run.state not in (Run.State.DRAFT, Run.State.COMPLETE)
            and can(request.user, "invite", run.queue.project_id),
            can(request.user, "see calls", run.queue.project_id),
        )
        for run in page
    ]


# --- one run's progress --------------------------------------------------------------------------


def _number(title: str, name: str) -> Column[ModelCalls]:
    return Column(title, lambda calls: f"{calls[name]:,}", css="num")


def _cost(calls: ModelCalls) -> str:
    return "not known" if calls["unpriced"] else usd(Decimal(calls["nano"]) / NANO)


MODELS: Final = Listing[ModelCalls](
    "Calls by model",
    [
        Column("Model", lambda calls: name_cell(calls["model"])),
        Column("Provider", itemgetter("provider")),
        Column("Asked for", itemgetter("things")),
        _number("Calls", "total"),
        _number("Done", "done"),
        _number("Failed", "failed"),
        _number("Tokens in", "tokens_in"),
        _number("Tokens out", "tokens_out"),
        Column("Cost", _cost, css="num"),
        Column("Mean time", lambda calls: latency(calls["mean_ms"]), css="num"),
    ],
)


@run_page("see calls")
def run_progress(request: HtmxRequest, run: Run) -> HttpResponse:
    """How far a run is; htmx asks for its live part again while calls are made."""
    if run.state == Run.State.DRAFT:
        return lead_to(request, "run-draft", run)
    context = _context(run)
    if not request.htmx:
        return render(request, "judge_eval/runs/run_progress.html", context | _forms(request, run))
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    # What can be pressed stays as it is, with its focus, until it changes.
    context["is_new_stance"] = request.GET.get("stance") != context["stance"]
    return render(request, "judge_eval/runs/_progress.html", context)


def _forms(request: HttpRequest, run: Run) -> Context:
    """Return what can be changed about the judges of a run, as far as the reader may."""
    forms = _leaving_out(request, run)
    if run.state not in lifecycle.JOINABLE or not can(request.user, "run", run.queue.project_id):
        return forms
    forms["joining"] = JoiningForm(run)
    if obstacle := drift.why_unwatched(run):
        return forms | {"unwatched": obstacle}
    watching = AnchorsForm(initial={"anchors": run.anchors_a_day}, label_suffix="")
    watches = [drift.state_of(watch) for watch in drift.watches_of(run)]
    return forms | {"watching": watching, "watches": watches}


class AnchorsForm(forms.Form):
    anchors = forms.IntegerField(
        min_value=0,
        max_value=drift.MOST_A_DAY,
        label="Items to ask each judge about again, a day",
        help_text="0: none. What is asked is paid from the run's budget.",
    )


@run_action("run")
def change_anchors(request: HttpRequest, run: Run) -> HttpResponse:
    """Say how many items with votes each judge is asked about again, to notice that it changes.

    What new yardsticks take is shown first; whoever wants that says so with `asked`.
    """
    form = AnchorsForm(request.POST, label_suffix="")
    is_valid = form.is_valid()
    a_day = form.cleaned_data.get("anchors", 0)
    yardsticks = drift.yardsticks(run, a_day) if not drift.why_unwatched(run) else []
    if not is_valid or (yardsticks and "asked" not in request.POST):
        context = _context(run) | _forms(request, run)
        context |= {"watching": form, "yardsticks": yardsticks, "a_day": a_day}
        return render(
            request, "judge_eval/runs/run_progress.html", context, status=200 if is_valid else 422
        )
    drift.set_anchors(run, a_day, user_of(request))
    return redirect("run-progress", run.pk)


class LeaveOutForm(forms.Form):
    judge = forms.ModelChoiceField(Judge.objects.none())
    why = forms.CharField(max_length=LONGEST_WHY, error_messages={"required": "Say why."})

    def __init__(self, run: Run, data: QueryDict | None = None, judge: Judge | None = None) -> None:
        super().__init__(data, label_suffix="", initial={"judge": judge})
        field = cast("forms.ModelChoiceField[Judge]", self.fields["judge"])
        field.queryset = run.judges.filter(queries.counts_as_judge()).order_by("position")


def _leaving_out(request: HttpRequest, run: Run) -> Context:
    """Return who is left out, and the form that leaves out another, such as an alarm names."""
    out = {"left_out": exclusion.left_out_of(run)}
    if not can(request.user, "decide", run.queue.project_id):
        return out
    judge = None
    if named := request.GET.get("leave_out"):
        judge = run.judges.filter(Q(name=named) | Q(model=named)).order_by("position").first()
    return out | {"leaving_out": LeaveOutForm(run, judge=judge)}


@run_action("decide")
def leave_out(request: HttpRequest, run: Run) -> HttpResponse:
    form = LeaveOutForm(run, request.POST)
    if not form.is_valid():
        raise Problem(422, " ".join(str(errors[0]) for errors in form.errors.values()))
    curator = voter_of_user(run.queue.project, user_of(request))
    exclusion.leave_out(form.cleaned_data["judge"], curator, form.cleaned_data["why"])
    return redirect("run-progress", run.pk)


@run_action("decide")
def include(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    judge = get_object_or_404(run.judges, pk=judge_id)
    exclusion.include(judge, voter_of_user(run.queue.project, user_of(request)))
    return redirect("run-progress", run.pk)


def _context(run: Run) -> Context:
    progress, models = progress_of(run), queries.calls_by_model([run.pk])
    events = list(run.events.exclude(kind__in=UNLISTED_EVENTS).order_by("-pk")[:EVENTS])
    # Calls under way when a run is stopped are still written down.
    out = sum(model["out"] for model in models)
    is_waiting = out or progress.outputs.waiting or progress.calls.waiting
    failed = progress.outputs.failed + progress.calls.failed
    state = STATES.get(Run.State(run.state), "")
    status = {
        "state_in_words": run.note or state.format(noun=run.queue.noun),
        "alarms": queries.alarms(models),
        "paused": _paused(models) if is_waiting else [],
        "actions": {
            "stop": run.state in (*Run.AT_WORK, Run.State.VOTING),
            "resume": run.state == Run.State.STOPPED,
            "retry": lifecycle.can_retry(run),
            "duplicate": not run.is_given,
            "archive": run.archived_at is None,
        },
    }
    parts = [
        (name, part, 100 * part.done / part.total, 100 * part.failed / part.total)
        for name, part in (
            ("Outputs", progress.outputs),
            ("Pictures", progress.pictures),
            ("Calls for verdicts", progress.calls),
            ("Verdicts", progress.verdicts),
        )
        if part.total
    ]
    stance, counts = _digest(run.state, status), queue_counts(run.queue)
    live = {"parts": parts, "facts": _facts(run, progress, out), "table": MODELS.table(models)}
    return {
        **status,
        **live,
        "run": run,
        "tab": "run",
        "events": events,
        "counts": counts,
        "is_live": run.state in Run.AT_WORK or out > 0,
        "failed_calls": number_of(failed, "failed call") if failed else "",
        "budget": "none" if run.budget_usd is None else f"{run.budget_usd.normalize()}",
        "stance": stance,
        "seen": _digest(stance, live, counts, [event.pk for event in events]),
    }


def _paused(models: Sequence[ModelCalls]) -> list[tuple[Provider, str, datetime, str]]:
    """Return which models of a run are left alone at this moment: until when, and why."""
    now = timezone.now()
    waiting = {(calls["provider"], calls["model"]) for calls in models if calls["waiting"]}
    rows = Provider.objects.filter(name__in={name for name, _ in waiting}).order_by("name")
    return [
        (provider, model, until, provider.pauses[model]["why"])
        for provider in rows
        for model, until in sorted(leases.paused(provider, now).items())
        if (provider.name, model) in waiting
    ]


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _facts(run: Run, progress: RunProgress, out: int) -> list[tuple[str, str]]:
    at_work, left = run.state in Run.AT_WORK, progress.seconds_left
    spent = usd(progress.spent_usd)
    if progress.budget_usd is not None:
        spent = f"{spent} of {usd(progress.budget_usd)}"
    elif progress.cost_usd is None:
        spent = f"{spent}, where prices are known"
    reserved = usd(Decimal(run.reserved_nano) / NANO) if run.reserved_nano else ""
    why_drawings_wait = ""
    if progress.pictures.waiting:
        stuck = queries.used_pictures(run).filter(state=Picture.State.WAITING).exclude(error="")
        why_drawings_wait = stuck.values_list("error", flat=True).first() or ""
    facts: dict[str, int | str] = {
        "Calls in the last minute": progress.per_minute if at_work else "",
        "Time left, about": duration(left) if at_work and left else "",
        "Drawings wait": why_drawings_wait,
        "Under way": out,
        "Spent": spent if run.config else "",
        "Set aside for calls under way": reserved,
        "Tokens in": progress.tokens_in,
        "Tokens out": progress.tokens_out,
        "Attempts": progress.attempts,
        "Answered from storage": progress.reused,
        "Repaired replies": progress.repaired,
        "Mean time of a call": latency(progress.mean_latency_ms) if progress.attempts else "",
    }
    return [
        (name, value if isinstance(value, str) else f"{value:,}")
        for name, value in facts.items()
        if value
    ]


# --- what can be done with one --------------------------------------------------------------------


@run_action("run")
def act(request: HttpRequest, run: Run, action: Callable[[UUID], Run]) -> HttpResponse:
    """Do what needs no more than the run, and lead to the run that it was done with, or made."""
    done = action(run.pk)
    return redirect("run-draft" if done.state == Run.State.DRAFT else "run-progress", done.pk)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def delete_run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What goes for good and what stays, and the deletion once the run's name is typed."""
    run, wrong = find_run(run_id), ""
    require(request, "manage", run.queue.project_id)
    status = 200
    if request.method == "POST":
        try:
            deletion.delete(run.pk, request.POST.get("name", ""))
            return redirect("runs")
        except deletion.WrongName as error:
            wrong, status = str(error), 422
        except lifecycle.LifecycleRefused as refused:
            return not_now(request, run, refused)
    obstacle = deletion.in_the_way(run)
    context = {"run": run, "tab": "run", "why": obstacle, "wrong": wrong}
    context |= {"typed": request.POST.get("name", ""), **_extent_in_words(deletion.extent(run))}
    return render(request, "judge_eval/runs/delete_run.html", context, status=status)


def _extent_in_words(extent: deletion.Extent) -> dict[str, str]:
    return {
        "outputs": number_of(extent.outputs, "output"),
        "verdicts": number_of(extent.verdicts, "verdict"),
        "calls": number_of(extent.calls, "call"),
        "invites": number_of(extent.invites, "invite link"),
        "entries": f"{extent.entries:,} ledger {'entry' if extent.entries == 1 else 'entries'}",
    }


@run_action("run")
def resume_run(request: HttpRequest, run: Run) -> HttpResponse:
    try:
        budget = BUDGET.clean(request.POST.get("budget_usd"))
    except ValidationError:
        words = f"The budget must be a number above 0 and at most {MOST_USD:,}."
        back = ("Back to the run", reverse("run-progress", args=[run.pk]))
        return problem(request, 422, words, action=back)
    lifecycle.resume(run.pk, budget)
    return redirect("run-progress", run.pk)


@run_action("run")
def add_judges(request: HttpRequest, run: Run) -> HttpResponse:
    """Ask more judges about the items of a run; what cannot be is said beside its field."""
    form = JoiningForm(run, request.POST)
    if form.is_valid() and form.joining is not None:
        try:
            lifecycle.add_judges_to(run.pk, form.joining)
            return redirect("run-progress", run.pk)
        except ConfigInvalid as invalid:
            form.refuse(invalid)
    context = _context(run) | _forms(request, run) | {"joining": form}
    return render(request, "judge_eval/runs/run_progress.html", context, status=422)


class RetryForm(forms.Form):
    like = forms.ModelChoiceField(Call.objects.none(), required=False)

    def __init__(self, run: Run, data: QueryDict) -> None:
        super().__init__(data)
        calls: Any = self.fields["like"]
        calls.queryset = run.calls.filter(state=FAILED)


@run_action("run")
def retry_run(request: HttpRequest, run: Run) -> HttpResponse:
    """Ask again for all that failed, or for what failed as one call did."""
    form = RetryForm(run, request.POST)
    if not form.is_valid():
        raise Problem(422, "like: no call of this run that failed")
    if not lifecycle.retry_failed(run.pk, form.cleaned_data["like"]):
        raise lifecycle.LifecycleRefused("Nothing failed that could be asked again.")
    return redirect("run-progress", run.pk)
