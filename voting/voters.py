"""Who votes: invite links, and the identities behind them."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.utils import timezone

from voting.models import ApiKey, Entry, Flag, Invite, Project, Voter

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
        # The cap is counted under a lock: two people may take the last place at once.
        locked = Invite.objects.select_for_update().select_related("queue").get(pk=invite.pk)
        reason = refusal(locked, now)
        if reason:
            raise InviteRefused(reason)
        return Voter.objects.create(project_id=locked.queue.project_id, invite=locked, name=name)


def erase(voter: Voter) -> None:
    """Forget a person: name, texts, salts, and every way from the person to the pseudonym.

    The votes stay, under a pseudonym that nothing leads to any more, and the chain still verifies:
    of a comment and of further answers it holds only salted hashes.
    """
    now = timezone.now()
    with transaction.atomic():
        Entry.objects.filter(voter=voter).update(comment="", salt="", labels=None)
        Flag.objects.filter(voter=voter).update(comment="")
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
