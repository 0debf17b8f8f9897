"""What a report says, as data: it is shown, frozen, given away as JSON, and can be checked.

It holds no voter's name and no comment, so that whoever has the link may read all of it. People
are there by the pseudonyms of the ledger.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import BaseModel

from judge_eval.findings.model import RunFindings
from reports.quality.groups import QualityOfGroup

SCHEMA: Final = 1


class Head(BaseModel):
    """The end of the ledger that the figures follow from."""

    seq: int
    hash: str
    # Since when heads of this ledger are told elsewhere.
    told_since: datetime | None = None


class Disputed(BaseModel):
    """An item on which judges and people disagree: what both said, without texts of outputs."""

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
    config: dict[str, Any]
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
    noun: str
    kind: str
    source: str
    findings: RunFindings
    elo: dict[str, float]
    # Only in the report of one run.
    disputed: list[Disputed] = []
    composite: CompositeResults | None = None


class ScorePoint(BaseModel):
    """The quality score behind a vote, how many there were then, and how many passed."""

    at: datetime
    score: float
    freshness: float
    votes: int
    passes: int


class ModelRate(BaseModel):
    """How many of the votes on a model's outputs passed these."""

    name: str
    outputs: int
    votes: int
    passes: int


class QualityResults(BaseModel):
    """The quality score of a project's single items, or of its pairs."""

    series: str
    points: list[ScorePoint]
    # Of single items: who wrote them.
    models: list[ModelRate] = []
    initial_score: float
    decay: str
    half_life_seconds: float

    @property
    def last(self) -> ScorePoint:
        return self.points[-1]


class Counted(BaseModel):
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


class Since(BaseModel):
    """What was taken out of the records since a report was frozen."""

    people: int = 0
    runs: int = 0


class Report(BaseModel):
    """A report of a project, or of one run of it, as of a moment."""

    report_schema: int = SCHEMA
    title: str
    made_at: datetime
    head: Head
    # Of what computed the figures.
    versions: Mapping[str, str]
    quality: list[QualityResults] = []
    pace: VotesOverTime | None = None
    last_vote_at: datetime | None = None
    counted: Counted | None = None
    runs: list[RunResults] = []
    quality_of_groups: list[QualityOfGroup] = []
    # Set where a frozen report is read, and not part of what it says.
    since: Since = Since()

    @property
    def votes(self) -> int:
        of_runs = (run.findings.as_of.votes for run in self.runs)
        return self.counted.votes if self.counted else sum(of_runs)

    def as_json(self) -> str:
        return self.model_dump_json(indent=1)
