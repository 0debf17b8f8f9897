"""The decisions of curators: the only writer of `decision` entries but for imports."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, QuerySet
from django.utils import timezone

from voting.ledger import ledger
from voting.ledger.decisions import MOST_WANTED, Action, Decision
from voting.ledger.scheduler import nudge
from voting.models import Entry, Item, Voter

MOST_VOTES = 1_000


class AlreadyDecided(Exception):
    """Somebody else has decided since the item was looked at; what they decided stands."""

    def __init__(self, decision: Entry) -> None:
        super().__init__("Somebody else has just decided on this.")
        self.decision = decision


class CannotDecide(Exception):
    """The item is not in a state in which this can be decided; the text says why."""


def decisions_on(item: UUID | OuterRef) -> QuerySet[Entry]:
    """All decisions on an item, the latest first; those too that are not sealed yet."""
    return Entry.objects.filter(kind=Entry.Kind.DECISION, item=item).order_by("-at", "-pk")


def decide(
    item_id: UUID,
    action: Action,
    curator: Voter,
    why: str = "",
    *,
    after: UUID | None,
    votes: int | None = None,
    uid: UUID | None = None,
) -> Entry:
    """Write down what a curator decides on an item.

    `after` is the latest decision that the curator has seen, None where there was none: if another
    one came since, this raises AlreadyDecided. `votes` is how many more another round brings. The
    same `uid` again returns the first decision.
    """
    uid = uid or uuid4()
    with transaction.atomic():
        item = Item.objects.select_for_update(no_key=True, of=("self",)).get(pk=item_id)
        if made := Entry.objects.filter(uid=uid, item=item).first():
            return made
        latest = decisions_on(item.pk).first()
        if latest is not None and latest.uid != after:
            raise AlreadyDecided(latest)
        if not item.opened_at:
            raise CannotDecide(item.unusable or "It is not open for voting yet.")
        wanted = _wanted(item, votes) if action == "another_round" else {}
        decision = _decision(item, curator, why, uid, behind=latest)
        return _write(decision, {"action": action, **wanted}, curator)


def reverse(decision_id: UUID, curator: Voter, why: str = "", *, uid: UUID | None = None) -> Entry:
    """Take a decision back; raise AlreadyDecided where that was done before."""
    uid = uid or uuid4()
    decisions = Entry.objects.filter(kind=Entry.Kind.DECISION, item__isnull=False)
    target = decisions.select_related("item").get(uid=decision_id)
    assert target.item is not None  # filtered
    assert target.payload is not None  # it is a decision
    if target.payload["action"] == "reverse":
        raise CannotDecide("A reversal cannot be reversed; decide anew.")
    try:
        with transaction.atomic():
            if made := Entry.objects.filter(uid=uid, target=target).first():
                return made
            decision = _decision(target.item, curator, why, uid, behind=target)
            decision.target = target
            return _write(decision, {"action": "reverse"}, curator)
    except IntegrityError:
        before = Entry.objects.filter(kind=Entry.Kind.DECISION, target=target).first()
        if before is None:
            raise
        raise AlreadyDecided(before) from None


def _wanted(item: Item, votes: int | None) -> dict[str, int]:
    more = item.queue.votes_per_item if votes is None else votes
    wanted = max(item.votes, item.votes_wanted) + more
    if not 1 <= more <= MOST_VOTES or wanted > MOST_WANTED:
        raise CannotDecide(f"Another round brings 1 to {MOST_VOTES:,} votes.")
    return {"votes_wanted": wanted, "instead_of": item.votes_wanted - item.extra_votes}


def _decision(item: Item, curator: Voter, why: str, uid: UUID, *, behind: Entry | None) -> Entry:
    """Return a decision, not saved yet, behind another one even where a server's clock is ahead."""
    now, why = timezone.now(), why.strip()
    return Entry(
        uid=uid,
        project_id=curator.project_id,
        kind=Entry.Kind.DECISION,
        at=now if behind is None else max(now, behind.at + timedelta(microseconds=1)),
        queue_id=item.queue_id,
        item=item,
        comment=why,
        **ledger.hidden(why, None),
    )


def _write(entry: Entry, said: Mapping[str, object], curator: Voter) -> Entry:
    why = {"by": curator.pseudonym, "why": entry.comment_sha256}
    entry.payload = Decision.model_validate({**said, **why}).payload
    entry.save(force_insert=True)
    transaction.on_commit(partial(nudge, curator.project_id))
    return entry
