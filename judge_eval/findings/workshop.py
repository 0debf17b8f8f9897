"""The figures by which variants of a judge are chosen: on the tuning half, and on that held out."""

from dataclasses import dataclass

from django.db.models import Q

from judge_eval.findings.agreement import agreement_of
from judge_eval.findings.filters import HALF, HELD_OUT, TUNING, Slice
from judge_eval.findings.load import outcomes_of
from judge_eval.findings.repeats import Repeats, repeats_of
from judge_eval.models import Judge, Run, Verdict
from judge_eval.stats.estimate import Share, best_first
from voting import tuning
from voting.disputes import majority
from voting.ledger.counts import votes_on
from voting.models import Item, Voter

MOST_DISAGREEMENTS = 30


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


@dataclass(frozen=True)
class Disagreement:
    item: Item
    said: str
    people: str
    reason: str


def disagreements(run: Run, judge: Judge) -> list[Disagreement]:
    """Return items of the tuning half on which a judge says other than most people, with why."""
    own = Verdict.objects.filter(judge=judge, item__is_held_out=False).exclude(winner="")
    votes, found = votes_on(Q(item__in=own.values("item"))), []
    long = [f"item__{side}__{name}" for side in "ab" for name in ("output", "metadata")]
    for verdict in own.select_related("item__a", "item__b").defer(*long).order_by("item__position"):
        people = majority(votes[verdict.item_id])
        if people and people != verdict.winner:
            found.append(Disagreement(verdict.item, verdict.winner, people, verdict.feedback))
    return found[:MOST_DISAGREEMENTS]
