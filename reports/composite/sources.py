"""What composites are made of, as the database has it: definitions, components, people's votes.

An item is an output. However many sources there are, each kind is one query for the whole run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import Left, TruncQuarter

from humanjudge.lib import strict_json
from humanjudge.lib.validation import ConfigError, ConfigInvalid
from judge_eval.findings.slices import WHOLE, Slice
from judge_eval.models import Judge, Run, Verdict
from reports.composite.compute import Tally, quarter_of
from reports.composite.config import (
    PLACEHOLDER,
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
from voting.choices import TABLE, VOTES_FOR, row_of
from voting.ledger.counts import counted_in
from voting.models import Entry, Inference, Item, Picture

MOST_PROPOSED = 2
PROMPT_LENGTH = 200
# A vote on a single output is kept in millionths.
ONE = 1_000_000

Tallies: TypeAlias = Iterable[tuple[UUID, Tally]]


class Pair(NamedTuple):
    """The two outputs of a pair, and how many votes that count there are for each choice."""

    a: UUID
    b: UUID
    votes: Mapping[str, int]


class Outputs:
    """The outputs of a run, or of a part of it, with all that some composites need.

    Attributes
    ----------
    pairs : mapping of output to list of pairs
        In the order of the pairs; outputs that were never paired come last. A part has only the
        outputs of its pairs.
    """

    def __init__(self, run: Run, configs: Sequence[CompositeConfig], part: Slice = WHOLE) -> None:
        self._run, self._part = run, part
        self._judges = {judge for config in configs for judge in config.judges.values()}
        self._pairs = _pairs(run, part)
        self.pairs = self._pairs_by_output()

    def components(self, config: CompositeConfig) -> dict[UUID, dict[str, float | None]]:
        """Return each output's components by name, None where there is none."""
        values = {name: self.values(config.sources[name]) for name in config.components}
        return {
            output: {name: by_output.get(output) for name, by_output in values.items()}
            for output in self.pairs
        }

    def values(self, source: Source) -> dict[UUID, float]:
        """Return the mean of what a source has on each output, of those that it has any on."""
        sums = _sums(self._tallies(source))
        return {output: tally.mean for output, tally in sums.items() if tally.number}

    def votes(self, check: str) -> dict[str, dict[UUID, Tally]]:
        """Return people's votes on each output by quarter.

        On a pair a win counts 1, a tie half, a loss and "both bad" 0. Pass and flag votes on an
        output count whichever queue of the project they came through.
        """
        quarters = defaultdict(list)
        votes = self._passes if check == "pass_rate" else self._wins_by_quarter
        for quarter, output, tally in votes:
            quarters[quarter].append((output, tally))
        return {quarter: _sums(tallies) for quarter, tallies in quarters.items()}

    def _pairs_by_output(self) -> dict[UUID, list[UUID]]:
        pairs: dict[UUID, list[UUID]] = {}
        for pk, pair in self._pairs.items():
            pairs.setdefault(pair.a, []).append(pk)
            pairs.setdefault(pair.b, []).append(pk)
        if not self._part.kind:
            for output in sorted(self._inferences.values_list("pk", flat=True)):
                pairs.setdefault(output, [])
        return pairs

    @property
    def _inferences(self) -> QuerySet[Inference]:
        compared = Item.objects.filter(queue=self._run.queue_id).order_by()
        own = Q(pk__in=compared.values("a")) | Q(pk__in=compared.values("b"))
        own |= Q(call__run=self._run)
        return Inference.objects.filter(own, project=self._run.queue.project_id)

    def _tallies(self, source: Source) -> Tallies:
        match source:
            case OfOutput(kind="win_rate"):
                return self._wins()
            case OfOutput(kind="pass_rate"):
                return ((output, tally) for _, output, tally in self._passes)
            case OfOutput():
                return self._rendered
            case Metadata():
                return _scaled(source, ((pk, data.get(source.key)) for pk, data in self._metadata))
            case Label():
                return _scaled(source, self._answers(source))
            case _:
                return self._of_verdicts(source)

    def _wins(self) -> Tallies:
        for pair in self._pairs.values():
            for choice, count in pair.votes.items():
                yield from _won(pair, choice, count)

    @cached_property
    def _rendered(self) -> list[tuple[UUID, Tally]]:
        """1 for what could be rendered or needs no rendering, 0 for a failure."""
        done, failed = Picture.State.DONE, Picture.State.FAILED
        rows = self._inferences.values_list("pk", "kind", "picture__state")
        return [
            (output, Tally(float(kind != Inference.Kind.SVG or state == done), 1))
            for output, kind, state in rows
            if kind != Inference.Kind.SVG or state in (done, failed)
        ]

    @cached_property
    def _metadata(self) -> list[tuple[UUID, Any]]:
        # It may be large and is seldom wanted, so no other query reads it.
        return list(self._inferences.values_list("pk", "metadata"))

    @cached_property
    def _verdicts(self) -> Mapping[str, list[Any]]:
        """The verdicts of the judges that are wanted, by name."""
        done = Verdict.objects.filter(judge__run=self._run, judge__name__in=self._judges)
        rows = done.filter(state=Verdict.State.DONE, item__queue=self._run.queue_id)
        names = ("judge__name", "item", "winner", "score_a", "score_b", "labels")
        by_judge = defaultdict(list)
        for verdict in rows.values_list(*names, named=True):
            if verdict.item in self._pairs:
                by_judge[verdict.judge__name].append(verdict)
        return by_judge

    def _of_verdicts(self, source: Score | OfVerdicts) -> Tallies:
        for verdict in self._verdicts[source.judge]:
            if not self._part.holds_verdict(verdict.winner):
                continue
            pair = self._pairs[verdict.item]
            if isinstance(source, Score):
                scores = (pair.a, verdict.score_a), (pair.b, verdict.score_b)
                yield from _scaled(source, scores)
            elif source.kind == "judge_wins":
                yield from _won(pair, verdict.winner, 1)
            elif votes := sum(pair.votes.values()):
                share = Tally(pair.votes.get(verdict.winner, 0) / votes, 1)
                yield from ((pair.a, share), (pair.b, share))

    def _answers(self, source: Label) -> Iterable[tuple[UUID, object]]:
        """Yield what the answers to a further task say of which output.

        On a pair, the task ``TASK_a`` is about its first output and ``TASK_b`` about the second;
        where there are none, ``TASK`` is about both.
        """
        labelled: Iterable[tuple[UUID | None, UUID | None, Any]] = self._labelled_votes
        if source.judge:
            labelled = ((v.item, None, v.labels) for v in self._verdicts[source.judge])
        for pk, output, answers in labelled:
            whole = (answers or {}).get(source.task)
            if output is not None:
                yield output, whole
            elif pk in self._pairs and answers:
                yield self._pairs[pk].a, answers.get(f"{source.task}_a", whole)
                yield self._pairs[pk].b, answers.get(f"{source.task}_b", whole)

    @cached_property
    def _labelled_votes(self) -> list[tuple[UUID | None, UUID | None, Any]]:
        # Votes on pairs of other runs in the project are about other runs.
        own = self._votes.filter(Q(queue=self._run.queue_id) | Q(inference__isnull=False))
        rows = own.filter(labels__isnull=False)
        return list(rows.values_list("item", "inference", "labels"))

    @property
    def _votes(self) -> QuerySet[Entry]:
        """Votes of the project that count and are of the run's own kind, people's or simulated."""
        queue = self._run.queue
        return Entry.objects.filter(
            counted_in(queue), project=queue.project_id, queue__is_simulated=queue.is_simulated
        ).order_by()

    @cached_property
    def _passes(self) -> list[tuple[str, UUID, Tally]]:
        votes = self._votes.filter(inference__isnull=False)
        rows = votes.annotate(quarter=_QUARTER).values_list("quarter", "inference")
        return [
            (quarter_of(at), output, Tally(total / ONE, count))
            for at, output, total, count in rows.annotate(Sum("value"), Count("pk"))
            if output in self.pairs
        ]

    @cached_property
    def _wins_by_quarter(self) -> list[tuple[str, UUID, Tally]]:
        queue = self._run.queue
        votes = Entry.objects.filter(
            counted_in(queue), queue=queue, item__isnull=False, choice__in=self._part.choices
        )
        rows = votes.annotate(quarter=_QUARTER).order_by()
        by_choice = rows.values_list("quarter", "item", "choice").annotate(Count("pk"))
        return [
            (quarter_of(at), output, tally)
            for at, pk, choice, count in by_choice
            if pk in self._pairs
            for output, tally in _won(self._pairs[pk], choice, count)
        ]


