"""The items on which people and judges disagree most, with the votes and verdicts on each."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from django.db.models import Count

from humanjudge.core.text import listed, number_of
from judge_eval.board.model import DisputedPair
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.access import Reader, visible
from voting.items.choices import LABELS
from voting.items.conversations import latest
from voting.items.turns import beginning
from voting.ledger.counts import counted_in
from voting.models import Entry, Inference, Item

PROMPT_LETTERS, OUTPUT_LETTERS = 160, 280
# More judges than these are a number.
MOST_NAMES = 4


class DisputedItem(NamedTuple):
    pair: Any
    wrong: int
    judged: int
    # The side of each output, the output, and how it begins.
    outputs: list[tuple[str, Inference, str]]
    votes: list[str]
    # A verdict in words, and the judges who gave it.
    verdicts: list[tuple[str, str]]


def disputed_pairs(run: Run, disputed: Sequence[DisputedPair]) -> list[DisputedItem]:
    worst = {pair.position: pair for pair in disputed}
    by_place = pairs_beginning(run, worst)
    pairs = {pair.pk: pair for pair in by_place.values()}
    votes, verdicts = _votes_on(run, pairs), _verdicts_on(pairs)
    return [
        DisputedItem(
            pair,
            disputed_pair.wrong,
            disputed_pair.of,
            outputs_beginning(pair),
            votes.get(pair.pk, []),
            verdicts.get(pair.pk, []),
        )
        for position, disputed_pair in worst.items()
        if (pair := by_place.get(position))
    ]


def visible_disputed(
    reader: Reader, run: Run, disputed: Sequence[DisputedPair]
) -> list[DisputedItem]:
    return disputed_pairs(run, visible(reader, run, disputed))


def pairs_beginning(run: Run, positions: Collection[int]) -> dict[int, Item]:
    items = list(
        Item.objects.filter(queue=run.queue_id, position__in=positions)
        .select_related("a__picture", "b__picture")
        .defer("a__output", "b__output", "a__metadata", "b__metadata")
        .annotate(prompt=beginning("a__prompt", PROMPT_LETTERS))
        .annotate(output_a=beginning("a__output", OUTPUT_LETTERS))
        .annotate(output_b=beginning("b__output", OUTPUT_LETTERS))
    )
    for item in items:
        item.prompt = latest(item.prompt)[:PROMPT_LETTERS]
    return {item.position: item for item in items}


def outputs_beginning(pair: Any) -> list[tuple[str, Inference, str]]:
    begins = [
        latest(text or "", "assistant")[:OUTPUT_LETTERS] for text in (pair.output_a, pair.output_b)
    ]
    return list(zip("AB", pair.outputs, begins, strict=False))


def _votes_on(run: Run, pairs: Collection[Any]) -> dict[Any, list[str]]:
    counted = Entry.objects.filter(counted_in(run.queue), item__in=pairs).order_by()
    by_item: dict[Any, list[str]] = {}
    for item, choice, number in counted.values_list("item", "choice").annotate(n=Count("pk")):
        by_item.setdefault(item, []).append(f"{LABELS.get(choice, choice)} ({number:,})")
    return by_item


def _verdicts_on(pairs: Collection[Any]) -> dict[Any, list[tuple[str, str]]]:
    final = Verdict.objects.filter(item__in=pairs).exclude(state=Verdict.State.WAITING)
    verdicts = final.exclude(judge__provider=Judge.BASELINE).order_by("winner", "judge__position")
    names: dict[Any, dict[str, list[str]]] = {}
    for item, winner, judge in verdicts.values_list("item", "winner", "judge__name"):
        words = LABELS.get(winner, winner) or "no verdict"
        names.setdefault(item, {}).setdefault(words, []).append(judge)
    return {
        item: [
            (
                words,
                listed(judges) if len(judges) <= MOST_NAMES else number_of(len(judges), "judge"),
            )
            for words, judges in judges_by_words.items()
        ]
        for item, judges_by_words in names.items()
    }
