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
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.utils.functional import SimpleLazyObject

from humanjudge.core.http import LoginNeeded, Problem
from voting.models import ApiKey, Member, Project

# In `request.META`: the project of the page.
_PROJECT: Final = "voting.project"
NO_NEW_PROJECTS: Final = (
    "You may not make projects: that takes an administrator, or the permission “Can add project”. "
    "Ask to be made a member of one that there is."
)
Actor: TypeAlias = AbstractBaseUser | AnonymousUser | ApiKey
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
    # Settings, members, keys, webhooks; deleting a run that has begun.
    "manage": frozenset({_OWNER}),
}
_BY_SCOPE: Final[Mapping[str, frozenset[Action]]] = {
    ApiKey.Scope.READ: frozenset({"see"}),
    ApiKey.Scope.VOTE: frozenset({"vote"}),
    ApiKey.Scope.VERDICTS: frozenset(),
    ApiKey.Scope.MANAGE: frozenset(ALLOWED.keys() - {"vote"}),
    ApiKey.Scope.INGEST: frozenset(),
}


def can(actor: Actor, action: Action, project: Project | UUID | None) -> bool:
    """Say whether a person or a key may do it in a project; None stands for every project."""
    if isinstance(actor, ApiKey):
        fits = actor.project_id is None or actor.project_id == _id_of(project)
        is_allowed = fits and _in_scope(actor, action)
        return is_allowed and (actor.user is None or can(actor.user, action, project))
    user = _active(actor)
    if user is None or user.is_superuser:
        return user is not None
    return project is not None and _roles_of(user).get(_id_of(project)) in ALLOWED[action]


def _in_scope(key: ApiKey, action: Action) -> bool:
    return any(action in _BY_SCOPE[scope] for scope in key.scopes)


def projects_of(key: ApiKey) -> QuerySet[Project]:
    """Return the projects that a key is for; a person's key is for those that its person sees."""
    projects = Project.objects.all()
    mine = projects if key.project_id is None else projects.filter(pk=key.project_id)
    return mine if key.user is None else mine & projects_where(key.user, "see")


def projects_where(actor: Actor, action: Action) -> QuerySet[Project]:
    """Return the projects in which somebody may do it, for lists; one query, joined to theirs."""
    projects = Project.objects.all()
    if isinstance(actor, ApiKey):
        if not _in_scope(actor, action):
            return projects.none()
        mine = projects_of(actor)
        return mine if actor.user is None else mine & projects_where(actor.user, action)
    user = _active(actor)
    if user is None or user.is_superuser:
        return projects if user else projects.none()
    roles = _roles_of(user).items()
    return projects.filter(pk__in=[pk for pk, role in roles if role in ALLOWED[action]])


def require(request: HttpRequest, action: Action, project: Project | UUID | None) -> None:
    """Let those pass who may; lead others to the login, or say what their role does not allow.

    Who is no member is told what somebody is told who made the address up. The page's templates
    know from here on what else may be done: see `may_here`.
    """
    user = request.user
    note_project(request, project)
    if can(user, action, project):
        return
    if not user.is_authenticated:
        raise LoginNeeded
    if not can(user, "see", project):
        raise Http404
    raise Problem(403, refusal_of(action))


def scopes_within(actor: Actor, project: Project) -> list[str]:
    """Return the scopes of which somebody may do everything in a project, for a key of theirs."""
    return [
        scope
        for scope, actions in _BY_SCOPE.items()
        if all(can(actor, action, project) for action in ("see", *actions))
    ]


def user_of(request: HttpRequest) -> User:
    """Return who is logged in, where `require` has let them pass."""
    assert isinstance(request.user, User)
    return request.user


def refusal_of(action: Action) -> str:
    return f"Your role in this project does not allow that: it takes {_roles_for(action)}."


def can_anywhere(actor: Actor, action: Action) -> bool:
    """Say whether there may be a project in which somebody may do it."""
    if isinstance(actor, ApiKey):
        return _in_scope(actor, action)
    user = _active(actor)
    if user is None or user.is_superuser:
        return user is not None
    return any(role in ALLOWED[action] for role in _roles_of(user).values())


def require_login(request: HttpRequest) -> None:
    """Let anybody pass who is logged in: to a page that shows each what they may see."""
    if not request.user.is_authenticated:
        raise LoginNeeded


def require_anywhere(request: HttpRequest, action: Action) -> None:
    """Let those pass who may do it in some project, where a page is of no one project."""
    require_login(request)
    if not can_anywhere(request.user, action):
        raise Problem(403, f"This takes the role {_roles_for(action)} in some project.")


def can_make_projects(actor: Actor) -> bool:
    """Say whether somebody may make projects; a key of every project may, as its person may."""
    if isinstance(actor, ApiKey):
        is_free = actor.project_id is None and ApiKey.Scope.MANAGE in actor.scopes
        return is_free and (actor.user is None or can_make_projects(actor.user))
    return isinstance(actor, User) and actor.has_perm("voting.add_project")


def can_administer(actor: Actor, permission: str) -> bool:
    """Say whether somebody may do in the whole installation what the admin has a permission for."""
    if not isinstance(actor, User) or not (actor.is_staff or actor.is_superuser):
        return False
    return actor.has_perm(permission)


def require_administering(request: HttpRequest, permission: str) -> None:
    require_login(request)
    if not can_administer(request.user, permission):
        raise Problem(403, "This takes an administrator of this server.")


def require_making(actor: Actor) -> None:
    """Let those pass who may make projects, and tell others what it takes."""
    if not can_make_projects(actor):
        raise Problem(403, NO_NEW_PROJECTS)


def make_project(name: str, owner: User | None, **fields: object) -> Project:
    with transaction.atomic():
        project = Project.objects.create(name=name, **fields)
        if owner is not None:
            project.members.create(user=owner, role=Member.Role.OWNER)
    return project


def can_make_runs(actor: Actor) -> bool:
    """Say whether somebody may make runs: in a project that there is, or in one of their own."""
    return can_anywhere(actor, "run") or can_make_projects(actor)


def may(actor: Actor, project: Project | UUID | None) -> dict[str, bool]:
    """Return what somebody may do in a project, for templates: `may.run`, `may.see_calls`."""
    return {action.replace(" ", "_"): can(actor, action, project) for action in ALLOWED}


def note_project(request: HttpRequest, project: Project | UUID | None) -> None:
    request.META[_PROJECT] = _id_of(project)


def may_here(request: HttpRequest) -> "dict[str, SimpleLazyObject[dict[str, bool]]]":
    """Tell templates what may be done in the project of a page; looked up where one asks."""
    return {"may": SimpleLazyObject(lambda: may(request.user, request.META.get(_PROJECT)))}


def require_making_runs(request: HttpRequest) -> None:
    require_login(request)
    if not can_make_runs(request.user):
        require_making(request.user)


def _roles_for(action: Action) -> str:
    return " or ".join(role.label for role in Member.Role if role in ALLOWED[action])


def _active(actor: AbstractBaseUser | AnonymousUser) -> User | None:
    return actor if isinstance(actor, User) and actor.is_active else None


def _id_of(project: Project | UUID | None) -> UUID | None:
    return project.pk if isinstance(project, Project) else project


def _roles_of(user: User) -> dict[UUID | None, str]:
    """Return a person's role in each project; a request asks the database once."""
    roles: dict[UUID | None, str] | None = getattr(user, "_roles", None)
    if roles is None:
        roles = dict(Member.objects.filter(user=user).values_list("project_id", "role"))
        user._roles = roles  # type: ignore[attr-defined]
    return roles
