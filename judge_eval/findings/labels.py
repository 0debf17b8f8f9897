"""What people and judges said in a run, as the metrics read it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Judge, Run, Verdict
from judge_eval.stats import Annotations
from voting.ledger.counts import counted_in
from voting.models import Entry, Item

WINNER: Final = "winner"
Tasks = dict[str, dict[Hashable, object]]
Said = dict[str, Tasks]


@dataclass(frozen=True)
class RunLabels:
    """Everything that was said in a run and counts.

    Attributes
    ----------
    judges : Annotations
        By the judge's id, in the run's order of judges: ``{judge: {task: {comparison: label}}}``.
        A verdict that failed is None, a missing label, on each of the run's tasks.
    humans : Annotations
        By the voter's pseudonym.
    names : mapping of str to str
        The judges' names by their ids.
    baselines : frozenset of str
        The ids of those that are baselines.
    tasks : tuple of str
        ``winner`` first, then whatever else was answered with votes and verdicts, by name.
    """

    judges: Annotations
    humans: Annotations
    names: Mapping[str, str]
    baselines: frozenset[str]
    tasks: tuple[str, ...]


def labels_of(run: Run, part: Slice = WHOLE, *, up_to: int | None = None) -> RunLabels:
    """Read a run's labels with three queries, whatever its size; of a part of it with four.

    Parameters
    ----------
    run : Run
        With its queue.
    part : Slice, optional
        Only labels of this part.
    up_to : int, optional
        Only votes up to this entry of the ledger.
    """
    is_inside = _inside(run, part)
    judges = list(Judge.objects.filter(run=run).order_by("position").only("name", "provider"))
    names = {str(judge.pk): judge.name for judge in judges}
    humans: Said = {}
    for pair, human, choice, labels in _votes(run, up_to):
        if is_inside(pair, choice):
            _note(humans.setdefault(human, {}), str(pair), choice, labels)
    said: Said = {judge: {} for judge in names}
    failed: list[tuple[str, str]] = []
    for pair, judge, winner, labels in _verdicts(run):
        if not is_inside(pair, winner):
            continue
        if winner:
            _note(said[str(judge)], str(pair), winner, labels)
        else:
            failed.append((str(judge), str(pair)))
    tasks = _tasks([*humans.values(), *said.values()])
    for judge_id, item in failed:
        for task in tasks:
            said[judge_id].setdefault(task, {})[item] = None
    baselines = frozenset(str(judge.pk) for judge in judges if judge.is_baseline)
    return RunLabels(said, humans, names, baselines, tasks)


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


def _votes(
    run: Run, up_to: int | None
) -> Iterable[tuple[UUID, str, str, Mapping[str, object] | None]]:
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id, item__isnull=False)
    if up_to is not None:
        votes = votes.filter(seq__lte=up_to)
    columns = ("item_id", "voter__pseudonym", "choice", "labels")
    return votes.order_by("seq").values_list(*columns).iterator()


def _verdicts(run: Run) -> Iterable[tuple[UUID, UUID, str, Mapping[str, object] | None]]:
    """Yield verdicts that are final; one that failed has no winner."""
    final = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.WAITING)
    columns = ("item_id", "judge_id", "winner", "labels")
    return final.order_by("item__position").values_list(*columns).iterator()


def _note(
    tasks: Tasks,
    item: str,
    winner: str,
    labels: Mapping[str, object] | None,
) -> None:
    for task, label in {**(labels or {}), WINNER: winner}.items():
        tasks.setdefault(task, {})[item] = label


def _tasks(everybody: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    found = {task for tasks in everybody for task in tasks}
    return (WINNER, *sorted(found - {WINNER}))
