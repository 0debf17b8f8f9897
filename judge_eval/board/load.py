"""What people and judges said in a run: as arrays for its figures, as labels for score files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple
from uuid import UUID

import numpy as np
from django.db.models import BigIntegerField, Count, F, Q, QuerySet, Sum
from django.db.models.functions import Cast, Round

from judge_eval.board.alt_test import Labels, TaskAnswers, answers_of
from judge_eval.board.filters import HALF, WHOLE_RUN, Parts, Slice
from judge_eval.board.history import History, history_of
from judge_eval.board.model import WINNER, AsOf
from judge_eval.board.repeats import Repeats, repeats_of
from judge_eval.ledger.objects import UNASKED
from judge_eval.models import REPEATED, Board, Call, Judge, Run, Verdict
from judge_eval.runs.queries import (
    TUNED_ON,
    UNPRICED,
    counts_as_judge,
    failures_of,
    stands_on_board,
)
from judge_eval.stats import Annotations
from judge_eval.stats.bootstrap import BoolArray
from judge_eval.stats.outcomes_table import FAILED, UNASSIGNED, Codes, Counts, OutcomesTable
from voting.items.choices import MILLION, SIDES, SWAPPED
from voting.items.kinds import kind_of, options_of
from voting.ledger.bulk_sql import one_moment
from voting.ledger.counts import counted_in
from voting.ledger.groups import groups_at
from voting.models import Entry, Queue

ROWS_AT_ONCE = 20_000
# Of a judge that did not answer.
NO_ORDER: Final = -1
# Calls are paid for the whole run: set against a part's agreement that is no price of it.
OF_THE_WHOLE = "Prices and times are those of the whole run; a part has none of its own."
SCORE: Final = "score"
# Of rows that are about an item: that this is in the figures.
OPEN_ITEM: Final = {"item__opened_at__isnull": False, "item__unusable": ""}
MOST_GROUPS: Final = 20
# Parts whose votes are counted one by one: what is kept with each item is of all of its votes.
SOME_VOTES: Final = ("group", "at")


class JudgeSpending(NamedTuple):
    """What a judge's verdicts took; `reason` says why it is not known what they cost."""

    usd: float | None = None
    reason: str | None = OF_THE_WHOLE
    seconds: float | None = None
    verdicts: int = 0


class GroupVotes(NamedTuple):
    """The votes of one group of voters, in the shape of the table's; those of no group unnamed."""

    name: str
    people: int
    votes: Counts


class RunOutcomes(NamedTuple):
    """A run, or a part of it: one row per comparison or single item that could be voted on.

    `choices` are what votes and verdicts may say, by their codes in `table`. `positions` are the
    items' places in the run, `prompts` their prompts by number, `models` who wrote A and B by
    number; a single item has no B. `answers` are what a judge answered in each of two orders, as
    `judge_figures.per_answer` takes them, `habits` what `judge_figures.habits` takes, and `floor`
    which baselines a judge is held against, as `stats.evidence.thresholds` does. `sided` are
    people's votes for a side, and `left` those for what stood left. `tasks` are everybody's answers
    to what was asked, and to whatever else was. `groups` are the votes again, by groups of voters,
    where there are such. `failures` have an error of each judge that had one, `left_out` the names
    of those that somebody left out.
    """

    run: Run
    choices: tuple[str, ...]
    counted_votes: AsOf
    judges: list[Judge]
    spent: list[JudgeSpending]
    positions: Counts
    prompts: Counts
    table: OutcomesTable
    habits: tuple[Codes, Counts, Counts]
    answers: Codes
    floor: BoolArray
    sided: Counts
    left: Counts
    history: History
    generators: list[str]
    models: Counts
    parts: Parts | None
    tasks: list[TaskAnswers]
    groups: list[GroupVotes]
    repeats: list[Repeats]
    failures: dict[UUID, str]
    left_out: list[str]


