"""The figures by which variants of a judge are chosen: on the tuning half, and on that held out."""

from dataclasses import dataclass

from judge_eval.findings.agreement import agreement_of
from judge_eval.findings.filters import HALF, HELD_OUT, TUNING, Slice
from judge_eval.findings.load import outcomes_of
from judge_eval.models import Judge, Run
from judge_eval.stats.estimate import Share, best_first
from voting import tuning
from voting.models import Voter


@dataclass(frozen=True)
class VariantFigure:
    judge: Judge
    overall: Share


@dataclass(frozen=True)
class HeldOut:
    """A variant on votes that it was not tuned on; `gap` is in points, tuning less held out."""

    overall: Share
    gap: float | None
    looks: int


def tuning_figures(run: Run) -> list[VariantFigure]:
    """Return the judges of a run by their agreement on the tuning half, the best first."""
    rows = _figures(run, TUNING)
    return [rows[place] for place in best_first([row.overall.value for row in rows])]


def look_at_held_out(run: Run, judge: Judge, by: Voter | None = None) -> HeldOut:
    """Return a variant's figure on the half held out: that is an entry, and counted."""
    tuning.note_look(run.queue, judge.pk, by)
    [there] = [row.overall for row in _figures(run, HELD_OUT) if row.judge == judge]
    [here] = [row.overall for row in _figures(run, TUNING) if row.judge == judge]
    values = (here.value, there.value)
    gap = None if None in values else 100 * ((here.value or 0) - (there.value or 0))
    return HeldOut(there, gap, len(tuning.looks_at(run.queue)))


def _figures(run: Run, half: str) -> list[VariantFigure]:
    outcomes = outcomes_of(run, Slice(HALF, half, run.queue.noun))
    shares = agreement_of(outcomes).overall
    return [VariantFigure(*row) for row in zip(outcomes.judges, shares, strict=True)]
