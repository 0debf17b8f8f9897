"""Members of a project: who is one, in which role. The only writer of `Member` rows."""

from typing import Final

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from voting.access.changes import note_change
from voting.access.roles import make_project
from voting.ledger.ledger import locked, record
from voting.models import Entry, Member, Project
from voting.people.voters import voter_of_user

_OWNER = Member.Role.OWNER
# How the quality score decays where a person makes a project on a page: it remembers weeks.
OF_A_PERSON: Final = {"decay_rate": "0.1", "decay_unit": "day"}


class CannotBeMember(Exception):
    """Nobody, or more than one account, is meant, or who is meant is a member already."""


class LastOwner(Exception):
    """Without this owner nobody could manage the project."""

    def __init__(self) -> None:
        super().__init__(
            "A project keeps at least one owner, and this is the last. Make somebody else owner "
            "first."
        )


def start_project(name: str, owner: User) -> Project:
    """Make the project that somebody names on a page, with the score that suits most."""
    with transaction.atomic():
        project = make_project(name, owner)
        record(
            Entry(
                project=project,
                kind=Entry.Kind.PARAMETERS,
                at=timezone.now(),
                voter=voter_of_user(project, owner),
                payload={"quality": OF_A_PERSON},
            )
        )
    return project


def members_of(project: Project) -> QuerySet[Member]:
    """Return who is a member, by name."""
    members = Member.objects.filter(project=project).select_related("user")
    return members.order_by("user__username")


def add_member(project: Project, account: str, role: str, actor: User) -> Member:
    """Let an existing account, given by its name or e-mail address, be a member."""
    user = _user_of(account)
    try:
        with transaction.atomic():
            member = Member.objects.create(project=project, user=user, role=role)
            note_change(project, actor, f"{user.get_username()} is a member now: {role}.")
            return member
    except IntegrityError:
        if not Member.objects.filter(project=project, user=user).exists():
            raise
        name = user.get_username()
        raise CannotBeMember(f"{name} is a member already; change the role in the list.") from None


def _user_of(account: str) -> User:
    # A name that looks like an address is that of an account only if an administrator gave it: at
    # an identity provider people may have chosen it themselves.
    named = Q(username=account, identities=None) if "@" in account else Q(username=account)
    accounts = User.objects.filter(named | Q(email__iexact=account), is_active=True)
    users = list(accounts.distinct()[:2])
    if not users:
        raise CannotBeMember(
            f"There is no account “{account}”. An administrator makes accounts in the admin."
        )
    if len(users) > 1:
        raise CannotBeMember(
            f"{account} is the user name or the e-mail address of several accounts. Give a user "
            "name that is no address of another, or have an administrator change one."
        )
    return users[0]


def change_role(project: Project, member_id: int, role: str, actor: User) -> Member:
    """Give a member another role; raise LastOwner where the project would have none left."""
    with transaction.atomic():
        member = _locked_member(project, member_id, stays_owner=role == _OWNER)
        before, member.role = member.role, role
        if before != role:
            member.save(update_fields=["role"])
            note_change(project, actor, f"{member.user.get_username()}: {before} to {role}.")
        return member


def remove_member(project: Project, member_id: int, actor: User) -> Member:
    """End a membership; raise LastOwner where the project would have no owner left."""
    with transaction.atomic():
        member = _locked_member(project, member_id, stays_owner=False)
        name, role = member.user.get_username(), member.role
        member.delete()
        note_change(project, actor, f"{name} is no member any more; the role was {role}.")
        return member


def _locked_member(project: Project, member_id: int, *, stays_owner: bool) -> Member:
    """Return a member whom nobody else changes meanwhile, where an owner is left."""
    # Two owners who demote each other at once: the second finds itself the last one.
    locked(project.pk)
    member = members_of(project).get(pk=member_id)
    if member.role == _OWNER and not stays_owner:
        others = Member.objects.filter(project=project, role=_OWNER, user__is_active=True)
        if not others.exclude(pk=member_id).exists():
            raise LastOwner
    return member
