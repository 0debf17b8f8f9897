"""From outputs to pairs, and from pairs to the calls that ask for verdicts on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from humanjudge.lib.leases import free
from judge_eval.config.run_config import RunConfig
from judge_eval.models import Call, Judge, Provider, Run, Verdict
from judge_eval.runs import leases
from judge_eval.runs.bulk import add_rows
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
    comparisons = add_items(run.queue, _missing_pairs(run, of_prompts))
    judges = _judges(run, config)
    asked = [(judge.pk, pair.pk) for pair in comparisons for judge in judges]
    add_rows(Verdict, ("judge", "item"), asked)
    of_prompts.update(is_paired=True)
    return len(prompts) == PROMPTS_AT_ONCE


def _missing_pairs(run: Run, calls: QuerySet[Call]) -> list[tuple[Inference, Inference]]:
    outputs: dict[int | None, list[Inference]] = defaultdict(list)
    for call in calls.filter(state=Call.State.DONE).select_related("inference").order_by("pk"):
        assert call.inference is not None  # it is done
        outputs[call.prompt].append(call.inference)
    known = {inference.pk for made in outputs.values() for inference in made}
    paired = {
        frozenset(pair)
        for pair in Item.objects.filter(queue=run.queue_id, a__in=known).values_list("a", "b")
    }
    by_pk = {inference.pk: inference for made in outputs.values() for inference in made}
    return [
        (by_pk[a], by_pk[b])
        for made in outputs.values()
        for a, b in all_pairs([inference.pk for inference in made], settings.SECRET_KEY)
        if frozenset((a, b)) not in paired
    ]


def _judges(run: Run, config: RunConfig) -> list[Judge]:
    """Return the judges of the config, not those that a changed model became meanwhile."""
    return list(run.judges.order_by("position")[: len(config.judges)])


def ask_for_verdicts(run: Run, config: RunConfig) -> bool:
    """Make the calls for verdicts on pairs that are drawn; return whether there may be more."""
    undrawn = Picture.objects.exclude(state=Picture.State.DONE)
    ready = (
        Verdict.objects.filter(
            ~Exists(Call.objects.filter(verdict=OuterRef("pk"))),
            judge__run=run,
            state=Verdict.State.WAITING,
        )
        .exclude(judge__provider=Judge.BASELINE)
        .exclude(item__a__picture__in=undrawn)
        .exclude(item__b__picture__in=undrawn)
        .order_by("pk")[:VERDICTS_AT_ONCE]
    )
    asked = [
        (verdict, provider, model, order, sample)
        for verdict, provider, model, orders in _asked(config, ready)
        for order in orders
        for sample in range(config.judging.samples)
    ]
    names = ("verdict", "provider", "model", "order", "sample")
    add_rows(Call, names, asked, run=run, purpose=Call.Purpose.JUDGE)
    return len({verdict for verdict, *_ in asked}) == VERDICTS_AT_ONCE


def _asked(
    config: RunConfig, verdicts: QuerySet[Verdict]
) -> list[tuple[int, str, str, Sequence[str]]]:
    """Return of each verdict the provider, the model and the orders to be asked in."""
    if config.verdict_orders == "both":
        rows = verdicts.values_list("pk", "judge__provider", "judge__model")
        return [(*row, ("AB", "BA")) for row in rows]
    about = verdicts.select_related("judge", "item__a", "item__b")
    return [
        (verdict.pk, verdict.judge.provider, verdict.judge.model, (toss(verdict),))
        for verdict in about.defer("item__a__output", "item__b__output")
    ]


def toss(verdict: Verdict) -> str:
    """Draw the order in which a pair is shown to a judge, for ever."""
    a, b = verdict.item.pair
    # Not by their numbers: a copy of the run shows the same first, and finds the stored reply.
    first, second = sorted((a, b), key=lambda output: output.generator)
    names = (verdict.judge.name, a.prompt, first.generator, second.generator)
    toss = keyed_number(settings.SECRET_KEY, "order", *names)
    shown_first = second if toss & 1 else first
    return "AB" if shown_first is a else "BA"


def fail_without_provider(run: Run) -> None:
    """Fail calls whose provider is gone: nobody would ever claim them."""
    now = timezone.now()
    gone = (
        run.calls.filter(free(now), state=Call.State.WAITING)
        .exclude(provider__in=Provider.objects.values("name"))
        .select_for_update(no_key=True, skip_locked=True)
    )
    for call in gone.order_by("pk")[:VERDICTS_AT_ONCE]:
        error = f"there is no provider named {call.provider}"
        leases.write_off([(call.pk, run.pk, call.reserved_nano)])
        Call.objects.filter(pk=call.pk).update(
            state=Call.State.FAILED,
            error=error,
            lease=None,
            leased_until=None,
            done_at=now,
        )
        run.record("call_failed", f"{call.model}: {error}", call=call.pk)
