"""Who votes in a run, and how: one row for each voter, and how far the votes are."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Trunc

from humanjudge.lib.text import duration, number_of
from judge_eval.stats.estimate import Interval, wilson
from voting.choices import SIDES
from voting.curating import decisions_on_voters
from voting.ledger.bulk_sql import key, prepared
from voting.models import Assignment, Entry, Flag, Invite, Item, Queue, Voter

# A share of fewer pairs than that has no interval.
LEAST_PAIRS: Final = 10
# More columns than these are no picture.
MOST_COLUMNS: Final = 80
UNITS: Final = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=31),
}

# Sealed votes that stand, those too that a decision leaves out.
_OWN: Final = """
    FROM voting_entry
    WHERE queue_id = %(queue)s AND kind = 'vote' AND seq IS NOT NULL AND retracted_seq IS NULL
"""
# Of how many votes the time is known, and the one in the middle, or two of them.
_MEDIANS: Final = f"""
    SELECT voter_id, AVG(elapsed_ms) FROM (
        SELECT voter_id, elapsed_ms, COUNT(*) OVER (PARTITION BY voter_id) AS votes,
               ROW_NUMBER() OVER (PARTITION BY voter_id ORDER BY elapsed_ms) AS place
        {_OWN} AND elapsed_ms IS NOT NULL
    ) AS timed
    WHERE 2 * place BETWEEN votes AND votes + 2 GROUP BY voter_id
"""  # noqa: S608  texts of our own, values travel beside them
# By how much each voter agrees with others: on each item, the share of other votes that count and
# chose the same. What was seen to be said by judges is nobody's own opinion.
_AGREEMENT: Final = f"""
    WITH own AS (
        SELECT voter_id, item_id, choice, CASE WHEN excluded THEN 0 ELSE 1 END AS counted
        {_OWN} AND simulated = %(simulated)s AND (simulated OR NOT unblinded)
    ),
    said AS (
        SELECT item_id, choice, SUM(counted) AS votes FROM own GROUP BY item_id, choice
    ),
    whole AS (SELECT item_id, SUM(votes) AS votes FROM said GROUP BY item_id)
    SELECT own.voter_id, COUNT(*), SUM((said.votes - counted) * 1.0 / (whole.votes - counted))
    FROM own JOIN said ON said.item_id = own.item_id AND said.choice = own.choice
    JOIN whole ON whole.item_id = own.item_id AND whole.votes > counted
    GROUP BY own.voter_id
