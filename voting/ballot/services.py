"""The only writers of votes: cast, undo, skip, flag."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic, sleep
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.module_loading import import_string

from humanjudge.server.metrics import count
from voting.ballot.signed_form import Ballot
from voting.items.kinds import VoteAnswer, VoteDetails
from voting.ledger import ledger
from voting.ledger.bulk_sql import key, prepared
from voting.ledger.scheduler import nudge
from voting.models import ApiKey, Assignment, Entry, Exposure, Flag, Item, Queue, Voter

SKIPS_BEFORE_RELEASE = 2
_ONLY_SIMULATED = "This run holds simulated votes only; make another run for people."


@dataclass(frozen=True)
class RecordedVote:
    """A vote that is in the database, and whether this very request put it there."""

    uid: UUID
    item: UUID
    choice: str
    repeated: bool = False


class VoteConflict(Exception):
    """The voter has already answered otherwise; what was recorded stands."""

    def __init__(self, recorded: RecordedVote) -> None:
        choice = recorded.choice or "another answer"
        super().__init__(f"this was already voted on: {choice} is recorded")
        self.recorded = recorded


class VoteTakenBack(Exception):
    """The ballot's vote was undone, and it makes no other."""


class VotingClosed(Exception):
    """The queue takes no votes any more, none of this kind, or none of this voter's."""


class NothingToUndo(Exception):
    """The voter has no standing vote here."""


# A repeat (a double key press, a retry, a second tab) conflicts with one of the unique
# constraints and inserts nothing. A ballot is good for a day, so whether the queue is still open
# and the voter not blocked is asked in the same statement, and so is whether the queue is of the
# vote's kind: people's, or a script's pretend votes.
_INSERT = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, voter_id,
                              choice, left_side, rubric_id, elapsed_ms, simulated {columns})
    SELECT %s, queue.project_id, 'vote', %s, queue.id, %s, voter.id,
           %s, %s, %s, CAST(%s AS integer), queue.is_simulated {values}
    FROM voting_queue AS queue JOIN voting_voter AS voter ON voter.project_id = queue.project_id
    WHERE queue.id = %s AND queue.is_open AND queue.is_simulated = %s
      AND voter.id = %s AND voter.blocked_at IS NULL
    {lock}
    ON CONFLICT DO NOTHING
"""
# A script names a pair. Who votes, on what rubric, and whether all is as it must be follows from
# the key, in the same statement.
_INSERT_BY_KEY = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, voter_id,
                              choice, rubric_id)
    SELECT %s, queue.project_id, 'vote', %s, queue.id, pair.id, voter.id, %s, queue.rubric_id
    FROM voting_item AS pair
    JOIN voting_queue AS queue ON queue.id = pair.queue_id
    JOIN voting_voter AS voter ON voter.project_id = queue.project_id
    WHERE pair.id = %s AND pair.opened_at IS NOT NULL AND pair.unusable = ''
      AND NOT pair.lacks_output
      AND queue.id = %s AND queue.is_open AND NOT queue.is_simulated AND {offers}
      AND queue.project_id = COALESCE(%s, queue.project_id)
      AND voter.api_key_id = %s AND voter.blocked_at IS NULL
    {lock}
    ON CONFLICT DO NOTHING RETURNING project_id
"""
_OFFERS = {
    "postgresql": "queue.ballot @> CAST(%s AS jsonb)",
    "sqlite": "instr(queue.ballot, %s) > 0",
}
# While a queue's kind is being decided, a run deleted or a person erased, that row is locked: a
# vote waits for it, and PostgreSQL then reads the row again. So no comment is written behind what
# forgets them. The row's foreign keys ask for the same locks, so they cost nothing.
_LOCKS = {"postgresql": "FOR KEY SHARE OF queue, voter", "sqlite": ""}
# What a vote on a single output says beside its choice, and how each database takes it.
_DETAIL_CASTS = {
    "value": "CAST(%s AS integer)",
    "category": "%s",
    "comment": "%s",
    "comment_sha256": "%s",
    "salt": "%s",
    "labels": "CAST(%s AS {json})",
    "payload": "CAST(%s AS {json})",
}
_JSON = {"postgresql": "jsonb", "sqlite": "text"}
_INSERTS = {
    (vendor, bool(casts)): _INSERT.format(
        lock=lock,
        columns=", ".join(["", *casts]),
        values=", ".join(["", *casts.values()]).format(json=_JSON[vendor]),
    )
    for vendor, lock in _LOCKS.items()
    for casts in ({}, _DETAIL_CASTS)
}
_INSERTS_BY_KEY = {
    vendor: _INSERT_BY_KEY.format(lock=lock, offers=_OFFERS[vendor])
    for vendor, lock in _LOCKS.items()
}


