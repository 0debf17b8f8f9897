"""What is known of a run's comparisons, as arrays, all of one moment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from django.db import connection, transaction
from django.db.models import (
    BigIntegerField,
    Case,
    Count,
    F,
    IntegerField,
    Q,
    SmallIntegerField,
    Sum,
    TextField,
    Value,
    When,
)
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Cast, Coalesce, Length, Replace, Round

from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Board, Call, Judge, Run, Verdict
from judge_eval.selectors import UNPRICED
from judge_eval.stats.outcomes_table import (
    FAILED,
    NOT_ASKED,
    Codes,
    Counts,
    OutcomesTable,
)
from voting.choices import CHOICES, SWAPPED, VERDICTS
from voting.ledger.counts import TALLY, counted_in
from voting.models import Entry, Item

ROWS_AT_ONCE = 20_000
_TALLY = TALLY[1:]  # the votes of all choices are their sum
# By the text of a verdict's picks: the codes of both answers, of the stored A and B, as one number.
_ANSWERS: Final = {
    json.dumps([first, second]): CHOICES.index(first) * len(CHOICES)
    + CHOICES.index(SWAPPED[second])
    for first in CHOICES
    for second in CHOICES
}


@dataclass(frozen=True)
class Spent:
    """What a judge's verdicts took: dollars, where all prices are known, and seconds."""

    nano: int | None
    unpriced: int
    seconds: float | None
    verdicts: int


NOTHING_SPENT: Final = Spent(None, 0, None, 0)


@dataclass(frozen=True, eq=False)
class RunOutcomes:
    """A run, or a part of it: one row per comparison that could be voted on.

    `positions` are the comparisons' places in the run, `prompts` their prompts by number, `models`
    who wrote A and B by number. `answers` are what a judge answered in each of two orders, of the
    stored A and B, by the codes of the table; `NOT_ASKED` where that is not known.
    `consistent`, `first_picks` and `side_picks` are what `judge_figures.habits` takes; `sided` are
    people's votes for a side, and `left` those for what stood left.
    """

    run: Run
    part: Slice
    seq: int
    people: int
    comparisons: int
    judges: list[Judge]
    spent: list[Spent]
    positions: Counts
    prompts: Counts
    table: OutcomesTable
    consistent: Codes
    first_picks: Counts
    side_picks: Counts
    answers: Codes
    sided: Counts
    left: Counts
    generators: list[str]
    models: Counts
    tags: Counter[str]


@contextmanager
def one_moment() -> Iterator[None]:
    """Read everything as of one moment, and hold nobody up."""
    if connection.in_atomic_block:
        yield
        return
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    with connection.cursor() as cursor:
        # Not `atomic`: that would begin as a writer, and keep every voter waiting.
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def outcomes_of(run: Run, part: Slice = WHOLE) -> RunOutcomes:
    """Read a run, or a part of it, with a fixed number of queries."""
    board = Board.objects.filter(run=run).first()
    judges = list(run.judges.order_by("position"))
    rows, prompts, writers, tags = _pairs(run, part)
    inside = rows[:, 0]
    verdicts = _verdicts(run, int(inside.max(initial=-1)) + 1, len(judges))[inside]
    codes, votes = verdicts[:, :, 0].astype(np.int8), rows[:, 1:5]
    votes, codes = _counted(votes, codes, len(part.choices))
    generators = sorted({name for pair in writers for name in pair if name})
    number = {name: n for n, name in enumerate(generators)} | {"": -1}
    return RunOutcomes(
        run=run,
        part=part,
        seq=board.seq if board else 0,
        people=_people(run, part, inside),
        comparisons=run.queue.items.count(),
        judges=judges,
        spent=_spent(judges),
        positions=inside,
        prompts=prompts,
        table=OutcomesTable(votes, codes),
        consistent=verdicts[:, :, 1].astype(np.int8),
        first_picks=verdicts[:, :, 2],
        side_picks=verdicts[:, :, 3],
        answers=_answers_of(verdicts[:, :, 4], len(part.choices)),
        sided=rows[:, 5],
        left=rows[:, 6],
        generators=generators,
        models=np.array([[number[a], number[b]] for a, b in writers]).reshape(-1, 2),
        tags=tags,
    )


def _pairs(run: Run, part: Slice) -> tuple[Counts, Counts, list[tuple[str, str]], Counter[str]]:
    """Return position and tally of each comparison, its prompt, its outputs' writers, all tags."""
    open_ones = Item.objects.filter(queue=run.queue_id, opened_at__isnull=False, unusable="")
    names = ("position", *_TALLY, "prompt_key", "a__generator", "b__generator", "a__tags")
    rows, prompts, writers = [], [], []
    number: dict[str, int] = {}
    tags: Counter[str] = Counter()
    found = open_ones.order_by("position").values_list(*names)
    for *numbers, prompt, a, b, its_tags in found.iterator(ROWS_AT_ONCE):
        tags.update(set(its_tags))
        if part.holds(its_tags, (a, b)):
            rows.append(numbers)
            prompts.append(number.setdefault(prompt, len(number)))
            writers.append((a, b))
    tallies = np.array(rows, dtype=np.int64).reshape(-1, 1 + len(_TALLY))
    return tallies, np.array(prompts, dtype=np.int64), writers, tags


