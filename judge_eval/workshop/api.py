from typing import Any, Literal
from uuid import UUID

from django.http import HttpRequest
from ninja import Schema

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import Name, json_schema, validated
from judge_eval.board.few import require_votes_first
from judge_eval.judging.config.run_config import DEFAULT_PROVIDER, JoiningJudges
from judge_eval.models import Judge, Run
from judge_eval.runs.api_access import KeyRouter, Prefix, json_of, key_of, run_of
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.workshop import disagreements, services, suggestion
from judge_eval.workshop.findings import VariantFigure, tuning_figures
from judge_eval.workshop.findings import look_at_held_out as look_at
from judge_eval.workshop.held_out_check import HeldOutComparison
from voting.ballot import tuning
from voting.models import ApiKey
from voting.people.voters import voter_of_key

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
    """Variants, the best on the tuning half first; how often the other half was looked at.

    While newer votes or verdicts are counted, figures are `behind`: ask again.
    """

    is_split: bool
    is_tuning: bool
    held_out_looks: int
    # The judge that variants are held against, if there is one.
    in_use: str | None
    behind: bool
    variants: list[Variant]


class TagCounts(Schema):
    judge: str
    version: int
    judge_wrong: int
    vote_slip: int
    rubric_unclear: int
    both_fine: int


class CheckedVariant(HeldOutComparison, Schema):
    """A variant less the judge in use on the same held-out items: shares, a difference, evidence.

    It takes evidence of `needed`, 20 for each variant looked at so far. `votes_missing` are from
    how many to how many more votes that takes; an open end is null.
    """

    verb: Literal["keep", "drop", "wait"]


class HeldOutFigure(Schema):
    """A variant on the half held out; `gap` is in points, tuning less held out.

    `check` holds it against the judge `in_use`; it is null where that is none, or the same.
    """

    name: str
    held_out: Figure
    gap: float | None
    held_out_looks: int
    in_use: str | None
    check: CheckedVariant | None


class OneDisagreement(Schema):
    """What a variant and most people say of an item of the tuning half, and its tag, if any."""

    item: UUID
    position: int
    verdict: str
    people: str
    reason: str
    tag: str | None


class Disagreements(Schema):
    """The 30 most disputed; and how many of all have each tag, by the rubric's version."""

    disagreements: list[OneDisagreement]
    tags: list[TagCounts]


class SuggestedWording(Schema):
    """Instructions to be edited as those of a new variant; both texts are empty while asked."""

    variant: str
    model: str
    instructions: str
    error: str


class TuningIn(Schema):
    open: bool


class OneVariant(Schema):
    variant: Name


class DecisionIn(OneVariant):
    use: bool


class TagIn(OneVariant):
    item: UUID
    tag: Literal["judge_wrong", "vote_slip", "rubric_unclear", "both_fine"]


class SuggestIn(OneVariant):
    provider: Name = DEFAULT_PROVIDER
    model: Name


class Asked(Schema):
    verdicts: int


@router.get("/{run_id}/variants", response=Workshop)
def list_variants(request: HttpRequest, run_id: Prefix) -> Any:
    """The judges of a run that was opened for tuning, by their agreement on the tuning half."""
    api_key = key_of(request, READ)
    run = run_of(api_key, run_id)
    require_votes_first(api_key, run)
    return _workshop(run)


def _workshop(run: Run) -> JsonObject:
    is_split = run.queue.held_out_from is not None
    workshop_figures = tuning_figures(run)
    figures, behind, _ = workshop_figures
    history = tuning.tuning_history(run.queue)
    judge_in_use = workshop_figures.in_use(history.in_use)
    judges = [figure.judge for figure in figures]
    steps = services.next_steps(run, judges) if run.queue.is_tuning else {}
    return {
        "is_split": is_split,
        "is_tuning": run.queue.is_tuning,
        "held_out_looks": len(history.looks),
        "in_use": judge_in_use and judge_in_use.name,
        "behind": behind,
        "variants": [_variant(figure, steps.get(figure.judge.pk)) for figure in figures],
    }


