"""The workshop of a run by REST: variants of a judge, tuned on half of its votes."""

from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Schema

from humanjudge.lib.validation import Name, json_schema, validated
from judge_eval.api.access import KeyRouter, Prefix, json_of, key_of, run_of
from judge_eval.config.run_config import JoiningJudges
from judge_eval.findings.few import keep_few_from
from judge_eval.models import Judge, Run
from judge_eval.runs import variants
from judge_eval.runs.lifecycle import LifecycleRefused
from voting import tuning
from voting.models import ApiKey
from voting.voters import voter_of_key

MOST_BYTES = 2_000_000
MANAGE, READ = ApiKey.Scope.MANAGE, ApiKey.Scope.READ
router = KeyRouter("runs")


class Figure(Schema):
    """An agreement with people between 0 and 1, its 95 % interval, votes; or why there is none."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    why: str | None


class Next(Schema):
    """What a variant is asked next, and what that costs at most."""

    step: Literal["first", "tuning", "all"]
    items: int
    calls: int
    usd: float | None


class Variant(Schema):
    id: UUID
    name: str
    model: str
    is_baseline: bool
    is_tuned: bool
    tuning: Figure
    self_agreement: Figure
    # Items, by position, on which it answered differently when it was asked the same again.
    flips: list[int]
    next: Next | None


class Workshop(Schema):
    """Variants, the best on the tuning half first; how often the other half was looked at."""

    is_split: bool
    is_tuning: bool
    held_out_looks: int
    variants: list[Variant]


class HeldOutFigure(Schema):
    """A variant on the half held out; `gap` is in points, tuning less held out."""

    name: str
    held_out: Figure
    gap: float | None
    held_out_looks: int


class TuningIn(Schema):
    open: bool


class OneVariant(Schema):
    variant: Name


class Asked(Schema):
    verdicts: int


@router.get("/{run_id}/variants", response=Workshop)
def list_variants(request: HttpRequest, run_id: Prefix) -> Any:
    """The judges of a run that was opened for tuning, by their agreement on the tuning half."""
    api_key = key_of(request, READ)
    run = run_of(api_key, run_id)
    keep_few_from(api_key, run)
    return _workshop(run)


def _workshop(run: Run) -> dict[str, Any]:
    # Computes with NumPy, without which web servers start.
    from judge_eval.findings.workshop import tuning_figures

    is_split = run.queue.held_out_from is not None
    return {
        "is_split": is_split,
        "is_tuning": run.queue.is_tuning,
        "held_out_looks": len(tuning.looks_at(run.queue)) if is_split else 0,
        "variants": [
            {
                "id": each.judge.pk,
                "name": each.judge.name,
                "model": each.judge.model,
                "is_baseline": each.judge.is_baseline,
                "is_tuned": each.judge.is_tuned,
                "tuning": each.overall,
                "self_agreement": each.repeats.share,
                "flips": each.repeats.flips,
                "next": (
                    variants.next_step(run, each.judge)
                    if run.queue.is_tuning and each.judge.is_tuned
                    else None
                ),
            }
            for each in (tuning_figures(run) if is_split else [])
        ],
    }


@router.post(
    "/{run_id}/variants",
    response=Workshop,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": json_schema(JoiningJudges)}},
        }
    },
)
def add_variants(request: HttpRequest, run_id: Prefix) -> Any:
    """Let variants join a run whose tuning is open; they are asked nothing yet."""
    run = _run(request, run_id)
    variants.add(run, validated(JoiningJudges, json_of(request, MOST_BYTES)))
    return _workshop(Run.objects.select_related("queue__project", "queue__rubric").get(pk=run.pk))


@router.post("/{run_id}/variants/tuning", response=Workshop)
def set_tuning(request: HttpRequest, run_id: Prefix, body: TuningIn) -> Any:
    """Open a run for tuning, once: half of its prompts is held out; or end that for good."""
    run = _run(request, run_id)
    by = voter_of_key(run.queue.project_id, key_of(request, MANAGE))
    (variants.open_for_tuning if body.open else variants.end)(run, by)
    return _workshop(Run.objects.select_related("queue__project", "queue__rubric").get(pk=run.pk))


@router.post("/{run_id}/variants/ask", response=Asked)
def ask_variant(request: HttpRequest, run_id: Prefix, body: OneVariant) -> Any:
    """Ask a variant its next step: 20 items of the tuning half, that half, then all items."""
    run = _run(request, run_id)
    judge = _judge(run, body.variant)
    step = variants.next_step(run, judge)
    if step is None:
        raise LifecycleRefused(f"{judge.name} was asked about all items.")
    return {"verdicts": variants.ask(run, judge, step.step)}


@router.post("/{run_id}/variants/look", response=HeldOutFigure)
def look_at_held_out(request: HttpRequest, run_id: Prefix, body: OneVariant) -> Any:
    """A variant's figure on the half held out. Each look is an entry of the ledger."""
    from judge_eval.findings import workshop

    run = _run(request, run_id)
    by = voter_of_key(run.queue.project_id, key_of(request, MANAGE))
    held = workshop.look_at_held_out(run, _judge(run, body.variant), by)
    figures = {"held_out": held.overall, "gap": held.gap, "held_out_looks": held.looks}
    return {"name": held.judge.name, **figures}


def _run(request: HttpRequest, run_id: str) -> Run:
    return run_of(key_of(request, MANAGE), run_id, "run")


def _judge(run: Run, name: str) -> Judge:
    judge = run.judges.filter(name=name, is_tuned=True).first()
    if judge is None:
        raise LifecycleRefused(f"This run has no variant named {name}.")
    return judge
