"""Who votes in a run: invites, each with its link, its QR code and its counts, and oneself."""

from io import BytesIO
from uuid import UUID

import segno
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from humanjudge.lib.text import number_of
from judge_eval.models import Run
from judge_eval.web import find_run, run_action
from voting import voters
from voting.access import require, user_of
from voting.forms import InviteForm, PersonalInvitesForm
from voting.models import Invite

# Two forms of one page have fields of the same names.
PERSONAL_IDS = "id_personal_%s"


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_voting(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Who is invited, how far they are, and a way in for oneself; the form makes an invite."""
    run = find_run(run_id)
    require(request, "invite", run.queue.project_id)
    form = InviteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        cleaned = form.cleaned_data
        until = form.expires_at(timezone.now())
        invite = voters.make_invite(
            run.queue, cleaned["label"], until, cleaned["max_voters"], cleaned["group"]
        )
        _record(request, run, "An invite was made", invite)
        return redirect("run-voting", run.pk)
    return _page(request, run, form=form)


@run_action("invite")
def make_personal_invites(request: HttpRequest, run: Run) -> HttpResponse:
    form = PersonalInvitesForm(request.POST, auto_id=PERSONAL_IDS)
    if not form.is_valid():
        return _page(request, run, personal=form)
    names, group = form.cleaned_data["names"], form.cleaned_data["group"]
    voters.make_personal_invites(run.queue, names, form.expires_at(timezone.now()), group)
    who = request.user.get_username()
    run.record("invite", f"{number_of(len(names), 'personal link')} made by {who}.")
    return redirect("run-voting", run.pk)


def _page(
    request: HttpRequest,
    run: Run,
    *,
    form: InviteForm | None = None,
    personal: PersonalInvitesForm | None = None,
) -> HttpResponse:
    now = timezone.now()
    context = {
        "run": run,
        "can_vote": run.queue.is_open and run.state != Run.State.COMPLETE,
        "invites": [
            (invited, _link(request, invited.invite), voters.refusal(invited.invite, now))
            for invited in voters.invited(run.queue)
        ],
        "form": form or InviteForm(),
        "groups": voters.voter_groups(run.queue.project_id),
        "personal": personal or PersonalInvitesForm(auto_id=PERSONAL_IDS),
        "tab": "vote",
    }
    is_wrong = (form and form.errors) or (personal and personal.errors)
    return render(request, "judge_eval/voting.html", context, status=422 if is_wrong else 200)


def _link(request: HttpRequest, invite: Invite) -> str:
    return request.build_absolute_uri(reverse("join", args=[voters.invite_token(invite)]))


def _record(request: HttpRequest, run: Run, what: str, invite: Invite) -> None:
    # What happened to a run is kept; who was invited can be erased.
    named = f": {invite.label}" if invite.label and not invite.person else ""
    run.record("invite", f"{what} by {request.user.get_username()}{named}.")


@never_cache
@require_safe
def invite_qr(request: HttpRequest, run_id: UUID, invite_id: UUID) -> HttpResponse:
    """The link of an invite as a QR code, black on white in either theme so that phones read it."""
    require(request, "invite", find_run(run_id).queue.project_id)
    invite = get_object_or_404(Invite, pk=invite_id, queue__run=run_id)
    svg = BytesIO()
    code = segno.make_qr(_link(request, invite), error="m")
    code.save(svg, "svg", light="#fff", scale=4, svgclass=None, lineclass=None, xmldecl=False)
    return HttpResponse(svg.getvalue(), content_type="image/svg+xml")


@run_action("invite")
def withdraw_invite(request: HttpRequest, run: Run, invite_id: UUID) -> HttpResponse:
    invite = get_object_or_404(Invite, pk=invite_id, queue=run.queue_id)
    if invite.revoked_at is None:
        voters.withdraw(invite)
        _record(request, run, "An invite was withdrawn", invite)
    return redirect("run-voting", run.pk)


@run_action("vote")
def vote_as_user(request: HttpRequest, run: Run) -> HttpResponse:
    voter = voters.voter_of_user(run.queue.project, user_of(request))
    return voters.remember(redirect("vote", run.queue_id), voter)
