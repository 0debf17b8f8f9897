"""Who votes in a run, and how: one row for each voter, and how far the votes are."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from statistics import median
from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from django.db.models import Count, F, Max, Q, Sum

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import duration, number_of
from judge_eval.models import Findings, Run
from judge_eval.stats.estimate import Interval, wilson
from voting.curating.services import decisions_on_voters
from voting.items.choices import SIDES
from voting.ledger.bulk_sql import key, prepared
from voting.models import Assignment, Flag, Invite, Item, Queue, Voter

# A share of fewer pairs than that has no interval.
LEAST_PAIRS: Final = 10
# Of more votes than these, a page shows what was stored when findings were computed last.
MOST_READ: Final = 5_000
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

# Sealed votes that stand, those too that a decision leaves out, and blind ones that were changed
# after the reveal: whether each was cast before its voter saw what the judges say, and whether it
# counts.
_VOTES: Final = """
    SELECT CAST(voter_id AS text), CAST(item_id AS text), choice, left_side, elapsed_ms,
        CAST(at AS text), simulated OR NOT unblinded, NOT excluded AND (simulated OR NOT unblinded)
    FROM voting_entry
    WHERE queue_id = %(queue)s AND kind = 'vote' AND seq IS NOT NULL
        AND (retracted_seq IS NULL OR retracted_after_reveal)
"""
Vote = tuple[str, str, str, str, int | None, str, bool, bool]


class VoterShare(NamedTuple):
    """A share of `n`, with its 95 % interval where `n` is large enough."""

    value: float
    n: int

    @classmethod
    def mean_of(cls, parts: Sequence[float]) -> "VoterShare | None":
        """Return the mean of what are shares themselves; None of nothing."""
        return cls(min(sum(parts) / len(parts), 1.0), len(parts)) if parts else None

    @property
    def interval(self) -> Interval | None:
        return wilson(self.value * self.n, self.n) if self.n >= LEAST_PAIRS else None


class VoterFigures(NamedTuple):
    """What the votes of one voter come to; `last` is their time, as a database writes it."""

    votes: int = 0
    last: str | None = None
    median_seconds: float | None = None
    # Of the votes for a side, those for the one that stood left.
    left: VoterShare | None = None
    # With other people, on the pairs that both have voted on.
    agreement: VoterShare | None = None


class VoteFigures(NamedTuple):
    """What all votes of a queue come to: by voter, and how many came in each hour."""

    voters: Mapping[str, VoterFigures]
    by_hour: Mapping[str, int]

    def figures_of(self, voter: UUID) -> VoterFigures:
        return self.voters.get(str(key(voter)), _NO_VOTES)

    @classmethod
    def read(cls, stored: JsonObject) -> Self:
        voters = {
            voter: VoterFigures(*figures, *(share and VoterShare(*share) for share in shares))
            for voter, (*figures, left, agreement) in stored["voters"].items()
            for shares in [(left, agreement)]
        }
        return cls(voters, stored["by_hour"])


_NO_VOTES: Final = VoterFigures()


def figures_of(run: Run) -> VoteFigures:
    """Return the figures of a run's votes: of very many, those that were stored last."""
    if run.board.votes > MOST_READ:
        stored = Findings.objects.filter(run=run, part="", people__isnull=False)
        if people := stored.values_list("people", flat=True).first():
            return VoteFigures.read(people)
    return count_votes(run.queue)


def count_votes(queue: Queue) -> VoteFigures:
    """Read all votes of a queue; they are added up here, as a database sorts them four times."""
    with prepared() as cursor:
        cursor.execute(_VOTES, {"queue": key(queue.pk)})
        rows: list[Vote] = cursor.fetchall()
    if queue.is_tuning:
        # Of a vote that is held out is known when it came, and nothing that it says.
        held_out = {str(key(item.pk)) for item in queue.items.filter(is_held_out=True).only("pk")}
        rows = [
            (*row[:2], "", "", *row[4:6], False, False) if row[1] in held_out else row
            for row in rows
        ]
    by_voter = defaultdict[str, list[Vote]](list)
    for row in rows:
        by_voter[row[0]].append(row)
    # Those that count, by item and choice, and by item.
    alike, on_item = Counter((row[1], row[2]) for row in rows if row[7]), Counter[str]()
    for (item, _), number in alike.items():
        on_item[item] += number
    # What is said in free words is never quite the same.
    are_compared = queue.kind != Queue.Kind.TEXT
    voters = {
        voter: VoterFigures(
            len({row[1] for row in voter_votes}),
            max(row[5] for row in voter_votes),
            median(times) / 1000
            if (times := [row[4] for row in voter_votes if row[4] is not None])
            else None,
            VoterShare.mean_of(
                [row[2] == row[3] for row in voter_votes if row[3] and row[2] in SIDES]
            ),
            _agreement(voter_votes, alike, on_item) if are_compared else None,
        )
        for voter, voter_votes in by_voter.items()
    }
    return VoteFigures(voters, Counter(row[5][:HOUR] for row in rows))


