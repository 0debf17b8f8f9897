"""What judges and people said of a run's outputs: scores, further labels, votes by quarter."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from statistics import fmean
from typing import Final
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncQuarter

from judge_eval.analysis.slices import WHOLE, Slice
from judge_eval.models import Run, Verdict
from reports.composite_config import Source
from reports.composite_drift import Said, quarter_of
from voting.models import Entry
from voting.projection import counted_in

ONE: Final = 1_000_000

Values = Mapping[UUID, float]


@dataclass(frozen=True)
class Pair:
    """Which outputs a pair holds, and how many votes that count there are for each choice."""

    a: UUID
    b: UUID
    counts: Mapping[str, int]

    @property
    def votes(self) -> int:
        return sum(self.counts.values())

    @property
    def wins_a(self) -> float:
        return self.counts["A"] + self.counts.get("tie", 0) / 2

    @property
    def wins_b(self) -> float:
        return self.counts["B"] + self.counts.get("tie", 0) / 2

    def agreement(self, winner: str) -> float | None:
        """Return the share of the votes that are what a judge said, None where nobody voted."""
        return self.counts.get(winner, 0) / self.votes if self.votes else None


def plus(said: Said, total: float, votes: int) -> Said:
    return Said(said.total + total, said.votes + votes)


def by_judges(
    run: Run, pairs: Mapping[UUID, Pair], sources: Sequence[Source], part: Slice = WHOLE
) -> dict[Source, Values]:
    """Return what judges' verdicts say of outputs, averaged over the pairs of each."""
    if not sources:
        return {}
    gathered: dict[Source, dict[UUID, list[float]]] = {s: defaultdict(list) for s in sources}
    verdicts = _verdicts(run, sources)
    names = ("judge__name", "comparison", "winner", "score_a", "score_b")
    for judge, place, winner, *scores in verdicts.values_list(*names):
        pair = pairs.get(place)
        if pair is None or not part.holds_verdict(winner):
            continue
        for source in sources:
            if source.judge == judge:
                of_a, of_b = _of_verdict(source, pair, winner, scores)
                _add(gathered[source][pair.a], source, of_a)
                _add(gathered[source][pair.b], source, of_b)
    return _means(gathered)


def _of_verdict(
    source: Source, pair: Pair, winner: str, scores: Sequence[float | None]
) -> Sequence[float | None]:
    """Return what one verdict says of a pair's first output, and of its second."""
    if source.kind == "agreement":
        return [pair.agreement(winner)] * 2
    if source.kind == "judge_wins":
        return [won(winner, "A"), won(winner, "B")]
    return scores


def won(choice: str, side: str) -> float:
    """Return what a choice comes to for a side: a win is 1, a tie half."""
    return 0.5 if choice == "tie" else float(choice == side)


def labels(run: Run, pairs: Mapping[UUID, Pair], sources: Sequence[Source]) -> dict[Source, Values]:
    """Return what further tasks say of outputs, averaged over who answered them.

    On a pair, the task ``TASK_a`` is about its first output and ``TASK_b`` about the second; where
    there are none, ``TASK`` is about both.
    """
    gathered: dict[Source, dict[UUID, list[float]]] = {s: defaultdict(list) for s in sources}
    by_people = [source for source in sources if not source.judge]
    by_judges = [source for source in sources if source.judge]
    for judge, about in _answers(run, pairs, people=bool(by_people), judges=by_judges):
        for source in sources:
            if source.judge == judge:
                for item, label in about(source.key):
                    _add(gathered[source][item], source, label)
    return _means(gathered)


def _answers(
    run: Run, pairs: Mapping[UUID, Pair], *, people: bool, judges: Sequence[Source]
) -> Iterator[tuple[str, Callable[[str], list[tuple[UUID, object]]]]]:
    """Yield who answered, and what a task's answer says of which output."""
    if people:
        votes = votes_of(run).filter(labels__isnull=False)
        # Votes on pairs of other runs in the project are about other runs.
        mine = votes.filter(Q(queue=run.queue_id) | Q(inference__isnull=False))
        for pair, item, answers in mine.values_list("comparison", "inference", "labels"):
            if pair in pairs:
                yield "", partial(_of_pair, answers or {}, pairs[pair])
            elif item is not None:
                yield "", partial(_of_item, answers or {}, item)
    if judges:
        rows = _verdicts(run, judges).filter(labels__isnull=False)
        for judge, pair, answers in rows.values_list("judge__name", "comparison", "labels"):
            if pair in pairs:
                yield judge, partial(_of_pair, answers or {}, pairs[pair])


def _of_item(answers: Mapping[str, object], item: UUID, task: str) -> list[tuple[UUID, object]]:
    return [(item, answers.get(task))]


def _of_pair(answers: Mapping[str, object], pair: Pair, task: str) -> list[tuple[UUID, object]]:
    whole = answers.get(task)
    sides = ((pair.a, f"{task}_a"), (pair.b, f"{task}_b"))
    return [(side, answers.get(name, whole)) for side, name in sides]


def _verdicts(run: Run, sources: Sequence[Source]) -> QuerySet[Verdict]:
    names = {source.judge for source in sources}
    done = Verdict.objects.filter(judge__run=run, judge__name__in=names)
    return done.filter(state=Verdict.State.DONE, comparison__queue=run.queue_id)


def _add(values: list[float], source: Source, given: object) -> None:
    scaled = source.scaled(given)
    if scaled is not None:
        values.append(scaled)


def _means(gathered: Mapping[Source, Mapping[UUID, list[float]]]) -> dict[Source, Values]:
    return {
        source: {item: fmean(values) for item, values in found.items() if values}
        for source, found in gathered.items()
    }


def votes_of(run: Run) -> QuerySet[Entry]:
    """Votes of the run's project that count and are of the run's own kind, people's or pretend."""
    queue = run.queue
    return Entry.objects.filter(
        counted_in(queue), project=queue.project_id, queue__is_simulated=queue.is_simulated
    )


def passes(run: Run, items: Collection[UUID]) -> dict[str, dict[UUID, Said]]:
    """Return the sums of pass and flag votes on the run's outputs by quarter."""
    votes = votes_of(run).filter(inference__isnull=False).order_by()
    rows = votes.annotate(quarter=TruncQuarter("at", tzinfo=UTC)).values_list(
        "quarter", "inference"
    )
    quarters: dict[str, dict[UUID, Said]] = defaultdict(dict)
    for quarter, item, total, number in rows.annotate(Sum("value"), Count("pk")):
        if item in items:
            quarters[quarter_of(quarter)][item] = Said(total / ONE, number)
    return dict(quarters)


def wins_by_quarter(
    run: Run, pairs: Mapping[UUID, Pair], part: Slice = WHOLE
) -> dict[str, dict[UUID, Said]]:
    votes = Entry.objects.filter(
        counted_in(run.queue), queue=run.queue_id, comparison__isnull=False, choice__in=part.choices
    ).order_by()
    rows = votes.annotate(quarter=TruncQuarter("at", tzinfo=UTC)).values_list(
        "quarter", "comparison", "choice"
    )
    quarters: dict[str, dict[UUID, Said]] = defaultdict(lambda: defaultdict(lambda: Said(0, 0)))
    for at, comparison, choice, number in rows.annotate(Count("pk")):
        pair = pairs.get(comparison)
        if pair is None:
            continue
        said = quarters[quarter_of(at)]
        for item, side in ((pair.a, "A"), (pair.b, "B")):
            said[item] = plus(said[item], won(choice, side) * number, number)
    return {quarter: dict(said) for quarter, said in quarters.items()}
