"""What curators and leads decide: the only writer of it but for imports.

A decision, and a change of how many votes items want, is one entry of the ledger (see
`voting.ledger.decisions`); sealing it changes the items.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Q, QuerySet
from django.utils import timezone

from humanjudge.core.strict_json import JsonObject
from voting.ballot.services import record_exposure
from voting.items.disputes import is_disputed
from voting.items.kinds import options_of
from voting.items.order import wants_overlap
from voting.ledger import ledger
from voting.ledger.counts import votes_on
from voting.ledger.decisions import MOST_REQUIRED, VOTES_WANTED, Action, Decision, Rules, payload_of
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
    reason: str = "",
    *,
    after: UUID | None,
    votes: int | None = None,
    voter: UUID | None = None,
    uid: UUID | None = None,
) -> Entry:
    """Write down what a curator decides on an item.

    `after` is the latest decision that the curator has seen, None where there was none: if another
    one came since, this raises AlreadyDecided. `votes` is how many more another round brings, and
    `voter` is whom the item is sent back to. The same `uid` again returns the first decision.
    """
    about = {"voter_id": voter} if action == "send_back" else {}
    with transaction.atomic():
        item = Item.objects.select_for_update(no_key=True, of=("self",)).get(pk=item_id)
        decision = _decision(curator, reason, uid, item=item, queue_id=item.queue_id, **about)
        if repeated := _repeated_decision(decision, decisions_on(item.pk), after):
            return repeated
        if not item.opened_at:
            raise CannotDecide(item.unusable or "It is not open for voting yet.")
        if action == "send_back":
            valid_votes = Entry.objects.filter(kind=Entry.Kind.VOTE, retracted=False)
            vote = valid_votes.filter(item=item, voter=voter).first()
            if not decision.comment:
                raise CannotDecide("Say why it is sent back: the voter reads it.")
            if voter is None or vote is None or not item.queue.is_open:
                raise CannotDecide("It goes back only to who voted on it, while voting is open.")
            # What the curator says tells something: the next answer is not blind.
            record_exposure(voter, [item.pk], max(decision.at, vote.at))
        required = _required(item, votes) if action == "another_round" else {}
        return _write(decision, curator, action, **required)


def exclude_voter(
    voter_id: UUID,
    queue: Queue,
    curator: Voter,
    reason: str = "",
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
        decision = _decision(curator, reason, uid, voter=voter, queue=queue)
        earlier = decisions_on_voters(queue).filter(voter=voter)
        if repeated := _repeated_decision(decision, earlier, after):
            return repeated
        return _write(decision, curator, "exclude")


def decisions_on_judges(queue: Queue) -> QuerySet[Entry]:
    """All decisions on judges of a queue, in the same order."""
    about = {"queue": queue, "project": queue.project_id, "payload__has_key": "judge"}
    return _DECISIONS.filter(item=None, voter=None, **about)


def latest_on_judges(queue: Queue) -> dict[str, tuple[JsonObject, Entry]]:
    """Return the latest decision on each judge of a queue with what it says, sealed or not."""
    latest: dict[str, tuple[JsonObject, Entry]] = {}
    for decision in reversed(list(decisions_on_judges(queue))):
        payload = decision.payload or {}
        latest[payload["judge"]] = (payload, decision)
    return latest


def exclude_judge(judge: UUID, queue: Queue, curator: Voter, reason: str = "") -> Entry:
    """Leave a judge of a queue out of every figure; raise AlreadyDecided where it is left out."""
    with transaction.atomic():
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        latest = decisions_on_judges(queue).filter(payload__judge=str(judge)).first()
        decision = _decision(curator, reason, None, queue=queue)
        if latest is not None:
            if latest.payload and latest.payload["action"] == "exclude":
                raise AlreadyDecided(latest)
            _put_behind(decision, latest)
        return _write(decision, curator, "exclude", judge=str(judge))


def include_judge(judge: UUID, queue: Queue, curator: Voter, reason: str = "") -> Entry:
    """Let a judge count again that is left out; raise CannotDecide where it is not."""
    latest = decisions_on_judges(queue).filter(payload__judge=str(judge)).first()
    if latest is None or not latest.payload or latest.payload["action"] == "reverse":
        raise CannotDecide("This judge is not left out.")
    return reverse(latest.uid, curator, reason)


def reverse(
    decision_id: UUID, curator: Voter, reason: str = "", *, uid: UUID | None = None
) -> Entry:
    """Take a decision back; raise AlreadyDecided where that was done before."""
    has_subject = Q(item__isnull=False) | Q(voter__isnull=False, queue__isnull=False)
    has_subject |= Q(queue__isnull=False, payload__has_key="judge")
    target = _DECISIONS.filter(has_subject).get(uid=decision_id)
    assert target.payload is not None  # it is a decision
    if target.payload["action"] == "reverse":
        raise CannotDecide("A reversal cannot be reversed; decide anew.")
    about = {"item_id": target.item_id, "queue_id": target.queue_id, "voter_id": target.voter_id}
    decision = _decision(curator, reason, uid, target=target, **about)
    judge = {"judge": target.payload["judge"]} if "judge" in target.payload else {}
    try:
        with transaction.atomic():
            if repeated := Entry.objects.filter(uid=decision.uid, target=target).first():
                return repeated
            return _write(_put_behind(decision, target), curator, "reverse", **judge)
    except IntegrityError:
        before = Entry.objects.filter(kind=Entry.Kind.DECISION, target=target).first()
        if before is None:
            raise
        raise AlreadyDecided(before) from None


def _required(item: Item, votes: int | None) -> dict[str, int]:
    more = item.queue.votes_per_item if votes is None else votes
    required = max(item.votes, item.votes_wanted) + more
    if not 1 <= more <= MOST_VOTES or required > MOST_REQUIRED:
        raise CannotDecide(f"Another round brings 1 to {MOST_VOTES:,} votes.")
    return {"votes_wanted": required, "instead_of": item.votes_wanted - item.extra_votes}


def _decision(curator: Voter, reason: str, uid: UUID | None, **about: Any) -> Entry:
    """Return a decision about something, not saved yet."""
    reason = reason.strip()
    return Entry(
        uid=uid or uuid4(),
        project_id=curator.project_id,
        kind=Entry.Kind.DECISION,
        at=timezone.now(),
        comment=reason,
        **ledger.hidden(reason, None),
        **about,
    )


def _repeated_decision(
    decision: Entry, earlier: QuerySet[Entry], after: UUID | None
) -> Entry | None:
    """Return the same decision if it was made before, else put this one behind all `earlier`."""
    if repeated := earlier.filter(uid=decision.uid).first():
        return repeated
    latest = earlier.first()
    if latest is not None:
        if latest.uid != after:
            raise AlreadyDecided(latest)
        _put_behind(decision, latest)
    return None


def _put_behind(decision: Entry, latest: Entry) -> Entry:
    """Let a decision stand behind another one even where a server's clock is ahead."""
    decision.at = max(decision.at, latest.at + timedelta(microseconds=1))
    return decision


