"""Whether judges that were asked the same again have answered the same: read from their calls."""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from judge_eval.models import REPEATS_APART, SAMPLES_APART, Call, Run, Verdict
from judge_eval.stats.estimate import Share
from judge_eval.stats.judge_figures import NOTHING
from judge_eval.stats.self_agreement import item_agreement, self_agreement
from voting.models import Item


@dataclass(frozen=True)
class Repeats:
    """How a judge agrees with itself, and on which items, by position, it does not."""

    share: Share = NOTHING
    flips: list[int] = field(default_factory=list)


def repeats_of(run: Run, items: QuerySet[Item]) -> dict[UUID, Repeats]:
    """Return how judges that were asked the same again agree with themselves, on some items.

    Where a judge takes several samples, one repeat is what most of them say.
    """
    repeated = {spec["id"] for spec in (run.config or {}).get("judges", []) if "repeats" in spec}
    if not repeated:
        return {}
    judges = run.judges.filter(name__in=repeated)
    verdicts = Verdict.objects.filter(judge__in=judges, item__in=items)
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
