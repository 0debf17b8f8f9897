"""Groups of voters side by side: the same figures of a run, each from one group's votes alone."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from humanjudge.lib.tables import Cell, Head, Row, Table, missing, name_cell, numbered
from judge_eval.findings.columns import share_cell
from judge_eval.findings.model import GroupFigures, JudgeFindings, RunFindings
from judge_eval.stats.estimate import Share

NO_GROUP: Final = "in no group"
# Of more judges than these the best of all votes are shown; all are in the findings as JSON.
MOST_JUDGES: Final = 8
ABOUT_BEST: Final = (
    "The judge with the highest overall agreement with the votes of this group. Whether it beats "
    "the others is not tested here: the board of the group says so."
)


def group_table(found: RunFindings) -> Table | None:
    """Return a row for each group; nothing where nobody is in one."""
    if not found.groups:
        return None
    # The best by all votes, then the baselines.
    judges = found.best_first()[:MOST_JUDGES]
    rows, notes = numbered([_row(group, judges) for group in found.groups])
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


def _row(group: GroupFigures, judges: Sequence[JudgeFindings]) -> Row:
    name = group.name or NO_GROUP
    counted = [Cell(f"{group.people:,}"), Cell(f"{group.votes:,}")]
    if group.why or group.among_people is None:
        few = missing(f"Too few to tell: {group.why}.")
        return Row(name, [name_cell(name), *counted, *[few] * (2 + len(judges))])
    overall = {of.judge: of.overall for of in group.judges}
    pairs = group.among_people.pairs
    cells = [
        share_cell(pairs, "pairs of votes", "No two of the group voted on the same."),
        _best(overall, judges),
        *(_agreement(overall.get(judge.id)) for judge in judges),
    ]
    return Row(name, [name_cell(name), *counted, *cells])


def _best(overall: Mapping[str, Share], judges: Sequence[JudgeFindings]) -> Cell:
    known = [
        (share, judge.name)
        for judge in judges
        if not judge.is_baseline and (share := overall.get(judge.id)) and share.value is not None
    ]
    if not known:
        return missing("No judge was asked about what this group voted on.")
    share, name = max(known, key=lambda one: one[0].value or 0)
    figure = _agreement(share)
    return replace(figure, main=f"{name} {figure.main}")


def _agreement(share: Share | None) -> Cell:
    nothing = "It was not asked about what this group voted on."
    return missing(nothing) if share is None else share_cell(share, "votes", nothing)
