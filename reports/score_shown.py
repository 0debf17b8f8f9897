"""What the page of score files shows: which there are, and the latest figures in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_eval.findings.slices import Slice
from judge_eval.stats import Figure
from reports.models import ScoreReport
from reports.results.sections import Shown, shown
from reports.results.table import PEOPLE

Data = Mapping[str, Any]


@dataclass(frozen=True)
class ShownReport:
    """Score files that were asked for, and what of the run they are about."""

    report: ScoreReport
    metrics: str
    part: str


@dataclass(frozen=True)
class ShownRow:
    judge: str
    is_baseline: bool
    cells: Sequence[Shown]


@dataclass(frozen=True)
class ShownTable:
    """The summary that is in the files.

    Attributes
    ----------
    heads : sequence of (title, name)
    rows : sequence of ShownRow
    people : ShownRow or None
        The same figures between people.
    among_people : sequence of (title, name, figure)
        Those that are people's alone.
    as_of : str
    """

    heads: Sequence[tuple[str, str]]
    rows: Sequence[ShownRow]
    people: ShownRow | None
    among_people: Sequence[tuple[str, str, Shown]]
    as_of: str


def shown_report(report: ScoreReport) -> ShownReport:
    config = report.config if isinstance(report.config, dict) else {"metrics": report.config}
    part = Slice.parse(config.get("part") or "").in_words
    return ShownReport(report, "chosen" if config.get("metrics") else "usual", part)


def shown_table(table: Data) -> ShownTable:
    """Return a stored summary in words; those of earlier versions say less."""
    names = table["columns"]
    titles = table.get("titles", names)
    alone = table.get("of_people", [False] * len(names))
    places = [place for place, is_alone in enumerate(alone) if not is_alone]
    people: Sequence[Data] = table.get("people") or []
    judges: Sequence[Data] = table["judges"]
    of_people = people or (judges[0]["figures"] if judges else [])
    has_people = people and any(people[place]["value"] is not None for place in places)
    return ShownTable(
        [(titles[place], names[place]) for place in places],
        [
            ShownRow(row["judge_id"], row.get("is_baseline", False), _cells(row["figures"], places))
            for row in judges
        ],
        ShownRow(PEOPLE, False, _cells(people, places)) if has_people else None,
        [
            (titles[place], names[place], _cell(figure))
            for place, figure in enumerate(of_people)
            if alone[place]
        ],
        _as_of(table["as_of"]) if "as_of" in table else "",
    )


def _cells(figures: Sequence[Data], places: Sequence[int]) -> list[Shown]:
    return [_cell(figures[place]) for place in places]


def _cell(stored: Data) -> Shown:
    interval = tuple(stored["interval"]) if stored["interval"] else None
    figure = Figure(stored["value"], stored["n"], stored["reason"], interval)
    return shown(figure, said=stored.get("said", ""), is_best=stored["is_best"])


def _as_of(source: Data) -> str:
    votes, people, pairs = (
        f"{source[what]:,} {one if source[what] == 1 else many}"
        for what, one, many in (
            ("votes", "vote", "votes"),
            ("people", "person", "people"),
            ("pairs", "pair", "pairs"),
        )
    )
    entry = f"ledger entry {source['ledger_seq']:,}"
    return f"As of {votes} by {people} on {pairs} ({source['part']}), {entry}."
