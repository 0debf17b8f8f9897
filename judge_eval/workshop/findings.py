"""The figures by which variants of a judge are chosen: on the tuning half, and on that held out."""

from dataclasses import dataclass
from typing import NamedTuple

from judge_eval.board.cache import findings_of, is_sealing
from judge_eval.board.filters import HALF, HELD_OUT, TUNING, TUNING_HALF, Slice
from judge_eval.board.model import RunFindings
from judge_eval.models import Judge, Run
from judge_eval.stats.estimate import Share, best_first
from judge_eval.workshop.held_out_check import HeldOutCheck, check_held_out
from voting.ballot import tuning
from voting.models import Voter

_PENDING = Share(None, why="not computed yet")


class VariantFigure(NamedTuple):
    """A judge on the tuning half; `flips` are items on which it contradicts itself."""

    judge: Judge
    overall: Share = _PENDING
    itself: Share = _PENDING
    flips: list[int] = []


class TuningFigures(NamedTuple):
    """The judges of a run, the best first; `behind` while newer votes or verdicts are counted."""

    figures: list[VariantFigure]
    behind: bool
    computed: RunFindings | None = None

    def in_use(self, named: str) -> Judge | None:
        """Return the judge of that identifier; first the best of those that were not tuned."""
        named_judges = [row.judge for row in self.figures if str(row.judge.pk) == named]
        untuned = [
            figure.judge
            for figure in self.figures
            if figure.overall.value is not None
            and not (figure.judge.is_tuned or figure.judge.is_baseline)
        ]
        return next(iter([*named_judges, *untuned]), None)

    def difference(self, judge: Judge, other_judge: Judge) -> tuple[float | None, ...]:
        ids = (
            [judge_findings.id for judge_findings in self.computed.judges] if self.computed else []
        )
        if self.computed is None or not {str(judge.pk), str(other_judge.pk)} <= {*ids}:
            return None, None, None
        row, column = ids.index(str(judge.pk)), ids.index(str(other_judge.pk))
        claims = self.computed.claims
        matrices = (claims.difference, claims.difference_low, claims.difference_high)
        return tuple(matrix[row][column] for matrix in matrices)


@dataclass(frozen=True)
class HeldOut:
    """A variant on votes that it was not tuned on; `gap` is in points, tuning less held out.

    On the same votes `check` holds it against the judge in use, if that is another one.
    """

    judge: Judge
    overall: Share
    gap: float | None
    looks: int
    in_use: Judge | None
    check: HeldOutCheck | None


def tuning_figures(run: Run) -> TuningFigures:
    """Return the judges of a run by their agreement on the tuning half, as workers compute it.

    None before it was opened for tuning: it has no halves.
    """
    if run.queue.held_out_from is None:
        return TuningFigures([], behind=False)
    row = findings_of(run, TUNING_HALF)
    computed = RunFindings.read(row.data)
    by_id = {findings.id: findings for findings in computed.judges} if computed else {}
    figures = []
    for judge in run.judges.order_by("position"):
        findings = by_id.get(str(judge.pk))
        about = (findings.overall, findings.self_agreement, findings.flips) if findings else ()
        figures.append(VariantFigure(judge, *about))
    behind = computed is None or row.seq < run.board.seq or is_sealing(run)
    order = best_first([figure.overall.value for figure in figures])
    return TuningFigures([figures[place] for place in order], behind, computed)


def judge_in_use(run: Run) -> Judge | None:
    return tuning_figures(run).in_use(tuning.tuning_history(run.queue).in_use)


def look_at_held_out(run: Run, judge: Judge, voter: Voter | None = None) -> HeldOut:
    """Return a variant's figure on the half held out: that is an entry, and counted."""
    compared_judge, check = judge_in_use(run), None
    if compared_judge is None or compared_judge == judge:
        tuning.note_look(run.queue, judge.pk, voter)
    else:
        check = check_held_out(run, judge, compared_judge, voter)
    tuning_share, held_out_share = _share(run, judge, TUNING), _share(run, judge, HELD_OUT)
    gap = None
    if tuning_share.value is not None and held_out_share.value is not None:
        gap = 100 * (tuning_share.value - held_out_share.value)
    return HeldOut(
        judge, held_out_share, gap, len(tuning.looks_at(run.queue)), compared_judge, check
    )


def _share(run: Run, judge: Judge, half: str) -> Share:
    # Computes with NumPy, without which web servers start.
    from judge_eval.board.agreement import agreement_of
    from judge_eval.board.load import outcomes_of

    outcomes = outcomes_of(run, Slice(HALF, half, run.queue.noun))
    return agreement_of(outcomes).overall[outcomes.judges.index(judge)]
