"""The picture of a run's agreement, laid out from its findings for pages, files and reports."""

from collections.abc import Collection
from typing import Final

from humanjudge.charts.agreement_graph import AgreementGraph, JudgeShare, Level, agreement_graph
from judge_eval.findings.model import RunFindings
from judge_eval.stats.estimate import Interval

# The name of its file.
PICTURE: Final = "agreement"
# A drawing needs nothing from anywhere, whoever opens it and whatever the names in it say.
INERT: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def picture_of(
    figures: RunFindings, *, is_narrow: bool = False, only: Collection[str] | None = None
) -> AgreementGraph | None:
    """Lay out the overall agreement of judges, of all or of those shown, by their identifiers."""
    ranked = [judge for judge in figures.best_first() if judge.overall.value is not None]
    judges = [
        JudgeShare(
            judge.name,
            judge.overall.value or 0.0,
            _both(judge.overall.low, judge.overall.high),
            _both(judge.always_low, judge.always_high),
            bool(judge.beats_floor),
            "" if judge.coverage.value else "no verdict",
        )
        for judge in ranked
        if not judge.is_baseline and (only is None or judge.id in only)
    ]
    pairs = figures.among_people.pairs
    people = None
    if pairs.value is not None:
        people = Level("people among themselves", pairs.value, _both(pairs.low, pairs.high))
    floor = next((judge for judge in ranked if judge.is_baseline), None)
    level = None
    if floor:
        of = floor.overall
        level = Level(f"floor: {floor.name}", of.value or 0.0, _both(of.low, of.high))
    return agreement_graph(judges, people, level, is_narrow=is_narrow)


def _both(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)
