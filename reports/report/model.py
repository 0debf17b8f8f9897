"""What reports say, as data: shown on pages, frozen, exported as JSON, and verified.

A report holds no voter's name and no comment, so that whoever has the link may read all of it: it
has people by the pseudonyms of the ledger. Score files, which are for members of the project, hold
a table of scores by the names of people.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from pydantic import BaseModel

from humanjudge.core.charts.time_graph import Point, QualityGraph, quality_graph
from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import number_of
from judge_eval.board.model import RunFindings
from reports.quality.groups import QualityOfGroup
from reports.quality.score import start_weight

SCHEMA: Final = 1


class LedgerHead(BaseModel):
    """The end of the ledger that the figures follow from."""

    seq: int
    hash: str
    # Since when heads of this ledger are published elsewhere.
    told_since: datetime | None = None


class DisputedRow(BaseModel):
    """An item on which judges and people disagree: what both chose, without texts of outputs."""

    position: int
    name: str
    people: list[str]
    judges: list[tuple[str, str]]
    wrong: int
    of: int


class Component(BaseModel):
    """A part of a composite: what it is, how much it counts and why, and its mean."""

    name: str
    source: str
    counts: str
    reason: str
    mean: float | None
    number: int


class CompositeResults(BaseModel):
    """The composite of a run's outputs with its components, and whether it holds.

    `config` is all that it is made by, so that it can be computed anew.
    """

    label: str
    version: str
    config: JsonObject
    mean: float | None
    outputs: int
    without: int
    # On how many outputs each gate failed.
    failed: dict[str, int]
    components: list[Component]
    check: str


class RunResults(BaseModel):
    """The findings of a run, and the ELO of its judges by their identifiers.

    The identifier of the run is the seed of whatever is drawn at random in its figures, the orders
    of ELO aside, which have the same seed everywhere.
    """

    id: str
    name: str
    question: str = ""
    noun: str
    kind: str
    source: str
    findings: RunFindings
    elo: dict[str, float]
    # Only in the report of one run.
    disputed: list[DisputedRow] = []
    composite: CompositeResults | None = None


class ModelRate(BaseModel):
    """How many of the votes on a model's outputs passed these."""

    name: str
    outputs: int
    votes: int
    passes: int


class QualityResults(BaseModel):
    """The quality score of a project's single items, or of its pairs."""

    series: str
    points: list[Point]
    # Of single items: who wrote them.
    models: list[ModelRate] = []
    initial_score: float
    decay: str
    half_life_seconds: float
    # From when the start value decays.
    begins: datetime

    @property
    def last(self) -> Point:
        return self.points[-1]

    @property
    def has_score(self) -> bool:
        """Say whether the score is more than its start value."""
        return start_weight(self.begins, self.last.at, self.half_life_seconds) <= 1 / 2

    def graph(self) -> QualityGraph | None:
        half = self.begins + timedelta(seconds=self.half_life_seconds)
        return quality_graph(self.initial_score, self.points, half)


class Turnout(BaseModel):
    """Who was heard, and what waits for a curator."""

    votes: int
    # Of everybody who may vote, those who have.
    voters: int
    population: int
    # Of the items that want votes, those that have enough.
    done: int
    items: int
    flags: dict[str, int]
    ambiguous: int


class VotesOverTime(BaseModel):
    """Votes by the beginning of each hour, day, week or month in which there were some."""

    unit: str
    votes: list[tuple[datetime, int]]


class Removals(BaseModel):
    """What was taken out of the records since a report was frozen."""

    people: int = 0
    runs: int = 0


class Report(BaseModel):
    """A report of a project, or of one run of it, as of a moment."""

    report_schema: int = SCHEMA
    title: str
    made_at: datetime
    head: LedgerHead
    # Of what computed the figures.
    versions: Mapping[str, str]
    quality: list[QualityResults] = []
    pace: VotesOverTime | None = None
    last_vote_at: datetime | None = None
    counted: Turnout | None = None
    runs: list[RunResults] = []
    quality_of_groups: list[QualityOfGroup] = []
    # Set where a frozen report is read, and not part of what it says.
    since: Removals = Removals()

    @property
    def votes(self) -> int:
        of_runs = (run.findings.as_of.votes for run in self.runs)
        return self.counted.votes if self.counted else sum(of_runs)

    def as_json(self) -> str:
        return self.model_dump_json(indent=1)


# --- scores ---------------------------------------------------------------------------------------

# The row of a table of scores that is no judge's.
PEOPLE: Final = "people among themselves"


class Score(BaseModel):
    """A figure in the table; `said` is what it comes to in a word, such as ``passes``."""

    # A whole number of a scorer of one's own stays one in every file.
    value: int | float | None
    interval: tuple[float, float] | None
    n: int
    reason: str | None
    is_best: bool
    said: str = ""


class JudgeScores(BaseModel):
    judge_id: str
    is_baseline: bool = False
    figures: list[Score]


class ScoresAsOf(BaseModel):
    """What figures were computed from."""

    ledger_seq: int
    votes: int
    people: int
    pairs: int
    part: str = "all pairs"

    def __str__(self) -> str:
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        return f"by {people} on {number_of(self.pairs, 'pair')} ({self.part})"


class ScoreSource(ScoresAsOf):
    """The run and the moment that a report is of; what was not counted, how often, and why."""

    run_id: str
    run_name: str
    made_at: datetime
    ledger_head: str
    is_simulated: bool
    not_counted: list[tuple[int, str, str]] = []


class ScoreTable(BaseModel):
    """Columns, and a figure of each judge in each, the best judge first; stored as it is.

    `people` are the same figures between people. Those `of_people` are the same beside every judge:
    they say how far people agree.
    """

    columns: list[str]
    titles: list[str]
    of_people: list[bool]
    judges: list[JudgeScores]
    people: list[Score] | None
    as_of: ScoresAsOf | None

    @property
    def places(self) -> list[int]:
        """The places of the columns in which judges differ."""
        return [place for place, is_alone in enumerate(self.of_people) if not is_alone]

    @property
    def rows(self) -> list[tuple[str, str, list[Score]]]:
        """The judges, then people where they have a figure: whose row, a tag, what differs."""
        rows = [(row.judge_id, "baseline" * row.is_baseline, row.figures) for row in self.judges]
        people = self.people or []
        if any(people[place].value is not None for place in self.places if people):
            rows.append((PEOPLE, "", people))
        return [(name, tag, [row[place] for place in self.places]) for name, tag, row in rows]

    @property
    def among_people(self) -> list[tuple[str, str, Score]]:
        """The figures that are people's alone, with their titles and names."""
        row = self.people or (self.judges[0].figures if self.judges else [])
        alone = [place for place in range(len(row)) if self.of_people[place]]
        return [(self.titles[place], self.columns[place], row[place]) for place in alone]
