"""What people and judges said in a run, as the metrics read it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import product
from typing import Any, Final, NamedTuple
from uuid import UUID

from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Judge, Run, Verdict
from judge_eval.stats import Annotations
from voting.ledger.counts import counted_in
from voting.models import Entry

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
    """Read the labels of a run, or of a part of it, with three queries, whatever its size.

    With `up_to` only votes up to this entry of the ledger.
    """
    judges = list(Judge.objects.filter(run=run).order_by("position").only("name", "provider"))
    votes = Entry.objects.filter(counted_in(run.queue), queue=run.queue_id, item__isnull=False)
    given = Verdict.objects.filter(judge__run=run).exclude(state=Verdict.State.WAITING)
    if up_to is not None:
        votes = votes.filter(seq__lte=up_to)
    if part.kind:
        votes = votes.filter(item__in=part.pairs(run), choice__in=part.choices)
        # A verdict that failed is in any part of votes.
        given = given.filter(item__in=part.pairs(run), winner__in=("", *part.verdicts))
    humans: Labels = {}
    rows = votes.order_by("seq").values_list("item_id", "voter__pseudonym", "choice", "labels")
    for pair, human, choice, labels in rows.iterator():
        _note(humans.setdefault(human, {}), pair, choice, labels)
    by_judge: Labels = {str(judge.pk): {} for judge in judges}
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
