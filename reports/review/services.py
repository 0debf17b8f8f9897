"""What curators do with what waits for them: decide, and reverse what was decided."""

from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from judge_eval.models import Run
from judge_eval.runs.access import Reader, open_items
from reports.models import Review
from reports.review.projection import touch
from reports.webhooks import services as webhooks
from voting.ballot.tuning import HIDDEN
from voting.curating import services
from voting.curating.services import decisions_on
from voting.ledger import ledger
from voting.ledger.decisions import Action
from voting.models import Entry, Flag, Item, Project, Queue, Voter

LONGEST_WHY = 2_000
AFTER = Subquery(decisions_on(OuterRef("item_id")).values("uid")[:1])


def reviews(state: str, reader: Reader, projects: QuerySet[Project]) -> QuerySet[Review]:
    """Return what waits, what was decided on, both, or all that is flagged.

    Each with `after`, the latest decision on it.

    Votes and flags have put items on the list, so that those on which the reader has to vote first,
    and those that are held out while judges are tuned, are not on it.
    """
    rows = Review.objects.exclude(HIDDEN).filter(project__in=projects)
    if state == "waits":
        rows = rows.filter(waits=True)
    elif state == "flags":
        rows = rows.filter(flags__gt=0)
    elif state == "decided":
        rows = rows.filter(waits=False).exclude(decided="")
    project_ids = list(rows.order_by().values_list("project", flat=True).distinct())
    if not project_ids:
        # Every page asks: mostly nothing waits, and what the reader has to vote on is not needed.
        return rows.none()
    return rows.exclude(item__in=open_items(reader, *project_ids)).annotate(after=AFTER)


def run_of(queue: Queue) -> Run:
    """Return a queue's run, or one that is not stored: rules of access know queues by their run."""
    return getattr(queue, "run", None) or Run(queue=queue)


def flagged(flag: Flag) -> None:
    """Put an item on the list, as a voter has just flagged it, and tell webhooks."""
    touch(ledger.locked(flag.item.queue.project_id), flag.item_id)
    webhooks.flagged(flag)


def decide(
    item: Item,
    action: Action,
    curator: Voter,
    reason: str,
    *,
    after: UUID | None,
    votes: int | None = None,
    voter: UUID | None = None,
    uid: UUID | None = None,
) -> Entry:
    """Decide on an item and take it off the list; see `voting.curating.services.decide`."""
    with transaction.atomic():
        project = ledger.locked(curator.project_id)
        decision = services.decide(
            item.pk, action, curator, reason, after=after, votes=votes, voter=voter, uid=uid
        )
        touch(project, item.pk)
    return decision


def reverse(decision: Entry, curator: Voter, reason: str, *, uid: UUID | None = None) -> Entry:
    """Reverse a decision: what it settled waits again, unless another decision stands."""
    assert decision.item is not None  # it is on one
    with transaction.atomic():
        project = ledger.locked(curator.project_id)
        reversal = services.reverse(decision.uid, curator, reason, uid=uid)
        touch(project, decision.item.pk)
    return reversal
