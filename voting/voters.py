"""Who votes: invite links, and the identities behind them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.utils import timezone

from voting.models import ApiKey, Assignment, Entry, Flag, Invite, Project, Queue, Voter

_INVITE_SALT = "voting.invite"


class InviteRefused(Exception):
    """The link was real but lets nobody in any more; the text says why."""


def invite_token(invite: Invite) -> str:
    """Return what stands in the link: a signature, so no secret has to be stored."""
    return signing.Signer(salt=_INVITE_SALT).sign(invite.pk.hex)


def find_invite(token: str) -> Invite | None:
    try:
        pk = UUID(hex=signing.Signer(salt=_INVITE_SALT).unsign(token))
    except (signing.BadSignature, ValueError):
        return None
    return Invite.objects.select_related("queue__project", "queue__rubric").filter(pk=pk).first()


def make_invite(
    queue: Queue, label: str, expires_at: datetime | None, max_voters: int | None
) -> Invite:
    return Invite.objects.create(
        queue=queue, label=label, expires_at=expires_at, max_voters=max_voters
    )


def withdraw(invite: Invite) -> None:
    """Let nobody new in by an invite; the first time counts."""
    live = Invite.objects.filter(pk=invite.pk, revoked_at__isnull=True)
    live.update(revoked_at=timezone.now())


def refusal(invite: Invite, now: datetime) -> str:
    """Say why an invite lets nobody in, an empty text when it does."""
    if invite.revoked_at is not None:
        return "This invite was withdrawn. Ask for a new one."
    if invite.expires_at is not None and invite.expires_at <= now:
        return "This invite has expired. Ask for a new one."
    if not invite.queue.is_open:
        return "Voting has closed."
    if invite.max_voters is not None and invite.joined >= invite.max_voters:
        return "This invite has let in as many voters as it may. Ask for a new one."
    return ""


def join(invite: Invite, name: str, now: datetime) -> Voter:
    """Make a voter of whoever holds the link, within the invite's cap."""
    with transaction.atomic():
        locked = _with_a_place(invite, now)
        return Voter.objects.create(project_id=locked.queue.project_id, invite=locked, name=name)


def admit(invite: Invite, voter: Voter, now: datetime) -> None:
    """Let a voter of the project, whom another invite had let in, vote in this queue too."""
    with transaction.atomic():
        _with_a_place(invite, now).guests.add(voter)


def _with_a_place(invite: Invite, now: datetime) -> Invite:
    # The cap is counted under a lock: two people may take the last place at once.
    locked = Invite.objects.select_for_update(of=("self",)).select_related("queue")
    fresh = locked.get(pk=invite.pk)
    reason = refusal(fresh, now)
    if reason:
        raise InviteRefused(reason)
    return fresh


def has_come_in(voter: Voter, invite: Invite) -> bool:
    """Say whether a voter was let in by this invite, or votes in its queue already."""
    return (
        voter.invite_id == invite.pk
        or invite.guests.filter(pk=voter.pk).exists()
        or Assignment.objects.filter(voter=voter, item__queue=invite.queue_id).exists()
        or Entry.objects.filter(voter=voter, queue=invite.queue_id, kind=Entry.Kind.VOTE).exists()
    )


def erase(voter: Voter) -> None:
    """Forget a person: name, texts, salts, and every way from the person to the pseudonym.

    The votes stay, under a pseudonym that nothing leads to any more, and the chain still verifies:
    of a comment and of further answers it holds only salted hashes.
    """
    now = timezone.now()
    with transaction.atomic():
        Entry.objects.filter(voter=voter).update(comment="", salt="", labels=None)
        Flag.objects.filter(voter=voter).update(comment="")
        for invite in Invite.objects.filter(guests=voter):
            invite.guests.remove(voter)
        # The admin's history names the rows it tells of.
        history = LogEntry.objects.filter(content_type__app_label="voting", object_id=str(voter.pk))
        history.update(object_repr=voter.pseudonym)
        Voter.objects.filter(pk=voter.pk).update(
            name="", external_id="", invite=None, user=None, api_key=None, blocked_at=now
        )
        Entry.objects.create(
            project_id=voter.project_id,
            kind=Entry.Kind.ERASURE,
            at=now,
            payload={"voter": voter.pseudonym},
        )


def voter_of_user(project: Project, user: User) -> Voter:
    return Voter.objects.get_or_create(
        project=project, user=user, defaults={"name": user.get_username()}
    )[0]


def voter_of_key(project_id: UUID, api_key: ApiKey) -> Voter:
    return Voter.objects.get_or_create(
        project_id=project_id, api_key=api_key, defaults={"name": api_key.name}
    )[0]
