"""How far a run is, in words and bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any

from django.utils import timezone

from humanjudge.lib.text import duration, latency, number_of, usd
from judge_eval.models import Provider, Run, RunEvent
from judge_eval.pages.calls_list import ModelCalls, alarms, calls_by_model
from judge_eval.runs import lifecycle, limits, providers
from judge_eval.runs.progress import Part, RunProgress, progress_of
from judge_eval.selectors import used_pictures
from voting.models import Picture

EVENTS = 8
# They have lists of their own.
UNLISTED_EVENTS = ("call_failed", "tried")
STATES = {
    Run.State.GENERATING: "Outputs are being asked for.",
    Run.State.JUDGING: "Outputs are drawn, paired and judged.",
    Run.State.VOTING: "Every pair that can be voted on is open.",
    Run.State.COMPLETE: "Every pair has enough votes.",
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
class ShownModel:
    """One model in one role, in words."""

    calls: ModelCalls

    @property
    def numbers(self) -> list[str]:
        calls = self.calls
        tokens = (calls.tokens_in, calls.tokens_out)
        return [f"{n:,}" for n in (calls.total, calls.done, calls.failed, *tokens)]

    @property
    def cost(self) -> str:
        nano = self.calls.cost_nano
        return "not known" if nano is None else usd(Decimal(nano) / providers.NANO)

    @property
    def latency(self) -> str:
        return latency(self.calls.mean_latency_ms)


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
        "models": [ShownModel(line) for line in models],
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