def cast_vote(
    ballot: Ballot,
    choice: str,
    elapsed_ms: int | None = None,
    *,
    left: str | None = None,
    details: VoteDetails | None = None,
) -> RecordedVote:
    """Record a vote made with a ballot; the same ballot again returns the first answer.

    A script is told A and B and is shown no sides: for it `left` is empty.
    """
    side = ballot.left if left is None else left
    with prepared() as cursor:
        if _insert(cursor, ballot, choice, left=side, elapsed_ms=elapsed_ms, details=details):
            transaction.on_commit(partial(nudge, ballot.project))
            count("humanjudge_votes_total")
            return RecordedVote(ballot.uid, ballot.item, choice)
    first = _first_answer(ballot, choice, details)
    if first is None:
        insist_on_open(ballot.queue, ballot.voter, simulated=False)
        # It was undone between the INSERT and here: there is no conflict any more.
        return cast_vote(ballot, choice, elapsed_ms, left=left, details=details)
    return first


def cast_key_vote(api_key: ApiKey, queue: UUID, item: UUID, choice: str) -> RecordedVote | None:
    """Record the vote of a key that has voted in the project before; None if it cannot be."""
    uid = uuid4()
    with prepared() as cursor:
        cursor.execute(
            _INSERTS_BY_KEY[connection.vendor],
            [
                key(uid),
                connection.ops.adapt_datetimefield_value(timezone.now()),
                choice,
                key(item),
                key(queue),
                json.dumps(choice),
                api_key.project_id and key(api_key.project_id),
                api_key.pk,
            ],
        )
        # To the last row: SQLite commits a statement when it has come to its end.
        rows = cursor.fetchall()
    if not rows:
        return None
    transaction.on_commit(partial(nudge, UUID(str(rows[0][0]))))
    count("humanjudge_votes_total")
    return RecordedVote(uid, item, choice)


def _insert(
    cursor: CursorWrapper,
    ballot: Ballot,
    choice: str,
    *,
    left: str = "",
    elapsed_ms: int | None = None,
    simulated: bool = False,
    details: VoteDetails | None = None,
) -> bool:
    cast_at = connection.ops.adapt_datetimefield_value(timezone.now())
    statement = (choice, left, ballot.rubric, elapsed_ms, *_values(details))
    scope = (key(ballot.queue), simulated, key(ballot.voter))
    values = (key(ballot.uid), cast_at, key(ballot.item), *statement, *scope)
    cursor.execute(_INSERTS[connection.vendor, details is not None], values)
    return bool(cursor.rowcount == 1)


def _values(details: VoteDetails | None) -> list[Any]:
    if details is None:
        return []
    labels = dict(details.labels) or None
    answered = {"value": details.value, "category": details.category, "comment": details.comment}
    columns = answered | ledger.hidden(details.comment, labels) | {"labels": labels}
    for name in ("labels", "payload"):
        columns[name] = json.dumps(columns[name]) if columns[name] else None
    return [columns[name] for name in _DETAIL_CASTS]


def _first_answer(ballot: Ballot, choice: str, details: VoteDetails | None) -> RecordedVote | None:
    votes = Entry.objects.filter(kind=Entry.Kind.VOTE, voter=ballot.voter)
    valid_votes = votes.filter(item=ballot.item, retracted=False)
    first = votes.filter(uid=ballot.uid).first() or valid_votes.first()
    if first is None:
        return None
    if first.simulated:
        raise VotingClosed(_ONLY_SIMULATED)
    recorded = RecordedVote(first.uid, ballot.item, first.choice, repeated=True)
    stands: list[object] = [first.choice]
    answered: list[object] = [choice]
    if details:
        stands += [first.value, first.category, first.labels]
        answered += [details.value, details.category, dict(details.labels) or None]
    if stands != answered:
        raise VoteTakenBack if first.retracted else VoteConflict(recorded)
    return recorded


def insist_on_open(queue_id: UUID, voter_id: UUID, *, simulated: bool) -> None:
    """Refuse, in words, what a queue takes from a voter no more, or not of this kind."""
    queue = Queue.objects.get(pk=queue_id)
    if queue.is_simulated and not simulated:
        raise VotingClosed(_ONLY_SIMULATED)
    if not queue.is_open:
        raise VotingClosed("Voting has closed.")
    if not Voter.objects.filter(pk=voter_id, blocked_at__isnull=True).exists():
        raise VotingClosed("You may no longer vote here.")


# --- pretend votes: cast by a script to try things out, in queues that hold nothing else ---------


def make_simulated(queue: Queue) -> None:
    """Make a queue one of pretend votes, for good, unless somebody has really voted in it."""
    with transaction.atomic():
        # Not no_key: a vote that is being inserted holds, or waits for, a lock of the key.
        locked = Queue.objects.select_for_update().get(pk=queue.pk)
        if not locked.is_simulated:
            refuse_after_people(locked)
            Queue.objects.filter(pk=queue.pk).update(is_simulated=True)