def _variant(figure: VariantFigure, step: services.NextStep | None) -> JsonObject:
    judge = figure.judge
    facts = {name: getattr(judge, name) for name in ("name", "model", "is_baseline", "is_tuned")}
    return facts | {
        "id": judge.pk,
        "tuning": figure.overall,
        "self_agreement": figure.itself,
        "flips": figure.flips,
        "next": step,
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
    services.add(run, validated(JoiningJudges, json_of(request, MOST_BYTES)))
    return _workshop(Run.objects.select_related("queue__project", "queue__rubric").get(pk=run.pk))


@router.post("/{run_id}/variants/tuning", response=Workshop)
def set_tuning(request: HttpRequest, run_id: Prefix, body: TuningIn) -> Any:
    """Open a run for tuning, once: half of its prompts is held out; or end that for good."""
    run = _run(request, run_id)
    voter = voter_of_key(run.queue.project_id, key_of(request, MANAGE))
    (services.open_for_tuning if body.open else services.end)(run, voter)
    return _workshop(Run.objects.select_related("queue__project", "queue__rubric").get(pk=run.pk))


@router.post("/{run_id}/variants/ask", response=Asked)
def ask_variant(request: HttpRequest, run_id: Prefix, body: OneVariant) -> Any:
    """Ask a variant its next step: 20 items of the tuning half, that half, then all items."""
    run = _run(request, run_id)
    judge = _judge(run, body.variant)
    step = services.next_step(run, judge)
    if step is None:
        raise LifecycleRefused(f"{judge.name} was asked about all items.")
    return {"verdicts": services.ask(run, judge, step.step)}


@router.post("/{run_id}/variants/look", response=HeldOutFigure)
def look_at_held_out(request: HttpRequest, run_id: Prefix, body: OneVariant) -> Any:
    """A variant's figure on the half held out, and how it stands to the judge in use there.

    Each look is an entry of the ledger.
    """
    run = _run(request, run_id)
    voter = voter_of_key(run.queue.project_id, key_of(request, MANAGE))
    look = look_at(run, _judge(run, body.variant), voter)
    figures = {"held_out": look.overall, "gap": look.gap, "held_out_looks": look.looks}
    in_use = look.in_use and look.in_use.name
    return {"name": look.judge.name, **figures, "in_use": in_use, "check": look.check}


@router.post("/{run_id}/variants/decide", response=Workshop)
def decide_on_variant(request: HttpRequest, run_id: Prefix, body: DecisionIn) -> Any:
    """Keep a judge as the one in use, which ends no tuning; or drop a variant."""
    run = _run(request, run_id)
    voter = voter_of_key(run.queue.project_id, key_of(request, MANAGE))
    if body.use:
        judges = run.judges.exclude(provider=Judge.BASELINE)
        services.use(
            run, judges.filter(name=body.variant).first() or _judge(run, body.variant), voter
        )
    else:
        services.drop(run, _judge(run, body.variant), voter)
    return _workshop(run)


@router.get("/{run_id}/variants/disagreements", response=Disagreements)
def list_disagreements(request: HttpRequest, run_id: Prefix, variant: str = "") -> Any:
    """Where a variant and most people disagree on the tuning half."""
    run = _run(request, run_id)
    return _disagreements(key_of(request), _judge(run, variant))


def _disagreements(key: ApiKey, judge: Judge) -> JsonObject:
    rows = [
        {
            "item": disagreement.verdict.item_id,
            "position": disagreement.verdict.item.position,
            "verdict": disagreement.verdict.winner,
            "people": disagreement.people,
            "reason": disagreement.verdict.feedback,
            "tag": disagreement.tag and disagreement.tag.tag,
        }
        for disagreement in disagreements.visible_disagreements(key, judge)
    ]
    return {"disagreements": rows, "tags": disagreements.tag_counts(judge.run)}


@router.post("/{run_id}/variants/tag", response=Disagreements)
def tag_disagreement(request: HttpRequest, run_id: Prefix, body: TagIn) -> Any:
    """Say what one makes of a disagreement. A slip of a vote is put before the curators."""
    run, key = _run(request, run_id), key_of(request)
    judge, voter = _judge(run, body.variant), voter_of_key(run.queue.project_id, key)
    disagreements.tag_disagreement(key, judge, body.item, body.tag, voter)
    return _disagreements(key, judge)


@router.get("/{run_id}/variants/suggestion", response=SuggestedWording)
def get_suggestion(request: HttpRequest, run_id: Prefix) -> Any:
    """The wording that was suggested last."""
    return _suggestion_facts(_run(request, run_id))


def _suggestion_facts(run: Run) -> JsonObject:
    last = suggestion.latest(run)
    if last is None:
        raise LifecycleRefused("No wording was suggested in this run.")
    texts = {"instructions": last.text, "error": last.error}
    return {"variant": last.judge.name, "model": last.model, **texts}


@router.post("/{run_id}/variants/suggestion", response=SuggestedWording)
def suggest_wording(request: HttpRequest, run_id: Prefix, body: SuggestIn) -> Any:
    """Let a model word a variant's instructions anew, by its tagged disagreements: one call."""
    run = _run(request, run_id)
    suggestion.suggest(run, _judge(run, body.variant), body.provider, body.model)
    return _suggestion_facts(run)


def _run(request: HttpRequest, run_id: str) -> Run:
    return run_of(key_of(request, MANAGE), run_id, "run")


def _judge(run: Run, name: str) -> Judge:
    judge = run.judges.filter(name=name, is_tuned=True).first()
    if judge is None:
        raise LifecycleRefused(f"This run has no variant named {name}.")
    return judge
