"""How far a run is, in words and bars; the models that are asked, and the calls that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Avg, Count, Exists, OuterRef, Q, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib.leases import held
from humanjudge.lib.text import duration, latency, number_of, usd
from judge_eval.access import pairs_to_vote_on, refuse_calls, refuse_pair
from judge_eval.models import Call, Provider, Run, RunEvent, Verdict
from judge_eval.pages.runs import DONE, FAILED, WAITING, alarms, find_run
from judge_eval.runs import lifecycle, limits, providers
from judge_eval.runs.progress import Part, RunProgress, progress_of
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


@never_cache
@require_safe
def run_progress(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """How far a run is; htmx asks for its live part again while calls are made."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    if run.state == Run.State.DRAFT:
        draft = reverse("run-draft", args=[run.pk])
        return HttpResponseClientRedirect(draft) if request.htmx else redirect(draft)
    context = progress_context(run)
    if not request.htmx:
        return render(request, "judge_eval/run_progress.html", context)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    # What can be pressed stays as it is, with its focus, until it changes.
    context["is_new_stance"] = request.GET.get("stance") != context["stance"]
    return render(request, "judge_eval/_progress.html", context)


def progress_context(run: Run) -> dict[str, Any]:
    """Return all that the live part of the progress page shows."""
    progress, models = progress_of(run), calls_by_model(run)
    listed = run.events.exclude(kind__in=UNLISTED_EVENTS).order_by("-pk")
    latest: list[RunEvent] = list(listed[:EVENTS])
    reserved = Decimal(run.reserved_nano) / providers.NANO
    # Calls that are out when a run is stopped are still written down.
    out = sum(line.out for line in models)
    actions = _actions(run)
    silent = alarms([run]).get(run.pk, [])
    paused = _paused(models) if out or progress.outputs.waiting or progress.calls.waiting else []
    failed = progress.outputs.failed + progress.calls.failed
    stance = _digest(run.state, run.note, actions, silent, paused)
    return {
        "run": run,
        "tab": "progress",
        "state_in_words": run.note or STATES.get(Run.State(run.state), ""),
        "is_live": run.state in Run.AT_WORK or out > 0,
        "progress": progress,
        "parts": _parts(run, progress),
        "facts": _facts(run, progress, reserved, out),
        "models": models,
        "events": latest,
        "failed_calls": number_of(failed, "failed call") if failed else "",
        "budget": "none" if progress.budget_usd is None else f"{progress.budget_usd.normalize()}",
        "alarms": silent,
        "paused": paused,
        "actions": actions,
        "stance": stance,
        "seen": _digest(stance, progress, models, reserved, [event.pk for event in latest]),
    }


@dataclass(frozen=True)
class ShownPart:
    """One kind of work, of which there is some, as a bar: shares in percent."""

    name: str
    part: Part

    @property
    def done_share(self) -> float:
        return 100 * self.part.done / self.part.total

    @property
    def failed_share(self) -> float:
        return 100 * self.part.failed / self.part.total

    @property
    def numbers(self) -> list[str]:
        part = self.part
        return [f"{n:,}" for n in (part.done, part.failed, part.waiting, part.total)]


@dataclass(frozen=True)
class ModelCalls:
    """What one model was asked in one role."""

    purpose: str
    provider: str
    model: str
    done: int
    failed: int
    waiting: int
    # Of those that wait: being made at this moment.
    out: int
    tokens_in: int
    tokens_out: int
    # None as soon as one call has no known price.
    cost_nano: int | None
    mean_latency_ms: float | None

    @property
    def total(self) -> int:
        return self.done + self.failed + self.waiting

    @property
    def numbers(self) -> list[str]:
        tokens = (self.tokens_in, self.tokens_out)
        return [f"{n:,}" for n in (self.total, self.done, self.failed, *tokens)]

    @property
    def cost(self) -> str:
        nano = self.cost_nano
        return "not known" if nano is None else usd(Decimal(nano) / providers.NANO)

    @property
    def latency(self) -> str:
        return latency(self.mean_latency_ms)


def calls_by_model(run: Run) -> list[ModelCalls]:
    """Return a line for each model and role, those that generate first."""
    rows = (
        run.calls.values("purpose", "provider", "model")
        .annotate(
            done=Count("pk", filter=Q(state=DONE)),
            failed=Count("pk", filter=Q(state=FAILED)),
            waiting=Count("pk", filter=Q(state=WAITING)),
            out=Count("pk", filter=held() & Q(state=WAITING)),
            tokens_in=Sum("prompt_tokens", default=0),
            tokens_out=Sum("completion_tokens", default=0),
            cost=Sum("cost_nano", default=0),
            unpriced=Count("pk", filter=Q(state=DONE, cost_nano=None, reused=None)),
            mean_latency_ms=Avg("latency_ms"),
        )
        .order_by("purpose", "provider", "model")
    )
    return [_model_calls(dict(row)) for row in rows]


def _model_calls(row: dict[str, Any]) -> ModelCalls:
    cost, unpriced = row.pop("cost"), row.pop("unpriced")
    return ModelCalls(**row, cost_nano=None if unpriced else cost)


