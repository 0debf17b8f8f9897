"""The figures by which variants of a judge are chosen: on the tuning half, and on that held out."""

from dataclasses import dataclass

from judge_eval.findings.agreement import agreement_of
from judge_eval.findings.filters import HALF, HELD_OUT, TUNING, Slice
from judge_eval.findings.load import outcomes_of
from judge_eval.findings.repeats import Repeats, repeats_of
from judge_eval.models import Judge, Run
from judge_eval.stats.estimate import Share, best_first
from voting import tuning
from voting.models import Voter


@dataclass(frozen=True)
class VariantFigure:
    judge: Judge
    overall: Share
    repeats: Repeats


@dataclass(frozen=True)
class HeldOut:
    """A variant on votes that it was not tuned on; `gap` is in points, tuning less held out."""

    judge: Judge
    overall: Share
    gap: float | None
    looks: int


def tuning_figures(run: Run) -> list[VariantFigure]:
    """Return the judges of a run by their agreement on the tuning half, the best first."""
    items = run.queue.items.filter(is_held_out=False)
    rows, repeats = _shares(run, TUNING), repeats_of(run, items)
    figures = [VariantFigure(*row, repeats.get(row[0].pk, Repeats())) for row in rows]
    return [figures[place] for place in best_first([row.overall.value for row in figures])]


def look_at_held_out(run: Run, judge: Judge, by: Voter | None = None) -> HeldOut:
    """Return a variant's figure on the half held out: that is an entry, and counted."""
    tuning.note_look(run.queue, judge.pk, by)
    [here], [there] = (
        [share for each, share in _shares(run, half) if each == judge]
        for half in (TUNING, HELD_OUT)
    )
    known = here.value is not None and there.value is not None
    gap = 100 * ((here.value or 0) - (there.value or 0)) if known else None
    return HeldOut(judge, there, gap, len(tuning.looks_at(run.queue)))


def _shares(run: Run, half: str) -> list[tuple[Judge, Share]]:
    outcomes = outcomes_of(run, Slice(HALF, half, run.queue.noun))
    return list(zip(outcomes.judges, agreement_of(outcomes).overall, strict=True))
