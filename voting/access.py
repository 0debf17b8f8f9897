"""Who may do what: one table of actions and roles, asked by pages, the API and the admin.

A person is a member of a project in one role. Superusers run the installation: they may do
everything everywhere. A key may do what its scopes say, in its project; one that belongs to a
person never more than that person.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser, User
from django.db.models import QuerySet
from django.http import Http404, HttpRequest

from humanjudge.http import LoginNeeded, Problem
from voting.models import ApiKey, Member, Project

Who: TypeAlias = AbstractBaseUser | AnonymousUser | ApiKey
Action = Literal[
    "see", "see calls", "see people", "export", "vote", "invite", "run", "decide", "share", "manage"
]
_OWNER, _EVALUATOR, _CURATOR, _VIEWER = Member.Role
ALLOWED: Final[Mapping[Action, frozenset[str]]] = {
    # Boards, pairs, figures of the project; never a voter's name.
    "see": frozenset(Member.Role),
    # What models were asked and replied, and what it cost.
    "see calls": frozenset({_OWNER, _EVALUATOR, _CURATOR}),
    "see people": frozenset({_OWNER, _EVALUATOR, _CURATOR}),
    "export": frozenset({_OWNER, _EVALUATOR, _CURATOR}),
    # With the login, without an invite.
    "vote": frozenset({_OWNER, _EVALUATOR, _CURATOR}),
    "invite": frozenset({_OWNER, _EVALUATOR, _CURATOR}),
    # Make, import, start, stop and change runs: this spends money.
    "run": frozenset({_OWNER, _EVALUATOR}),
    # Decisions about items and voters, which are entries of the ledger.
    "decide": frozenset({_OWNER, _CURATOR}),
    "share": frozenset({_OWNER, _EVALUATOR}),
    # Settings, members, keys, webhooks; deleting a run that has votes.
    "manage": frozenset({_OWNER}),
}
_BY_SCOPE: Final[Mapping[str, frozenset[Action]]] = {
    ApiKey.Scope.READ: frozenset({"see"}),
    ApiKey.Scope.VOTE: frozenset({"vote"}),
    ApiKey.Scope.VERDICTS: frozenset(),
    ApiKey.Scope.MANAGE: frozenset(ALLOWED.keys() - {"vote"}),
    ApiKey.Scope.INGEST: frozenset(),
}


def can(who: Who, action: Action, project: Project | UUID | None) -> bool:
    """Say whether a person or a key may do it in a project; None stands for every project."""
    if isinstance(who, ApiKey):
        return _key_can(who, action, _id_of(project))
    if not who.is_active or not isinstance(who, User):
        return False
    if who.is_superuser:
        return True
    return project is not None and _roles_of(who).get(_id_of(project)) in ALLOWED[action]


def _key_can(key: ApiKey, action: Action, project: UUID | None) -> bool:
    in_scope = any(action in _BY_SCOPE[scope] for scope in key.scopes)
    fits = key.project_id is None or key.project_id == project
    return in_scope and fits and (key.user is None or can(key.user, action, project))


def projects_where(who: Who, action: Action) -> QuerySet[Project]:
    """Return the projects in which somebody may do it, for lists; one query, joined to theirs."""
    known = Project.objects.all()
    if isinstance(who, ApiKey):
        if not any(action in _BY_SCOPE[scope] for scope in who.scopes):
            return known.none()
        mine = known if who.project_id is None else known.filter(pk=who.project_id)
        return mine & projects_where(who.user, action) if who.user is not None else mine
    if not who.is_active or not isinstance(who, User):
        return known.none()
    if who.is_superuser:
        return known
    roles = _roles_of(who).items()
    return known.filter(pk__in=[pk for pk, role in roles if role in ALLOWED[action]])


def require(request: HttpRequest, action: Action, project: Project | UUID | None) -> None:
    """Let those pass who may; lead others to the login, or say what their role does not allow.

    Who is no member is told what somebody is told who made the address up.
    """
    user = request.user
    if can(user, action, project):
        return
    if not user.is_authenticated:
        raise LoginNeeded
    if not can(user, "see", project):
        raise Http404
    raise Problem(403, refusal_of(action))


def scopes_within(who: Who, project: Project) -> list[str]:
    """Return the scopes of which somebody may do everything in a project, for a key of theirs."""
    return [
        scope
        for scope, actions in _BY_SCOPE.items()
        if all(can(who, action, project) for action in ("see", *actions))
    ]


def refusal_of(action: Action) -> str:
    roles = [role.label for role in Member.Role if role in ALLOWED[action]]
    return f"Your role in this project does not allow that: it takes {' or '.join(roles)}."


def _id_of(project: Project | UUID | None) -> UUID | None:
    return project.pk if isinstance(project, Project) else project


def _roles_of(user: User) -> dict[UUID | None, str]:
    """Return a person's role in each project; a request asks the database once."""
    roles: dict[UUID | None, str] | None = getattr(user, "_roles", None)
    if roles is None:
        roles = dict(Member.objects.filter(user=user).values_list("project_id", "role"))
        user._roles = roles  # type: ignore[attr-defined]
    return roles
