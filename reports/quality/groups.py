"""A project's quality score by groups of voters: each folded from the votes of one group alone."""

from typing import Any, Final

from django.db.models import Count
from pydantic import BaseModel

from humanjudge.lib.tables import (
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
from judge_eval.findings.tables import NO_GROUP
from judge_eval.stats.estimate import wilson
from reports.quality.projection import CHUNK, SERIES, Microseconds, Settings, votes_in_time
from reports.quality.score import Standing, folding
from voting.ledger.counts import OF_PEOPLE
from voting.models import Entry, Project

# Of fewer votes no figures are shown; of very many groups the largest are.
LEAST: Final = 10
MOST: Final = 20


class QualityOfGroup(BaseModel):
    """The quality score of one series, `items` or `pairs`, by one group; unnamed: of no group.

    There is no score of few votes.
    """

    series: str
    name: str
    people: int
    votes: int
    passes: int
    score: float | None


def quality_of_groups(project: Project) -> list[QualityOfGroup]:
    """Fold the votes of each group with at most four queries; nothing where nobody is in one."""
    votes = Entry.objects.filter(OF_PEOPLE, project=project, queue__kind__in=SERIES).order_by()
    counted: Any = votes.values_list("queue__kind", "voter__group")
    rows = counted.annotate(people=Count("voter", distinct=True), number=Count("pk"))
    known = [(SERIES[kind], name, people, number) for kind, name, people, number in rows]
    if not any(name for _, name, _, _ in known):
        return []
    standings = _folded(project, {series for series, *_ in known})
    known.sort(key=lambda row: (row[0], not row[1], -row[3], row[1]))
    return [
        QualityOfGroup(
            series=series,
            name=name,
            people=people,
            votes=number,
            passes=standings[series, name].passes,
            score=standings[series, name].score if number >= LEAST else None,
        )
        for series, name, people, number in known[:MOST]
    ]


def _folded(project: Project, series: set[str]) -> dict[tuple[str, str], Standing]:
    settings = Settings.of(project)
    count, found = folding(settings.rule), dict[tuple[str, str], Standing]()
    names = ("seq", "choice", "value", "reputation", "voter_id", "voter__group")
    for each in series:
        columns: Any = votes_in_time(project, each).values_list(Microseconds("at"), *names)
        for *vote, group in columns.iterator(CHUNK):
            standing = found.get((each, group)) or Standing(settings.rule.initial)
            found[each, group] = standing
            count(standing, settings.vote(*vote))
    return found


def quality_table(groups: list[QualityOfGroup], title: str) -> Table:
    """Show the groups of one series side by side."""
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


def _row(of: QualityOfGroup) -> Row:
    name = of.name or NO_GROUP
    cells = [name_cell(name), Cell(f"{of.people:,}"), Cell(f"{of.votes:,}")]
    bounds = wilson(of.passes, of.votes)
    if of.score is None or bounds is None:
        few = missing(f"Too few to tell: fewer than {LEAST} votes.")
        return Row(name, [*cells, few, few])
    interval = percent_span(bounds[0], bounds[1])
    rate = Cell(percent(of.passes / of.votes), interval, f"{of.passes:,} of {of.votes:,} votes")
    return Row(name, [*cells, Cell(percent(of.score)), rate])
