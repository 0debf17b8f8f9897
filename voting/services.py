"""The only writers of votes: cast, undo, skip, flag."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic, sleep
from uuid import UUID, uuid4

from django.db import IntegrityError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Exists, OuterRef
from django.utils import timezone

from voting.ballots import Ballot
from voting.ledger.bulk_sql import key, prepared
from voting.ledger.scheduler import nudge
from voting.models import ApiKey, Assignment, Entry, Exposure, Flag, Item, Queue, Voter

SKIPS_BEFORE_RELEASE = 2
_ONLY_SIMULATED = "This run holds simulated votes only; make another run for people."


class VoteConflict(Exception):
    """The voter has already answered otherwise; what was recorded stands."""

    def __init__(self, recorded: RecordedVote) -> None:
        super().__init__(f"this pair was already voted on: {recorded.choice} is recorded")
        self.recorded = recorded


class VoteTakenBack(Exception):
    """The ballot's vote was undone, and it makes no other."""


class VotingClosed(Exception):
    """The queue takes no votes any more, none of this kind, or none of this voter's."""


class NothingToUndo(Exception):
    """The voter has no standing vote here."""


@dataclass(frozen=True)
class RecordedVote:
    """A vote that is in the database, and whether this very request put it there."""

    uid: UUID
    item: UUID
    choice: str
    repeated: bool = False


# A repeat (a double key press, a retry, a second tab) conflicts with one of the unique
# constraints and inserts nothing. A ballot is good for a day, so whether the queue is still open
# and the voter not blocked is asked in the same statement, and so is whether the queue is of the
# vote's kind: people's, or a script's pretend votes.
_INSERT = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, voter_id,
                              choice, left_side, rubric_id, elapsed_ms, simulated)
    SELECT %s, queue.project_id, 'vote', %s, queue.id, %s, voter.id,
           %s, %s, %s, CAST(%s AS integer), queue.is_simulated
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
    WHERE pair.id = %s AND pair.opened_at IS NOT NULL
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
# While a queue's kind is being decided its row is locked: a vote waits for that, and PostgreSQL
# then reads the row again. The row's foreign keys ask for the same lock, so it costs nothing.
_LOCKS = {"postgresql": "FOR KEY SHARE OF queue"}
_INSERTS = {vendor: _INSERT.format(lock=_LOCKS.get(vendor, "")) for vendor in _OFFERS}
_INSERTS_BY_KEY = {
    vendor: _INSERT_BY_KEY.format(lock=_LOCKS.get(vendor, ""), offers=offers)
    for vendor, offers in _OFFERS.items()
}


def cast_vote(ballot: Ballot, choice: str, elapsed_ms: int | None = None) -> RecordedVote:
    """Record a vote made with a ballot; the same ballot again returns the first answer."""
    return _insert_vote(ballot, choice, ballot.left, elapsed_ms)


def cast_script_vote(ballot: Ballot, choice: str) -> RecordedVote:
    """Record the vote of a script, which is told A and B and is shown no sides."""
    return _insert_vote(ballot, choice, "", None)


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
    return RecordedVote(uid, item, choice)


def _insert_vote(ballot: Ballot, choice: str, left: str, elapsed_ms: int | None) -> RecordedVote:
    with prepared() as cursor:
        inserted = insert_vote(cursor, ballot, choice, left=left, elapsed_ms=elapsed_ms)
    if not inserted:
        first = _first_answer(ballot, choice)
        if first is None:
            insist_on_open(ballot.queue, ballot.voter, simulated=False)
            # It was undone between the INSERT and here: there is no conflict any more.
            return _insert_vote(ballot, choice, left, elapsed_ms)
        return first
    transaction.on_commit(partial(nudge, ballot.project))
    return RecordedVote(ballot.uid, ballot.item, choice)


def insert_vote(
    cursor: CursorWrapper,
    ballot: Ballot,
    choice: str,
    *,
    left: str = "",
    elapsed_ms: int | None = None,
    simulated: bool = False,
) -> bool:
    """Insert a vote that nothing speaks against; return whether it was."""
    cursor.execute(
        _INSERTS[connection.vendor],
        [
            key(ballot.uid),
            connection.ops.adapt_datetimefield_value(timezone.now()),
            key(ballot.item),
            choice,
            left,
            ballot.rubric,
            elapsed_ms,
            key(ballot.queue),
            simulated,
            key(ballot.voter),
        ],
    )
    return bool(cursor.rowcount == 1)