@one_moment()
def outcomes_of(run: Run, part: Slice = WHOLE_RUN) -> RunOutcomes:
    """Read a run, or a part of it, with a fixed number of queries."""
    seq = Board.objects.values_list("seq", flat=True).filter(run=run).first() or 0
    judges = _judges(run, part)
    items, rows, prompts, writers, tags = _items(run, part)
    inside, all_votes = rows[:, 0], _votes(run)
    votes = part.within(all_votes, run)
    choices = _choices(run, part, votes)
    verdicts = _verdicts(run, part, choices, int(inside.max(initial=-1)) + 1, judges)[inside]
    columns = len(choices)
    kind = kind_of(run.queue)
    is_counted = bool(kind.choices) and part.kind not in SOME_VOTES
    tally = rows[:, 1 : 1 + columns] if is_counted else _counted(votes, inside, choices)
    codes, answers = verdicts[:, :, 0], verdicts[:, :, 4:6]
    if part.kind == "ballot":
        # Any other vote of a part is none, any other verdict was not asked for.
        tally = tally * (np.arange(columns) < len(part.choices))
        codes = np.where(codes >= len(part.choices), UNASSIGNED, codes)
        answers = np.where(answers < len(part.choices), answers, UNASSIGNED)
    has_sides = "votes_sided" in kind.tally
    sided = rows[:, -2:] if has_sides else np.zeros((len(rows), 2), dtype=np.int64)
    if has_sides and part.kind in SOME_VOTES:
        sided = _count_sides(votes, inside)
    voters = dict(
        votes.order_by().values_list("voter__group").annotate(Count("voter", distinct=True))
    )
    # Texts are no choices that a table could count.
    texts = votes if run.queue.kind == Queue.Kind.TEXT else None
    repeats = repeats_of(run, part.pairs(run))
    generators = sorted({name for pair in writers for name in pair if name})
    number = {name: n for n, name in enumerate(generators)} | {"": -1}
    return RunOutcomes(
        run=run,
        choices=choices,
        counted_votes=AsOf(
            seq=seq,
            votes=int(tally.sum()) if texts is None else texts.count(),
            people=sum(voters.values()),
            comparisons=run.queue.items.count(),
            open=len(rows),
            voted=int(tally.any(axis=1).sum()) if texts is None else part.voted(run).count(),
            simulated=run.queue.is_simulated,
            part=part.in_words,
        ),
        judges=judges,
        spent=[JudgeSpending() for _ in judges] if part.kind else list(_spent(run, judges)),
        positions=inside,
        prompts=prompts,
        table=OutcomesTable(tally, codes.astype(np.int16)),
        habits=(verdicts[:, :, 1].astype(np.int16), verdicts[:, :, 2], verdicts[:, :, 3]),
        answers=answers.astype(np.int16),
        floor=_floor(judges, verdicts[:, :, 6]),
        sided=sided[:, 0],
        left=sided[:, 1],
        history=history_of(
            run,
            # Also those on its items that are no part of it.
            all_votes if part.is_of_votes and part.up_to is None else votes,
            items,
            _codes(run, part, choices),
            [judge.position for judge in judges],
            part.value if part.kind == "group" else "",
            part.up_to,
            set() if part.kind == HALF else _tuned_on(run, items),
        ),
        generators=generators,
        models=np.array([[number[a], number[b]] for a, b in writers]).reshape(-1, 2),
        parts=None
        if part.kind
        else Parts(
            tags=tags.most_common(),
            generators=generators,
            voter_groups=sorted(
                ((name, people) for name, people in voters.items() if name),
                key=lambda group: (-group[1], group[0]),
            ),
            kind=run.queue.kind,
        ),
        tasks=answers_of(run, part, votes, set(inside.tolist()), len(judges)),
        groups=_groups(votes, inside, choices, voters) if part.kind != "group" else [],
        repeats=[repeats.get(judge.pk, Repeats()) for judge in judges],
        failures=failures_of([judge.pk for judge in judges]),
        left_out=_left_out(run),
    )


def _judges(run: Run, part: Slice) -> list[Judge]:
    """Return the judges that stand on a board: of those tuned here, whoever was held to account."""
    stands = counts_as_judge() if part.kind == HALF else stands_on_board(run)
    return list(run.judges.filter(stands).order_by("position"))


def _left_out(run: Run) -> list[str]:
    left_out = run.judges.filter(rating__is_left_out=True).order_by("position")
    return list(left_out.values_list("name", flat=True))


def _tuned_on(run: Run, items: Sequence[UUID]) -> set[int]:
    if run.queue.held_out_from is None:
        return set()
    tuning_items = set(run.queue.items.filter(is_held_out=False).values_list("pk", flat=True))
    return {row for row, item in enumerate(items) if item in tuning_items}