def refuse_after_people(queue: Queue) -> None:
    """Refuse where somebody has really voted; a vote that was taken back is in the ledger too."""
    real = Entry.objects.filter(queue=queue, kind=Entry.Kind.VOTE, simulated=False)
    # Each look has its index. Unsealed ones first: they may be sealed before the second look.
    unsealed = real.filter(seq__isnull=True, project=queue.project_id)
    if unsealed.exists() or real.filter(seq__isnull=False).exists():
        raise VotingClosed("People have voted in this run; make another run for simulated votes.")


def cast_simulated_votes(queue: Queue, votes: Iterable[tuple[Ballot, VoteAnswer]]) -> int:
    with transaction.atomic():
        with prepared() as cursor:
            recorded = sum(
                _insert(cursor, ballot, answer.choice, simulated=True, details=answer.details)
                for ballot, answer in votes
            )
        transaction.on_commit(partial(nudge, queue.project_id))
    return recorded


def wait_until_sealed(voter: Voter, seconds: float) -> bool:
    """Wait, within bounds, until the voter's own votes are in the figures; say whether they are."""
    deadline = monotonic() + seconds
    unsealed = Entry.objects.filter(
        project=voter.project_id, seq__isnull=True, voter=voter, at__lte=timezone.now()
    )
    while unsealed.exists():
        if monotonic() >= deadline:
            return False
        sleep(0.02)
    return True


def is_unblinded(vote: RecordedVote) -> bool:
    return Entry.objects.filter(Exposure.before_entry(), uid=vote.uid).exists()


def undo_last_vote(
    voter: Voter, queue: Queue, uid: UUID | None = None, *, vote: UUID | None = None
) -> Item:
    """Retract the voter's latest standing vote in a queue; return the pair, open again.

    With `vote` that one, instead of the latest. The same `uid` again, the number of the retraction,
    returns the first answer. Raises VotingClosed where a new vote would not be taken: the old one
    would be lost.
    """
    uid = uid or uuid4()
    try:
        return _retracted_item(voter, uid) or _undo(voter, queue, uid, vote)
    except IntegrityError:
        # Twice at the same moment: the other one was first.
        undone = _retracted_item(voter, uid)
        if undone is None:
            raise NothingToUndo from None
        return undone


def _retracted_item(voter: Voter, uid: UUID) -> Item | None:
    retractions = Entry.objects.filter(uid=uid, voter=voter, kind=Entry.Kind.RETRACTION)
    first = retractions.select_related("item").first()
    return first.item if first else None


def _undo(voter: Voter, queue: Queue, uid: UUID, named: UUID | None) -> Item:
    with transaction.atomic():
        votes = Entry.objects.filter(
            voter=voter, kind=Entry.Kind.VOTE, queue=queue, retracted=False
        )
        if named is not None:
            votes = votes.filter(uid=named)
        locked = votes.select_for_update(of=("self",), no_key=True).select_related("item")
        vote = locked.order_by("-id").first()
        if vote is None or vote.item is None:
            raise NothingToUndo
        insist_on_open(queue.pk, voter.pk, simulated=vote.simulated)
        exposures = Exposure.objects.filter(voter=voter, item=vote.item)
        has_seen = exposures.update(last_blind=Coalesce("last_blind", vote.pk))
        vote.retracted = True
        vote.save(update_fields=["retracted"])
        ledger.record(
            Entry(
                uid=uid,
                project_id=vote.project_id,
                kind=Entry.Kind.RETRACTION,
                # Behind its vote even when another server's clock runs ahead of this one's.
                at=max(timezone.now(), vote.at + timedelta(microseconds=1)),
                queue=queue,
                item=vote.item,
                voter=voter,
                target=vote,
                payload=ledger.AFTER_REVEAL if has_seen else None,
            )
        )
    return vote.item


def skip(ballot: Ballot) -> None:
    """Skip: move to the end of the voter's list; after a second skip, release to others."""
    now = timezone.now()
    with transaction.atomic():
        row, _ = Assignment.objects.select_for_update().get_or_create(
            voter_id=ballot.voter, item_id=ballot.item, defaults={"leased_until": now}
        )
        if row.skipped_by != ballot.uid:
            row.skipped_by = ballot.uid
            row.skips = min(row.skips + 1, SKIPS_BEFORE_RELEASE)
            row.leased_until = now
            row.save()


def flag(voter: Voter, item: UUID, category: str, comment: str) -> Flag:
    """Put a voter's doubt about a pair before the curators; a second flag replaces the first."""
    fields = {"category": category, "comment": comment, "created_at": timezone.now()}
    with transaction.atomic():
        new_flag, _ = Flag.objects.update_or_create(voter=voter, item_id=item, defaults=fields)
        import_string(settings.FLAGGED)(new_flag)
    return new_flag


def record_exposure(voter: UUID, items: Iterable[UUID], exposed_at: datetime) -> None:
    """Note that a voter has seen verdicts; only the first time counts."""
    # In one order: who notes the same at the same time waits for a row, and must not meet another.
    rows = [Exposure(voter_id=voter, item_id=item, seen_at=exposed_at) for item in sorted(items)]
    Exposure.objects.bulk_create(rows, ignore_conflicts=True)
