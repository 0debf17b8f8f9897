"""The board's table: the live ELO beside the findings, and people among themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from humanjudge.lib.text import listed
from judge_eval.pages.board_columns import GROUPS, PRICE, SPARE, Column, Groups
from judge_eval.pages.findings_shown import (
    DASH,
    Cell,
    Notes,
    agreement_cell,
    percent,
    price_cells,
    rank_cell,
    rating_cell,
    share_cell,
)
from judge_eval.selectors import BoardRow

PENDING = "Being computed from the votes; it appears here by itself within seconds."
LATER = "The judge joined after these figures were computed; they follow within seconds."
UNVOTED = "Nobody has voted on a pair that it has a verdict on."
UNASKED = "It has not been asked about a pair that is open for voting."
ONE_ORDER = "It has not answered about a pair in both orders, or what it answered is not known."
NO_SIDE = "It has chosen no side, or in which order it saw the pairs is not known."
ALONE = "No two people have voted on the same pair."
NO_SIDED_VOTE = "Nobody has voted for a side, or where it stood is not known."


@dataclass(frozen=True)
class Line:
    """One judge, or people: its cells in the order of the columns."""

    name: str
    tag: str
    cells: Sequence[tuple[Column, Cell]]


OF_THE_WHOLE = "Prices and times are those of the whole run."


@dataclass(frozen=True)
class Table:
    """`unknown` says which figures are not shown and why."""

    groups: Groups
    lines: Sequence[Line]
    notes: Sequence[str]
    unknown: str


@dataclass(frozen=True)
class _Draft:
    """A line before it is known which columns are shown."""

    name: str
    tag: str
    cells: Mapping[str, Cell]

    def knows(self, figure: str) -> bool:
        return self.cells.get(figure, Cell()).main not in ("", DASH)


def live_table(rows: Sequence[BoardRow], data: Mapping[str, Any] | None) -> Table:
    """Show the whole run, judges in the order of the rows."""
    notes = Notes()
    judges = {judge["id"]: judge for judge in data["judges"]} if data else {}
    absent = LATER if data else PENDING
    drafts = []
    for row in rows:
        judge = judges.get(str(row.judge.pk))
        cells = _figures(judge, notes) if judge else _not_computed(row, notes, absent)
        if judge and row.total and judge["agreement"]["value"] is None:
            cells["agreement"] = _live_agreement(row, notes)
            cells["overall"] = notes.missing(PENDING)
        cells["elo"] = _elo(row, judge["order_luck"] if judge else None)
        drafts.append(_Draft(row.judge.name, _tag(row.judge.is_baseline), cells))
    return _laid_out(drafts, data, notes, GROUPS, is_imported=_is_imported(rows))


def part_table(data: Mapping[str, Any], order: Sequence[int], rows: Sequence[BoardRow]) -> Table:
    """Show a part of the run, which has no ELO and no price of its own."""
    notes = Notes()
    groups = [
        (title, [column for column in columns if column.figure != "elo"])
        for title, columns in GROUPS
        if title != PRICE
    ]
    drafts = [
        _Draft(judge["name"], _tag(judge["is_baseline"]), _figures(judge, notes))
        for judge in (data["judges"][place] for place in order)
    ]
    table = _laid_out(drafts, data, notes, groups, is_imported=_is_imported(rows))
    return replace(table, unknown=f"{OF_THE_WHOLE} {table.unknown}".strip())


def _tag(is_baseline: bool) -> str:
    return "baseline" if is_baseline else ""


def _is_imported(rows: Sequence[BoardRow]) -> bool:
    """Say whether every judge, baselines aside, has answered elsewhere."""
    asked = [row.judge.provider for row in rows if not row.judge.is_baseline]
    return bool(asked) and set(asked) == {"imported"}


def _laid_out(
    judges: Sequence[_Draft],
    data: Mapping[str, Any] | None,
    notes: Notes,
    groups: Groups,
    *,
    is_imported: bool,
) -> Table:
    """Leave out what nobody has a figure for, and number the reasons that are still needed."""
    drafts = [*judges, *_people(data, notes)]
    figures = {column.figure for _, columns in groups for column in columns}
    spare = _unknown(drafts) & figures if data else set()
    kept = [
        (title, [column for column in columns if column.figure not in spare])
        for title, columns in groups
    ]
    kept = [(title, columns) for title, columns in kept if columns]
    reasons, numbered = list(notes), Notes()
    lines = []
    for draft in drafts:
        cells = [
            (column, draft.cells.get(column.figure, Cell()))
            for _, columns in kept
            for column in columns
        ]
        again = [
            (column, replace(cell, note=numbered.number(reasons[cell.note - 1])))
            if cell.note
            else (column, cell)
            for column, cell in cells
        ]
        lines.append(Line(draft.name, draft.tag, again))
    return Table(kept, lines, list(numbered), _said(spare, is_imported))


def _unknown(drafts: Sequence[_Draft]) -> set[str]:
    """Return spare figures that nobody has; that of a baseline counts where all are such."""
    telling = [draft for draft in drafts if draft.tag != "baseline"]
    if not any(draft.tag == "" for draft in telling):
        telling = list(drafts)
    return {
        figure
        for figure, (_, known_by) in SPARE.items()
        if not any(draft.knows(known_by) for draft in telling)
    }


def _said(unknown: set[str], is_imported: bool) -> str:
    """Say in a sentence what is not shown."""
    names = dict.fromkeys(words for figure, (words, _) in SPARE.items() if figure in unknown)
    if not names:
        return ""
    why = ", since the verdicts were imported" if is_imported else ""
    return f"Not known of any judge: {listed(names)}{why}."


def _elo(row: BoardRow, luck: float | None) -> Cell:
    """Show the rating of this moment; who has played no game stands where all begin."""
    if not row.total or luck is None:
        return Cell(f"{row.elo:.0f}")
    return Cell(f"{row.elo:.0f}", f"±{luck:.0f}")


def _figures(judge: Mapping[str, Any], notes: Notes) -> dict[str, Cell]:
    cells = {
        "rank": rank_cell(judge["rating"], notes),
        # Nobody is told apart from anybody before a vote, and that would be no finding.
        "ties": Cell(judge["ties"])
        if judge["ties"] and judge["agreement"]["trials"]
        else notes.missing(UNVOTED),
        "rating": rating_cell(judge["rating"], notes),
        "overall": agreement_cell(judge["overall"], notes, "votes", UNVOTED),
        "agreement": share_cell(judge["agreement"], notes, "votes", UNVOTED, decimals=1),
        "coverage": share_cell(judge["coverage"], notes, "pairs", UNASKED),
        "consistency": share_cell(judge["consistency"], notes, "pairs", ONE_ORDER),
        "single": share_cell(judge["per_answer"], notes, "answers set beside votes", ONE_ORDER),
        "first": share_cell(judge["first_position"], notes, "answers for a side", NO_SIDE),
    }
    names = ("cost", "correct", "seconds")
    return cells | dict(zip(names, price_cells(judge, notes), strict=True))


def _not_computed(row: BoardRow, notes: Notes, why: str) -> dict[str, Cell]:
    """Show what is known without findings: the votes and verdicts counted so far."""
    columns = [column for _, columns in GROUPS for column in columns]
    cells = {column.figure: notes.missing(why) for column in columns}
    if row.total:
        cells["agreement"] = _live_agreement(row, notes)
    if row.coverage is not None:
        title = f"{row.answered:,} of {row.asked:,} pairs"
        cells["coverage"] = Cell(percent(row.coverage / 100), title=title)
    return cells


def _live_agreement(row: BoardRow, notes: Notes) -> Cell:
    """Show the agreement of this moment; its interval follows with the findings."""
    title = f"{row.agree:,} of {row.total:,} votes"
    main = percent(row.agree / row.total, 1)
    return Cell(main, f"n {row.total:,}", title, notes.number(PENDING))


def _people(data: Mapping[str, Any] | None, notes: Notes) -> list[_Draft]:
    """Show people by the same measures, where somebody has voted."""
    if not data or not data["as_of"]["votes"]:
        return []
    what = "times that two people voted on the same pair"
    first = data["people_first_position"]
    cells = {
        "overall": agreement_cell(data["among_people"]["pairs"], notes, what, ALONE),
        "first": share_cell(first, notes, "votes for a side", NO_SIDED_VOTE),
    }
    return [_Draft("People among themselves", "people", cells)]