def _write(entry: Entry, curator: Voter, action: Action, **further: Any) -> Entry:
    decision = Decision(action=action, by=curator.pseudonym, why=entry.comment_sha256, **further)
    entry.payload = decision.payload
    ledger.record(entry)
    return entry


# --- how many votes items want --------------------------------------------------------------------


def votes_for(item: UUID, rules: Rules | Queue) -> int:
    """Return how many votes an item wants by some rules; a keyed hash decides which want more."""
    overlaps = wants_overlap(settings.SECRET_KEY, item, rules.overlap_share)
    return rules.overlap_votes if overlaps else rules.votes_per_item


def by_rules(queue: Queue, rules: Rules) -> dict[UUID, int]:
    items = queue.items.order_by("position").values_list("pk", flat=True)
    return {pk: votes_for(pk, rules) for pk in items}


def disputed(queue: Queue) -> list[UUID]:
    critical = options_of(queue).critical_variance
    votes = votes_on(Q(queue=queue.pk))
    return [item for item, names in votes.items() if is_disputed(names, critical)]


class RoundCost(NamedTuple):
    """What a change comes to, as the votes stand now."""

    # Votes that are to come, after the change and before it.
    left: int
    left_before: int
    # Items that want votes again, and items that want none any more.
    reopened: int
    closed: int


def cost_of(queue: Queue, required: Mapping[UUID, int]) -> RoundCost:
    items = queue.items.filter(unusable="", lacks_output=False)
    usable = items.values_list("pk", "votes", "votes_wanted")
    left = left_before = reopened = closed = 0
    for pk, votes, before in usable:
        missing_before = max(0, before - votes)
        missing = max(0, required.get(pk, before) - votes)
        left, left_before = left + missing, left_before + missing_before
        reopened += missing > 0 == missing_before
        closed += missing == 0 < missing_before
    return RoundCost(left, left_before, reopened, closed)


def change_for_all(queue: Queue, rules: Rules, curator: Voter) -> Entry:
    """Let all items of a queue, and those that are added later, want votes by other rules."""
    with transaction.atomic():
        # Whoever adds items holds it too: none is added between the list of all and the new rules.
        Queue.objects.select_for_update(no_key=True).get(pk=queue.pk)
        Queue.objects.filter(pk=queue.pk).update(**dict(rules))
        return _change(queue, curator, by_rules(queue, rules), rules)


def change_for_disputed(queue: Queue, votes: int, curator: Voter) -> Entry:
    with transaction.atomic():
        return _change(queue, curator, dict.fromkeys(disputed(queue), votes), None)


def _change(
    queue: Queue, curator: Voter, required: Mapping[UUID, int], rules: Rules | None
) -> Entry:
    entry = Entry(
        project_id=queue.project_id,
        kind=Entry.Kind.PARAMETERS,
        at=timezone.now(),
        queue=queue,
        voter=curator,
        payload=payload_of(required, rules),
    )
    ledger.record(entry)
    return entry


class Change(NamedTuple):
    """A change that was made; it has rules if it was for all items."""

    changed_at: datetime
    curator: str
    votes_per_item: int | None
    overlap_share: str | None
    overlap_votes: int | None

    @property
    def overlap_percent(self) -> float:
        return 100 * float(self.overlap_share or 0)


def latest_changes(queue: Queue, most: int) -> list[Change]:
    """Return who has changed when how many votes items want, the latest first."""
    of_queue = Entry.objects.filter(
        project=queue.project_id, queue=queue, kind=Entry.Kind.PARAMETERS
    )
    changes = of_queue.filter(payload__has_key=VOTES_WANTED).order_by("-at", "-pk")
    names = [f"payload__{VOTES_WANTED}__{name}" for name in Rules.model_fields]
    return [Change(*row) for row in changes.values_list("at", "voter__name", *names)[:most]]
