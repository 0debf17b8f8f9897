"""Who votes in a run, and how: one row for each voter, and how far the votes are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from statistics import median
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Max, Q, Sum

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
# So many signs of a time, as a database writes it, say the day and the hour.
HOUR: Final = 13
UNITS: Final = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
    "month": timedelta(days=31),
}

# Sealed votes that stand, those too that a decision leaves out: whether each was cast before its
# voter saw what the judges say, and whether it counts.
_VOTES: Final = """
    SELECT CAST(voter_id AS text), CAST(item_id AS text), choice, left_side, elapsed_ms,
        CAST(at AS text), simulated OR NOT unblinded, NOT excluded AND (simulated OR NOT unblinded)
    FROM voting_entry
    WHERE queue_id = %(queue)s AND kind = 'vote' AND seq IS NOT NULL AND retracted_seq IS NULL
"""
Vote = tuple[str, str, str, str, int | None, str, bool, bool]


class Votes:
    """The votes of a queue, read once: of each voter, and how many there are on each item.

    They are added up in Python, as a database sorts them four times for the same.
    """

    def __init__(self, queue: Queue) -> None:
        with prepared() as cursor:
            cursor.execute(_VOTES, {"queue": key(queue.pk)})
            self.rows: Sequence[Vote] = cursor.fetchall()
        # What is said in free words is never quite the same.
        self.are_compared = queue.kind != Queue.Kind.TEXT
        self.by_voter = defaultdict[str, list[Vote]](list)
        for row in self.rows:
            self.by_voter[row[0]].append(row)
        # Those that count, by item and choice, and by item.
        self.alike = Counter((row[1], row[2]) for row in self.rows if row[7])
        self.on_item = Counter[str]()
        for (item, _), number in self.alike.items():
            self.on_item[item] += number

    def of(self, voter: UUID) -> Sequence[Vote]:
        return self.by_voter.get(str(key(voter)), ())


class Share(NamedTuple):
    """A share of `n`, with its 95 % interval where `n` is large enough."""

    value: float
    n: int

    @classmethod
    def of(cls, parts: Sequence[float]) -> "Share | None":
        """Return the mean of what are shares themselves; None of nothing."""
        return cls(min(sum(parts) / len(parts), 1.0), len(parts)) if parts else None

    @property
    def interval(self) -> Interval | None:
        return wilson(self.value * self.n, self.n) if self.n >= LEAST_PAIRS else None


class Exclusion(NamedTuple):
    """Why the votes of somebody count nowhere: a decision that can be taken back."""

    decision: UUID
    at: datetime
    who: str
    why: str


@dataclass
class Person:
    """A voter of a run. What nothing is known of is None, and worked out where it is asked for."""

    id: UUID
    name: str
    pseudonym: str
    joined: datetime
    group: str
    _own: Sequence[Vote]
    _all: Votes
    skips: int = 0
    flags: int = 0
    last_flag: datetime | None = None
    # The latest decision on the voter, and the exclusion that stands.
    decision: UUID | None = None
    excluded: Exclusion | None = None

    @property
    def votes(self) -> int:
        return len(self._own)

    @property
    def name_in_order(self) -> str:
        return (self.name or self.pseudonym).casefold()

    @property
    def group_in_order(self) -> str | None:
        return self.group.casefold() or None

    @property
    def is_excluded(self) -> bool:
        return self.excluded is not None

    @cached_property
    def last_seen(self) -> datetime:
        # As texts, which stand in the order of the times.
        last_vote = max((at for _, _, _, _, _, at, _, _ in self._own), default=None)
        seen = (self.joined, self.last_flag, _moment(last_vote) if last_vote else None)
        return max(filter(None, seen))

    @cached_property
    def median_seconds(self) -> float | None:
        elapsed = [ms for _, _, _, _, ms, _, _, _ in self._own if ms is not None]
        return median(elapsed) / 1000 if elapsed else None

    @cached_property
    def left(self) -> Share | None:
        """Of the votes for a side, those for the one that stood left."""
        sided = (row for row in self._own if row[3] and row[2] in SIDES)
        return Share.of([choice == left for _, _, choice, left, _, _, _, _ in sided])

    @cached_property
    def agreement(self) -> Share | None:
        """With other people, on the pairs that both have voted on."""
        on_item, alike = self._all.on_item, self._all.alike
        if not self._all.are_compared:
            return None
        return Share.of(
            [
                (alike[item, choice] - counts) / others
                for _, item, choice, _, _, _, is_blind, counts in self._own
                if is_blind and (others := on_item[item] - counts)
            ]
        )


def people_of(queue: Queue, votes: Votes | None = None) -> list[Person]:
    """Return the voters of a queue with a fixed number of queries, who voted most first.

    Whoever was let in to vote here is one of them, and whoever has voted, skipped or flagged.
    """
    votes = votes or Votes(queue)
    skips: Any = Assignment.objects.filter(skips__gt=0, item__queue=queue.pk).values_list("voter")
    flags: Any = Flag.objects.filter(item__queue=queue.pk).values_list("voter")
    skipped = dict(skips.annotate(Sum("skips")))
    flagged = {voter: about for voter, *about in flags.annotate(Count("pk"), Max("created_at"))}
    guests = Invite.objects.filter(queue=queue, guests__isnull=False).values("guests")
    active = {*skipped, *flagged}
    active |= set(Voter.objects.filter(pk__in=guests).values_list("pk", flat=True))
    fields = ("pk", "name", "external_id", "pseudonym", "created_at", "group", "invite__queue_id")
    rows = Voter.objects.filter(project=queue.project_id).values_list(*fields)
    decisions = _decisions(queue, {row[3]: row[1] or row[3] for row in rows})
    people = [
        Person(
            pk,
            name or external_id,
            pseudonym,
            joined,
            group,
            votes.of(pk),
            votes,
            skipped.get(pk, 0),
            *flagged.get(pk, (0, None)),
            *decisions.get(pk, (None, None)),
        )
        for pk, name, external_id, pseudonym, joined, group, invited_to in rows
        if pk in active or invited_to == queue.pk or votes.of(pk)
    ]
    return sorted(people, key=lambda person: (-person.votes, person.name, person.pseudonym))


def _decisions(
    queue: Queue, names: Mapping[str, str]
) -> dict[UUID | None, tuple[UUID, Exclusion | None]]:
    """Return the latest decision on each voter, and the exclusion that stands."""
    made = list(decisions_on_voters(queue))
    latest: dict[UUID | None, tuple[UUID, Exclusion | None]] = {}
    reversed_ones = {decision.target_id for decision in made}
    for decision in reversed(made):
        payload, stands = decision.payload or {}, latest.get(decision.voter_id, (None, None))[1]
        if payload["action"] == "exclude" and decision.pk not in reversed_ones:
            who = names.get(payload["by"], payload["by"])
            stands = Exclusion(decision.uid, decision.at, who, decision.comment)
        latest[decision.voter_id] = (decision.uid, stands)
    return latest


def _moment(text: str) -> datetime:
    """Return a time that hand-written SQL gives as text, always in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


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


