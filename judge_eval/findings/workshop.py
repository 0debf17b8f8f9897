"""The figures by which variants of a judge are chosen: on the tuning half, and on that held out."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import Q

from judge_eval.findings.agreement import agreement_of
from judge_eval.findings.filters import HALF, HELD_OUT, TUNING, Slice
from judge_eval.findings.load import outcomes_of
from judge_eval.models import REPEATED, REPEATS_APART, SAMPLES_APART, Call, Judge, Run, Verdict
from judge_eval.stats.estimate import Share, best_first
from judge_eval.stats.judge_figures import NOTHING
from judge_eval.stats.self_agreement import item_agreement, self_agreement
from voting import tuning
from voting.ledger.counts import counted_in
from voting.models import Entry, Item, Voter

MOST_DISAGREEMENTS = 30


@dataclass(frozen=True)
class Repeats:
    """How a judge agrees with itself, and on which items, by position, it does not."""

    share: Share = NOTHING
    flips: list[int] = field(default_factory=list)


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
    rows, repeats = _shares(run, TUNING), repeats_of(run, Q(item__is_held_out=False))
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


def repeats_of(run: Run, where: Q) -> dict[UUID, Repeats]:
    """Return how judges that were asked the same again agree with themselves, with two queries.

    Where a judge takes several samples, one repeat is what most of them say. `where` is said of
    verdicts.
    """
    repeated = Call.objects.filter(REPEATED, run=run).values("verdict__judge").distinct()
    verdicts = Verdict.objects.filter(where, judge__in=repeated)
    calls = Call.objects.filter(verdict__in=verdicts, sample__lt=SAMPLES_APART)
    done = calls.filter(state=Call.State.DONE).exclude(winner="").order_by("pk")
    by_judge: dict[UUID, dict[tuple[int, str], Any]] = defaultdict(dict)
    about = ("verdict__judge", "verdict__item__position", "verdict__item__prompt_key")
    rows: Any = done.values_list(*about, "order", "sample", "winner")
    for judge, item, key, order, sample, winner in rows:
        asked = by_judge[judge].setdefault((item, key), defaultdict(list))
        asked[order, sample // REPEATS_APART].append(winner)
    return {judge: _repeats(items) for judge, items in by_judge.items()}


def _repeats(items: dict[tuple[int, str], Any]) -> Repeats:
    orders = []
    for asked in items.values():
        answers: dict[str, list[str]] = defaultdict(list)
        for (order, _), samples in asked.items():
            answers[order].append(_most(samples))
        orders.append(list(answers.values()))
    prompts = {key: n for n, key in enumerate({key for _, key in items})}
    numbers = [prompts[key] for _, key in items]
    flips = [
        position
        for (position, _), each in zip(items, orders, strict=True)
        if item_agreement(each) not in (None, 1)
    ]
    return Repeats(self_agreement(orders, numbers), sorted(flips))


def _most(samples: Collection[str]) -> str:
    """Return what most samples say; of equally many, all of them, as one answer of its own."""
    counts = Counter(samples)
    return " ".join(sorted(each for each, n in counts.items() if n == max(counts.values())))


@dataclass(frozen=True)
class Disagreement:
    item: Item
    said: str
    people: str
    reason: str


def disagreements(run: Run, judge: Judge) -> list[Disagreement]:
    """Return items of the tuning half on which a judge says other than most people, with why."""
    own = Verdict.objects.filter(judge=judge, item__is_held_out=False).exclude(winner="")
    votes: dict[UUID, Counter[str]] = defaultdict(Counter)
    counted: Any = Entry.objects.filter(counted_in(run.queue), item__in=own.values("item"))
    for item, choice in counted.values_list("item", "choice"):
        votes[item][choice] += 1
    found = []
    long = [f"item__{side}__{name}" for side in "ab" for name in ("output", "metadata")]
    for verdict in own.select_related("item__a", "item__b").defer(*long).order_by("item__position"):
        [(people, number)] = votes[verdict.item_id].most_common(1) or [("", 0)]
        if 2 * number > votes[verdict.item_id].total() and people != verdict.winner:
            found.append(Disagreement(verdict.item, verdict.winner, people, verdict.feedback))
    return found[:MOST_DISAGREEMENTS]
