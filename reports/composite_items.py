"""The components of a run's outputs, and what people said of them, as the database has them.

An item is an output. Every kind of source is one query for the whole run, however many there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Left

from judge_eval.analysis.slices import WHOLE, Slice
from judge_eval.models import Run
from reports.composite_config import OF_JUDGES, CompositeConfig, Source
from reports.composite_drift import Said
from reports.composite_said import (
    Pair,
    Values,
    by_judges,
    labels,
    passes,
    plus,
    wins_by_quarter,
)
from voting.models import Comparison, Inference, Picture

_SHOWN: Final = 200


@dataclass
class RunItem:
    """One output: what it is called on a page, and the pairs that it stands in."""

    pk: UUID
    prompt: str
    generator: str
    kind: str
    picture: str
    metadata: Mapping[str, Any]
    pairs: list[UUID] = field(default_factory=list)


@dataclass(frozen=True)
class RunItems:
    """A run's outputs with all that some configs need."""

    items: Mapping[UUID, RunItem]
    values: Mapping[Source, Values]
    people: Mapping[str, Mapping[str, Mapping[UUID, Said]]]

    def components(self, config: CompositeConfig) -> dict[UUID, dict[str, float | None]]:
        """Return each output's components by name, None where there is none."""
        sources = {name: self.values[config.sources[name]] for name in config.components}
        return {
            item: {name: values.get(item) for name, values in sources.items()}
            for item in self.items
        }


def items_of_run(run: Run, configs: Sequence[CompositeConfig], part: Slice = WHOLE) -> RunItems:
    """Read what some composites of a run are made of, and what people said, by quarter.

    Of a part only the outputs of its pairs, and what was said of them in these pairs.

    Of the votes on pairs a win counts 1, a tie half, a loss and "both bad" 0. Pass and flag votes
    on an output count whichever queue of the project they came through.
    """
    sources = {source for config in configs for source in config.sources.values()}
    kinds = {source.kind for source in sources}
    checks = {config.check for config in configs}
    pairs = _pairs(run, part)
    items = _items(run, pairs, with_metadata="metadata" in kinds)
    if part.kind:
        inside = {side for pair in pairs.values() for side in (pair.a, pair.b)}
        items = {pk: item for pk, item in items.items() if pk in inside}
    passed = passes(run, items) if "pass_rate" in kinds | checks else {}
    people: dict[str, Mapping[str, Mapping[UUID, Said]]] = {"pass_rate": passed}
    if "win_rate" in checks:
        people["win_rate"] = wins_by_quarter(run, pairs, part)
    values: dict[Source, Values] = {}
    for source in sources:
        if source.kind == "win_rate":
            values[source] = _win_rates(pairs.values())
        elif source.kind == "pass_rate":
            values[source] = _rates(passed.values())
        elif source.kind == "rendered":
            values[source] = _rendered(items.values())
        elif source.kind == "metadata":
            values[source] = _metadata(items.values(), source)
    of_judges = [source for source in sources if source.kind in OF_JUDGES]
    values |= by_judges(run, pairs, of_judges, part)
    values |= labels(run, pairs, [source for source in sources if source.kind == "label"])
    return RunItems(items, values, people)


def _pairs(run: Run, part: Slice) -> dict[UUID, Pair]:
    rows = Comparison.objects.filter(queue=run.queue_id).order_by("position")
    counts = [(choice, f"votes_{choice.lower()}") for choice in part.choices]
    about = ("a__tags", "a__generator", "b__generator") if part.kind else ()
    found = {}
    for row in rows.values("pk", "a", "b", *(name for _, name in counts), *about):
        if part.kind and not part.holds(row["a__tags"], (row["a__generator"], row["b__generator"])):
            continue
        votes: dict[str, int] = {choice: row[name] for choice, name in counts}
        found[row["pk"]] = Pair(row["a"], row["b"], votes)
    return found


def _items(run: Run, pairs: Mapping[UUID, Pair], *, with_metadata: bool) -> dict[UUID, RunItem]:
    """Return the outputs in the order of their pairs; those that were never paired come last."""
    compared = Comparison.objects.filter(queue=run.queue_id).order_by()
    rows = Inference.objects.filter(
        Q(pk__in=compared.values("a")) | Q(pk__in=compared.values("b")) | Q(call__run=run),
        project=run.queue.project_id,
    ).annotate(shown=Left("prompt", _SHOWN))
    names = ("pk", "shown", "generator", "kind", "picture__state")
    # Metadata may be large, and seldom matters.
    extra = ("metadata",) if with_metadata else ()
    found: dict[UUID, RunItem] = {}
    for pk, prompt, generator, kind, picture, *metadata in rows.values_list(*names, *extra):
        found[pk] = RunItem(
            pk, prompt, generator, kind, picture or "", (metadata or [None])[0] or {}
        )
    for pk, pair in pairs.items():
        found[pair.a].pairs.append(pk)
        found[pair.b].pairs.append(pk)
    in_order = dict.fromkeys(side for pair in pairs.values() for side in (pair.a, pair.b))
    rest = sorted(found.keys() - in_order.keys())
    return {pk: found[pk] for pk in [*in_order, *rest]}


def _win_rates(pairs: Iterable[Pair]) -> Values:
    won: dict[UUID, Said] = defaultdict(lambda: Said(0, 0))
    for pair in pairs:
        won[pair.a] = plus(won[pair.a], pair.wins_a, pair.votes)
        won[pair.b] = plus(won[pair.b], pair.wins_b, pair.votes)
    return {item: said.rate for item, said in won.items() if said.votes}


def _rates(quarters: Iterable[Mapping[UUID, Said]]) -> Values:
    whole: dict[UUID, Said] = defaultdict(lambda: Said(0, 0))
    for quarter in quarters:
        for item, said in quarter.items():
            whole[item] = plus(whole[item], said.total, said.votes)
    return {item: said.rate for item, said in whole.items()}


def _rendered(items: Iterable[RunItem]) -> Values:
    """1 for a drawing that could be rendered and for what needs no rendering, 0 for a failure."""
    drawn: dict[str, float] = {Picture.State.DONE: 1.0, Picture.State.FAILED: 0.0}
    svg = Inference.Kind.SVG
    known = {item.pk: 1.0 if item.kind != svg else drawn.get(item.picture) for item in items}
    return {item: value for item, value in known.items() if value is not None}


def _metadata(items: Iterable[RunItem], source: Source) -> Values:
    known = {item.pk: source.scaled(item.metadata.get(source.key)) for item in items}
    return {item: value for item, value in known.items() if value is not None}