def _votes(run: Run) -> QuerySet[Entry]:
    return Entry.objects.filter(counted_in(run.queue), queue=run.queue_id)


def _choices(run: Run, part: Slice, votes: QuerySet[Entry]) -> tuple[str, ...]:
    """Return what votes and verdicts may say; of sets of labels, what they have said."""
    queue = run.queue
    if fixed := kind_of(queue).choices:
        return fixed
    verdicts = Verdict.objects.filter(judge__run=run, **OPEN_ITEM)
    if run.queue.is_tuning:
        verdicts = verdicts.filter(item__in=part.pairs(run))
    by_judges = verdicts.values_list("winner", flat=True).distinct()
    answers = {*votes.values_list("choice", flat=True).distinct(), *by_judges} - {""}
    offered = () if queue.kind == Queue.Kind.LABELS else tuple(queue.ballot)
    return (*offered, *sorted(answers - {*offered})) or ("",)


def _items(
    run: Run, part: Slice
) -> tuple[list[UUID], Counts, Counts, list[tuple[str, str]], Counter[str]]:
    """Return the items, position and tally of each, prompts, their outputs' writers, all tags."""
    open_ones = part.pairs(run).filter(opened_at__isnull=False, unusable="")
    # All votes are the sum of those for the choices.
    tally = [name for name in kind_of(run.queue).tally[1:] if name.startswith("votes_")]
    names = ("pk", "position", *tally, "prompt_key", "a__generator", "b__generator", "a__tags")
    items, numbers, prompts, writers, tags = [], [], [], [], Counter[str]()
    rows = open_ones.order_by("position").values_list(*names)
    for pk, *counts, prompt, a, b, its_tags in rows.iterator(ROWS_AT_ONCE):
        tags.update(set(its_tags))
        items.append(pk)
        numbers.append(counts)
        prompts.append(prompt)
        writers.append((a, b or ""))
    tallies = np.array(numbers, dtype=np.int64).reshape(-1, 1 + len(tally))
    return items, tallies, np.unique(prompts, return_inverse=True)[1], writers, tags


def _counted(votes: QuerySet[Entry], positions: Counts, choices: Sequence[str]) -> Counts:
    places = {position: place for place, position in enumerate(positions.tolist())}
    codes = {choice: code for code, choice in enumerate(choices)}
    tally = np.zeros((len(positions), len(choices)), dtype=np.int64)
    counts = votes.exclude(choice="").values_list("item__position", "choice").annotate(Count("pk"))
    for position, choice, number in counts.iterator(ROWS_AT_ONCE):
        if position in places:
            tally[places[position], codes[choice]] = number
    return tally


def _count_sides(votes: QuerySet[Entry], positions: Counts) -> Counts:
    """Count the votes for a side at some positions, and those for what stood left."""
    places = {position: place for place, position in enumerate(positions.tolist())}
    rows = np.zeros((len(positions), 2), dtype=np.int64)
    sided = votes.filter(choice__in=SIDES, left_side__in=SIDES).order_by()
    is_left = Q(choice=F("left_side"))
    counts = sided.values_list("item__position").annotate(
        number=Count("pk"), left=Count("pk", filter=is_left)
    )
    for position, *numbers in counts:
        if position in places:
            rows[places[position]] = numbers
    return rows


def _groups(
    votes: QuerySet[Entry],
    positions: Counts,
    choices: Sequence[str],
    people: Mapping[str, int],
) -> list[GroupVotes]:
    """Count votes by groups of voters, those with most people first; nothing where all are of none.

    Of very many groups the largest are taken.
    """
    named = sorted(people, key=lambda name: (not name, -people[name], name))[:MOST_GROUPS]
    if not any(named):
        return []
    places = {position: place for place, position in enumerate(positions.tolist())}
    codes = {choice: code for code, choice in enumerate(choices)}
    shape = (len(positions), len(choices))
    tables = {name: np.zeros(shape, dtype=np.int64) for name in named}
    answers = votes.exclude(choice="").filter(voter__group__in=named, choice__in=choices).order_by()
    counts = answers.values_list("voter__group", "item__position", "choice").annotate(Count("pk"))
    for name, position, choice, number in counts.iterator(ROWS_AT_ONCE):
        if position in places:
            tables[name][places[position], codes[choice]] = number
    return [GroupVotes(name, people[name], tables[name]) for name in named]


