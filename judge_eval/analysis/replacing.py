"""The Alt-Test of a run: may a judge stand in for one of its voters?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Hashable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F

from judge_eval.analysis.reading import RunOutcomes
from judge_eval.metrics import AltTestResult, AltTestSettings, Figure, advice, alt_test, in_words
from judge_eval.models import Run
from judge_eval.statistics.outcomes_table import CHOICES
from voting.models import Entry
from voting.projection import counted_in

# Who voted most: with more people the test asks nothing else, and takes for ever.
MOST_PEOPLE = 30
MOST_VOTES = 60_000
FEWEST_PEOPLE = 3
Data = dict[str, Any]
Labels = dict[Hashable, object]


@dataclass(frozen=True)
class Voters:
    """Who chose what, by pseudonym and the pair's position, and what is left out."""

    chose: dict[str, Labels]
    left_out: list[str]


def alt_test_of(outcomes: RunOutcomes, voters: Voters) -> Data:
    """Test every judge against the people who voted, or say why that cannot be."""
    people = voters.chose
    if len(people) < FEWEST_PEOPLE:
        voted = f"{len(people)} {'person' if len(people) == 1 else 'people'}"
        why = f"The test takes votes of {FEWEST_PEOPLE} people on the same pairs; {voted} voted."
        return {"alt_test": None, "alt_test_why": why}
    settings = AltTestSettings()
    both = {position for chosen in people.values() for position in chosen}
    judges = {str(judge.pk): _said(outcomes, n, both) for n, judge in enumerate(outcomes.judges)}
    found = alt_test(judges, people, settings)
    told = dict.fromkeys(line for result in found.values() for line in advice(result, settings))
    return {
        "alt_test": {
            "judges": [
                {"id": str(judge.pk), "name": judge.name, "is_baseline": judge.is_baseline}
                | _result(found[str(judge.pk)], sorted(people))
                for judge in outcomes.judges
            ],
            "advice": list(told),
            "left_out": voters.left_out,
            "epsilon": f"{settings.epsilon:.2f}",
            "humans": len(people),
            "items": max((result.items for result in found.values()), default=0),
        },
        "alt_test_why": None,
    }


def voters_of(outcomes: RunOutcomes) -> Voters:
    """Read who chose what; of very many people and votes only some."""
    votes = _votes(outcomes.run).values_list("voter__pseudonym")
    busiest = list(votes.annotate(cast=Count("pk")).order_by("-cast", "voter__pseudonym"))
    chosen = dict(busiest[:MOST_PEOPLE])
    every = max(1, -(-sum(chosen.values()) // MOST_VOTES))
    rows = _votes(outcomes.run).filter(voter__pseudonym__in=chosen)
    if every > 1:
        rows = rows.annotate(turn=F("comparison__position") % every).filter(turn=0)
    inside = set(outcomes.positions.tolist())
    kept = set(outcomes.part.choices)
    people: dict[str, Labels] = defaultdict(dict)
    names = ("voter__pseudonym", "comparison__position", "choice")
    for pseudonym, position, choice in rows.values_list(*names).iterator(20_000):
        if position in inside and choice in kept:
            people[pseudonym][position] = choice
    left_out = []
    if len(busiest) > len(chosen):
        others = len(busiest) - len(chosen)
        left_out.append(f"{others:,} of the people: the {len(chosen)} who voted most are compared.")
    if every > 1:
        left_out.append(f"Of {every} pairs one each is compared: {MOST_VOTES:,} votes are enough.")
    return Voters(dict(people), left_out)


def _votes(run: Run) -> Any:
    return Entry.objects.filter(counted_in(run.queue), queue=run.queue_id, voter__isnull=False)


def _said(outcomes: RunOutcomes, judge: int, voted: Container[Hashable]) -> Labels:
    column = outcomes.table.verdicts[:, judge].tolist()
    pairs = zip(outcomes.positions.tolist(), column, strict=True)
    return {place: CHOICES[code] for place, code in pairs if code >= 0 and place in voted}


def _result(result: AltTestResult, people: list[str]) -> Data:
    rates = {key: rate.value for key, rate in result.winning_rate.items()}
    advantage = result.advantage_probability
    return {
        "winning_rates": rates if any(rate is not None for rate in rates.values()) else None,
        "passes": result.passes,
        "advantage": advantage.value,
        "advantage_interval": _interval(advantage),
        "words": in_words(result),
        "humans": [_against(result, name) for name in people],
        "left_out": [f"{gap.count:,} {gap.what}: {gap.why}" for gap in result.left_out],
        "items": result.items,
    }


def _interval(figure: Figure) -> list[float] | None:
    return list(figure.interval) if figure.interval else None


def _against(result: AltTestResult, name: str) -> Data:
    against = result.by_human.get(name)
    if against is None:
        return {"name": name, "why": "too few pairs that others voted on too", "items": 0}
    return {
        "name": name,
        "why": None,
        "items": against.n,
        "judge": against.judge_advantage,
        "human": against.human_advantage,
        "p": dict(against.p_values),
        "rejected": dict(against.rejected),
    }
