"""What composites are made of, as the database has it: definitions, components, people's votes.

An item is an output. However many sources there are, each kind is one query for the whole run.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Case, Count, Q, QuerySet, Sum, Value, When
from django.db.models.functions import TruncQuarter

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import listed
from humanjudge.core.validation import ConfigError, ConfigInvalid
from judge_eval.board.filters import WHOLE_RUN, Slice
from judge_eval.models import Judge, Run, Verdict
from judge_eval.runs.queries import counts_as_judge
from reports.composite.compute import Tally, quarter_of
from reports.composite.config import (
    LONGEST_NAME,
    NAME,
    CompositeConfig,
    Label,
    Metadata,
    OfOutput,
    OfVerdicts,
    Score,
    Source,
    parse,
)
from reports.models import CompositeDefinition
from voting.ballot.tuning import HIDDEN
from voting.items.choices import MILLION, PASS_FLAG, TABLE, VOTES_FOR, row_of
from voting.items.kinds import kind_of
from voting.ledger.counts import counted_in
from voting.models import Entry, Inference, Item, Picture

MOST_PROPOSED = 2
# Votes, verdicts and outputs that are looked at for the names of tasks and of metadata.
MOST_READ = 200
# A vote on a single output is kept in millionths.
_QUARTER = TruncQuarter("at", tzinfo=UTC)

# Of an output: the sum of some values, and how many.
Sums: TypeAlias = Iterable[tuple[UUID, float, int]]


class VotedPair(NamedTuple):
    """The outputs of an item, and how many votes that count there are for each choice."""

    outputs: Sequence[UUID]
    votes: Mapping[str, int]

    def won(self, choice: str, count: int) -> Sums:
        """Return what as many votes, or verdicts, come to: a win or a pass is 1, a tie half."""
        grades = row_of(choice).grades if choice in TABLE else (0.0, 0.0)
        # A single output has only the first grade.
        return [(o, count * grade, count) for o, grade in zip(self.outputs, grades, strict=False)]


class Outputs:
    """The outputs of a run, or of a part of it, with all that some composites need.

    `pairs` are the pairs of each output, in their order; outputs that were never paired come last.
    A part has only the outputs of its pairs.
    """

    def __init__(
        self, run: Run, configs: Sequence[CompositeConfig], part: Slice = WHOLE_RUN
    ) -> None:
        self._run, self._part = run, part
        self._judges = {judge for config in configs for judge in config.judges.values()}
        self._compared = _items(run, part)
        self.pairs: dict[UUID, list[UUID]] = {}
        for pk, item in self._compared.items():
            for output in item.outputs:
                self.pairs.setdefault(output, []).append(pk)
        if not part.kind:
            for output in sorted(_inferences(self._run).values_list("pk", flat=True)):
                self.pairs.setdefault(output, [])

    def components(self, config: CompositeConfig) -> dict[UUID, dict[str, float | None]]:
        values = {name: self.values(config.sources[name]) for name in config.components}
        return {
            output: {name: by_output.get(output) for name, by_output in values.items()}
            for output in self.pairs
        }

    def values(self, source: Source) -> dict[UUID, float]:
        """Return the mean of what a source has on each output, of those that it has any on."""
        sums: Sums
        match source:
            case OfOutput(kind="win_rate"):
                items = self._compared.values()
                sums = (won for i in items for tally in i.votes.items() for won in i.won(*tally))
            case OfOutput(kind="pass_rate"):
                sums = (row[1:] for row in self._passes)
            case OfOutput():
                sums = self._rendered
            case Metadata():
                sums = _scaled(source, ((pk, data.get(source.key)) for pk, data in self._metadata))
            case Label():
                sums = _scaled(source, self._answers(source))
            case _:
                sums = self._of_verdicts(source)
        tallies = _added(sums)
        return {output: total / count for output, (total, count) in tallies.items() if count}

    def without(self, config: CompositeConfig) -> str:
        """Say which judges of a composite are left out: then it has no value on any output."""
        left_out = sorted(self._left_out & {*config.judges.values()})
        verb = "is" if len(left_out) == 1 else "are"
        return f"{listed(left_out)} {verb} left out of this run" if left_out else ""

    @cached_property
    def _left_out(self) -> set[str]:
        return judges_left_out(self._run)

    def votes(self, check: str) -> dict[str, dict[UUID, Tally]]:
        """Return people's votes on each output by quarter.

        On a pair a win counts 1, a tie half, a loss and "both bad" 0. Pass and flag votes on an
        output count whichever queue of the project they came through.
        """
        quarters = defaultdict(list)
        for cast_at, pk, total, count in self._passes if check == "pass_rate" else self._wins():
            quarters[quarter_of(cast_at)].append((pk, total, count))
        # In one order always: random draws depend on it.
        return {quarter: _added(sorted(sums)) for quarter, sums in quarters.items()}

    @cached_property
    def _rendered(self) -> list[tuple[UUID, float, int]]:
        """1 for what could be rendered or needs no rendering, 0 for a failure."""
        done, failed = Picture.State.DONE, Picture.State.FAILED
        rows = _inferences(self._run).values_list("pk", "kind", "picture__state")
        return [
            (output, float(kind != Inference.Kind.SVG or state == done), 1)
            for output, kind, state in rows
            if kind != Inference.Kind.SVG or state in (done, failed)
        ]

    @cached_property
    def _metadata(self) -> list[tuple[UUID, Any]]:
        # It may be large and is seldom wanted, so no other query reads it.
        return list(_inferences(self._run).values_list("pk", "metadata"))

    @cached_property
    def _verdicts(self) -> Mapping[str, list[Any]]:
        done = _verdicts(self._run).filter(judge__name__in=self._judges)
        rows = done.filter(item__queue=self._run.queue_id)
        names = ("judge__name", "item", "winner", "score_a", "score_b", "labels")
        by_judge = defaultdict(list)
        for verdict in rows.values_list(*names, named=True):
            if verdict.item in self._compared:
                by_judge[verdict.judge__name].append(verdict)
        return by_judge

    def _of_verdicts(self, source: Score | OfVerdicts) -> Iterator[tuple[UUID, float, int]]:
        for verdict in self._verdicts[source.judge]:
            if self._part.kind == "ballot" and verdict.winner not in self._part.verdicts:
                continue
            item = self._compared[verdict.item]
            if isinstance(source, Score):
                scores = (verdict.score_a, verdict.score_b)
                yield from _scaled(source, zip(item.outputs, scores, strict=False))
            elif source.kind == "judge_wins":
                yield from item.won(verdict.winner, 1)
            elif votes := sum(item.votes.values()):
                share = item.votes.get(verdict.winner, 0) / votes
                yield from ((output, share, 1) for output in item.outputs)

    def _answers(self, source: Label) -> Iterator[tuple[UUID, object]]:
        """Yield what the answers to a further task say of which output.

        On a pair, the task ``TASK_a`` is about its first output and ``TASK_b`` about the second;
        where there are none, ``TASK`` is about both.
        """
        labelled: Iterable[tuple[UUID | None, UUID | None, Any]] = self._labelled_votes
        if source.judge:
            labelled = ((v.item, None, v.labels) for v in self._verdicts[source.judge])
        for pk, output, answers in labelled:
            answer = (answers or {}).get(source.task)
            if output is not None:
                yield output, answer
            elif pk in self._compared and answers:
                for side, about in zip("ab", self._compared[pk].outputs, strict=False):
                    yield about, answers.get(f"{source.task}_{side}", answer)

    @cached_property
    def _labelled_votes(self) -> list[tuple[UUID | None, UUID | None, Any]]:
        output = Case(When(item__b__isnull=True, then="item__a"))
        return list(_labelled(self._run).values_list("item", output, "labels"))

    @cached_property
    def _passes(self) -> list[tuple[datetime, UUID, float, int]]:
        votes = _votes(self._run).filter(value__isnull=False).annotate(quarter=_QUARTER)
        rows = votes.values_list("quarter", "item__a").annotate(Sum("value"), Count("pk"))
        return [(time, pk, total / MILLION, n) for time, pk, total, n in rows if pk in self.pairs]

    def _wins(self) -> Iterator[tuple[datetime, UUID, float, int]]:
        votes = _votes(self._run).filter(queue=self._run.queue_id, choice__in=self._part.choices)
        rows = votes.annotate(quarter=_QUARTER).values_list("quarter", "item", "choice")
        for cast_at, pk, choice, count in rows.annotate(Count("pk")):
            if pk in self._compared:
                yield from ((cast_at, *won) for won in self._compared[pk].won(choice, count))


def _inferences(run: Run) -> QuerySet[Inference]:
    compared = Item.objects.filter(queue=run.queue_id).order_by()
    is_of_run = Q(pk__in=compared.values("a")) | Q(pk__in=compared.values("b")) | Q(call__run=run)
    return Inference.objects.filter(is_of_run, project=run.queue.project_id)


def _votes(run: Run) -> QuerySet[Entry]:
    """Votes of the project that count and are of the run's own kind, people's or simulated."""
    queue = run.queue
    votes = Entry.objects.filter(
        counted_in(queue), project=queue.project_id, queue__is_simulated=queue.is_simulated
    )
    return votes.exclude(HIDDEN).order_by()


def _labelled(run: Run) -> QuerySet[Entry]:
    # In other runs of the project an output of this one may be voted on by itself.
    is_of_run = Q(queue=run.queue_id) | Q(item__b__isnull=True, item__a__in=_inferences(run))
    return _votes(run).filter(is_of_run).exclude(labels=None)


def _items(run: Run, part: Slice) -> dict[UUID, VotedPair]:
    counts = {choice: VOTES_FOR[choice] for choice in (*part.choices, *PASS_FLAG)}
    rows = part.pairs(run).order_by("position").values("pk", "a", "b", *counts.values())
    return {
        row["pk"]: VotedPair(
            [row[side] for side in "ab" if row[side]],
            {choice: row[name] for choice, name in counts.items()},
        )
        for row in rows
    }


def _scaled(source: Score | Label | Metadata, values: Iterable[tuple[UUID, object]]) -> Sums:
    scaled = ((output, source.scaled(value)) for output, value in values)
    return ((output, value, 1) for output, value in scaled if value is not None)


def _added(sums: Sums) -> dict[UUID, Tally]:
    tallies = defaultdict[UUID, Tally](lambda: Tally(0, 0))
    for output, total, number in sums:
        before = tallies[output]
        tallies[output] = Tally(before.total + total, before.number + number)
    return dict(tallies)


# --- definitions --------------------------------------------------------------------------------


def read_config(run: Run, data: object) -> CompositeConfig:
    config, names = parse(data, needs_sources=True), judge_names(run)
    left_out = judges_left_out(run)
    errors = [
        ConfigError(
            f"sources.{name}.judge",
            f"{judge} is left out of this run: take it back, or choose another"
            if judge in left_out
            else f"no judge of this run is called {judge!r}; there are {', '.join(names)}",
        )
        for name, judge in config.judges.items()
        if judge not in names
    ]
    if errors:
        raise ConfigInvalid(errors)
    return config


def proposal(run: Run) -> JsonObject:
    """Return data to start from: scores of the first judges, else their choices, else people's."""
    done = _verdicts(run).exclude(judge__provider=Judge.BASELINE).order_by("judge__position")
    scored = done.filter(score_a__isnull=False)
    kind, verdicts = (
        ("judge_score", scored) if scored.exists() else ("judge_wins", done.exclude(winner=""))
    )
    names = dict.fromkeys(verdicts.values_list("judge__name", flat=True).distinct())
    # What a component may be called.
    free = {name for name in names if len(name) <= LONGEST_NAME and re.fullmatch(NAME, name)}
    free -= {"rendered"}
    sources: dict[str, dict[str, str]] = {
        name if name in free else f"judge {place}": {"from": kind, "judge": name}
        for place, name in enumerate([*names][:MOST_PROPOSED], start=1)
    }
    reason = "Judges count alike" if sources else "What people choose is what the work is for"
    people = kind_of(run.queue).shares[0]
    sources = sources or {"preferred": {"from": people}}
    return {
        "label": "first",
        "weights": {name: {"weight": 1, "reason": f"{reason}."} for name in sources},
        "gates": ["rendered"],
        "sources": sources | {"rendered": {"from": "rendered"}},
        "check": people,
    }


