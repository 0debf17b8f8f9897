"""Reads of more than one row, with a fixed number of queries whatever the size."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from humanjudge.core.text import number_of
from voting.items.kinds import kind_of
from voting.models import (
    NO_VOTE,
    Assignment,
    Entry,
    Exposure,
    Invite,
    Item,
    Project,
    Queue,
    Voter,
)

Row = TypeVar("Row")
# Items that can be voted on and have too few votes; the condition is that of a partial index.
_WANTING = Q(unusable="", votes__lt=F("votes_wanted"))
_OPEN = _WANTING & Q(opened_at__isnull=False, lacks_output=False)
# How long a vote takes is told by the latest ones, and guessed before there are enough of them.
LATEST_VOTES, ENOUGH_VOTES, USUAL_SECONDS = 200, 5, 15.0


def own_votes(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    """A voter's votes on items, those too that were taken back."""
    return Entry.objects.filter(voter=voter, kind=Entry.Kind.VOTE, queue=queue, item__isnull=False)


def votes_on_item(item: Item) -> QuerySet[Entry]:
    """Votes that stand, and those changed after the reveal that judges are still measured by."""
    counts = Q(retracted=False) | Q(retracted_after_reveal=True)
    votes = Entry.objects.filter(counts, item=item, kind=Entry.Kind.VOTE)
    return votes.select_related("voter").order_by("pk")


