"""What the composite page shows: words and rounded numbers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from judge_eval.metrics.resampling import Resampling
from reports.composite import CompositeRow, composite_table
from reports.composite_config import CompositeConfig, Source
from reports.composite_drift import Drift, drift, drift_in_words
from reports.composite_items import RunItem, RunItems
from reports.models import CompositeDefinition

DASH = "\N{EN DASH}"
MOST_QUARTERS = 8
# A page may not wait for the narrowest interval: so many ranks are drawn, at least 200 times each.
_RANKS_DRAWN = 300_000


@dataclass(frozen=True)
class ShownWeight:
    """A line of how the composite is made."""

    name: str
    weight: str
    share: str
    reason: str
    source: str
    is_gate: bool


@dataclass(frozen=True)
class ShownRow:
    """A line of the table; of an output that is closed to its reader no number is shown."""

    item: RunItem
    pair: UUID | None
    cells: tuple[str, ...]
    composite: str
    failed_gate: str
    error: str
    is_closed: bool


@dataclass(frozen=True)
class ShownDrift:
    """How one version fared."""

    label: str
    version: str
    is_current: bool
    against: str
    words: str
    quarters: Sequence[Drift]
    earlier: int


def shown_weights(config: CompositeConfig) -> list[ShownWeight]:
    total = sum(config.weighting.values())
    return [_shown_weight(config, name, total) for name in config.components]


def _shown_weight(config: CompositeConfig, name: str, total: float) -> ShownWeight:
    weight = config.weights.get(name)
    return ShownWeight(
        name,
        f"{weight.value:g}" if weight else DASH,
        f"{100 * weight.value / total:.0f} %" if weight else DASH,
        weight.reason if weight else "",
        source_in_words(config.sources[name]),
        name in config.gates,
    )


def source_in_words(source: Source) -> str:
    scale = f"{source.low:g} to {source.high:g}"
    rule = f"1 where it is {source.equals}" if source.equals else scale
    by = source.judge or "people"
    return {
        "win_rate": "share of votes it won in its pairs, a tie half",
        "pass_rate": "share of people's votes that passed it",
        "judge_score": f"mean score by {by}, {rule}",
        "judge_wins": f"share of its pairs that {by} said it won, a tie half",
        "agreement": f"mean share of votes on its pairs that agree with {by}",
        "label": f"{source.key}, mean of what {by} said, {rule}",
        "metadata": f"{source.key} of the output, {rule}",
        "rendered": "1 where it could be rendered, 0 where not",
    }[source.kind]


def ranked(items: RunItems, config: CompositeConfig) -> list[CompositeRow[UUID]]:
    """Return every output's row, the highest composite first, those without one last."""
    rows = composite_table(items.components(config), config)
    return sorted(rows, key=lambda row: (row.composite is None, -(row.composite or 0)))


def shown_rows(
    rows: Sequence[CompositeRow[UUID]], items: RunItems, closed: Collection[UUID]
) -> list[ShownRow]:
    return [_shown_row(row, items.items[row.item], closed) for row in rows]


def _shown_row(row: CompositeRow[UUID], item: RunItem, closed: Collection[UUID]) -> ShownRow:
    return ShownRow(
        item,
        item.pairs[0] if item.pairs else None,
        tuple(map(_figure, row.components.values())),
        _figure(row.composite),
        row.failed_gate or "",
        row.reason if row.composite is None else "",
        any(pair in closed for pair in item.pairs),
    )


def shown_drift(
    versions: Sequence[tuple[CompositeDefinition, CompositeConfig]],
    items: RunItems,
    current: Sequence[CompositeRow[UUID]],
) -> list[ShownDrift]:
    """Check every version against people, over the newest quarters; the first has its rows."""
    return [
        _shown_drift(config, items, current if place == 0 else None)
        for place, (_, config) in enumerate(versions)
    ]


def _shown_drift(
    config: CompositeConfig, items: RunItems, current: Sequence[CompositeRow[UUID]] | None
) -> ShownDrift:
    against = {"pass_rate": "the share of passes", "win_rate": "the share of votes won"}
    about = (
        config.label or "Composite",
        config.version,
        current is not None,
        against[config.check],
    )
    people = items.people[config.check]
    if config.is_circular:
        words = "Not checked: it contains what it would be checked against."
        return ShownDrift(*about, words, (), 0)
    if not people:
        what = {"pass_rate": "passed or flagged an output", "win_rate": "voted on a pair"}
        return ShownDrift(*about, f"Nobody has {what[config.check]} yet.", (), 0)
    newest = sorted(people)[-MOST_QUARTERS:]
    rows = ranked(items, config) if current is None else current
    composites = {row.item: row.composite for row in rows}
    resamples = max(200, min(1000, _RANKS_DRAWN // max(1, len(composites))))
    chosen = {quarter: people[quarter] for quarter in newest}
    quarters = drift(composites, chosen, Resampling(resamples))
    return ShownDrift(*about, drift_in_words(quarters), quarters[::-1], len(people) - len(newest))


def _figure(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"