_QUARTER = TruncQuarter("at", tzinfo=UTC)


def _pairs(run: Run, part: Slice) -> dict[UUID, Pair]:
    rows = Item.objects.filter(queue=run.queue_id).order_by("position")
    about = ("a__tags", "a__generator", "b__generator") if part.kind else ()
    counts = {choice: VOTES_FOR[choice] for choice in part.choices}
    return {
        row["pk"]: Pair(row["a"], row["b"], {choice: row[name] for choice, name in counts.items()})
        for row in rows.values("pk", "a", "b", *counts.values(), *about)
        if not part.kind or part.holds(row["a__tags"], (row["a__generator"], row["b__generator"]))
    }


def _won(pair: Pair, choice: str, count: int) -> Tallies:
    """Return what as many votes, or verdicts, come to: a win is 1, a tie half."""
    for_a, for_b = row_of(choice).grades if choice in TABLE else (0.0, 0.0)
    yield pair.a, Tally(count * for_a, count)
    yield pair.b, Tally(count * for_b, count)


def _scaled(source: Score | Label | Metadata, given: Iterable[tuple[UUID, object]]) -> Tallies:
    for output, value in given:
        scaled = source.scaled(value)
        if scaled is not None:
            yield output, Tally(scaled, 1)


def _sums(tallies: Tallies) -> dict[UUID, Tally]:
    sums: dict[UUID, Tally] = {}
    for output, (total, number) in tallies:
        before = sums.get(output, Tally(0, 0))
        sums[output] = Tally(before.total + total, before.number + number)
    return sums