def offered(run: Run) -> list[dict[str, str]]:
    """Return the sources that a run has, as a config writes them, without their rules."""
    votes, judges = kind_of(run.queue).shares, []
    done, tasks = _verdicts(run), set[tuple[str, str]]()
    scored = {*done.filter(score_a__isnull=False).values_list("judge__name", flat=True).distinct()}
    for name in judge_names(run):
        kinds = [*(["judge_score"] if name in scored else []), "judge_wins", "agreement"]
        judges += [{"from": kind, "judge": name} for kind in kinds]
    verdicts = done.exclude(labels=None).values_list("judge__name", "labels")
    people = _labelled(run).values_list(Value(""), "labels")
    for judge, labels in (*people[:MOST_READ], *verdicts[:MOST_READ]):
        tasks |= {(re.sub("_[ab]$", "", task), judge) for task in labels}
    keys = {
        key
        for data in _inferences(run).values_list("metadata", flat=True)[:MOST_READ]
        for key, value in (data or {}).items()
        if isinstance(value, str | int | float)
    }
    return [
        *({"from": kind} for kind in (*votes, "rendered")),
        *judges,
        *(
            {"from": "label", "task": task} | ({"judge": judge} if judge else {})
            for task, judge in sorted(tasks)
        ),
        *({"from": "metadata", "key": key} for key in sorted(keys)),
    ]


