"""What run pages and the API read, with a fixed number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Left

from humanjudge.lib import leases
from judge_eval.models import Board, Call, Judge, JudgeRating, RatingPoint, Run, Verdict
from judge_eval.stats import elo
from voting.models import Entry, Invite, Item, Picture, Voter
from voting.selectors import open_to, queue_counts, unusable_pairs

# Of calls: what one cost is not known.
UNPRICED: Final = Q(cost_nano__isnull=True, state=Call.State.DONE)


def used_pictures(run: Run) -> QuerySet[Picture]:
    used = Item.objects.filter(queue=run.queue_id).filter(
        Q(a__picture=OuterRef("pk")) | Q(b__picture=OuterRef("pk"))
    )
    return Picture.objects.filter(Exists(used))


def waiting_pictures(run: Run) -> QuerySet[Picture]:
    return used_pictures(run).filter(leases.free(), state=Picture.State.WAITING)


def ready_verdicts(run: Run) -> QuerySet[Verdict]:
    """Baselines' verdicts to ask for: nobody is at it, and what they must see is there."""
    undrawn = Picture.objects.exclude(state=Picture.State.DONE)
    return Verdict.objects.filter(
        leases.free(),
        judge__run=run,
        judge__provider=Judge.BASELINE,
        state=Verdict.State.WAITING,
    ).exclude(Q(item__a__picture__in=undrawn) | Q(item__b__picture__in=undrawn))


def runs_to_advance() -> list[UUID]:
    return list(Run.objects.filter(state__in=Run.AT_WORK).values_list("pk", flat=True))


@dataclass(frozen=True)
class BoardRow:
    """One judge's line on the board."""

    judge: Judge
    elo: float
    agree: int
    disagree: int
    asked: int
    answered: int

    @property
    def total(self) -> int:
        return self.agree + self.disagree

    @property
    def agree_rate(self) -> float | None:
        return elo.agree_rate(self.agree, self.disagree)

    @property
    def coverage(self) -> float | None:
        return 100 * self.answered / self.asked if self.asked else None


@dataclass(frozen=True)
class BoardView:
    """All that the board shows, as of one ledger entry; its rows are in the run's order."""

    run: Run
    rows: list[BoardRow]
    votes: int
    unblinded: int
    seq: int
    done: int
    total: int
    preparing: int
    unusable: int

    @property
    def pending(self) -> int:
        return self.total - self.done

    @property
    def ready(self) -> int:
        return self.total - self.preparing


def board(run: Run) -> BoardView:
    ratings = JudgeRating.objects.filter(judge__run=run).select_related("judge")
    counts = Board.objects.get(run=run)
    done, total, preparing = queue_counts(run.queue)
    return BoardView(
        run=run,
        rows=[_row(rating) for rating in ratings.order_by("judge__position")],
        votes=counts.votes,
        unblinded=counts.unblinded,
        seq=counts.seq,
        done=done,
        total=total,
        preparing=preparing,
        unusable=unusable_pairs(run.queue).count(),
    )


def _row(rating: JudgeRating) -> BoardRow:
    return BoardRow(
        judge=rating.judge,
        elo=rating.elo,
        agree=rating.agree,
        disagree=rating.disagree,
        asked=rating.asked,
        answered=rating.answered,
    )


def left_out(run: Run) -> list[tuple[str, int]]:
    """Return why pairs of a run cannot be voted on, and how many each reason holds back."""
    reasons = unusable_pairs(run.queue).values_list("unusable")
    return list(reasons.annotate(pairs=Count("pk")).order_by("-pairs", "unusable"))


def rating_series(run: Run, votes: int) -> list[tuple[int, list[float]]]:
    """Return at most about 130 points (votes so far, ratings in judge order), oldest first."""
    stride = elo.graph_stride(votes)
    wanted = range(stride, votes + 1, stride)
    points = RatingPoint.objects.filter(run=run, votes__in=list(wanted)).order_by("votes")
    return list(points.values_list("votes", "ratings"))


def verdicts_on(item: Item) -> list[Verdict]:
    return list(
        Verdict.objects.filter(item=item)
        .select_related("judge__rating")
        .order_by("judge__position")
    )


def votes_on(item: Item) -> list[Entry]:
    """Standing votes on a comparison, oldest first; the voters stay pseudonyms."""
    return list(
        Entry.objects.filter(item=item, kind=Entry.Kind.VOTE, retracted=False)
        .select_related("voter")
        .order_by("id")
    )


def run_list() -> QuerySet[Run]:
    runs = Run.objects.select_related("board", "queue__project").order_by("-created_at")
    return runs.defer("config")  # it may be large


def pairs_at(run: Run, positions: Sequence[int], letters: int) -> dict[int, dict[str, Any]]:
    """Return what names the pairs at some places, and how their prompts begin."""
    pairs = Item.objects.filter(queue=run.queue_id, position__in=positions).annotate(
        prompt=Left("a__prompt", letters),
        generator_a=F("a__generator"),
        generator_b=F("b__generator"),
    )
    names = ("id", "external_id", "generator_a", "generator_b", "prompt")
    return {pair.pop("position"): pair for pair in pairs.values("position", *names)}


def invite_list(run: Run) -> Sequence[Invite]:
    invites = list(
        Invite.objects.filter(queue=run.queue_id)
        .select_related("queue")
        .annotate(voters_in=Count("voters", distinct=True) + Count("guests", distinct=True))
        .order_by("created_at")
    )
    for invite in invites:
        invite.joined = invite.voters_in
    return invites


def pending_pairs(run: Run, voter: Voter, *, after: int, limit: int) -> list[Item]:
    """Pairs behind a position that want votes and that the voter has not voted on."""
    return list(
        open_to(voter, run.queue)
        .filter(position__gt=after)
        .select_related("a", "b")
        .order_by("position")[:limit]
    )


def verdicts_on_many(comparisons: Sequence[Item]) -> dict[UUID, list[Verdict]]:
    verdicts: dict[UUID, list[Verdict]] = {item.pk: [] for item in comparisons}
    found = Verdict.objects.filter(item__in=comparisons).select_related("judge")
    for verdict in found.order_by("judge__position"):
        verdicts[verdict.item_id].append(verdict)
    return verdicts
