"""From outputs to pairs, and from pairs to the calls that ask for verdicts on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from humanjudge.lib.leases import free
from judge_eval.config.run_config import RunConfig
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.providers.errors import CallFailed
from judge_eval.runs import results
from judge_eval.services import add_items, all_pairs
from voting.models import Inference, Item, Picture
from voting.order import keyed_number

# The run is locked meanwhile, and those who write answers down may have to wait for it.
PROMPTS_AT_ONCE = 50
VERDICTS_AT_ONCE = 250


def pair_outputs(run: Run, config: RunConfig) -> bool:
    """Pair the outputs of prompts that every model has answered, or failed to; each pair once.

    Return whether there may be more to pair.
    """
    generating = run.calls.filter(purpose=Call.Purpose.GENERATE)
    open_prompts = generating.filter(prompt=OuterRef("prompt"), state=Call.State.WAITING)
    fresh = generating.filter(~Exists(open_prompts), is_paired=False)
    prompts = fresh.order_by("prompt").values_list("prompt", flat=True).distinct()[:PROMPTS_AT_ONCE]
    if not prompts:
        return False
    of_prompts = generating.filter(prompt__in=list(prompts))
    items = add_items(run.queue, _missing_pairs(run, of_prompts))
    # The judges of the config, not those that a changed model became meanwhile.
    judges = list(run.judges.order_by("position")[: len(config.judges)])
    Verdict.objects.bulk_create(
        [Verdict(judge=judge, item=item) for item in items for judge in judges], batch_size=1000
    )
    of_prompts.update(is_paired=True)
    return len(prompts) == PROMPTS_AT_ONCE


def _missing_pairs(run: Run, calls: QuerySet[Call]) -> list[tuple[Inference, Inference]]:
    outputs: dict[int | None, dict[UUID, Inference]] = defaultdict(dict)
    for call in calls.filter(state=Call.State.DONE).select_related("inference").order_by("pk"):
        assert call.inference is not None  # it is done
        outputs[call.prompt][call.inference.pk] = call.inference
    made = [pk for by_pk in outputs.values() for pk in by_pk]
    pairs = Item.objects.filter(queue=run.queue_id, a__in=made).values_list("a", "b")
    paired = set(map(frozenset, pairs))
    return [
        (by_pk[a], by_pk[b])
        for by_pk in outputs.values()
        for a, b in all_pairs(list(by_pk), settings.SECRET_KEY)
        if frozenset((a, b)) not in paired
    ]


def unasked_verdicts(run: Run) -> QuerySet[Verdict]:
    """Return the verdicts of models for which no call has been made."""
    asked = Call.objects.filter(verdict=OuterRef("pk"))
    waiting = Verdict.objects.filter(~Exists(asked), judge__run=run, state=Verdict.State.WAITING)
    return waiting.exclude(judge__provider=Judge.BASELINE)


def ask_for_verdicts(run: Run, config: RunConfig) -> bool:
    """Make the calls for verdicts on pairs that are drawn; return whether there may be more."""
    undrawn = Picture.objects.exclude(state=Picture.State.DONE)
    ready = (
        unasked_verdicts(run)
        .exclude(item__a__picture__in=undrawn)
        .exclude(item__b__picture__in=undrawn)
        .select_related("judge", "item__a", "item__b")
        .defer("item__a__output", "item__b__output")
        .order_by("pk")[:VERDICTS_AT_ONCE]
    )
    Call.objects.bulk_create(
        [
            Call(
                run=run,
                purpose=Call.Purpose.JUDGE,
                provider=verdict.judge.provider,
                model=verdict.judge.model,
                verdict=verdict,
                order=order,
                sample=sample,
            )
            for verdict in ready
            for order in orders_of(verdict, config.verdict_orders)
            for sample in range(config.judging.samples)
        ],
        batch_size=1000,
    )
    return len(ready) == VERDICTS_AT_ONCE


def orders_of(verdict: Verdict, verdict_orders: str) -> Sequence[str]:
    """Return the orders in which a judge is shown a pair: both, or one that is drawn for ever."""
    if verdict_orders == "both":
        return ("AB", "BA")
    a, b = verdict.item.pair
    # Not by their numbers: a copy of the run shows the same first, and finds the stored reply.
    first, second = sorted((a, b), key=lambda output: output.generator)
    names = (verdict.judge.name, a.prompt, first.generator, second.generator)
    shown_first = second if keyed_number(settings.SECRET_KEY, "order", *names) & 1 else first
    return ("AB",) if shown_first is a else ("BA",)


def fail_without_provider(run: Run) -> None:
    """Fail calls whose provider is gone: nobody would ever claim them."""
    gone = (
        run.calls.filter(free(timezone.now()), state=Call.State.WAITING)
        .exclude(provider__in=Provider.objects.values("name"))
        .select_for_update(no_key=True, skip_locked=True)
    )
    for call in gone.order_by("pk")[:VERDICTS_AT_ONCE]:
        results.give_up(call, CallFailed(f"there is no provider named {call.provider}"))