def _verdicts(run: Run) -> QuerySet[Verdict]:
    counts = counts_as_judge("judge__")
    verdicts = Verdict.objects.filter(counts, judge__run=run, state=Verdict.State.DONE)
    # What judges say of items that are not open yet is in no ledger.
    return verdicts.filter(item__opened_at__isnull=False).exclude(HIDDEN)


def judge_names(run: Run) -> list[str]:
    judges = Judge.objects.filter(counts_as_judge(), run=run).order_by("position")
    return list(dict.fromkeys(judges.values_list("name", flat=True)))


def judges_left_out(run: Run) -> set[str]:
    left_out = run.judges.filter(rating__is_left_out=True).values_list("name", flat=True)
    return {*left_out} - {*judge_names(run)}


@transaction.atomic
def store(run: Run, config: CompositeConfig) -> CompositeDefinition:
    """Make this the run's composite. New words for the same version replace the old ones."""
    Run.objects.select_for_update().get(pk=run.pk)
    newest = CompositeDefinition.objects.filter(run=run).order_by("-id").first()
    if newest is None or newest.version != config.version:
        newest = CompositeDefinition(run=run, version=config.version)
    newest.config = json.dumps(config.as_data)
    newest.save()
    return newest


def versions_of(run: Run, most: int) -> list[tuple[CompositeDefinition, CompositeConfig]]:
    """Return the run's composites, each version once, the one that counts first."""
    newest: dict[str, CompositeDefinition] = {}
    for row in CompositeDefinition.objects.filter(run=run).order_by("-id")[: 4 * most]:
        newest.setdefault(row.version, row)
    rows = list(newest.values())[:most]
    return [(row, parse(json.loads(row.config), needs_sources=True)) for row in rows]
