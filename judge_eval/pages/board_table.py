"""The board's table: the live ELO beside the findings, and people as the ceiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from judge_eval.pages.findings_shown import (
    DASH,
    Cell,
    Notes,
    agreement_cell,
    percent,
    price_cells,
    rank_range,
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
class Column:
    """A figure of the table; `method` is the anchor of its explanation."""

    figure: str
    title: str
    unit: str
    method: str


GROUPS: Sequence[tuple[str, Sequence[Column]]] = (
    (
        "Standing",
        (
            Column("rank", "Rank", "range", "how-rank"),
            Column("ties", "Ties", "letters", "how-ties"),
            Column("elo", "ELO", "points", "how-elo"),
            Column("rating", "Order-free", "points", "how-rating"),
        ),
    ),
    (
        "Agreement with people",
        (
            Column("agreement", "Agreement", "% of votes", "how-agreement"),
            Column("coverage", "Coverage", "% of pairs", "how-coverage"),
        ),
    ),
    (
        "Habits",
        (
            Column("consistency", "Both orders", "% alike", "how-habits"),
            Column("first", "First shown", "% picked", "how-habits"),
        ),
    ),
    (
        "Price",
        (
            Column("cost", "A verdict", "US$", "how-price"),
            Column("correct", "A correct one", "US$", "how-price"),
            Column("seconds", "A verdict", "seconds", "how-price"),
        ),
    ),
)


@dataclass(frozen=True)
class Line:
    """One judge, or people: its cells in the order of the columns."""

    name: str
    tag: str
    cells: Sequence[tuple[Column, Cell]]


@dataclass(frozen=True)
class Table:
    groups: Sequence[tuple[str, Sequence[Column]]]
    lines: Sequence[Line]
    notes: Sequence[str]


def live_table(rows: Sequence[BoardRow], data: Mapping[str, Any] | None) -> Table:
    """Show the whole run: judges by their ELO of this moment."""
    notes = Notes()
    judges = {judge["id"]: judge for judge in data["judges"]} if data else {}
    absent = LATER if data else PENDING
    lines = []
    for row in rows:
        judge = judges.get(str(row.judge.pk))
        cells = _figures(judge, notes) if judge else _not_computed(row, notes, absent)
        if judge and row.total and judge["agreement"]["value"] is None:
            cells["agreement"] = _live_agreement(row, notes)
        cells["rank"] = _rank(judge, str(row.rank))
        luck = judge["order_luck"] if judge else None
        cells["elo"] = Cell(f"{row.elo:.0f}", "" if luck is None else f"±{luck:.0f} by order")
        lines.append(_line(row.judge.name, _tag(row.judge.is_baseline), cells, GROUPS))
    return Table(GROUPS, [*lines, *_people(data, notes, GROUPS)], list(notes))


def part_table(data: Mapping[str, Any], order: Sequence[int]) -> Table:
    """Show a part of the run, which has no ELO."""
    notes = Notes()
    groups = [
        (title, [column for column in columns if column.figure != "elo"])
        for title, columns in GROUPS
    ]
    lines = []
    for judge in (data["judges"][place] for place in order):
        cells = _figures(judge, notes) | {"rank": _rank(judge, None)}
        lines.append(_line(judge["name"], _tag(judge["is_baseline"]), cells, groups))
    return Table(groups, [*lines, *_people(data, notes, groups)], list(notes))


def _tag(is_baseline: bool) -> str:
    return "baseline" if is_baseline else ""


def _line(
    name: str,
    tag: str,
    cells: Mapping[str, Cell],
    groups: Sequence[tuple[str, Sequence[Column]]],
) -> Line:
    columns = [column for _, columns in groups for column in columns]
    return Line(name, tag, [(column, cells.get(column.figure, Cell())) for column in columns])


def _figures(judge: Mapping[str, Any], notes: Notes) -> dict[str, Cell]:
    cells = {
        "ties": Cell(judge["ties"]),
        "rating": rating_cell(judge["rating"], notes),
        "agreement": agreement_cell(judge["agreement"], notes, "votes", UNVOTED),
        "coverage": share_cell(judge["coverage"], notes, "pairs", UNASKED),
        "consistency": share_cell(judge["consistency"], notes, "pairs", ONE_ORDER),
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


def _rank(judge: Mapping[str, Any] | None, by_elo: str | None) -> Cell:
    """Show which ranks are possible, and which one it is by ELO now."""
    ranks = rank_range(judge["rating"]) if judge else ""
    if by_elo is None:
        return Cell(ranks or DASH)
    return Cell(ranks, f"ELO {by_elo}") if ranks else Cell(by_elo, "by ELO")


def _people(
    data: Mapping[str, Any] | None,
    notes: Notes,
    groups: Sequence[tuple[str, Sequence[Column]]],
) -> list[Line]:
    """Show people by the same measures, where somebody has voted."""
    if not data or not data["as_of"]["votes"]:
        return []
    what = "times that two people voted on the same pair"
    first = data["people_first_position"]
    cells = {
        "agreement": agreement_cell(data["ceiling"]["pairs"], notes, what, ALONE),
        "first": share_cell(first, notes, "votes for a side", NO_SIDED_VOTE),
    }
    return [_line("Voters, among themselves", "people", cells, groups)]
