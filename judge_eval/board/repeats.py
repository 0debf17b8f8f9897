"""Whether judges that were asked the same again have answered the same: read from their calls."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import QuerySet

from judge_eval.models import REPEATS_APART, SAMPLES_APART, Call, Run, Verdict
from judge_eval.stats.estimate import Share
from judge_eval.stats.judge_figures import NOTHING
from judge_eval.stats.self_agreement import item_agreement, self_agreement
from voting.models import Item

# On one item, in each order: the samples of each repeat.
Answers: TypeAlias = dict[str, dict[int, list[str]]]


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
    by_judge: dict[UUID, dict[tuple[int, str], Answers]] = defaultdict(dict)
    about = ("verdict__judge", "verdict__item__position", "verdict__item__prompt_key")
    rows: Any = done.values_list(*about, "order", "sample", "winner")
    for judge, position, prompt, order, sample, winner in rows:
        fresh: Answers = defaultdict(lambda: defaultdict(list))
        answers = by_judge[judge].setdefault((position, prompt), fresh)
        answers[order][sample // REPEATS_APART].append(winner)
    return {judge: _repeats(answers) for judge, answers in by_judge.items()}


def _repeats(items: Mapping[tuple[int, str], Answers]) -> Repeats:
    orders = [
        [[_most_frequent(samples) for samples in repeats.values()] for repeats in answers.values()]
        for answers in items.values()
    ]
    prompts = {prompt: n for n, prompt in enumerate(dict.fromkeys(prompt for _, prompt in items))}
    flips = [
        position
        for (position, _), item_orders in zip(items, orders, strict=True)
        if item_agreement(item_orders) not in (None, 1)
    ]
    return Repeats(self_agreement(orders, [prompts[key] for _, key in items]), sorted(flips))


def _most_frequent(samples: Collection[str]) -> str:
    """Return what most samples say; of equally many, all of them, as one answer of its own."""
    counts = Counter(samples)
    return " ".join(sorted(answer for answer, n in counts.items() if n == max(counts.values())))
