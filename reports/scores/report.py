"""What a report of a run's figures says, before it is written in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from judge_eval import stats
from reports.scores.table import ScoresAsOf, ScoreTable


@dataclass(frozen=True)
class NotCounted:
    """Votes or verdicts that are in the ledger, but not in the figures, and why.

    Examples
    --------
    >>> print(NotCounted(1, "verdict of gpt", "failed"))
    1 verdict of gpt failed
    >>> print(NotCounted(2_000, "votes", "were taken back"))
    2,000 votes were taken back
    """

    count: int
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.count:,} {self.what} {self.why}"


class Source(ScoresAsOf):
    """The run and the moment that a report is of."""

    run_id: str
    run_name: str
    made_at: datetime
    ledger_head: str
    is_simulated: bool
    not_counted: tuple[NotCounted, ...] = ()


@dataclass(frozen=True)
class Report:
    """The figures of all judges; `judges` are their ids by what each is called here.

    `among` are the same figures between people by unique name, where there are any.
    """

    source: Source
    judges: Mapping[str, str]
    configs: Sequence[stats.MetricConfig]
    results: stats.Results
    among: Mapping[str, stats.ScoreResult]
    baselines: frozenset[str]
    table: ScoreTable

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