def _first_answer(ballot: Ballot, choice: str) -> RecordedVote | None:
    votes = Entry.objects.filter(kind=Entry.Kind.VOTE, voter=ballot.voter)
    standing = votes.filter(item=ballot.item, retracted=False)
    first = votes.filter(uid=ballot.uid).first() or standing.first()
    if first is None:
        return None
    if first.simulated:
        raise VotingClosed(_ONLY_SIMULATED)
    recorded = RecordedVote(first.uid, ballot.item, first.choice, repeated=True)
    if first.choice != choice:
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


def wait_until_sealed(voter: Voter, seconds: float) -> bool:
    """Wait, within bounds, for the voter's own votes to be in the figures about to be read.

    Return whether they are.
    """
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
    """Say whether a vote was cast after its voter had seen what the judges said of the pair."""
    seen = Exposure.objects.filter(
        voter=OuterRef("voter"), item=OuterRef("item"), seen_at__lt=OuterRef("at")
    )
    return Entry.objects.filter(Exists(seen), uid=vote.uid).exists()


def undo_last_vote(voter: Voter, queue: Queue, uid: UUID | None = None) -> Item:
    """Retract the voter's latest standing vote in a queue; return the pair, open again.

    The same `uid` again, the number of the retraction, returns the first answer.
    """
    uid = uid or uuid4()
    try:
        return _undone(voter, uid) or _undo(voter, queue, uid)
    except IntegrityError:
        # Twice at the same moment: the other one was first.
        undone = _undone(voter, uid)
        if undone is None:
            raise NothingToUndo from None
        return undone


def _undone(voter: Voter, uid: UUID) -> Item | None:
    retractions = Entry.objects.filter(uid=uid, voter=voter, kind=Entry.Kind.RETRACTION)
    first = retractions.select_related("item").first()
    return first.item if first else None


def _undo(voter: Voter, queue: Queue, uid: UUID) -> Item:
    with transaction.atomic():
        vote = (
            Entry.objects.select_for_update(of=("self",), no_key=True)
            .filter(voter=voter, kind=Entry.Kind.VOTE, queue=queue, retracted=False)
            .order_by("-id")
            .select_related("item")
            .first()
        )
        if vote is None or vote.item is None:
            raise NothingToUndo
        vote.retracted = True
        vote.save(update_fields=["retracted"])
        Entry.objects.create(
            uid=uid,
            project_id=vote.project_id,
            kind=Entry.Kind.RETRACTION,
            # Behind its vote even when another server's clock runs ahead of this one's.
            at=max(timezone.now(), vote.at + timedelta(microseconds=1)),
            queue=queue,
            item=vote.item,
            voter=voter,
            target=vote,
        )
        transaction.on_commit(partial(nudge, vote.project_id))
    return vote.item


def skip(ballot: Ballot) -> None:
    """Put a pair at the end of the voter's list, the second time off it; others may have it."""
    now = timezone.now()
    with transaction.atomic():
        row, _ = Assignment.objects.select_for_update().get_or_create(
            voter_id=ballot.voter, item_id=ballot.item, defaults={"leased_until": now}
        )
        if row.skipped_by == ballot.uid:
            return
        row.skipped_by = ballot.uid
        row.skips = min(row.skips + 1, SKIPS_BEFORE_RELEASE)
        row.leased_until = now
        row.save()


def flag(voter: Voter, item: UUID, category: str, comment: str) -> Flag:
    """Put a voter's doubt about a pair before the curators; a second flag replaces the first."""
    row, _ = Flag.objects.update_or_create(
        voter=voter,
        item_id=item,
        defaults={"category": category, "comment": comment},
    )
    return row


def record_exposure(voter: UUID, items: Iterable[UUID], seen_at: datetime) -> None:
    """Note that a voter has seen verdicts; only the first time counts."""
    Exposure.objects.bulk_create(
        [Exposure(voter_id=voter, item_id=item, seen_at=seen_at) for item in items],
        ignore_conflicts=True,
    )
