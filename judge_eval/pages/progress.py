"""How far a run is, in words and bars; the models that are asked, and the calls that failed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from hashlib import sha256

from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.http import Context, HtmxRequest, Problem
from humanjudge.lib.text import duration, latency, number_of, usd
from judge_eval.access import pairs_to_vote_on, refusal
from judge_eval.models import Call, Provider, Run, Verdict
from judge_eval.pages.runs import FAILED, WAITING, alarms, calls_by_model, run_page
from judge_eval.runs import leases, lifecycle
from judge_eval.runs.progress import RunProgress, progress_of
from judge_eval.runs.providers import NANO
from judge_eval.selectors import used_pictures
from voting.models import Item, Picture

CALLS_PER_PAGE = 50
MOST_VERDICTS = 50
LONGEST_SHOWN_REPLY = 20_000
EVENTS = 8
# They have lists of their own.
UNLISTED_EVENTS = ("call_failed", "tried")
STATES = {
    Run.State.GENERATING: "Outputs are being asked for.",
    Run.State.JUDGING: "Outputs are drawn, paired and judged.",
    Run.State.VOTING: "Every pair that can be voted on is open.",
    Run.State.COMPLETE: "Every pair has enough votes.",
}


@run_page("see calls")
def run_progress(request: HtmxRequest, run: Run) -> HttpResponse:
    """How far a run is; htmx asks for its live part again while calls are made."""
    if run.state == Run.State.DRAFT:
        draft = reverse("run-draft", args=[run.pk])
        return HttpResponseClientRedirect(draft) if request.htmx else redirect(draft)
    context = _context(run)
    if not request.htmx:
        return render(request, "judge_eval/run_progress.html", context)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    # What can be pressed stays as it is, with its focus, until it changes.
    context["is_new_stance"] = request.GET.get("stance") != context["stance"]
    return render(request, "judge_eval/_progress.html", context)


def _context(run: Run) -> Context:
    """Return all that the live part of the page shows."""
    progress, models = progress_of(run), calls_by_model([run.pk])
    events = list(run.events.exclude(kind__in=UNLISTED_EVENTS).order_by("-pk")[:EVENTS])
    for row in models:
        row["cost"] = "not known" if row["unpriced"] else usd(Decimal(row["nano"]) / NANO)
        row["latency"] = latency(row["mean_ms"])
    # Calls that are out when a run is stopped are still written down.
    out = sum(model["out"] for model in models)
    is_waiting = out or progress.outputs.waiting or progress.calls.waiting
    failed = progress.outputs.failed + progress.calls.failed
    shown = {
        "state_in_words": run.note or STATES.get(Run.State(run.state), ""),
        "alarms": alarms(models),
        "paused": _paused(models) if is_waiting else [],
        "actions": {
            "stop": run.state in (*Run.AT_WORK, Run.State.VOTING),
            "resume": run.state == Run.State.STOPPED,
            "retry": lifecycle.can_retry(run),
            "duplicate": run.config is not None,
        },
    }
    parts = {
        "Outputs": progress.outputs,
        "Pictures": progress.pictures,
        "Calls for verdicts": progress.calls,
        "Verdicts": progress.verdicts,
    }
    facts, stance = _facts(run, progress, out), _digest(run.state, shown)
    return shown | {
        "run": run,
        "tab": "progress",
        "is_live": run.state in Run.AT_WORK or out > 0,
        "parts": [
            (name, part, 100 * part.done / part.total, 100 * part.failed / part.total)
            for name, part in parts.items()
            if part.total
        ],
        "facts": facts,
        "models": models,
        "events": events,
        "failed_calls": number_of(failed, "failed call") if failed else "",
        "budget": "none" if run.budget_usd is None else f"{run.budget_usd.normalize()}",
        "stance": stance,
        "seen": _digest(stance, parts, facts, models, [event.pk for event in events]),
    }


def _paused(models: Sequence[Context]) -> list[tuple[Provider, str, datetime, str]]:
    """Return which models of a run are left alone at this moment: until when, and why."""
    now = timezone.now()
    wanted = {(each["provider"], each["model"]) for each in models if each["waiting"]}
    rows = Provider.objects.filter(name__in={name for name, _ in wanted}).order_by("name")
    return [
        (provider, model, until, provider.pauses[model]["why"])
        for provider in rows
        for model, until in sorted(leases.paused(provider, now).items())
        if (provider.name, model) in wanted
    ]


def _digest(*shown: object) -> str:
    return sha256(repr(shown).encode()).hexdigest()[:16]


def _facts(run: Run, progress: RunProgress, out: int) -> list[tuple[str, str]]:
    """Return the figures that are worth saying now, each with its name."""
    at_work, left = run.state in Run.AT_WORK, progress.seconds_left
    spent = usd(progress.spent_usd)
    if progress.budget_usd is not None:
        spent = f"{spent} of {usd(progress.budget_usd)}"
    elif progress.cost_usd is None:
        spent = f"{spent}, where prices are known"
    reserved = usd(Decimal(run.reserved_nano) / NANO) if run.reserved_nano else ""
    why_drawings_wait = ""
    if progress.pictures.waiting:
        stuck = used_pictures(run).filter(state=Picture.State.WAITING).exclude(error="")
        why_drawings_wait = stuck.values_list("error", flat=True).first() or ""
    facts: dict[str, int | str] = {
        "Calls in the last minute": progress.per_minute if at_work else "",
        "Time left, about": duration(left) if at_work and left else "",
        "Drawings wait": why_drawings_wait,
        "Under way": out,
        "Spent": spent,
        "Set aside for calls under way": reserved,
        "Tokens in": progress.tokens_in,
        "Tokens out": progress.tokens_out,
        "Attempts": progress.attempts,
        "Answered from storage": progress.reused,
        "Asked once more to be read": progress.repaired,
        "Mean time of a call": latency(progress.mean_latency_ms) if progress.attempts else "",
    }
    return [
        (name, value if isinstance(value, str) else f"{value:,}")
        for name, value in facts.items()
        if value
    ]


@run_page("see calls")
def run_calls(request: HtmxRequest, run: Run) -> HttpResponse:
    """The calls that failed for good, each with its reason, without their long replies."""
    calls = run.calls.filter(state=FAILED).select_related("verdict__item").defer("reply")
    page = Paginator(calls.order_by("-pk"), CALLS_PER_PAGE).get_page(request.GET.get("page"))
    # Verdicts that failed although no call did: a baseline's, or orders that do not fit.
    no_call = ~Exists(Call.objects.filter(verdict=OuterRef("pk"), state=FAILED))
    failed = Verdict.objects.filter(
        no_call, judge__run=run, state=Verdict.State.FAILED, item__unusable=""
    )
    latest = failed.select_related("judge", "item").order_by("-pk")
    verdicts = list(latest[: MOST_VERDICTS + 1])
    about = [call.verdict.item_id for call in page if call.verdict is not None]
    context = {
        "run": run,
        "page": page,
        "verdicts": verdicts[:MOST_VERDICTS],
        "has_more_verdicts": len(verdicts) > MOST_VERDICTS,
        "closed": pairs_to_vote_on(request, run, [*about, *(v.item_id for v in verdicts)]),
        "tab": "progress",
    }
    return render(request, "judge_eval/calls.html", context)


@run_page("see calls")
def run_call(request: HtmxRequest, run: Run, call_id: int) -> HttpResponse:
    """The raw reply of a call; what a judge said only to who may see its pair."""
    calls = Call.objects.select_related("verdict__item").exclude(state=WAITING)
    call = get_object_or_404(calls, pk=call_id, run=run)
    if call.verdict and (refused := refusal(request, "see pair", run, call.verdict.item)):
        return refused
    output = call.inference_id
    pairs = Item.objects.filter(Q(a=output) | Q(b=output)) if output else Item.objects.none()
    if pairs_to_vote_on(request, run, list(pairs.values_list("pk", flat=True))):
        raise Problem(403, "You have this output open for voting; who made it is shown after that.")
    context = {
        "run": run,
        "call": call,
        "reply": call.reply[:LONGEST_SHOWN_REPLY],
        "is_cut": len(call.reply) >= LONGEST_SHOWN_REPLY,
        "tab": "progress",
    }
    template = "judge_eval/_reply.html" if request.htmx else "judge_eval/call.html"
    return render(request, template, context)
