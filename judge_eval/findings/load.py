"""What people and judges said in a run: as arrays for its figures, as labels for score files."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from django.db import connection, transaction
from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Round

from judge_eval.findings.alt_test import TaskAnswers, answers_of
from judge_eval.findings.model import WINNER, AsOf
from judge_eval.findings.slices import WHOLE, Parts, Slice
from judge_eval.models import Board, Call, Judge, Run, Verdict
from judge_eval.selectors import UNPRICED
from judge_eval.stats import Annotations
from judge_eval.stats.outcomes_table import FAILED, NOT_ASKED, Codes, Counts, OutcomesTable
from voting.choices import CHOICES, SWAPPED, VERDICTS
from voting.kinds import COMPARISON
from voting.ledger.counts import counted_in
from voting.models import Entry

ROWS_AT_ONCE = 20_000
# Calls are paid for the whole run: set against a part's agreement that is no price of it.
OF_THE_WHOLE = "Prices and times are those of the whole run; a part has none of its own."
# What everybody answered: by who, task and item.
TaskLabels = dict[str, dict[str, dict[Hashable, object]]]
_TALLY = COMPARISON.tally[1:]  # the votes of all choices are their sum
_CODES: dict[str, int] = {choice: code for code, choice in enumerate(VERDICTS)}


class Spent(NamedTuple):
    """What a judge's verdicts took; `why` says why it is not known what they cost."""

    usd: float | None = None
    why: str | None = OF_THE_WHOLE
    seconds: float | None = None
    verdicts: int = 0


class RunOutcomes(NamedTuple):
    """A run, or a part of it: one row per comparison that could be voted on.

    `positions` are the comparisons' places in the run, `prompts` their prompts by number, `models`
    who wrote A and B by number. `answers` are what a judge answered in each of two orders, as
    `judge_figures.per_answer` takes them, `habits` what `judge_figures.habits` takes. `sided` are
    people's votes for a side, and `left` those for what stood left. `tasks` are everybody's answers
    to what was asked, and to whatever else was.
    """

    run: Run
    as_of: AsOf
    judges: list[Judge]
    spent: list[Spent]
    positions: Counts
    prompts: Counts
    table: OutcomesTable
    habits: tuple[Codes, Counts, Counts]
    answers: Codes
    sided: Counts
    left: Counts
    generators: list[str]
    models: Counts
    parts: Parts | None
    tasks: list[TaskAnswers]


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


@one_moment()
def outcomes_of(run: Run, part: Slice = WHOLE) -> RunOutcomes:
    """Read a run, or a part of it, with a fixed number of queries."""
    seq = Board.objects.values_list("seq", flat=True).filter(run=run).first() or 0
    judges = list(run.judges.order_by("position"))
    rows, prompts, writers, tags = _pairs(run, part)
    inside, choices = rows[:, 0], len(part.choices)
    verdicts = _verdicts(run, int(inside.max(initial=-1)) + 1, len(judges))[inside]
    votes = _votes(run, part)
    # Any other vote of a part is none, any other verdict was not asked for.
    tally = rows[:, 1:5] * (np.arange(len(CHOICES)) < choices)
    codes, answers = verdicts[:, :, 0], verdicts[:, :, 4:]
    if choices < len(CHOICES):
        codes = np.where(codes >= choices, NOT_ASKED, codes)
        answers = np.where(answers < choices, answers, NOT_ASKED)
    generators = sorted({name for pair in writers for name in pair if name})
    number = {name: n for n, name in enumerate(generators)} | {"": -1}
    return RunOutcomes(
        run=run,
        as_of=AsOf(
            seq=seq,
            votes=int(tally.sum()),
            people=votes.aggregate(people=Count("voter", distinct=True))["people"],
            comparisons=run.queue.items.count(),
            open=len(rows),
            voted=int(tally.any(axis=1).sum()),
            simulated=run.queue.is_simulated,
            part=part.in_words,
        ),
        judges=judges,
        spent=[Spent() for _ in judges] if part.kind else list(_spent(judges)),
        positions=inside,
        prompts=prompts,
        table=OutcomesTable(tally, codes.astype(np.int8)),
        habits=(verdicts[:, :, 1].astype(np.int8), verdicts[:, :, 2], verdicts[:, :, 3]),
        answers=answers.astype(np.int8),
        sided=rows[:, 5],
        left=rows[:, 6],
        generators=generators,
        models=np.array([[number[a], number[b]] for a, b in writers]).reshape(-1, 2),
        parts=None if part.kind else Parts(tags=tags.most_common(), generators=generators),
        tasks=answers_of(run, part, votes, set(inside.tolist()), len(judges)),
    )


def _votes(run: Run, part: Slice) -> QuerySet[Entry]:
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id)
    if part.kind:
        votes = votes.filter(item__in=part.pairs(run), choice__in=part.choices)
    return votes


