"""The tables of a run's judges and groups of voters, as its board and its reports show them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from humanjudge.core.tables import Cell, Head, Row, Table, missing, name_cell, numbered
from judge_eval.board.columns import (
    BY_ORDER,
    COLUMNS,
    OF_RATINGS,
    BoardColumn,
    beats_cell,
    people_cells,
    share_cell,
)
from judge_eval.board.model import PEOPLE, GroupFigures, JudgeFindings, RunFindings
from judge_eval.models import Judge
from judge_eval.stats.estimate import Share
from voting.items.kinds import Kind

BASELINE, TUNED = Judge.BASELINE, Judge.TUNED
NO_GROUP: Final = "in no group"
# Of more judges than these the best of all votes are shown; all are in the findings as JSON.
MOST_JUDGES: Final = 8
ABOUT_BEST: Final = (
    "The judge with the highest overall agreement with the votes of this group. Whether it beats "
    "the others is not tested here: the board of the group says so."
)


class RowFigures(NamedTuple):
    """What stands in a row: a name and where it leads, cells by the keys of the columns."""

    name: str
    tag: str
    cells: dict[str, Cell]
    description: str = ""
    href: str = ""


def judge_cells(judge: JudgeFindings, findings: RunFindings) -> dict[str, Cell]:
    """Return what findings say of a judge; what is of this moment is not among it."""
    cells = {column.figure: column.cell(judge) for column in COLUMNS}
    if judge.is_baseline:  # it costs nothing, and takes no time
        cells |= {c.figure: Cell() for c in COLUMNS if c.is_of_calls}
    return cells | {"beats": beats_cell(findings, findings.judges.index(judge))}


def with_people(rows: Sequence[RowFigures], findings: RunFindings) -> list[RowFigures]:
    """Put people among themselves behind the judges, and before the baselines."""
    cells = people_cells(findings.among_people.pairs, findings.people_first_position)
    place = sum(row.tag != BASELINE for row in rows)
    return [*rows[:place], RowFigures("People among themselves", PEOPLE, cells), *rows[place:]]


def unknown_columns(rows: Sequence[RowFigures]) -> list[BoardColumn]:
    """Return columns without any figure; that of a baseline counts where all are such."""
    tags = {row.tag for row in rows}
    is_alone = tags <= {BASELINE, PEOPLE}
    telling = [row.cells for row in rows if row.tag != BASELINE or is_alone]
    return [
        c for c in COLUMNS if not any(c.figure in x and x[c.figure].has_figure for x in telling)
    ]


def unknown_topics(unknown: Collection[BoardColumn]) -> list[str]:
    """Return the topics of which no column has a figure, in the order of the columns."""
    existing = {column.topic for column in COLUMNS if column not in unknown}
    return [t for t in dict.fromkeys(c.topic for c in COLUMNS) if t and t not in existing]


def telling_columns(
    columns: Sequence[BoardColumn],
    unknown: Collection[BoardColumn],
    kind: Kind,
    *,
    by_order: bool = False,
) -> list[BoardColumn]:
    """Return the columns that say something of runs with such items, ranked `by_order` or not."""
    topics = unknown_topics(unknown)
    return [
        BY_ORDER if by_order and column.figure == BY_ORDER.figure else column
        for column in columns
        if (not column.kind_figure or column.kind_figure in kind.figures)
        and (by_order or column not in OF_RATINGS)
        and column.topic not in topics
        and not (column.is_optional and column in unknown)
    ]


def judge_table(name: str, columns: Sequence[BoardColumn], rows: Sequence[RowFigures]) -> Table:
    heads = [Head("Judge", css="who")]
    heads += [
        Head(c.title, c.unit, figure=c.figure, about=c.about, anchor=c.anchor) for c in columns
    ]
    cells, notes = numbered([_row(columns, row) for row in rows])
    return Table(name, heads, cells, css="ranking", caption=name, notes=notes, are_cards=True)


def _row(columns: Sequence[BoardColumn], row: RowFigures) -> Row:
    name, tag = row.name, row.tag
    figures = [
        replace(row.cells.get(c.figure, Cell()), figure=c.figure, label=c.label, mark="main")
        for c in columns
    ]
    visible_tag = "" if tag == PEOPLE else tag
    held_out = "its figure is of the half held out" if tag == TUNED else ""
    small = "; ".join(filter(None, (row.description, held_out)))
    head = replace(name_cell(name, tag=visible_tag, css="who", small=small), href=row.href)
    return Row(name, [head, *figures], tag)


# --- groups of voters side by side ----------------------------------------------------------------


def group_table(findings: RunFindings) -> Table | None:
    if not findings.groups:
        return None
    # The best by all votes, then the baselines.
    judges = findings.best_first()[:MOST_JUDGES]
    rows, notes = numbered([_group_row(group, judges) for group in findings.groups])
    heads = [
        Head("Group", css="who"),
        Head("Voters"),
        Head("Votes"),
        Head("People among themselves", "%"),
        Head("Best judge", "%", about=ABOUT_BEST),
        *(Head(judge.name, "%") for judge in judges),
    ]
    label = "Groups of voters side by side: overall agreement of each judge with each group"
    labelled = [
        replace(
            row,
            cells=[
                cell if cell.is_head else replace(cell, label=head.title)
                for head, cell in zip(heads, row.cells, strict=True)
            ],
        )
        for row in rows
    ]
    return Table(label, heads, labelled, css="list as-cards", caption=label, notes=notes)


def _group_row(group: GroupFigures, judges: Sequence[JudgeFindings]) -> Row:
    name = group.name or NO_GROUP
    counted = [Cell(f"{group.people:,}"), Cell(f"{group.votes:,}")]
    if group.why or group.among_people is None:
        few = missing(f"Too few to tell: {group.why}.")
        return Row(name, [name_cell(name), *counted, *[few] * (2 + len(judges))])
    overall = {group_judge.judge: group_judge.overall for group_judge in group.judges}
    pairs = group.among_people.pairs
    cells = [
        share_cell(pairs, "pairs of votes", "No two of the group voted on the same."),
        _best(overall, judges),
        *(_agreement(overall.get(judge.id)) for judge in judges),
    ]
    return Row(name, [name_cell(name), *counted, *cells])


def _best(overall: Mapping[str, Share], judges: Sequence[JudgeFindings]) -> Cell:
    with_figure = [
        (share, judge.name)
        for judge in judges
        if not judge.is_baseline and (share := overall.get(judge.id)) and share.value is not None
    ]
    if not with_figure:
        return missing("No judge was asked about what this group voted on.")
    share, name = max(with_figure, key=lambda one: one[0].value or 0)
    figure = _agreement(share)
    return replace(figure, main=f"{name} {figure.main}")


def _agreement(share: Share | None) -> Cell:
    nothing = "It was not asked about what this group voted on."
    return missing(nothing) if share is None else share_cell(share, "votes", nothing)