def standing_votes(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    return own_votes(voter, queue).filter(retracted=False)


def latest_votes(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    """A voter's last vote on each item: it stands, or was taken back and not given again.

    Each half has an index of its own: what was taken back is listed once it is sealed.
    """
    votes = own_votes(voter, queue)
    later = votes.filter(item=OuterRef("item"), pk__gt=OuterRef("pk"))
    taken_back_last = Q(retracted=True, seq__isnull=False) & ~Exists(later)
    return votes.filter(Q(retracted=False) | taken_back_last)


def taken_back(voter: Voter, queue: Queue, item: UUID) -> Item | None:
    """Return an item whose vote the voter has undone and not given again."""
    undone = own_votes(voter, queue).filter(item=OuterRef("pk"), retracted=True)
    again = _not_voted_on(voter).filter(Exists(undone), queue=queue, pk=item)
    return again.select_related("a__picture", "b__picture").first()


def sent_back(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    """Decisions that send items back to a voter who has not answered since, the oldest first.

    Each with `vote`, the number of the vote that stands on the item, None if there is none.
    """
    votes = own_votes(voter, queue).filter(item=OuterRef("item"))
    later = votes.filter(pk__gt=OuterRef("pk"))
    about = {"project": queue.project_id, "queue": queue, "voter": voter, "retracted": False}
    decisions = Entry.objects.filter(
        NO_VOTE, ~Exists(later), kind=Entry.Kind.DECISION, item__isnull=False, **about
    )
    vote = votes.filter(retracted=False).values("uid")
    sent_back = decisions.filter(payload__action="send_back").annotate(vote=Subquery(vote[:1]))
    return sent_back.select_related("item").order_by("pk")


def last_taken_back(voter: Voter, item: Item) -> Entry | None:
    undone = Entry.objects.filter(voter=voter, kind=Entry.Kind.VOTE, item=item, retracted=True)
    return undone.select_related("queue").order_by("-id").first()


def has_seen_verdicts(voter: Voter, item: Item) -> bool:
    return Exposure.objects.filter(voter=voter, item=item).exists()


def open_to(voter: Voter, queue: Queue) -> QuerySet[Item]:
    return _not_voted_on(voter).filter(_OPEN, queue=queue)


def chunks(rows: QuerySet[Any, Row], order: str, number: int) -> Iterator[list[Row]]:
    """Yield rows in the order of a field that no two of them share, so many at a time."""
    rows = rows.order_by(order)
    chunk = list(rows[:number])
    while chunk:
        yield chunk
        last: Any = chunk[-1]
        last = last[order] if isinstance(last, dict) else getattr(last, order)
        chunk = list(rows.filter(**{f"{order}__gt": last})[:number])


def left_to(voters: Collection[Voter]) -> QuerySet[Item]:
    """Items that want votes and that a person, who may be several voters, could still vote on.

    A voter with a login is none of a queue until they are handed items of it.
    """
    invited = [voter.project_id for voter in voters if voter.user_id is None]
    handed = Assignment.objects.filter(voter__in=voters, item__queue=OuterRef("queue"))
    mine = Q(queue__project__in=invited) | Q(Exists(handed))
    of_projects = {voter.project_id for voter in voters}
    return _not_voted_on(*voters).filter(_OPEN, mine, queue__project__in=of_projects)


def left_for_user(user: User) -> QuerySet[Item]:
    """Items of all projects that want votes and that somebody could vote on with this login."""
    mine = Voter.objects.filter(user=user)
    return _not_voted_on(*mine).filter(_OPEN, released_by_me(*mine))


def in_turn(items: QuerySet[Item], queue: Queue, after: int = -1) -> QuerySet[Item]:
    """Return items in the order in which the queue hands them out, behind the one at a position."""
    if after >= 0:
        turn = Subquery(Item.objects.filter(queue=queue, position=after).values("turn"))
        items = items.filter(Q(turn__gt=turn) | Q(turn=turn, position__gt=after))
    return items.order_by("turn", "position")


def _not_voted_on(*voters: Voter) -> QuerySet[Item]:
    voted = Entry.objects.filter(
        voter__in=voters, item=OuterRef("pk"), kind=Entry.Kind.VOTE, retracted=False
    )
    return Item.objects.filter(~Exists(voted))


def queues_left(voters: Sequence[Voter], most: int) -> list[Queue]:
    """Return queues that somebody was let in to and still has items to vote on, the newest first.

    The voters are one person, who votes in several projects.
    """
    invites = Invite.objects.filter(Q(voters__in=voters) | Q(guests__in=voters))
    handed = Assignment.objects.filter(voter__in=voters, item__queue=OuterRef("pk"))
    left = _not_voted_on(*voters).filter(_OPEN, released_by_me(*voters), queue=OuterRef("pk"))
    is_let_in = Exists(handed) | Exists(invites.filter(queue=OuterRef("pk")))
    queues = Queue.objects.filter(
        is_let_in, Exists(left), project__in=[v.project_id for v in voters]
    )
    return list(queues.filter(is_open=True, is_simulated=False).order_by("-created_at")[:most])


def effort(queue: Queue, voter: Voter | None) -> tuple[int, float]:
    """Return how many items one person has to vote on, and the seconds that a vote takes people.

    The median of the latest votes; a guess where there are few.
    """
    items = open_to(voter, queue) if voter else Item.objects.filter(_OPEN, queue=queue)
    votes = Entry.objects.filter(queue=queue, kind=Entry.Kind.VOTE, seq__isnull=False)
    latest = votes.order_by("-seq").values_list("elapsed_ms", flat=True)[:LATEST_VOTES]
    times = [ms for ms in latest if ms is not None]
    seconds = median(times) / 1000 if len(times) >= ENOUGH_VOTES else USUAL_SECONDS
    return items.count(), seconds


@dataclass(frozen=True)
class Progress:
    mine: int
    left_for_me: int
    done: int
    total: int
    preparing: int
    # Votes of mine that were cast after their verdicts were seen, so they count for no judge.
    unblinded: int
    # Votes of mine that a curator's decision leaves out: they count nowhere.
    left_out: int = 0
    # What is voted on.
    noun: str = "pair"

    @property
    def my_total(self) -> int:
        return self.mine + self.left_for_me

    @property
    def pending(self) -> int:
        return self.total - self.done

    @property
    def ready(self) -> int:
        return self.total - self.preparing

    @property
    def counted_in_words(self) -> str:
        voted, blind = f"You voted on {number_of(self.mine, self.noun)}", self.mine - self.unblinded
        left_out = ""
        if self.left_out:
            of_mine = f"{self.left_out} of your votes {_verb(self.left_out)}"
            left_out = f" {of_mine} left out by decision of a curator."
            blind -= self.left_out
        if self.unblinded:
            return (
                f"{voted}. {blind or 'None'} of your votes count{'s' if blind == 1 else ''} in the "
                f"ratings of the judges; {self.unblinded} came after you had seen what they said, "
                f"and {_verb(self.unblinded)} kept apart; there a blind vote of yours before still "
                f"counts.{left_out}"
            )
        counts = {0: "", 1: ", and it counts"}.get(self.mine, ", and every one of them counts")
        return f"{voted}.{left_out}" if left_out else f"{voted}{counts}."

    @property
    def last_in_words(self) -> str:
        few = self.left_for_me == 1
        last = self.noun if few else number_of(self.left_for_me, self.noun)
        return (
            f"Others have just voted on the last {last}. "
            f"Should {'it' if few else 'one of them'} want another vote, it comes to you: this "
            "page looks again by itself."
        )

    @property
    def preparing_in_words(self) -> str:
        if not self.preparing:
            return "There is nothing to vote on just now."
        return f"{number_of(self.preparing, self.noun)} {_verb(self.preparing)} not ready yet."


def _verb(number: int) -> str:
    return "is" if number == 1 else "are"


def unusable_pairs(queue: Queue) -> QuerySet[Item]:
    """Pairs that cannot be voted on; the condition is that of a partial index."""
    return Item.objects.filter(~Q(unusable=""), queue=queue)


def queue_counts(queue: Queue) -> tuple[int, int, int]:
    """Return (items with enough votes, items, items not open yet).

    Costs the same however many items there are. Unusable ones are left out, and those without their
    outputs that have too few votes.
    """
    items = Item.objects.filter(queue=queue)
    done = Queue.objects.values_list("done", flat=True).get(pk=queue.pk)
    last = items.order_by("-position").values_list("position", flat=True).first()
    left_out = unusable_pairs(queue).count()
    left_out += items.filter(_WANTING, lacks_output=True).count()
    preparing = items.filter(opened_at__isnull=True, unusable="").count()
    return done, (0 if last is None else last + 1) - left_out, preparing


def reveal_of(queue: Queue) -> str:
    """Return when voters are shown what judges said; never where no judge has anything to say."""
    judges = Queue.objects.filter(pk=queue.pk, run__judges__rating__is_left_out=False)
    is_never = queue.reveal == Queue.Reveal.NEVER or not judges.exists()
    return Queue.Reveal.NEVER if is_never else queue.reveal


def progress(voter: Voter, queue: Queue) -> Progress:
    done, total, preparing = queue_counts(queue)
    # Settled of sealed votes, and of others as it will be.
    unblinded = Q(unblinded=True, excluded=False) | Q(Exposure.before_entry(), seq__isnull=True)
    mine = standing_votes(voter, queue).aggregate(
        mine=Count("pk"),
        unblinded=Count("pk", filter=unblinded),
        left_out=Count("pk", filter=Q(excluded=True)),
    )
    # Items whose last vote this voter has taken back: they count it until that is sealed.
    retractions = Entry.objects.filter(
        project=queue.project_id,
        seq__isnull=True,
        kind=Entry.Kind.RETRACTION,
        voter=voter,
        target__seq__isnull=False,
        target__unblinded=False,
        payload__isnull=True,
    )
    full = _not_voted_on(voter).filter(queue=queue, votes=F("votes_wanted"))
    again = full.filter(pk__in=retractions.values("item")).count()
    left = open_to(voter, queue).filter(released_by_me(voter)).count() + again
    return Progress(
        **mine,
        left_for_me=left,
        done=done - again,
        total=total,
        preparing=preparing,
        noun=kind_of(queue).noun,
    )


def released_by_me(*voters: Voter) -> Q:
    """Pairs the voter has skipped for good are somebody else's now."""
    released = Assignment.objects.filter(voter__in=voters, item=OuterRef("pk"), skips__gte=2)
    return ~Q(Exists(released))


def oldest_unsealed() -> datetime | None:
    unsealed = Entry.objects.filter(seq__isnull=True)
    return unsealed.order_by("at").values_list("at", flat=True).first()


def number_unsealed() -> int:
    # Of their times: SQLite would count rows in an index of all entries.
    number: int = Entry.objects.filter(seq__isnull=True).aggregate(n=Count("at"))["n"]
    return number


def projects_with_unsealed() -> list[UUID]:
    unsealed = Entry.objects.filter(
        project=OuterRef("pk"), seq__isnull=True, at__lte=timezone.now()
    )
    return list(Project.objects.filter(Exists(unsealed)).values_list("pk", flat=True))