def pace_of(queue: Queue, now: datetime, votes: Votes | None = None) -> Pace:
    times = [row[5] for row in (votes or Votes(queue)).rows]
    unit, over_time = votes_over_time(Counter(at[:HOUR] for at in times))
    wanting = Q(votes__lt=F("votes_wanted"))
    missing = Sum(F("votes_wanted") - F("votes"), filter=wanting, default=0)
    items = Item.objects.filter(queue=queue.pk, unusable="").aggregate(
        waiting=Count("pk", filter=wanting & Q(opened_at__isnull=False)),
        votes_left=missing,
        preparing=Count("pk", filter=Q(opened_at__isnull=True)),
    )
    day_ago, week_ago = (str((now - timedelta(days=days)).replace(tzinfo=None)) for days in (1, 7))
    recent = [at for at in times if at > week_ago]
    return Pace(
        unit=unit,
        votes=over_time,
        last_day=sum(at > day_ago for at in recent),
        last_week=len(recent),
        noun=queue.noun,
        **items,
    )


def votes_over_time(by_hour: Mapping[str, int]) -> tuple[str, list[tuple[datetime, int]]]:
    """Add votes up by a unit of time that leaves few enough for a picture, and name it.

    Hours are the beginnings of times as databases write them.

    Examples
    --------
    >>> votes_over_time({"2026-11-04 09": 2, "2026-11-04 11": 1})[0]
    'hour'
    """
    hours = [(_moment(f"{hour}:00"), by_hour[hour]) for hour in sorted(by_hour)]
    span = hours[-1][0] - hours[0][0] if hours else timedelta(0)
    unit = next((unit for unit, each in UNITS.items() if span / each < MOST_COLUMNS), "month")
    return unit, _in_units(hours, unit)


def _in_units(hours: Iterable[tuple[datetime, int]], unit: str) -> list[tuple[datetime, int]]:
    """Add votes of hours up to those of days, weeks or months.

    Examples
    --------
    >>> _in_units([(datetime(2026, 11, 4, 9), 2), (datetime(2026, 11, 6, 8), 3)], "week")
    [(datetime.datetime(2026, 11, 2, 0, 0), 5)]
    """
    totals = Counter[datetime]()
    for hour, votes in hours:
        day = hour if unit == "hour" else hour.replace(hour=0)
        back = {"week": day.weekday(), "month": day.day - 1}.get(unit, 0)
        totals[day - timedelta(days=back)] += votes
    return list(totals.items())
