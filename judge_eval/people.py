"""Who votes in a run, and how: one row for each voter, and how far the votes are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Count, F, Max, Q, QuerySet, Sum

from humanjudge.lib.text import duration, number_of
from judge_eval.stats.estimate import Interval, wilson
from voting.choices import SIDES
from voting.curating import decisions_on_voters
from voting.ledger.bulk_sql import key, prepared
from voting.models import Assignment, Flag, Invite, Item, Queue, Voter

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
# Whether a vote counts, and whether its voter spoke before seeing what the judges say.
_VOTES: Final = f"""
    SELECT CAST(voter_id AS text), CAST(item_id AS text), choice, left_side, elapsed_ms,
        CAST(at AS text), simulated OR NOT unblinded, NOT excluded AND (simulated OR NOT unblinded)
    {_OWN}
"""
# Votes by the hour in which they were cast, and of these the recent ones.
_HOURS: Final = f"""
    SELECT {{hour}} AS hour, COUNT(*), SUM(CASE WHEN at > %(day)s THEN 1 ELSE 0 END),
        SUM(CASE WHEN at > %(week)s THEN 1 ELSE 0 END)
    {_OWN} GROUP BY 1 ORDER BY 1
"""
_HOUR: Final = {"postgresql": "date_trunc('hour', at)", "sqlite": "substr(at, 1, 13)"}


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
    for voter, votes in _voted(queue).items():
        found[UUID(voter)] |= votes.figures
    skipped: Any = Assignment.objects.filter(skips__gt=0, item__queue=queue.pk).values("voter")
    flagged: Any = Flag.objects.filter(item__queue=queue.pk).values("voter")
    for row in (
        *skipped.annotate(skips=Sum("skips")),
        *flagged.annotate(flags=Count("pk"), flagged=Max("created_at")),
    ):
        found[row.pop("voter")] |= row
    return found


class _Votes:
    """The votes of one voter, as they are added up."""

    def __init__(self) -> None:
        # As texts, which stand in the order of the times.
        self.times: list[str] = []
        self.elapsed: list[int] = []
        # Votes for a side, and those for the left one; items with other votes, and the sum of the
        # shares of these that chose the same.
        self.sided = self.left = self.items = 0
        self.alike = 0.0

    @property
    def figures(self) -> dict[str, Any]:
        return {
            "votes": len(self.times),
            "last": _moment(max(self.times)),
            "median_seconds": median(self.elapsed) / 1000 if self.elapsed else None,
            "left": Share.of(self.left, self.sided) if self.sided else None,
            "agreement": Share.of(self.alike, self.items) if self.items else None,
        }


def _voted(queue: Queue) -> dict[str, _Votes]:
    """Add votes up by voter: in Python, as a database sorts them four times for the same."""
    rows, whole = _rows(_VOTES, queue), Counter[str]()
    by_choice, found = Counter[tuple[str, str]](), defaultdict[str, _Votes](_Votes)
    for _, item, choice, *_, counts in rows:
        if counts:
            whole[item] += 1
            by_choice[item, choice] += 1
    for voter, item, choice, left, elapsed, at, is_blind, counts in rows:
        votes, others = found[voter], whole[item] - counts
        votes.times.append(at)
        if elapsed is not None:
            votes.elapsed.append(elapsed)
        if left and choice in SIDES:
            votes.sided += 1
            votes.left += choice == left
        # What is said in free words is never quite the same.
        if is_blind and others and queue.kind != Queue.Kind.TEXT:
            votes.items += 1
            votes.alike += (by_choice[item, choice] - counts) / others
    return found


def _rows(sql: str, queue: Queue, **about: Any) -> list[Any]:
    with prepared() as cursor:
        cursor.execute(sql, {"queue": key(queue.pk), **about})
        return list(cursor.fetchall())


def _moment(told: datetime | str) -> datetime:
    """Return a time as hand-written SQL gives it, which may be its text, always in UTC."""
    return datetime.fromisoformat(told).replace(tzinfo=UTC) if isinstance(told, str) else told


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
    since = {"day": now - timedelta(days=1), "week": now - timedelta(days=7)}
    times = {n: connection.ops.adapt_datetimefield_value(at) for n, at in since.items()}
    rows = _rows(_HOURS.format(hour=_HOUR[connection.vendor]), queue, **times)
    hours = [(_moment(hour), votes) for hour, votes, *_ in rows]
    span = hours[-1][0] - hours[0][0] if hours else timedelta(0)
    unit = next((unit for unit, each in UNITS.items() if span / each < MOST_COLUMNS), "month")
    wanting = Q(votes__lt=F("votes_wanted"))
    missing = Sum(F("votes_wanted") - F("votes"), filter=wanting, default=0)
    items = Item.objects.filter(queue=queue.pk, unusable="").aggregate(
        waiting=Count("pk", filter=wanting & Q(opened_at__isnull=False)),
        votes_left=missing,
        preparing=Count("pk", filter=Q(opened_at__isnull=True)),
    )
    return Pace(
        unit=unit,
        votes=_in_units(hours, unit),
        last_day=sum(row[2] for row in rows),
        last_week=sum(row[3] for row in rows),
        noun=queue.noun,
        **items,
    )


def _in_units(hours: Iterable[tuple[datetime, int]], unit: str) -> list[tuple[datetime, int]]:
    """Add votes of hours up to those of days, weeks or months.

    Examples
    --------
    >>> _in_units([(datetime(2026, 11, 4, 9), 2), (datetime(2026, 11, 6, 8), 3)], "week")
    [(datetime.datetime(2026, 11, 2, 0, 0), 5)]
    """
    found = Counter[datetime]()
    for hour, votes in hours:
        day = hour if unit == "hour" else hour.replace(hour=0)
        back = {"week": day.weekday(), "month": day.day - 1}.get(unit, 0)
        found[day - timedelta(days=back)] += votes
    return list(found.items())
