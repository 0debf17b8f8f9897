"""People of a project: its members and their roles, its voters, the invites of its runs."""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final, NamedTuple
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Count, OuterRef, Q, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.timesince import timesince

from humanjudge.core.http import Context, Problem
from humanjudge.core.listing import Column, Listing, matching, page_of, searched_words
from humanjudge.core.tables import DASH, Cell, name_cell
from humanjudge.core.text import listed, number_of
from judge_eval.models import Run
from judge_eval.runs.run_page import invites_address
from reports.projects.page_header import project_action, project_page
from voting.access import members
from voting.access.changes import LEAST_REPUTATION, MOST_REPUTATION, set_reputation
from voting.access.keys import live_keys
from voting.access.roles import can, user_of
from voting.items.choices import MILLION
from voting.models import ApiKey, Entry, Invite, Member, Project, Voter

PER_PAGE: Final = 50
LISTS: Final = {"members": "Members", "voters": "Voters", "invites": "Invites"}
ROLES: Final = {
    Member.Role.OWNER: "everything, also members, keys and settings",
    Member.Role.EVALUATOR: "makes and runs studies, which spends money, and shares reports",
    Member.Role.CURATOR: "decides about items and voters, and invites people",
    Member.Role.VIEWER: "reads boards and figures, and never a voter's name",
}


class MemberForm(forms.Form):
    account = forms.CharField(
        max_length=254, label="Account", help_text="Its user name, or its e-mail address."
    )
    role = forms.ChoiceField(choices=Member.Role.choices, initial=Member.Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Member.Role.choices)


class ReputationForm(forms.Form):
    reputation = forms.DecimalField(
        min_value=LEAST_REPUTATION,
        max_value=MOST_REPUTATION,
        decimal_places=6,
        help_text=f"From {LEAST_REPUTATION} to {MOST_REPUTATION:,}; 1 is usual.",
    )


@project_page("see people")
def people(request: HttpRequest, project: Project) -> HttpResponse:
    return _page(request, project)


def _page(
    request: HttpRequest, project: Project, current: str = "", *, status: int = 200, **more: object
) -> HttpResponse:
    """Show one of the lists; `more` is what an answer to a form shows instead."""
    current = current or request.GET.get("show", "members")
    if current not in LISTS:
        raise Problem(400, f"show: {', '.join(LISTS)}.")
    context: Context = {
        "project": project,
        "tab": "people",
        "lists": LISTS,
        "current": current,
        "q": searched_words(request.GET),
        "manages": can(request.user, "manage", project),
    }
    of_list = {"members": _members, "voters": _voters, "invites": _invites}[current]
    context |= of_list(request, project) | more
    return render(request, "reports/projects/project_people.html", context, status=status)


# --- members --------------------------------------------------------------------------------------


def _members(request: HttpRequest, project: Project) -> Context:
    fields, words = ("user__username", "user__email"), searched_words(request.GET)
    rows = matching(members.members_of(project), fields, words)
    page = page_of(rows, request.GET, PER_PAGE)
    return {
        "page": page,
        "rows": [(member, ROLES[Member.Role(member.role)]) for member in page],
        "roles": Member.Role.choices,
        "about_roles": ROLES,
        "form": MemberForm(label_suffix=""),
    }


@project_action("manage")
def add_member(request: HttpRequest, project: Project) -> HttpResponse:
    form = MemberForm(request.POST, label_suffix="")
    if form.is_valid():
        account, role = form.cleaned_data["account"], form.cleaned_data["role"]
        try:
            member = members.add_member(project, account, role, user_of(request))
        except members.CannotBeMember as refused:
            form.add_error("account", str(refused))
        else:
            messages.success(request, f"{member.user.get_username()} is a member now: {role}.")
            return redirect("project-people", project.pk)
    return _page(request, project, "members", form=form, status=422)


@project_action("manage")
def change_member(request: HttpRequest, project: Project, member_id: int) -> HttpResponse:
    get_object_or_404(Member, pk=member_id, project=project)
    actor, form = user_of(request), RoleForm(request.POST)
    try:
        if "remove" in request.POST:
            gone = members.remove_member(project, member_id, actor)
            words = f"{gone.user.get_username()} is no longer a member. {_keys_left(gone)}"
            messages.success(request, words.strip())
        elif form.is_valid():
            member = members.change_role(project, member_id, form.cleaned_data["role"], actor)
            messages.success(request, f"{member.user.get_username()}: {member.role}.")
        else:
            raise Problem(422, f"role: one of {', '.join(Member.Role.values)}.")
    except members.LastOwner as last:
        raise Problem(409, str(last)) from last
    except Member.DoesNotExist:
        raise Problem(409, "Somebody else has just removed this member.") from None
    # Who has given up the role may see less now.
    memberships = Member.objects.filter(project=project, user=actor)
    still = memberships.values_list("role", flat=True).first()
    if not actor.is_superuser and still is None:
        return redirect("projects")
    page = "project-quality" if still == Member.Role.VIEWER else "project-people"
    return redirect(page, project.pk)


def _keys_left(gone: Member) -> str:
    """Say which keys of a former member still exist, and what each may do from now on."""
    keys = [
        f"“{key}” {'only logs traces' if key.kind == ApiKey.Kind.MODEL else 'does nothing'}"
        for key in live_keys(gone.project, gone.user)
    ]
    return f"Their keys remain: {listed(keys)}. Revoke them on the page Keys." if keys else ""


# --- voters ---------------------------------------------------------------------------------------


class ListedVoter(NamedTuple):
    voter: Voter
    votes: int
    last_seen: datetime


