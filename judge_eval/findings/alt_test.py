"""The Alt-Test of a run: may a judge stand in for one of its voters?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass

from django.db.models import F

from judge_eval.findings.load import RunOutcomes
from judge_eval.findings.model import AgainstPerson, AltTest, AltTestJudge
from judge_eval.models import Judge
from judge_eval.stats import AltTestResult, AltTestSettings, advice, alt_test, in_words
from voting.choices import VERDICTS
from voting.ledger.counts import counted_in
from voting.models import Entry

# Votes in memory, and votes times judges: more than these keep a worker for most of a minute.
MOST_VOTES = 200_000
MOST_ANSWERS = 1_200_000
# Everybody is tested; of very many people only some are listed one by one.
MOST_LISTED = 200
TOO_FEW = "too few items that others voted on too"
Labels = dict[Hashable, str]


@dataclass(frozen=True)
class Voters:
    """Who chose what, by pseudonym and the pair's position, and what is left out."""

    chose: dict[str, Labels]
    left_out: list[str]


def voters_of(outcomes: RunOutcomes) -> Voters:
    """Read who chose what; of very many votes only those on every few pairs."""
    queue = outcomes.run.queue
    rows = Entry.objects.filter(counted_in(queue), queue=queue, voter__isnull=False)
    votes = rows.count()
    most = min(MOST_VOTES, MOST_ANSWERS // max(1, len(outcomes.judges)))
    every = max(1, -(-votes // max(1, most)))
    left_out = []
    if every > 1:
        rows = rows.annotate(turn=F("item__position") % every).filter(turn=0)
        left_out.append(
            f"This page compares one of every {every} items: all {votes:,} votes would take too "
            "long here. Score files take all of them."
        )
    inside, kept = set(outcomes.positions.tolist()), set(outcomes.part.choices)
    people: dict[str, Labels] = defaultdict(dict)
    names = ("voter__pseudonym", "item__position", "choice")
    for pseudonym, position, choice in rows.values_list(*names).iterator(20_000):
        if position in inside and choice in kept:
            people[pseudonym][position] = choice
    return Voters(dict(people), left_out)


def alt_test_of(outcomes: RunOutcomes, voters: Voters) -> tuple[AltTest | None, str | None]:
    people, settings = voters.chose, AltTestSettings()
    if len(people) < settings.min_humans:
        voted = f"{len(people)} {'person' if len(people) == 1 else 'people'}"
        return None, f"The test takes {settings.takes}; {voted} voted."
    voted_on = {position for chosen in people.values() for position in chosen}
    positions = outcomes.positions.tolist()
    labels: dict[str, Labels] = {}
    for judge, codes in zip(outcomes.judges, outcomes.table.verdicts.T, strict=True):
        labels[str(judge.pk)] = {
            place: VERDICTS[code]
            for place, code in zip(positions, codes.tolist(), strict=True)
            if code >= 0 and place in voted_on
        }
    results = alt_test(labels, people, settings)
    lines = (line for result in results.values() for line in advice(result, settings))
    return AltTest(
        judges=[_judge(judge, results[str(judge.pk)]) for judge in outcomes.judges],
        advice=list(dict.fromkeys(lines)),
        left_out=voters.left_out,
        epsilon=f"{settings.epsilon:.2f}",
        humans=len(people),
        choices=len({choice for chosen in people.values() for choice in chosen.values()}),
        items=max((result.items for result in results.values()), default=0),
    ), None


def _judge(judge: Judge, result: AltTestResult) -> AltTestJudge:
    rates = {key: rate.value for key, rate in result.winning_rate.items()}
    people = [
        AgainstPerson(
            name=name,
            why=None,
            items=against.n,
            judge=against.judge_advantage,
            human=against.human_advantage,
            p=dict(against.p_values),
            rejected=dict(against.rejected),
        )
        for name, against in result.by_human.items()
    ]
    people += [AgainstPerson(name=n, why=TOO_FEW, items=i) for n, i in result.untested.items()]
    # Of very many people those with the most items are listed.
    listed = sorted(people, key=lambda person: -person.items)[:MOST_LISTED]
    return AltTestJudge(
        id=str(judge.pk),
        name=judge.name,
        is_baseline=judge.is_baseline,
        winning_rates=rates if any(rate is not None for rate in rates.values()) else None,
        passes=result.passes,
        advantage=result.advantage_probability.value,
        advantage_interval=result.advantage_probability.interval or None,
        words=in_words(result),
        humans=sorted(listed, key=lambda person: person.name),
        tested=len(result.by_human),
        untested=len(result.untested),
        left_out=[
            f"{gap.count:,} {gap.what.removesuffix('s') if gap.count == 1 else gap.what}: {gap.why}"
            for gap in result.left_out
            if gap.what != "humans"
        ],
        items=result.items,
    )
