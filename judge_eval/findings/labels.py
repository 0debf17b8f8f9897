"""What people and judges said in a run, as the metrics read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple
from uuid import UUID

from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Judge, Run, Verdict
from judge_eval.stats import Annotations
from voting.ledger.counts import counted_in
from voting.models import Entry, Item

WINNER: Final = "winner"
# By who, task and item.
Labels = dict[str, dict[str, dict[Hashable, object]]]


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
    """Read a run's labels with three queries, whatever its size; of a part of it with four.

    With `up_to` only votes up to this entry of the ledger.
    """
    is_inside = _inside(run, part)
    judges = list(Judge.objects.filter(run=run).order_by("position").only("name", "provider"))
    upto = {} if up_to is None else {"seq__lte": up_to}
    votes = Entry.objects.filter(
        counted_in(run.queue), queue=run.queue_id, item__isnull=False, **upto
    )
    humans: Labels = {}
    rows = votes.order_by("seq").values_list("item_id", "voter__pseudonym", "choice", "labels")
    for pair, human, choice, labels in rows.iterator():
        if is_inside(pair, choice):
            _note(humans.setdefault(human, {}), pair, choice, labels)
    by_judge: Labels = {str(judge.pk): {} for judge in judges}
    failed: list[tuple[str, UUID]] = []
    final = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.WAITING)
    given = final.order_by("item__position").values_list("item_id", "judge_id", "winner", "labels")
    for pair, by, winner, labels in given.iterator():
        if winner and is_inside(pair, winner):
            _note(by_judge[str(by)], pair, winner, labels)
        elif is_inside(pair, winner):
            failed.append((str(by), pair))
    others = {task for tasks in (*humans.values(), *by_judge.values()) for task in tasks}
    tasks = (WINNER, *sorted(others - {WINNER}))
    for (who, pair), task in product(failed, tasks):
        by_judge[who].setdefault(task, {})[str(pair)] = None
    names = {str(judge.pk): judge.name for judge in judges}
    baselines = frozenset(str(judge.pk) for judge in judges if judge.is_baseline)
    return RunLabels(by_judge, humans, names, baselines, tasks)


def _inside(run: Run, part: Slice) -> Callable[[UUID, str], bool]:
    """Return what says whether a vote or verdict on a pair is in a part; a failure may be."""
    if part.kind == "ballot":
        return lambda pair, choice: choice in {*part.choices, ""}
    if not part.kind:
        return lambda pair, choice: True
    columns = ("pk", "a__tags", "a__generator", "b__generator")
    rows = Item.objects.filter(queue=run.queue_id).values_list(*columns)
    inside = {pk for pk, tags, a, b in rows.iterator() if part.holds(tags, (a, b))}
    return lambda pair, choice: pair in inside


def _note(tasks: dict[str, dict[Hashable, object]], pair: UUID, winner: str, labels: Any) -> None:
    for task, label in {**(labels or {}), WINNER: winner}.items():
        tasks.setdefault(task, {})[str(pair)] = label