def _name_cell(row: ListedVoter) -> Cell:
    tag = "blocked" if row.voter.blocked_at else ""
    return name_cell(row.voter.name or "No name", tag=tag, small=row.voter.pseudonym)


def _seen_cell(row: ListedVoter) -> Cell:
    return Cell(f"{timesince(row.last_seen)} ago", title=f"{row.last_seen:%-d %b %Y %H:%M} UTC")


VOTERS: Final = Listing[ListedVoter](
    "Voters",
    [
        Column("Voter", _name_cell),
        Column("Group", lambda row: row.voter.group or DASH),
        Column("Votes", lambda row: f"{row.votes:,}", css="num"),
        Column("Last seen", _seen_cell, css="num"),
        Column("Reputation", lambda row: f"{row.voter.reputation / MILLION:g}", css="num"),
    ],
    search=("name", "pseudonym", "group"),
    row_css=lambda row: "left-out" if row.voter.blocked_at else "",
)


def _voters(request: HttpRequest, project: Project) -> Context:
    parameters = {name: request.GET[name] for name in ("q", "page") if name in request.GET}

    def change(row: ListedVoter) -> Cell:
        query = urlencode(parameters | {"show": "voters", "voter": str(row.voter.pk)})
        label = f" the reputation of {row.voter.name or 'No name'} {row.voter.pseudonym}"
        return Cell("Change", after=label, href=f"?{query}#reputation", css="")

    may_change = can(request.user, "manage", project)
    columns = [*VOTERS.columns, Column("", change)] if may_change else VOTERS.columns
    voters = Voter.objects.filter(project=project).order_by("name", "pseudonym")
    voter = None
    with suppress(ValueError):
        voter = voters.filter(pk=UUID(request.GET.get("voter", ""))).first()
    value = Decimal(voter.reputation) / MILLION if voter else Decimal(1)
    initial = {"reputation": f"{value.normalize():f}"}
    return {
        **replace(VOTERS, columns=columns).context(voters, request.GET, _with_figures),
        "chosen": voter,
        "form": ReputationForm(initial=initial, label_suffix=""),
    }


def _with_figures(page: Iterable[Voter]) -> list[ListedVoter]:
    """Return voters with their votes, and when they joined or were last written down."""
    voters = list(page)
    votes = Entry.objects.filter(voter__in=voters, kind=Entry.Kind.VOTE, retracted=False)
    numbers = dict(votes.order_by().values_list("voter").annotate(votes=Count("pk")))
    entries = Entry.objects.filter(voter=OuterRef("pk"), seq__isnull=False).order_by("-seq")
    last = Voter.objects.filter(pk__in=[voter.pk for voter in voters])
    last_times = dict(last.values_list("pk", Subquery(entries.values("at")[:1])))
    return [
        ListedVoter(
            voter,
            numbers.get(voter.pk, 0),
            max(voter.created_at, last_times[voter.pk] or voter.created_at),
        )
        for voter in voters
    ]


@project_action("manage")
def change_reputation(request: HttpRequest, project: Project, voter_id: UUID) -> HttpResponse:
    voter = get_object_or_404(Voter.objects.select_related("project"), pk=voter_id, project=project)
    form = ReputationForm(request.POST, label_suffix="")
    if not form.is_valid():
        return _page(request, project, "voters", chosen=voter, form=form, status=422)
    set_reputation(voter, form.cleaned_data["reputation"], user_of(request))
    messages.success(request, f"New votes of {voter} have the new weight.")
    return redirect(reverse("project-people", args=[project.pk]) + "?show=voters")


# --- invites --------------------------------------------------------------------------------------


# Runs, and in words how many invites each has and how many people came by them.
INVITES: Final = Listing[tuple[Run, str]](
    "Invites of each run",
    [
        Column("Run", lambda row: name_cell(row[0].name)),
        Column("Invites", lambda row: row[1]),
        Column(
            "",
            lambda row: Cell(
                "Invite people", after=f" to {row[0].name}", href=invites_address(row[0]), css=""
            ),
        ),
    ],
    search=("name",),
)


def _invites(request: HttpRequest, project: Project) -> Context:
    runs = Run.objects.filter(queue__project=project).defer("config").order_by("-created_at", "pk")
    return {**INVITES.context(runs, request.GET, _invites_of)}


def _invites_of(page: Iterable[Run]) -> list[tuple[Run, str]]:
    runs, now = list(page), timezone.now()
    queues = [run.queue_id for run in runs]
    is_live = Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=now))
    invites = Invite.objects.filter(queue__in=queues).values_list("queue")
    counted = invites.annotate(every=Count("pk"), live=Count("pk", filter=is_live))
    counts = {queue: (total, live) for queue, total, live in counted}
    joined, none = _joined(queues), (0, 0)
    return [(run, _in_words(*counts.get(run.queue_id, none), joined[run.queue_id])) for run in runs]


def _in_words(invites: int, live: int, joined: int) -> str:
    if not invites:
        return "No invite yet."
    return f"{number_of(invites, 'invite')}, of which {live:,} let people in; {joined:,} joined."


def _joined(queues: list[UUID]) -> Counter[UUID]:
    """Return how many voters the invites of queues have let in; a guest of two counts in both."""
    joined = Counter[UUID]()
    for people, counted in (
        (Voter.objects, Count("pk")),
        (Invite.guests.through._default_manager, Count("voter", distinct=True)),
    ):
        of_queues = people.filter(invite__queue__in=queues).values_list("invite__queue")
        joined.update(dict(of_queues.annotate(number=counted)))
    return joined