@dataclass(frozen=True)
class Paused:
    """A model that is left alone for a while, and why."""

    provider: str
    model: str
    until: datetime
    why: str


def _paused(models: Sequence[ModelCalls]) -> list[Paused]:
    """Return which models of a run are left alone at this moment."""
    now = timezone.now()
    wanted = {(line.provider, line.model) for line in models if line.waiting}
    rows = Provider.objects.filter(name__in={name for name, _ in wanted}).order_by("name")
    return [
        Paused(provider.name, model, until, provider.pauses[model]["why"])
        for provider in rows
        for model, until in sorted(limits.paused(provider, now).items())
        if (provider.name, model) in wanted
    ]


def _digest(*shown: object) -> str:
    return sha256(repr(shown).encode()).hexdigest()[:16]


def _parts(run: Run, progress: RunProgress) -> list[ShownPart]:
    parts = {
        "Outputs": progress.outputs,
        "Pictures": progress.pictures,
        "Calls for verdicts": progress.calls,
        "Verdicts": progress.verdicts,
    }
    return [ShownPart(name, part) for name, part in parts.items() if part.total]


def _facts(run: Run, progress: RunProgress, reserved: Decimal, out: int) -> list[tuple[str, str]]:
    """Return the figures that are worth saying now, each with its name."""
    at_work, left = run.state in Run.AT_WORK, progress.seconds_left
    facts = {
        "Calls in the last minute": _count(progress.per_minute) if at_work else "",
        "Time left, about": duration(left) if at_work and left else "",
        "Drawings wait": _why_drawings_wait(run) if progress.pictures.waiting else "",
        "Under way": _count(out),
        "Spent": _spent(progress),
        "Set aside for calls under way": usd(reserved) if reserved else "",
        "Tokens in": _count(progress.tokens_in),
        "Tokens out": _count(progress.tokens_out),
        "Attempts": _count(progress.attempts),
        "Answered from storage": _count(progress.reused),
        "Asked once more to be read": _count(progress.repaired),
        "Mean time of a call": latency(progress.mean_latency_ms) if progress.attempts else "",
    }
    return [(name, value) for name, value in facts.items() if value]


def _why_drawings_wait(run: Run) -> str:
    """Return what keeps this machine from drawing, empty where nothing does."""
    stuck = used_pictures(run).filter(state=Picture.State.WAITING).exclude(error="")
    return stuck.values_list("error", flat=True).first() or ""


def _count(number: int) -> str:
    return f"{number:,}" if number else ""


def _spent(progress: RunProgress) -> str:
    spent = usd(progress.spent_usd)
    if progress.budget_usd is not None:
        return f"{spent} of {usd(progress.budget_usd)}"
    return spent if progress.cost_usd is not None else f"{spent}, where prices are known"


def _actions(run: Run) -> dict[str, bool]:
    """Say which of the buttons can be pressed."""
    has_config = run.config is not None
    return {
        "stop": run.state in (*Run.AT_WORK, Run.State.VOTING),
        "resume": run.state == Run.State.STOPPED,
        "retry": lifecycle.can_retry(run),
        "duplicate": has_config,
    }


@never_cache
@require_safe
def run_calls(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The calls that failed, each with its reason."""
    run = find_run(run_id)
    refused = refuse_calls(request, run)
    if refused is not None:
        return refused
    page = Paginator(failed_calls(run), CALLS_PER_PAGE).get_page(request.GET.get("page"))
    verdicts = list(failed_verdicts(run)[: MOST_VERDICTS + 1])
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


def failed_calls(run: Run) -> QuerySet[Call]:
    """Calls that failed for good, the latest first, without their long replies."""
    return (
        run.calls.filter(state=FAILED)
        .select_related("verdict__item")
        .defer("reply")
        .order_by("-pk")
    )


def failed_verdicts(run: Run) -> QuerySet[Verdict]:
    """Verdicts that failed although no call did: a baseline's, or orders that do not fit."""
    failed = Call.objects.filter(verdict=OuterRef("pk"), state=FAILED)
    return (
        Verdict.objects.filter(
            ~Exists(failed), judge__run=run, state=Verdict.State.FAILED, item__unusable=""
        )
        .select_related("judge", "item")
        .order_by("-pk")
    )


@never_cache
@require_safe
def run_call(request: HtmxRequest, run_id: UUID, call_id: int) -> HttpResponse:
    """The raw reply of a call; what a judge said only to who may see its pair."""
    run = find_run(run_id)
    calls = Call.objects.select_related("verdict__item").exclude(state=Call.State.WAITING)
    call = get_object_or_404(calls, pk=call_id, run=run)
    refused = refuse_calls(request, run)
    if refused is None and call.verdict is not None:
        refused = refuse_pair(request, run, call.verdict.item)
    if refused is not None:
        return refused
    if pairs_to_vote_on(request, run, pairs_with(call.inference_id)):
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


def pairs_with(output: UUID | None) -> list[UUID]:
    """Return the pairs that an output is in."""
    pairs = Item.objects.filter(Q(a=output) | Q(b=output)) if output else Item.objects.none()
    return list(pairs.values_list("pk", flat=True))
