"""The table of a run's judges, as its board and its reports show it: its columns and its rows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from humanjudge.lib.tables import Cell, Head, Row, Table, name_cell, numbered
from judge_eval.findings.columns import (
    BY_ORDER,
    COLUMNS,
    OF_RATINGS,
    Column,
    beats_cell,
    people_cells,
)
from judge_eval.findings.model import JudgeFindings, RunFindings
from voting.kinds import Kind

# What stands in a row: its name, its tag, and its cells by the keys of the columns.
Figures = tuple[str, str, dict[str, Cell]]
BASELINE = "baseline"


def judge_cells(judge: JudgeFindings, findings: RunFindings) -> dict[str, Cell]:
    """Return what findings say of a judge; what is of this moment is not among it."""
    cells = {column.figure: column.cell(judge) for column in COLUMNS}
    if judge.is_baseline:  # it costs nothing, and takes no time
        cells |= {c.figure: Cell() for c in COLUMNS if c.is_of_calls}
    return cells | {"beats": beats_cell(findings, findings.judges.index(judge))}


def with_people(rows: Sequence[Figures], findings: RunFindings) -> list[Figures]:
    """Put people among themselves behind the judges, and before the baselines."""
    cells = people_cells(findings.among_people.pairs, findings.people_first_position)
    place = sum(tag != BASELINE for _, tag, _ in rows)
    return [*rows[:place], ("People among themselves", "people", cells), *rows[place:]]


def unknown_columns(rows: Sequence[Figures]) -> list[Column]:
    """Return columns without any figure; that of a baseline counts where all are such."""
    tags = {tag for _, tag, _ in rows}
    telling = [cells for _, tag, cells in rows if tag != BASELINE or "" not in tags]
    return [
        c for c in COLUMNS if not any(c.figure in x and x[c.figure].has_figure for x in telling)
    ]


def unknown_topics(unknown: Collection[Column]) -> list[str]:
    """Return the topics of which no column has a figure, in the order of the columns."""
    known = {column.topic for column in COLUMNS if column not in unknown}
    return [t for t in dict.fromkeys(c.topic for c in COLUMNS) if t and t not in known]


def telling_columns(
    columns: Sequence[Column], unknown: Collection[Column], kind: Kind, *, by_order: bool = False
) -> list[Column]:
    """Return the columns that say something of runs with such items, ranked `by_order` or not."""
    topics = unknown_topics(unknown)
    return [
        BY_ORDER if by_order and column.figure == BY_ORDER.figure else column
        for column in columns
        if (not column.of or column.of in kind.figures)
        and (by_order or column not in OF_RATINGS)
        and column.topic not in topics
        and not (column.is_optional and column in unknown)
    ]


def judge_table(name: str, columns: Sequence[Column], rows: Sequence[Figures]) -> Table:
    heads = [Head("Judge", css="who")]
    heads += [
        Head(c.title, c.unit, figure=c.figure, about=c.about, anchor=c.anchor) for c in columns
    ]
    cells, notes = numbered([_row(columns, *row) for row in rows])
    return Table(name, heads, cells, css="ranking", caption=name, notes=notes, are_cards=True)


def _row(columns: Sequence[Column], name: str, tag: str, cells: Mapping[str, Cell]) -> Row:
    figures = [
        replace(cells.get(c.figure, Cell()), figure=c.figure, label=c.label, mark="main")
        for c in columns
    ]
    shown = tag if tag == BASELINE else ""
    return Row(name, [name_cell(name, tag=shown, css="who"), *figures], tag)