def _codes(run: Run, part: Slice, choices: Sequence[str]) -> dict[str, int]:
    """Return the codes of what votes and verdicts say; what is none in the part has none."""
    if part.kind == "ballot":
        return {choice: code for code, choice in enumerate(part.choices)}
    codes = {choice: code for code, choice in enumerate(choices)}
    return codes | {verdict: len(choices) for verdict in kind_of(run.queue).never_right}


def _verdicts(
    run: Run, part: Slice, choices: Sequence[str], places: int, judges: Sequence[Judge]
) -> Counts:
    """Return code, consistency, first and side picks, both answers, orders, by item and judge."""
    codes = _codes(run, WHOLE_RUN, choices)
    columns = {judge.position: n for n, judge in enumerate(judges)}
    nothing = np.array([UNASSIGNED, -1, 0, 0, UNASSIGNED, UNASSIGNED, NO_ORDER])
    table = np.tile(nothing, (places, len(judges), 1))
    final = Verdict.objects.filter(judge__run=run, item__position__lt=places)
    if part.kind != HALF:
        final = final.exclude(TUNED_ON)
    names = ("winner", "consistent", "first_picks", "picks", "order")
    final = final.exclude(state=Verdict.State.WAITING).exclude(error=UNASKED)
    rows = final.values_list("item__position", "judge__position", *names)
    for place, judge, winner, consistent, first, picks, order in rows.iterator(ROWS_AT_ONCE):
        if judge not in columns:
            continue
        answers = (UNASSIGNED, UNASSIGNED)
        if order == Verdict.Order.BOTH:
            # A verdict from elsewhere may say that both orders agree, and nothing of each.
            both = (winner, SWAPPED.get(winner)) if consistent else tuple(picks)
            if len(both) == 2 and SWAPPED.keys() >= {*both}:
                answers = (codes[both[0]], codes[SWAPPED[both[1]]])
        table[place, columns[judge]] = (
            codes.get(winner, FAILED),
            -1 if consistent is None else consistent,
            first or 0,
            0 if first is None else sum(pick in ("A", "B") for pick in picks),
            *answers,
            Verdict.Order.values.index(order) if winner else NO_ORDER,
        )
    return table


def _floor(judges: Sequence[Judge], orders: Counts) -> BoolArray:
    """Tell which baselines, in columns, answered on no item in other orders than a judge."""
    is_baseline = np.array([judge.is_baseline for judge in judges], dtype=bool)
    floor = np.zeros((len(judges), len(judges)), dtype=bool)
    for place in np.flatnonzero(is_baseline).tolist():
        baseline_orders = orders[:, [place]]
        differ = (orders != baseline_orders) & (orders != NO_ORDER) & (baseline_orders != NO_ORDER)
        floor[:, place] = ~is_baseline & ~differ.any(axis=0)
    return floor


def _spent(run: Run, judges: list[Judge]) -> Iterator[JudgeSpending]:
    """Return what verdicts took on items in the figures: of others no ledger tells."""
    is_done = Q(state=Verdict.State.DONE)
    # Whole numbers: their sum is the same in whatever order the database meets them.
    microseconds = Cast(Round(F("latency_ms") * 1000), BigIntegerField())
    verdicts = Verdict.objects.filter(judge__run=run, **OPEN_ITEM).values_list("judge")
    verdict_costs = verdicts.annotate(
        number=Count("pk", filter=is_done),
        timed=Count("latency_ms", filter=is_done),
        time=Sum(microseconds, filter=is_done, default=0),
        nano=Sum("cost_nano"),
        without=Sum("unpriced", default=0),
    )
    of_open = {f"verdict__{name}": value for name, value in OPEN_ITEM.items()}
    run_calls = Call.objects.exclude(REPEATED).filter(verdict__judge__run=run, **of_open)
    calls = run_calls.exclude(state=Call.State.WAITING)
    call_costs = calls.values_list("verdict__judge").annotate(
        nano=Sum("cost_nano"), without=Count("pk", filter=UNPRICED)
    )
    existing = {judge: figures for judge, *figures in verdict_costs}
    paid = {judge: figures for judge, *figures in call_costs}
    for judge in judges:
        number, timed, time, *imported = existing.get(judge.pk, (0, 0, 0, None, 0))
        nanos, withouts = zip(imported, paid.get(judge.pk, (None, 0)), strict=True)
        unpriced, reason = sum(withouts), None
        if nanos == (None, None) and not judge.is_baseline:
            reason = "Its calls were not made here, or their price is not known."
        elif unpriced:
            reason = f"The price of {unpriced} of its calls is not known."
        total = None if reason else sum(nano or 0 for nano in nanos) / 1e9
        yield JudgeSpending(total, reason, time / timed / 1_000_000 if timed else None, number)


