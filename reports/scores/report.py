"""What a report of a run's figures says, before it is written in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from humanjudge.lib.text import number_of
from judge_eval.stats import MetricConfig, Results, ScoreResult
from reports.scores import table
from reports.scores.table import ScoreTable, Summary, tabulate


@dataclass(frozen=True)
class NotCounted:
    """Votes or verdicts that are in the ledger, but not in the figures.

    Attributes
    ----------
    count : int
    what : str
        One of them: ``vote``, or ``verdict of gpt``.
    why : str
        What is to be said of several.
    why_one : str
        What is to be said of one.

    Examples
    --------
    >>> print(NotCounted(1, "verdict of gpt", "failed"))
    1 verdict of gpt failed
    >>> print(NotCounted(2_000, "vote", "were taken back", "was taken back"))
    2,000 votes were taken back
    """

    count: int
    what: str
    why: str
    why_one: str = ""

    def __str__(self) -> str:
        return f"{self.count:,} {self.things} {self.because}"

    @property
    def because(self) -> str:
        """Why, as it is said of so many of them."""
        return self.why_one if self.why_one and self.count == 1 else self.why

    @property
    def things(self) -> str:
        """What it is, as so many of them are called."""
        kind, *of = self.what.split(" ", 1)
        return " ".join([f"{kind}s" if self.count != 1 else kind, *of])


@dataclass(frozen=True)
class Source:
    """What the figures were computed from.

    Attributes
    ----------
    run_id, run_name : str
    made_at : datetime
    ledger_seq : int
        The last entry of the ledger that was read.
    ledger_head : str
        Its hash, in hexadecimal digits.
    is_simulated : bool
        The votes are made up.
    people, votes, pairs : int
        Votes that count, who gave them, and on how many pairs.
    part : str
        What of the run is compared, in words.
    not_counted : tuple of NotCounted
    """

    run_id: str
    run_name: str
    made_at: datetime
    ledger_seq: int
    ledger_head: str
    is_simulated: bool
    people: int
    votes: int
    pairs: int
    part: str = "all pairs"
    not_counted: tuple[NotCounted, ...] = ()

    @property
    def in_words(self) -> str:
        people = f"{self.people:,} {'person' if self.people == 1 else 'people'}"
        return f"{self.votes:,} by {people} on {number_of(self.pairs, 'pair')} ({self.part})"


@dataclass(frozen=True)
class Report:
    """The figures of all judges.

    Attributes
    ----------
    source : Source
    judges : mapping of str to str
        What each judge is called here, which is unique, to its id.
    configs : sequence of MetricConfig
    results : Results
    among : mapping of str to ScoreResult
        The same figures between people, by unique name, where there are any.
    baselines : frozenset of str
        Which of the judges are rules to be beaten.
    """

    source: Source
    judges: Mapping[str, str]
    configs: Sequence[MetricConfig]
    results: Results
    among: Mapping[str, ScoreResult]
    baselines: frozenset[str] = frozenset()

    @cached_property
    def table(self) -> ScoreTable:
        judges = list(self.judges)
        return tabulate(self.configs, self.results, judges, self.among, self.baselines)

    def summary(self) -> Summary:
        """Return the table with what it was computed from, as JSON can hold it."""
        source = self.source
        about = table.Source(
            ledger_seq=source.ledger_seq,
            votes=source.votes,
            people=source.people,
            pairs=source.pairs,
            part=source.part,
        )
        return table.summary(self.table, about)

    def result_file(self, result: ScoreResult) -> dict[str, Any]:
        """Return what the file of one judge's result holds."""
        made = result.as_dict(self.source.made_at.isoformat())
        return made | {"judge_uuid": self.judges[result.judge_id]}

    def manifest(self) -> dict[str, Any]:
        """Return what was computed, of what."""
        source = self.source
        return {
            "run": {"id": source.run_id, "name": source.run_name},
            "made_at": source.made_at.isoformat(),
            "ledger": {"seq": source.ledger_seq, "head": source.ledger_head},
            "labels": {"people": source.people, "votes": source.votes, "pairs": source.pairs},
            "is_simulated": source.is_simulated,
            "part": source.part,
            "not_counted": list(map(str, source.not_counted)),
            "judges": dict(self.judges),
            "metrics": [
                {
                    "name": config.unique_name,
                    "scorer_name": config.scorer.scorer_name,
                    "task_names": list(config.task_names),
                    "task_strategy": config.task_strategy,
                    "annotator_aggregation": config.annotator_aggregation,
                }
                for config in self.configs
            ],
        }