"""  # noqa: S608


class Share(NamedTuple):
    """A share of `n`, with its 95 % interval where `n` is large enough."""

    value: float
    n: int
    interval: Interval | None

    @classmethod
    def of(cls, part: float, n: int) -> "Share":
        part = min(part, float(n))  # it is a sum of floats
        return cls(part / n, n, wilson(part, n) if n >= LEAST_PAIRS else None)


@dataclass(frozen=True)
class Exclusion:
    """Why the votes of somebody count nowhere: a decision that can be taken back."""

    decision: UUID
    at: datetime
    who: str
    why: str


@dataclass(frozen=True)
class Person:
    """A voter of a run. What nothing is known of is None."""

    id: UUID
    name: str
    pseudonym: str
    last_seen: datetime
    votes: int = 0
    median_seconds: float | None = None
    # With other people, on the pairs that both have voted on.
    agreement: Share | None = None
    # Of the votes for a side, those for the one that stood left.
    left: Share | None = None
    skips: int = 0
    flags: int = 0
    excluded: Exclusion | None = None
    # The latest decision on the voter, if there is any.
    decision: UUID | None = None

    @property
    def is_excluded(self) -> bool:
        return self.excluded is not None


def people_of(queue: Queue) -> list[Person]:
    """Return the voters of a queue with a fixed number of queries, who voted most first.

    Whoever was let in to vote here is one of them, and whoever has voted, skipped or flagged.
    """
    voters = Voter.objects.filter(project=queue.project_id).select_related("invite")
    known, figures = {voter.pk: voter for voter in voters}, _figures(queue)
    decisions = _decisions(queue, known)
    guests = set(Voter.objects.filter(pk__in=_guests(queue)).values_list("pk", flat=True))
    people = [
        _person(voter, figures.get(pk, {}), *decisions.get(pk, (None, None)))
        for pk, voter in known.items()
        if pk in figures or pk in guests or (voter.invite and voter.invite.queue_id == queue.pk)
    ]
    return sorted(people, key=lambda person: (-person.votes, person.name, person.pseudonym))


def _guests(queue: Queue) -> QuerySet[Any, Any]:
    return Invite.objects.filter(queue=queue, guests__isnull=False).values("guests")


def _person(
    voter: Voter, figures: dict[str, Any], decision: UUID | None, excluded: Exclusion | None
) -> Person:
    seen = (voter.created_at, figures.pop("last", None), figures.pop("flagged", None))
    return Person(
        id=voter.pk,
        name=voter.name or voter.external_id,
        pseudonym=voter.pseudonym,
        last_seen=max(moment for moment in seen if moment is not None),
        excluded=excluded,
        decision=decision,
        **figures,
    )


def _figures(queue: Queue) -> dict[UUID, dict[str, Any]]:
    """Return what is known of each voter, by the names that `Person` has for it."""
    found: dict[UUID, dict[str, Any]] = defaultdict(dict)
    for row in _votes(queue):
        left, sided = row.pop("left"), row.pop("sided")
        found[row.pop("voter")] |= row | {"left": Share.of(left, sided) if sided else None}
    for pk, milliseconds in _rows(_MEDIANS, queue):
        found[pk]["median_seconds"] = float(milliseconds) / 1000
    # What is said in free words is never quite the same.
    for pk, pairs, same in _rows(_AGREEMENT, queue) if queue.kind != Queue.Kind.TEXT else ():
        found[pk]["agreement"] = Share.of(float(same), pairs)
    skipped: Any = Assignment.objects.filter(skips__gt=0, item__queue=queue.pk).values("voter")
    flagged: Any = Flag.objects.filter(item__queue=queue.pk).values("voter")
    for row in (
        *skipped.annotate(skips=Sum("skips")),
        *flagged.annotate(flags=Count("pk"), flagged=Max("created_at")),
    ):
        found[row.pop("voter")] |= row
    return found


def _standing(queue: Queue) -> QuerySet[Entry]:
    votes = Entry.objects.filter(queue=queue.pk, kind=Entry.Kind.VOTE, seq__isnull=False)
    return votes.filter(retracted_seq__isnull=True)


def _votes(queue: Queue) -> QuerySet[Entry, Any]:
    is_sided = Q(choice__in=SIDES) & ~Q(left_side="")
    return (
        _standing(queue)
        .values("voter")
        .annotate(
            votes=Count("pk"),
            last=Max("at"),
            sided=Count("pk", filter=is_sided),
            left=Count("pk", filter=is_sided & Q(choice=F("left_side"))),
        )
    )


def _rows(sql: str, queue: Queue) -> list[Any]:
    about = {"queue": key(queue.pk), "simulated": queue.is_simulated}
    with prepared() as cursor:
        cursor.execute(sql, about)
        return [(UUID(str(pk)), *row) for pk, *row in cursor.fetchall()]


def _decisions(
    queue: Queue, voters: Mapping[UUID, Voter]
) -> dict[UUID | None, tuple[UUID, Exclusion | None]]:
    """Return the latest decision on each voter, and the exclusion that stands."""
    names = {voter.pseudonym: str(voter) for voter in voters.values()}
    made = list(decisions_on_voters(queue))
    found: dict[UUID | None, tuple[UUID, Exclusion | None]] = {}
    reversed_ones = {decision.target_id for decision in made}
    for decision in reversed(made):
        said, stands = decision.payload or {}, found.get(decision.voter_id, (None, None))[1]
        if said["action"] == "exclude" and decision.pk not in reversed_ones:
            who = names.get(said["by"], said["by"])
            stands = Exclusion(decision.uid, decision.at, who, decision.comment)
        found[decision.voter_id] = (decision.uid, stands)
    return found


# --- the votes of all ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """How far the votes of a run are, and how fast they come."""

    # Items that can be voted on and want votes, these votes, and items that are not open yet.
    waiting: int
    votes_left: int
    preparing: int
    # Votes by the beginning of each stretch of time in which there were some.
    unit: str
    votes: Sequence[tuple[datetime, int]]
    # Votes in the last 24 hours and in the last 7 days.
    last_day: int
    last_week: int
    noun: str = "pair"

    @property
    def forecast(self) -> str:
        """Say when the votes will be in, if people go on as they did."""
        if not self.votes_left:
            return "No vote is missing."
        left = number_of(self.votes_left, "vote")
        recent, days, span = (self.last_day, 1, "24 hours")
        if not recent:
            recent, days, span = (self.last_week, 7, "7 days")
        if not recent:
            return f"{left} are missing. Nobody voted in the last 7 days, so there is no forecast."
        seconds = self.votes_left / recent * days * 86_400
        return (
            f"{left} are missing. At the pace of the last {span} ({number_of(recent, 'vote')}) "
            f"that takes about {duration(seconds)}."
        )


def pace_of(queue: Queue, now: datetime) -> Pace:
    votes = _standing(queue)
    whole = votes.aggregate(
        first=Min("at"),
        last=Max("at"),
        last_day=Count("pk", filter=Q(at__gt=now - timedelta(days=1))),
        last_week=Count("pk", filter=Q(at__gt=now - timedelta(days=7))),
    )
    first, last = whole.pop("first") or now, whole.pop("last") or now
    fitting = (unit for unit, span in UNITS.items() if (last - first) / span < MOST_COLUMNS - 1)
    unit = next(fitting, "month")
    begun = votes.annotate(begins=Trunc("at", unit)).values_list("begins").order_by("begins")
    wanting = Q(opened_at__isnull=False, votes__lt=F("votes_wanted"))
    missing = F("votes_wanted") - F("votes")
    items = Item.objects.filter(queue=queue.pk, unusable="").aggregate(
        waiting=Count("pk", filter=wanting),
        votes_left=Sum(missing, filter=Q(votes__lt=F("votes_wanted")), default=0),
        preparing=Count("pk", filter=Q(opened_at__isnull=True)),
    )
    by_unit = list(begun.annotate(Count("pk")))
    return Pace(unit=unit, votes=by_unit, noun=queue.noun, **items, **whole)