def _agreement(
    voter_votes: Sequence[Vote], alike: Mapping[tuple[str, str], int], on_item: Mapping[str, int]
) -> VoterShare | None:
    return VoterShare.mean_of(
        [
            (alike[item, choice] - counts) / others
            for _, item, choice, _, _, _, is_blind, counts in voter_votes
            if is_blind and (others := on_item[item] - counts)
        ]
    )


class Exclusion(NamedTuple):
    """Why the votes of somebody count nowhere: a decision that can be taken back."""

    decision: UUID
    decided_at: datetime
    curator_name: str
    reason: str


@dataclass
class Person:
    """A voter of a run; what nothing is known of is None."""

    id: UUID
    name: str
    pseudonym: str
    joined: datetime
    group: str
    figures: VoterFigures = _NO_VOTES
    skips: int = 0
    flags: int = 0
    last_flag: datetime | None = None
    # The latest decision on the voter, and the exclusion that stands.
    decision: UUID | None = None
    excluded: Exclusion | None = None

    @property
    def votes(self) -> int:
        return self.figures.votes

    @property
    def median_seconds(self) -> float | None:
        return self.figures.median_seconds

    @property
    def left(self) -> VoterShare | None:
        return self.figures.left

    @property
    def agreement(self) -> VoterShare | None:
        return self.figures.agreement

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
        last = self.figures.last
        return max(filter(None, (self.joined, self.last_flag, _utc_moment(last) if last else None)))


def people_of(queue: Queue, figures: VoteFigures) -> list[Person]:
    """Return the voters of a queue with a fixed number of queries, who voted most first.

    Whoever was let in to vote here is one of them, and whoever has voted, skipped or flagged.
    """
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
            vote_figures,
            skipped.get(pk, 0),
            *flagged.get(pk, (0, None)),
            *decisions.get(pk, (None, None)),
        )
        for pk, name, external_id, pseudonym, joined, group, invited_to in rows
        for vote_figures in [figures.figures_of(pk)]
        if pk in active or invited_to == queue.pk or vote_figures.votes
    ]
    return sorted(people, key=lambda person: (-person.votes, person.name, person.pseudonym))


def _decisions(
    queue: Queue, names: Mapping[str, str]
) -> dict[UUID | None, tuple[UUID, Exclusion | None]]:
    decisions = list(decisions_on_voters(queue))
    latest: dict[UUID | None, tuple[UUID, Exclusion | None]] = {}
    reversed_ones = {decision.target_id for decision in decisions}
    for decision in reversed(decisions):
        payload, stands = decision.payload or {}, latest.get(decision.voter_id, (None, None))[1]
        if payload["action"] == "exclude" and decision.pk not in reversed_ones:
            curator_name = names.get(payload["by"], payload["by"])
            stands = Exclusion(decision.uid, decision.at, curator_name, decision.comment)
        latest[decision.voter_id] = (decision.uid, stands)
    return latest


def _utc_moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


# --- the votes of all ---------------------------------------------------------------------------


@dataclass(frozen=True)
class VotingPace:
    # Items that can be voted on and want votes, these votes, and items that are not open yet.
    waiting: int
    votes_left: int
    preparing: int
    # Votes by the beginning of each stretch of time in which there were some.
    unit: str
    votes: Sequence[tuple[datetime, int]]
    # Votes in the last 24 hours and in the last 7 days, to the hour.
    last_day: int
    last_week: int
    noun: str = "pair"

    @property
    def forecast(self) -> str:
        """Say when the votes will be in, if people go on as they did."""
        if not self.votes_left:
            return "All votes are in."
        left = number_of(self.votes_left, "vote")
        recent, days, span = (self.last_day, 1, "24 hours")
        if not recent:
            recent, days, span = (self.last_week, 7, "7 days")
        if not recent:
            return f"{left} to go."
        seconds = self.votes_left / recent * days * 86_400
        return (
            f"{left} to go. At the pace of the last {span} ({number_of(recent, 'vote')}) "
            f"this takes about {duration(seconds)}."
        )


def pace_of(queue: Queue, now: datetime, figures: VoteFigures) -> VotingPace:
    unit, over_time = votes_over_time(figures.by_hour)
    wanting = Q(votes__lt=F("votes_wanted"), lacks_output=False)
    missing = Sum(F("votes_wanted") - F("votes"), filter=wanting, default=0)
    items = Item.objects.filter(queue=queue.pk, unusable="").aggregate(
        waiting=Count("pk", filter=wanting & Q(opened_at__isnull=False)),
        votes_left=missing,
        preparing=Count("pk", filter=Q(opened_at__isnull=True)),
    )
    last_day, last_week = (
        sum(n for hour, n in figures.by_hour.items() if hour >= since)
        for since in (str(now - timedelta(days=days))[:HOUR] for days in (1, 7))
    )
    return VotingPace(
        unit=unit,
        votes=over_time,
        last_day=last_day,
        last_week=last_week,
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
    hours = [(_utc_moment(f"{hour}:00"), by_hour[hour]) for hour in sorted(by_hour)]
    span = hours[-1][0] - hours[0][0] if hours else timedelta(0)
    unit = next((unit for unit, length in UNITS.items() if span / length < MOST_COLUMNS), "month")
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
