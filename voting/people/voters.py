"""Who votes: invite links, the identities behind them, and the cookie that remembers one."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core import signing
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from voting.ledger import ledger
from voting.ledger.groups import group_of, groups_entry
from voting.models import ApiKey, Assignment, Entry, Flag, Invite, Project, Queue, Voter

_INVITE_SALT = "voting.invite"
VOTER_COOKIE = "voter-"
_COOKIE_SALT = "voting.voter"
_COOKIE_LIFE = timedelta(days=180)
MOST_COOKIES = 50


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
    queue: Queue,
    label: str,
    expires_at: datetime | None,
    max_voters: int | None,
    group: str = "",
) -> Invite:
    return queue.invites.create(
        label=label, expires_at=expires_at, max_voters=max_voters, group=group
    )


def make_personal_invites(
    queue: Queue, names: Sequence[str], expires_at: datetime | None, group: str = ""
) -> list[Invite]:
    """Make a link for each person, by which one voter can join, who has that name."""
    of_all = {"queue": queue, "expires_at": expires_at, "max_voters": 1, "group": group}
    return Invite.objects.bulk_create(Invite(label=name, **of_all) for name in names)


def voter_groups(project: UUID) -> list[str]:
    """Return the groups of voters that a project has, those too that nobody has joined yet."""
    voters = Voter.objects.filter(project=project).values_list("group", flat=True)
    invites = Invite.objects.filter(queue__project=project).values_list("group", flat=True)
    return sorted(set(voters.union(invites)) - {""}, key=str.casefold)


class InviteCounts(NamedTuple):
    """An invite, how many it has let in, and how many sealed votes these have in its queue."""

    invite: Invite
    joined: int
    votes: int


def invited(queue: Queue) -> list[InviteCounts]:
    invites = list(queue.invites.select_related("queue").order_by("created_at", "pk"))
    of_invites = Voter.objects.filter(invite__in=invites).values_list("invite", "pk")
    guests = Invite.guests.through._default_manager.filter(invite__in=invites)
    members: dict[UUID, set[UUID]] = defaultdict(set)
    for invite, voter in (*of_invites, *guests.values_list("invite", "voter")):
        members[invite].add(voter)
    sealed = Entry.objects.filter(queue=queue, kind=Entry.Kind.VOTE, seq__isnull=False)
    valid_votes = sealed.filter(retracted=False)
    votes = dict(valid_votes.values_list("voter").annotate(votes=Count("pk")))
    rows = []
    for invite in invites:
        voters = members[invite.pk]
        invite.joined = len(voters)
        rows.append(InviteCounts(invite, len(voters), sum(votes.get(voter, 0) for voter in voters)))
    return rows


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


def join(invite: Invite, name: str, now: datetime, returning: Voter | None = None) -> Voter:
    """Let in a new voter, or one of the project whom another invite had let in."""
    with transaction.atomic():
        # The cap is counted under a lock: two people may take the last place at once.
        locked = Invite.objects.select_for_update(of=("self",)).select_related("queue")
        fresh = locked.get(pk=invite.pk)
        reason = refusal(fresh, now)
        if reason:
            raise InviteRefused(reason)
        project = fresh.queue.project_id
        if returning is None:
            name = fresh.person or name
            voter = Voter.objects.create(project_id=project, invite=fresh, name=name)
        else:
            voter = returning
            if not returning.name and fresh.person:
                returning.name = fresh.person
                returning.save(update_fields=["name"])
            fresh.guests.add(returning)
        # Who has a group keeps it: the first invite that names one counts.
        if fresh.group and not group_of(voter):
            ledger.record(groups_entry(project, {voter.pseudonym: fresh.group}))
        return voter


def put_into_group(voter: Voter, group: str, curator: Voter) -> bool:
    """Say of a voter, for all votes there are, which group it belongs to; sealing keeps it.

    An empty group takes the voter out of every one. Returns whether that is a change.
    """
    with transaction.atomic():
        fresh = Voter.objects.select_for_update(no_key=True).get(pk=voter.pk)
        if group_of(fresh) == group:
            return False
        ledger.record(groups_entry(fresh.project_id, {fresh.pseudonym: group}, curator))
        return True


def has_come_in(voter: Voter, invite: Invite) -> bool:
    """Say whether a voter was let in by this invite, or votes in its queue already."""
    return (
        voter.invite_id == invite.pk
        or invite.guests.filter(pk=voter.pk).exists()
        or Assignment.objects.filter(voter=voter, item__queue=invite.queue_id).exists()
        or Entry.objects.filter(voter=voter, queue=invite.queue_id, kind=Entry.Kind.VOTE).exists()
    )


def _cookie(project_id: UUID) -> str:
    return f"{VOTER_COOKIE}{project_id.hex[:12]}"


def voter_id_here(request: HttpRequest, project_id: UUID) -> UUID | None:
    """Return who votes in this browser, from the cookie alone."""
    return _voter_in(request, _cookie(project_id))


def _voter_in(request: HttpRequest, cookie: str) -> UUID | None:
    value = request.get_signed_cookie(cookie, default="", salt=_COOKIE_SALT, max_age=_COOKIE_LIFE)
    return UUID(hex=value) if value else None


def voter_of_cookie(request: HttpRequest, project_id: UUID) -> Voter | None:
    """Return whose cookie this browser has, even when that voter was blocked."""
    pk = voter_id_here(request, project_id)
    return Voter.objects.filter(pk=pk, project_id=project_id).first() if pk else None


def voter_here(request: HttpRequest, project_id: UUID) -> Voter | None:
    """Return the voter of this browser, None when unknown or blocked."""
    voter = voter_of_cookie(request, project_id)
    return None if voter is None or voter.blocked_at is not None else voter


def voters_here(request: HttpRequest) -> list[Voter]:
    """Return who votes in this browser, in whichever projects; those who are blocked do not."""
    cookies = [name for name in request.COOKIES if name.startswith(VOTER_COOKIE)][:MOST_COOKIES]
    returning = [pk for cookie in cookies if (pk := _voter_in(request, cookie)) is not None]
    return list(Voter.objects.filter(pk__in=returning, blocked_at=None)) if returning else []


def remember(response: HttpResponse, voter: Voter) -> HttpResponse:
    response.set_signed_cookie(
        _cookie(voter.project_id),
        voter.pk.hex,
        salt=_COOKIE_SALT,
        max_age=_COOKIE_LIFE,
        httponly=True,
        samesite="Lax",
        secure=settings.HTTPS,
    )
    return response


def forget_texts(entries: QuerySet[Entry]) -> None:
    """Empty what people wrote: of that the chain has only salted hashes.

    To be done before that is locked which they refer to, since an undo locks a vote first, and once
    more behind that lock.
    """
    texts = entries.exclude(comment="", salt="", labels__isnull=True)
    texts.update(comment="", salt="", labels=None)


def erase(voter: Voter) -> None:
    """Forget a person: name, texts, salts, and every way from the person to the pseudonym.

    The votes stay, under a pseudonym that nothing leads to any more, and the chain still verifies:
    of a comment and of further answers it holds only salted hashes.
    """
    now = timezone.now()
    with transaction.atomic():
        forget_texts(Entry.objects.filter(voter=voter))
        # Not no_key: what is being written in this name is waited for, and what follows is refused.
        Voter.objects.select_for_update().get(pk=voter.pk)
        forget_texts(Entry.objects.filter(voter=voter))
        decisions = Entry.objects.filter(project=voter.project_id, kind=Entry.Kind.DECISION)
        decisions.filter(payload__by=voter.pseudonym).update(comment="", salt="")
        Flag.objects.filter(voter=voter).update(comment="")
        # A personal link has the person's name, and nobody else may take the place by it.
        links = Invite.objects.filter(Q(pk=voter.invite_id) | Q(guests=voter), max_voters=1)
        personal = list(links.values_list("pk", flat=True))
        Invite.objects.filter(pk__in=personal).update(label="", revoked_at=now)
        for invite in Invite.objects.filter(guests=voter):
            invite.guests.remove(voter)
        # The admin's history names the rows it tells of.
        named = [str(pk) for pk in (voter.pk, *personal)]
        history = LogEntry.objects.filter(content_type__app_label="voting", object_id__in=named)
        history.update(object_repr=voter.pseudonym)
        Voter.objects.filter(pk=voter.pk).update(
            name="", external_id="", invite=None, user=None, api_key=None, blocked_at=now
        )
        about = {"project_id": voter.project_id, "payload": {"voter": voter.pseudonym}}
        ledger.record(Entry(kind=Entry.Kind.ERASURE, at=now, **about))


def voter_of_user(project: Project, user: User) -> Voter:
    return Voter.objects.get_or_create(
        project=project, user=user, defaults={"name": user.get_username()}
    )[0]


def voter_of_key(project_id: UUID, api_key: ApiKey) -> Voter:
    return Voter.objects.get_or_create(
        project_id=project_id, api_key=api_key, defaults={"name": api_key.name}
    )[0]