# --- for score files ----------------------------------------------------------------------------


class RunLabels(NamedTuple):
    """Everything that was said in a run and counts.

    Labels of judges are by their ids, in the run's order; those of humans by pseudonyms. A verdict
    that failed is None, a missing label, on each of the run's tasks: ``winner`` first, then
    whatever else was answered with votes and verdicts, by name. Where single items are graded,
    ``score`` is one of them, between 0 and 1.
    """

    judges: Annotations
    humans: Annotations
    names: Mapping[str, str]
    baselines: frozenset[str]
    tasks: tuple[str, ...]


def labels_of(run: Run, part: Slice = WHOLE_RUN, *, up_to: int | None = None) -> RunLabels:
    """Read the labels of a run, or of a part of it, with three queries, whatever its size.

    With `up_to` only votes up to this entry of the ledger, by the groups that held then.
    """
    judges = _judges(run, part)
    judge_ids = {str(judge.pk) for judge in judges}
    votes = _votes_up_to(run, part, up_to).filter(item__isnull=False)
    verdicts = Verdict.objects.filter(judge__run=run).exclude(TUNED_ON)
    verdicts = verdicts.exclude(state=Verdict.State.WAITING)
    if run.queue.is_tuning or (part.kind and not part.is_of_votes):
        verdicts = verdicts.filter(item__in=part.pairs(run))
    if part.kind == "ballot":
        # A verdict that failed is in any part of votes.
        verdicts = verdicts.filter(winner__in=("", *part.verdicts))
    humans: dict[str, Labels] = {}
    names = ("item_id", "voter__pseudonym", "choice", "labels", "value")
    is_graded = options_of(run.queue).takes_grades
    for pair, human, choice, labels, value in votes.order_by("seq").values_list(*names).iterator():
        score = value / MILLION if is_graded and value is not None else None
        _note(humans.setdefault(human, {}), pair, choice, labels, score)
    by_judge: dict[str, Labels] = {str(judge.pk): {} for judge in judges}
    failed: list[tuple[str, UUID]] = []
    about = ("item_id", "judge_id", "winner", "labels", "score_a")
    verdicts = verdicts.order_by("item__position")
    for pair, judge_id, winner, labels, score in verdicts.values_list(*about):
        if str(judge_id) not in judge_ids:
            continue
        if winner:
            _note(by_judge[str(judge_id)], pair, winner, labels, score if is_graded else None)
        else:
            failed.append((str(judge_id), pair))
    others = {task for tasks in (*humans.values(), *by_judge.values()) for task in tasks}
    tasks = (WINNER, *sorted(others - {WINNER}))
    for (judge_id, pair), task in product(failed, tasks):
        by_judge[judge_id].setdefault(task, {})[str(pair)] = None
    baselines = frozenset(str(judge.pk) for judge in judges if judge.is_baseline)
    return RunLabels(
        by_judge, humans, {str(judge.pk): judge.name for judge in judges}, baselines, tasks
    )


def _votes_up_to(run: Run, part: Slice, up_to: int | None) -> QuerySet[Entry]:
    votes = _votes(run)
    if up_to is not None:
        votes = votes.filter(seq__lte=up_to)
    if part.kind != "group":
        return part.within(votes, run)
    groups = groups_at(run.queue.project_id, up_to)
    group_members = [human for human, group in groups.items() if group == part.value]
    return WHOLE_RUN.within(votes, run).filter(voter__pseudonym__in=group_members)


def _note(tasks: Labels, pair: UUID, winner: str, labels: Any, score: float | None) -> None:
    graded = {} if score is None else {SCORE: score}
    for task, label in {**graded, **(labels or {}), WINNER: winner}.items():
        tasks.setdefault(task, {})[str(pair)] = label
