"""Where a variant and most people disagree on the tuning half, and what a person makes of it."""

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet

from humanjudge.core.http import Problem
from humanjudge.core.strict_json import JsonObject
from judge_eval.models import SLIP_BEGINS, DisagreementTag, Judge, Run, Verdict
from judge_eval.runs.access import PAIR_IS_OPEN, Reader, closed_to, hidden_from
from voting.ballot import services, tuning
from voting.items.choices import short_name
from voting.items.disputes import majority
from voting.ledger.counts import votes_on
from voting.models import Flag, Voter

MOST_DISAGREEMENTS: Final = 30
Tag = DisagreementTag.Tag
_SLIP: Final = f"{SLIP_BEGINS} {{judge}} says {{answer}}, most people say {{people}}."


@dataclass(frozen=True)
class Disagreement:
    """A verdict and, in words, what most people say instead: so many of the voters."""

    verdict: Verdict
    people: str
    choice: str = ""
    agreeing: int = 0
    voters: int = 0

    @property
    def answer(self) -> str:
        return short_name(self.verdict.winner)

    @property
    def tag(self) -> DisagreementTag | None:
        return getattr(self.verdict, "tag", None)


def disagreements(judge: Judge) -> list[Disagreement]:
    """Return the most disputed ones of the tuning half, without outputs."""
    long = [f"item__{side}__{name}" for side in "ab" for name in ("output", "metadata")]
    return _disagreements(_verdicts(judge).defer(*long))


def tagged(judge: Judge) -> list[Disagreement]:
    """Return the most disputed ones that were tagged, with their outputs."""
    return _disagreements(_verdicts(judge).filter(tag__isnull=False))


def visible_disagreements(reader: Reader, judge: Judge) -> list[Disagreement]:
    """Leave out what a reader has to vote on first."""
    rows = disagreements(judge)
    closed = hidden_from(reader, judge.run.queue.project, [row.verdict.item_id for row in rows])
    return [row for row in rows if row.verdict.item_id not in closed]


def judges_with_tuning_verdicts(run: Run) -> QuerySet[Judge]:
    tuning_verdicts = Verdict.objects.filter(judge=OuterRef("pk"), item__is_held_out=False)
    return run.judges.filter(Exists(tuning_verdicts.exclude(winner="")))


def _verdicts(judge: Judge) -> QuerySet[Verdict]:
    verdicts = Verdict.objects.filter(judge=judge, item__is_held_out=False).exclude(winner="")
    return verdicts.select_related("item__a", "item__b", "tag").order_by("item__position")


def _disagreements(verdicts: QuerySet[Verdict]) -> list[Disagreement]:
    """Return those with the largest share of votes, and of these the most, against a verdict."""
    votes = votes_on(Q(item__in=verdicts.order_by().values("item")))
    unlike = list[Any]()
    for pk, item, winner in verdicts.values_list("pk", "item", "winner"):
        most, cast = majority(votes[item]), [choice for choice, _ in votes[item]]
        if most not in ("", winner):
            against = len(cast) - cast.count(winner)
            unlike.append((-against / len(cast), -against, len(unlike), pk, most, cast))
    worst = sorted(unlike)[:MOST_DISAGREEMENTS]
    loaded = verdicts.in_bulk([pk for *_, pk, _, _ in worst])
    return [
        Disagreement(
            verdict=loaded[pk],
            people=short_name(most),
            choice=most,
            agreeing=cast.count(most),
            voters=len(cast),
        )
        for *_, pk, most, cast in worst
    ]


def tag_disagreement(
    reader: Reader, judge: Judge, item_id: UUID, tag: str, voter: Voter
) -> Disagreement:
    """Say what one makes of a disagreement; a slip of a vote is put before the curators."""
    queue = judge.run.queue
    item = queue.items.filter(pk=item_id).first()
    if item is None:
        raise Problem(404, f"This run has no {queue.noun} {item_id}.")
    if item.is_held_out:
        raise Problem(403, tuning.WORDS.format(noun=queue.noun))
    if closed_to(reader, [item.pk], queue.project_id):
        raise Problem(403, PAIR_IS_OPEN.format(noun=queue.noun))
    rows = _disagreements(_verdicts(judge).filter(item=item))
    if not rows:
        raise Problem(409, f"{judge.name} and most people do not disagree on this {queue.noun}.")
    tag_fields = {"tag": tag, "rubric": queue.rubric}
    rows[0].verdict.tag, _ = DisagreementTag.objects.update_or_create(
        verdict=rows[0].verdict, defaults=tag_fields
    )
    if tag == Tag.VOTE_SLIP and not Flag.objects.filter(voter=voter, item=item).exists():
        flag_comment = _SLIP.format(judge=judge.name, answer=rows[0].answer, people=rows[0].people)
        services.flag(voter, item.pk, Flag.Category.OTHER, flag_comment)
    return rows[0]


def tag_counts(run: Run) -> list[JsonObject]:
    """Count the tags of each variant and version of the rubric: a row for each of these."""
    of_run = DisagreementTag.objects.filter(verdict__judge__run=run)
    numbers = {tag: Count("pk", filter=Q(tag=tag)) for tag in Tag.values}
    rows: Any = of_run.values(judge=F("verdict__judge__name"), version=F("rubric__version"))
    return list(rows.annotate(**numbers).order_by("verdict__judge__position", "version"))