def _pairs(run: Run, part: Slice) -> tuple[Counts, Counts, list[tuple[str, str]], Counter[str]]:
    """Return position and tally of each comparison, its prompt, its outputs' writers, all tags."""
    open_ones = part.pairs(run).filter(opened_at__isnull=False, unusable="")
    names = ("position", *_TALLY, "prompt_key", "a__generator", "b__generator", "a__tags")
    rows, prompts, writers, tags = [], [], [], Counter[str]()
    found = open_ones.order_by("position").values_list(*names)
    for *numbers, prompt, a, b, its_tags in found.iterator(ROWS_AT_ONCE):
        tags.update(set(its_tags))
        rows.append(numbers)
        prompts.append(prompt)
        writers.append((a, b or ""))
    tallies = np.array(rows, dtype=np.int64).reshape(-1, 1 + len(_TALLY))
    return tallies, np.unique(prompts, return_inverse=True)[1], writers, tags


def _verdicts(run: Run, places: int, judges: int) -> Counts:
    """Return code, consistency, first and side picks, both answers, by comparison and judge."""
    table = np.tile(np.array([NOT_ASKED, -1, 0, 0, NOT_ASKED, NOT_ASKED]), (places, judges, 1))
    final = Verdict.objects.filter(judge__run=run, item__position__lt=places)
    names = ("winner", "consistent", "first_picks", "picks", "order")
    rows = final.exclude(state=Verdict.State.WAITING).values_list(
        "item__position", "judge__position", *names
    )
    for place, judge, winner, consistent, first, picks, order in rows.iterator(ROWS_AT_ONCE):
        answers = (NOT_ASKED, NOT_ASKED)
        if order == Verdict.Order.BOTH:
            # A verdict from elsewhere may say that both orders agree, and nothing of each.
            both = (winner, SWAPPED.get(winner)) if consistent else tuple(picks)
            if len(both) == 2 and SWAPPED.keys() >= {*both}:
                answers = (_CODES[both[0]], _CODES[SWAPPED[both[1]]])
        table[place, judge] = (
            _CODES.get(winner, FAILED),
            -1 if consistent is None else consistent,
            first or 0,
            0 if first is None else sum(pick in ("A", "B") for pick in picks),
            *answers,
        )
    return table


def _spent(judges: list[Judge]) -> Iterator[Spent]:
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
    known = {judge: figures for judge, *figures in given}
    paid = {judge: figures for judge, *figures in paying}
    for judge in judges:
        number, timed, time, *imported = known.get(judge.pk, (0, 0, 0, None, 0))
        nanos, withouts = zip(imported, paid.get(judge.pk, (None, 0)), strict=True)
        unpriced, why = sum(withouts), None
        if nanos == (None, None) and not judge.is_baseline:
            why = "Its calls were not made here, or their price is not known."
        elif unpriced:
            why = f"The price of {unpriced} of its calls is not known."
        total = None if why else sum(nano or 0 for nano in nanos) / 1e9
        yield Spent(total, why, time / timed / 1_000_000 if timed else None, number)


# --- for score files ----------------------------------------------------------------------------


class RunLabels(NamedTuple):
    """Everything that was said in a run and counts.

    Labels of judges are by their ids, in the run's order; those of humans by pseudonyms. A verdict
    that failed is None, a missing label, on each of the run's tasks: ``winner`` first, then
    whatever else was answered with votes and verdicts, by name.
    """

    judges: Annotations
    humans: Annotations
    names: Mapping[str, str]
    baselines: frozenset[str]
    tasks: tuple[str, ...]


def labels_of(run: Run, part: Slice = WHOLE, *, up_to: int | None = None) -> RunLabels:
    """Read the labels of a run, or of a part of it, with three queries, whatever its size.

    With `up_to` only votes up to this entry of the ledger.
    """
    judges = list(Judge.objects.filter(run=run).order_by("position").only("name", "provider"))
    votes = _votes(run, part).filter(item__isnull=False)
    given = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.WAITING)
    if up_to is not None:
        votes = votes.filter(seq__lte=up_to)
    if part.kind:
        # A verdict that failed is in any part of votes.
        given = given.filter(item__in=part.pairs(run), winner__in=("", *part.verdicts))
    humans: TaskLabels = {}
    rows = votes.order_by("seq").values_list("item_id", "voter__pseudonym", "choice", "labels")
    for pair, human, choice, labels in rows.iterator():
        _note(humans.setdefault(human, {}), pair, choice, labels)
    by_judge: TaskLabels = {str(judge.pk): {} for judge in judges}
    failed: list[tuple[str, UUID]] = []
    told = given.order_by("item__position").values_list("item_id", "judge_id", "winner", "labels")
    for pair, by, winner, labels in told.iterator():
        if winner:
            _note(by_judge[str(by)], pair, winner, labels)
        else:
            failed.append((str(by), pair))
    others = {task for tasks in (*humans.values(), *by_judge.values()) for task in tasks}
    tasks = (WINNER, *sorted(others - {WINNER}))
    for (who, pair), task in product(failed, tasks):
        by_judge[who].setdefault(task, {})[str(pair)] = None
    names = {str(judge.pk): judge.name for judge in judges}
    baselines = frozenset(str(judge.pk) for judge in judges if judge.is_baseline)
    return RunLabels(by_judge, humans, names, baselines, tasks)


def _note(tasks: dict[str, dict[Hashable, object]], pair: UUID, winner: str, labels: Any) -> None:
    for task, label in {**(labels or {}), WINNER: winner}.items():
        tasks.setdefault(task, {})[str(pair)] = label
