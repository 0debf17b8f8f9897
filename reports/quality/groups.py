"""A project's quality score by groups of voters: each folded from the votes of one group alone."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from pydantic import BaseModel

from humanjudge.core.tables import (
    Cell,
    Head,
    Row,
    Table,
    missing,
    name_cell,
    numbered,
    percent,
    percent_span,
)
from judge_eval.board.tables import NO_GROUP
from judge_eval.stats.estimate import wilson
from reports.quality.projection import CHUNK, SERIES, Microseconds, Settings, votes_in_time
from reports.quality.score import FoldState, folding, half_life, start_weight, time_of
from voting.models import Project

# Of fewer votes no figures are shown; of very many groups the largest are.
LEAST: Final = 10
MOST: Final = 20


class QualityOfGroup(BaseModel):
    """The quality score of one series, `items` or `pairs`, by one group; unnamed: of no group.

    There is no score of few votes, nor one that is mostly its start value.
    """

    series: str
    name: str
    people: int
    votes: int
    passes: int
    score: float | None


def quality_of_groups(project: Project) -> list[QualityOfGroup]:
    """Fold the votes of each group; nothing, with one query, where nobody is in a group."""
    groups = dict(project.voters.exclude(group="").values_list("pk", "group"))
    if not groups:
        return []
    folded = [row for series in SERIES.values() for row in _folded(project, series, groups)]
    return sorted(folded, key=lambda row: (row.series, not row.name, -row.votes, row.name))[:MOST]


def _folded(project: Project, series: str, groups: Mapping[UUID, str]) -> Iterator[QualityOfGroup]:
    settings = Settings.read(project)
    count, standings = folding(settings.rule), dict[str, FoldState]()
    half, begins = half_life(settings.rule.rate, settings.rule.unit), dict[str, int]()
    people = defaultdict[str, set[UUID]](set)
    names = ("seq", "choice", "value", "reputation", "voter_id")
    votes: Any = votes_in_time(project, series).values_list(Microseconds("at"), *names)
    for vote in votes.iterator(CHUNK):
        group = groups.get(vote[-1], "")
        state = standings.get(group) or standings.setdefault(
            group, FoldState(settings.rule.initial)
        )
        count(state, settings.vote(*vote))
        people[group].add(vote[-1])
        begins.setdefault(group, min(settings.rule.start, vote[0]))
    for group, state in standings.items():
        weight = start_weight(time_of(begins[group]), time_of(state.at), half)
        yield QualityOfGroup(
            series=series,
            name=group,
            people=len(people[group]),
            votes=state.votes,
            passes=state.passes,
            score=state.score if state.votes >= LEAST and weight <= 1 / 2 else None,
        )


def quality_table(groups: list[QualityOfGroup], title: str) -> Table:
    rows, notes = numbered(list(map(_row, groups)))
    heads = [
        Head("Group", css="who"),
        Head("Voters"),
        Head("Votes"),
        Head("Quality score", "%"),
        Head("Pass rate", "%"),
    ]
    label = f"{title}, by groups of voters"
    return Table(label, heads, rows, css="list", caption=label, notes=notes)


def _row(group: QualityOfGroup) -> Row:
    name = group.name or NO_GROUP
    cells = [name_cell(name), Cell(f"{group.people:,}"), Cell(f"{group.votes:,}")]
    bounds = wilson(group.passes, group.votes)
    if group.votes < LEAST or bounds is None:
        few = missing(f"Too few to tell: fewer than {LEAST} votes.")
        return Row(name, [*cells, few, few])
    interval = percent_span(bounds[0], bounds[1])
    counts = f"{group.passes:,} of {group.votes:,} votes"
    rate = Cell(percent(group.passes / group.votes), interval, counts)
    early = missing("Not yet: its start value weighs over half.")
    return Row(name, [*cells, early if group.score is None else Cell(percent(group.score)), rate])