def _verdicts(run: Run, places: int, judges: int) -> Counts:
    """Return code, consistency, first picks, side picks and answers, by comparison and judge."""
    found = np.tile(np.array([NOT_ASKED, -1, 0, 0, -1]), (places, judges, 1))
    picks = Cast("picks", TextField())
    sided = (_times(picks, '"A"') + _times(picks, '"B"')) / Value(3)
    codes = [When(winner=said, then=Value(code)) for code, said in enumerate(VERDICTS)]
    rows = (
        Verdict.objects.filter(judge__run=run, item__position__lt=places)
        .exclude(state=Verdict.State.WAITING)
        .annotate(text=picks)
        .values_list(
            "item__position",
            "judge__position",
            Case(*codes, default=Value(FAILED), output_field=SmallIntegerField()),
            Case(
                When(consistent=True, then=Value(1)),
                When(consistent=False, then=Value(0)),
                default=Value(-1),
                output_field=SmallIntegerField(),
            ),
            Coalesce("first_picks", 0),
            Case(
                When(first_picks__isnull=True, then=Value(0)),
                default=sided,
                output_field=IntegerField(),
            ),
            Case(
                When(~Q(order=Verdict.Order.BOTH), then=Value(-1)),
                # Most are consistent, and the texts of the others are few.
                *(
                    When(consistent=True, winner=choice, then=Value(code * len(CHOICES) + code))
                    for code, choice in enumerate(CHOICES)
                ),
                *(When(text=text, then=Value(number)) for text, number in _ANSWERS.items()),
                default=Value(-1),
                output_field=SmallIntegerField(),
            ),
        )
    )
    # Plain numbers from the database: to convert them, as a model's fields are, takes longer.
    with connection.chunked_cursor() as cursor:
        cursor.execute(*rows.query.sql_with_params())
        while chunk := cursor.fetchmany(ROWS_AT_ONCE):
            _put(found, chunk)
    return found


def _answers_of(numbers: Counts, choices: int) -> Codes:
    """Return both answers by their number, shape (n_comparisons, n_judges, 2)."""
    both = np.stack(np.divmod(numbers, len(CHOICES)), axis=2)
    is_known = (numbers[:, :, np.newaxis] >= 0) & (both < choices)
    return np.where(is_known, both, NOT_ASKED).astype(np.int8)


def _times(text: Cast, word: str) -> CombinedExpression:
    # Quotation marks and a letter: three characters shorter for each one that is taken out.
    without = Replace(text, Value(word), Value(""))
    return Length(text) - Length(without)


def _put(found: Counts, chunk: list[tuple[int, ...]]) -> None:
    rows = np.array(chunk, dtype=np.int64)
    found[rows[:, 0], rows[:, 1]] = rows[:, 2:]


def _counted(votes: Counts, codes: Codes, choices: int) -> tuple[Counts, Codes]:
    """Keep the first choices: any other vote is none, any other verdict was not asked for."""
    kept = votes * (np.arange(votes.shape[1]) < choices)
    if choices < len(CHOICES):
        codes = np.where(codes >= choices, NOT_ASKED, codes).astype(np.int8)
    return kept, codes


def _people(run: Run, part: Slice, inside: Counts) -> int:
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id)
    if not part.kind:
        return votes.aggregate(people=Count("voter", distinct=True))["people"] or 0
    if part.kind == "ballot":
        votes = votes.filter(choice__in=part.choices)
    positions = set(inside.tolist())
    cast = votes.values_list("voter", "item__position").iterator(ROWS_AT_ONCE)
    return len({voter for voter, position in cast if position in positions})


def _spent(judges: list[Judge]) -> list[Spent]:
    is_done = Q(state=Verdict.State.DONE)
    # Whole numbers: their sum is the same in whatever order the database meets them.
    microseconds = Cast(Round(F("latency_ms") * 1000), BigIntegerField())
    verdicts = Verdict.objects.filter(judge__in=judges).values_list("judge")
    given = verdicts.annotate(
        number=Count("pk", filter=is_done),
        timed=Count("latency_ms", filter=is_done),
        time=Sum(microseconds, filter=is_done, default=0),
        nano=Sum("cost_nano"),
        without=Sum("unpriced", default=0),
    )
    calls = Call.objects.filter(verdict__judge__in=judges).exclude(state=Call.State.WAITING)
    paying = calls.values_list("verdict__judge").annotate(
        nano=Sum("cost_nano"), without=Count("pk", filter=UNPRICED)
    )
    paid = {judge: numbers for judge, *numbers in paying}
    known = {judge: _spent_by(numbers, paid.get(judge, [None, 0])) for judge, *numbers in given}
    return [_of_baseline(judge, known.get(judge.pk, NOTHING_SPENT)) for judge in judges]


def _spent_by(given: list[Any], paid: list[Any]) -> Spent:
    verdicts, timed, microseconds, *elsewhere = given
    (nano, unpriced), (more_nano, more_unpriced) = elsewhere, paid
    is_known = nano is not None or more_nano is not None
    return Spent(
        nano=(nano or 0) + (more_nano or 0) if is_known else None,
        unpriced=unpriced + more_unpriced,
        seconds=microseconds / timed / 1_000_000 if timed else None,
        verdicts=verdicts,
    )


def _of_baseline(judge: Judge, spent: Spent) -> Spent:
    return replace(spent, nano=0, unpriced=0) if judge.is_baseline else spent
