"""The decisions of curators: the only writer of `decision` entries but for imports."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Q, QuerySet
from django.utils import timezone

from voting.ledger import ledger
from voting.ledger.decisions import MOST_WANTED, Action, Decision
from voting.models import Entry, Item, Queue, Voter

MOST_VOTES = 1_000
_DECISIONS = Entry.objects.filter(kind=Entry.Kind.DECISION).order_by("-at", "-pk")


class AlreadyDecided(Exception):
    """Somebody else has decided since it was looked at; what they decided stands."""

    def __init__(self, decision: Entry) -> None:
        super().__init__("Somebody else has just decided on this.")
        self.decision = decision


class CannotDecide(Exception):
    """The item is not in a state in which this can be decided; the text says why."""


def decisions_on(item: UUID | OuterRef) -> QuerySet[Entry]:
    """All decisions on an item, the latest first; those too that are not sealed yet."""
    return _DECISIONS.filter(item=item)


def decisions_on_voters(queue: Queue) -> QuerySet[Entry]:
    """All decisions on voters of a queue, in the same order."""
    return _DECISIONS.filter(queue=queue, item=None, voter__isnull=False, project=queue.project_id)


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
    with transaction.atomic():
        item = Item.objects.select_for_update(no_key=True, of=("self",)).get(pk=item_id)
        decision = _decision(curator, why, uid, item=item, queue_id=item.queue_id)
        if made := _made_before(decision, decisions_on(item.pk), after):
            return made
        if not item.opened_at:
            raise CannotDecide(item.unusable or "It is not open for voting yet.")
        wanted = _wanted(item, votes) if action == "another_round" else {}
        return _write(decision, {"action": action, **wanted}, curator)


def exclude_voter(
    voter_id: UUID,
    queue: Queue,
    curator: Voter,
    why: str = "",
    *,
    after: UUID | None,
    uid: UUID | None = None,
) -> Entry:
    """Leave all votes of a voter in a queue out of every figure, those too that are yet to come.

    `after` and `uid` are as of `decide`.
    """
    voters = Voter.objects.filter(project=queue.project_id)
    with transaction.atomic():
        voter = voters.select_for_update(no_key=True, of=("self",)).get(pk=voter_id)
        decision = _decision(curator, why, uid, voter=voter, queue=queue)
        if made := _made_before(decision, decisions_on_voters(queue).filter(voter=voter), after):
            return made
        return _write(decision, {"action": "exclude"}, curator)


def reverse(decision_id: UUID, curator: Voter, why: str = "", *, uid: UUID | None = None) -> Entry:
    """Take a decision back; raise AlreadyDecided where that was done before."""
    has_subject = Q(item__isnull=False) | Q(voter__isnull=False, queue__isnull=False)
    target = _DECISIONS.filter(has_subject).get(uid=decision_id)
    assert target.payload is not None  # it is a decision
    if target.payload["action"] == "reverse":
        raise CannotDecide("A reversal cannot be reversed; decide anew.")
    about = {"item_id": target.item_id, "queue_id": target.queue_id, "voter_id": target.voter_id}
    decision = _decision(curator, why, uid, target=target, **about)
    try:
        with transaction.atomic():
            if made := Entry.objects.filter(uid=decision.uid, target=target).first():
                return made
            return _write(_behind(decision, target), {"action": "reverse"}, curator)
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


def _decision(curator: Voter, why: str, uid: UUID | None, **about: Any) -> Entry:
    """Return a decision about something, not saved yet."""
    why = why.strip()
    return Entry(
        uid=uid or uuid4(),
        project_id=curator.project_id,
        kind=Entry.Kind.DECISION,
        at=timezone.now(),
        comment=why,
        **ledger.hidden(why, None),
        **about,
    )


def _made_before(decision: Entry, earlier: QuerySet[Entry], after: UUID | None) -> Entry | None:
    """Return the same decision if it was made before, else put this one behind all `earlier`."""
    if made := earlier.filter(uid=decision.uid).first():
        return made
    latest = earlier.first()
    if latest is not None:
        if latest.uid != after:
            raise AlreadyDecided(latest)
        _behind(decision, latest)
    return None


def _behind(decision: Entry, latest: Entry) -> Entry:
    """Let a decision stand behind another one even where a server's clock is ahead."""
    decision.at = max(decision.at, latest.at + timedelta(microseconds=1))
    return decision


def _write(entry: Entry, said: Mapping[str, object], curator: Voter) -> Entry:
    why = {"by": curator.pseudonym, "why": entry.comment_sha256}
    entry.payload = Decision.model_validate({**said, **why}).payload
    ledger.record(entry)
    return entry
