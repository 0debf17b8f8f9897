"""Few-shot examples of variants: voted items of the tuning half, set for good when a variant joins.

What a judge is shown of them, beside each item, is in `judge_eval.judging.requests`.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final
from uuid import UUID

from django.db.models import Q

from humanjudge.core.validation import ConfigError, ConfigInvalid
from judge_eval.judging.config.run_config import MOST_EXAMPLES, ExampleItem, JoiningJudges
from judge_eval.models import Run
from voting.items.disputes import lacks_majority, majority
from voting.items.order import half_number
from voting.ledger.counts import votes_on
from voting.models import Item, Queue

OF_VARIANTS: Final = "are of variants, which join a run that is open for tuning"


def with_examples(run: Run, joining: JoiningJudges) -> JoiningJudges:
    """Return judges that join with what people say of their examples by now, or ConfigInvalid."""
    named = {example.item for spec in joining.judges for example in spec.examples}
    if not named and not joining.draw_examples:
        return joining
    if not run.queue.is_tuning:
        raise ConfigInvalid.at("examples", OF_VARIANTS)
    if wrong := list(_example_errors(run.queue, named, joining)):
        raise ConfigInvalid(wrong)
    drawn = _drawn(run.queue, joining.draw_examples, named)
    votes = votes_on(Q(item__in=[*named, *drawn]))
    judges = []
    for spec in joining.judges:
        items = [*(example.item for example in spec.examples), *drawn]
        examples = tuple(ExampleItem(item=pk, answer=majority(votes[pk])) for pk in items)
        judges.append(spec.model_copy(update={"examples": examples}))
    return joining.model_copy(update={"judges": tuple(judges)})


def _example_errors(
    queue: Queue, named: Collection[UUID], joining: JoiningJudges
) -> Iterator[ConfigError]:
    items, votes = queue.items.in_bulk(named), votes_on(Q(item__in=named))
    for n, spec in enumerate(joining.judges):
        place, number = f"judges[{n}].examples", len(spec.examples) + joining.draw_examples
        if number > MOST_EXAMPLES:
            yield ConfigError(place, f"must have at most {MOST_EXAMPLES}, has {number}")
        for m, example in enumerate(spec.examples):
            problem = (
                "is given twice"
                if example in spec.examples[:m]
                else _unusable_reason(items.get(example.item))
            )
            if problem or not majority(votes[example.item]):
                problem = problem or "has no majority of votes"
                yield ConfigError(f"{place}[{m}]", f"{example.item} {problem}")


def _unusable_reason(item: Item | None) -> str:
    if item is None:
        return "is no item of this run"
    if item.is_held_out:
        return "is held out: examples are of the tuning half"
    reason = "it was imported without outputs" if item.lacks_output else item.unusable
    return f"cannot be shown: {reason}" if reason else ""


def _drawn(queue: Queue, number: int, named: Collection[UUID]) -> list[UUID]:
    """Draw items with a clear majority, one of a prompt, by the numbers that made the halves."""
    if not number:
        return []
    items = queue.items.filter(is_held_out=False, unusable="", lacks_output=False)
    items = items.exclude(pk__in=named)
    votes = votes_on(Q(queue=queue.pk, item__is_held_out=False))
    clear = {
        key: pk
        for key, pk in items.order_by("-pk").values_list("prompt_key", "pk")
        if votes[pk] and not lacks_majority(Counter(choice for choice, _ in votes[pk]).values())
    }
    if len(clear) < number:
        words = f"only {len(clear)} prompts of the tuning half have an item with a clear majority"
        raise ConfigInvalid.at("draw_examples", words)
    return [
        clear[key] for key in sorted(clear, key=lambda key: half_number(queue.pk, key))[:number]
    ]