def prompts_and_generators(outputs: Iterable[UUID]) -> dict[UUID, tuple[str, str]]:
    """Return how a page names outputs: the beginning of the prompt, and who wrote it."""
    rows = Inference.objects.filter(pk__in=outputs).annotate(start=Left("prompt", PROMPT_LENGTH))
    return {pk: (start, name) for pk, start, name in rows.values_list("pk", "start", "generator")}


def read_config(run: Run, text: str) -> CompositeConfig:
    """Check the JSON that somebody typed in.

    Raises
    ------
    ConfigInvalid
        With all that is wrong, each mistake named by its path.
    """
    try:
        data = strict_json.loads(text)
    except strict_json.NotJson as error:
        raise ConfigInvalid([ConfigError("", f"It is {error}.")]) from error
    config, names = parse(data, needs_sources=True), judge_names(run)
    errors = [
        ConfigError(
            f"sources.{name}.judge",
            f"no judge of this run is called {judge!r}; there are {', '.join(names)}",
        )
        for name, judge in config.judges.items()
        if judge not in names
    ]
    if errors:
        raise ConfigInvalid(errors)
    return config


def example(run: Run) -> str:
    """Return JSON to start from: what judges say, or what people choose, of what renders."""
    reason, sources = PLACEHOLDER, _proposed(run)
    if not sources:
        reason = "What people choose is what the work is for."
        sources = {"preferred": {"from": "win_rate"}}
    data = {
        "label": "first",
        "weights": {name: {"weight": 1, "reason": reason} for name in sources},
        "gates": ["rendered"],
        "sources": sources | {"rendered": {"from": "rendered"}},
        "check": "win_rate",
    }
    return json.dumps(data, ensure_ascii=False, indent=2)


def _proposed(run: Run) -> dict[str, dict[str, str]]:
    """Return sources of the run's first judges: their scores, or their choices without scores."""
    done = Verdict.objects.filter(judge__run=run, state=Verdict.State.DONE)
    of_models = done.exclude(judge__provider=Judge.BASELINE).order_by("judge__position")
    for kind, verdicts in (
        ("judge_score", of_models.filter(score_a__isnull=False)),
        ("judge_wins", of_models.exclude(winner="")),
    ):
        names = list(dict.fromkeys(verdicts.values_list("judge__name", flat=True).distinct()))
        if names:
            first = enumerate(names[:MOST_PROPOSED], start=1)
            return {f"judge {place}": {"from": kind, "judge": name} for place, name in first}
    return {}


def judge_names(run: Run) -> list[str]:
    """Return the names of a run's judges in its order, each once."""
    judges = Judge.objects.filter(run=run).order_by("position")
    return list(dict.fromkeys(judges.values_list("name", flat=True)))


@transaction.atomic
def store(run: Run, config: CompositeConfig) -> CompositeDefinition:
    """Make this the run's composite. New words for the same version replace the old ones."""
    Run.objects.select_for_update().get(pk=run.pk)
    newest = CompositeDefinition.objects.filter(run=run).order_by("-id").first()
    if newest is None or newest.version != config.version:
        newest = CompositeDefinition(run=run, version=config.version)
    newest.config = config.as_json()
    newest.save()
    return newest


def versions_of(run: Run, most: int) -> list[tuple[CompositeDefinition, CompositeConfig]]:
    """Return the run's composites, each version once, the one that counts first."""
    newest: dict[str, CompositeDefinition] = {}
    for row in CompositeDefinition.objects.filter(run=run).order_by("-id")[: 4 * most]:
        newest.setdefault(row.version, row)
    rows = list(newest.values())[:most]
    return [(row, parse(json.loads(row.config), needs_sources=True)) for row in rows]
