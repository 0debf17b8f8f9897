"""Reads of more than one row, with a fixed number of queries whatever the size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.lib.text import number_of
from voting.models import Assignment, Entry, Exposure, Item, Project, Queue, Voter


def own_votes(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    """A voter's votes on pairs, those too that were taken back."""
    return Entry.objects.filter(voter=voter, kind=Entry.Kind.VOTE, queue=queue, item__isnull=False)


def standing_votes(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    return own_votes(voter, queue).filter(retracted=False)


def votes_in_order(voter: Voter, queue: Queue) -> QuerySet[Entry]:
    """A voter's standing votes with what they were about, the latest first."""
    return (
        standing_votes(voter, queue)
        .select_related("item__a__picture", "item__b__picture")
        .order_by("-id")
    )


def taken_back(voter: Voter, queue: Queue, item: UUID) -> Item | None:
    """Return a pair whose vote the voter has undone and not given again."""
    undone = Entry.objects.filter(
        voter=voter, item=OuterRef("pk"), kind=Entry.Kind.VOTE, retracted=True
    )
    return (
        _not_voted_on(voter)
        .filter(Exists(undone), queue=queue, pk=item)
        .select_related("a__picture", "b__picture")
        .first()
    )


def has_seen_verdicts(voter: Voter, item: Item) -> bool:
    return Exposure.objects.filter(voter=voter, item=item).exists()


def open_to(voter: Voter, queue: Queue) -> QuerySet[Item]:
    """Pairs that want votes and that this voter has not voted on."""
    return _not_voted_on(voter).filter(
        queue=queue, opened_at__isnull=False, votes__lt=F("votes_wanted")
    )


def _not_voted_on(voter: Voter) -> QuerySet[Item]:
    voted = Entry.objects.filter(
        voter=voter, item=OuterRef("pk"), kind=Entry.Kind.VOTE, retracted=False
    )
    return Item.objects.filter(~Exists(voted))


def _about_to_want_votes(voter: Voter, queue: Queue) -> QuerySet[Item]:
    """Pairs whose last vote this voter has taken back: they count it until that is sealed."""
    taken_back = Entry.objects.filter(
        project=queue.project_id,
        seq__isnull=True,
        kind=Entry.Kind.RETRACTION,
        voter=voter,
        target__seq__isnull=False,
        target__unblinded=False,
    )
    return _not_voted_on(voter).filter(
        queue=queue, votes=F("votes_wanted"), pk__in=taken_back.values("item")
    )


@dataclass(frozen=True)
class Progress:
    """Where a voter and the whole queue stand."""

    mine: int
    left_for_me: int
    done: int
    total: int
    preparing: int
    # Votes of mine that were cast after their verdicts were seen, so they count for no judge.
    unblinded: int

    @property
    def blind(self) -> int:
        return self.mine - self.unblinded

    @property
    def of(self) -> int:
        return self.mine + self.left_for_me

    @property
    def pending(self) -> int:
        return self.total - self.done

    @property
    def ready(self) -> int:
        return self.total - self.preparing

    @property
    def counted_in_words(self) -> str:
        """Say how many votes are mine, and which of them count in the ratings of the judges."""
        voted = f"You voted on {number_of(self.mine, 'pair')}"
        if self.unblinded:
            blind = f"{self.blind or 'None'} of your votes count{'s' if self.blind == 1 else ''}"
            return (
                f"{voted}. {blind} in the ratings of the judges; {self.unblinded} came after you "
                f"had seen what they said, and {_are(self.unblinded)} kept apart."
            )
        if self.mine:
            counts = "it counts" if self.mine == 1 else "every one of them counts"
            return f"{voted}, and {counts}."
        return f"{voted}."

    @property
    def last_in_words(self) -> str:
        """Say that others hold the last pairs at this moment."""
        few = self.left_for_me == 1
        return (
            f"Others have just voted on the last {'pair' if few else f'{self.left_for_me} pairs'}. "
            f"Should {'it' if few else 'one of them'} want another vote, it comes to you: this "
            "page looks again by itself."
        )

    @property
    def preparing_in_words(self) -> str:
        if not self.preparing:
            return "There is nothing to vote on just now."
        return f"{number_of(self.preparing, 'pair')} {_are(self.preparing)} not ready yet."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def unusable_pairs(queue: Queue) -> QuerySet[Item]:
    """Pairs that can never be voted on; the condition is that of a partial index."""
    return Item.objects.filter(~Q(unusable=""), queue=queue)


def queue_counts(queue: Queue) -> tuple[int, int, int]:
    """Return (items with enough votes, items, items not open yet).

    Costs the same however many items there are; unusable ones are left out.
    """
    items = Item.objects.filter(queue=queue)
    done = Queue.objects.values_list("done", flat=True).get(pk=queue.pk)
    last = items.order_by("-position").values_list("position", flat=True).first()
    unusable = unusable_pairs(queue).count()
    preparing = items.filter(opened_at__isnull=True, unusable="").count()
    return done, (0 if last is None else last + 1) - unusable, preparing


def progress(voter: Voter, queue: Queue) -> Progress:
    done, total, preparing = queue_counts(queue)
    mine = standing_votes(voter, queue).aggregate(
        mine=Count("pk"), unblinded=Count("pk", filter=_was_unblinded())
    )
    again = _about_to_want_votes(voter, queue).count()
    return Progress(
        **mine,
        left_for_me=open_to(voter, queue).filter(released_by_me(voter)).count() + again,
        done=done - again,
        total=total,
        preparing=preparing,
    )


def _was_unblinded() -> Q:
    """Say it of sealed votes as it was settled, and of others as it will be."""
    seen = Exposure.objects.filter(
        voter=OuterRef("voter"), item=OuterRef("item"), seen_at__lt=OuterRef("at")
    )
    return Q(unblinded=True) | Q(Exists(seen), seq__isnull=True)


def released_by_me(voter: Voter) -> Q:
    """Pairs the voter has skipped for good are somebody else's now."""
    released = Assignment.objects.filter(voter=voter, item=OuterRef("pk"), skips__gte=2)
    return ~Q(Exists(released))


def oldest_unsealed() -> datetime | None:
    return (
        Entry.objects.filter(seq__isnull=True).order_by("at").values_list("at", flat=True).first()
    )


def projects_with_unsealed() -> list[UUID]:
    unsealed = Entry.objects.filter(
        project=OuterRef("pk"), seq__isnull=True, at__lte=timezone.now()
    )
    return list(Project.objects.filter(Exists(unsealed)).values_list("pk", flat=True))
