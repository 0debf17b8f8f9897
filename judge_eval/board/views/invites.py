"""Invites to vote in a run, each with its link, its QR code and its counts, and oneself."""

from io import BytesIO
from uuid import UUID

import segno
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.core.http import Context
from judge_eval.models import Run
from judge_eval.runs.run_page import find_run, invites_address, run_action
from voting.access.roles import require, user_of
from voting.models import Invite
from voting.people import voters
from voting.people.forms import InviteForm, PersonalInvitesForm

# Two forms of one page have fields of the same names.
PERSONAL_IDS = "id_personal_%s"


def invites_of(
    request: HttpRequest,
    run: Run,
    form: InviteForm | None = None,
    personal: PersonalInvitesForm | None = None,
) -> Context:
    """Return the invites of a run, how far whoever came by them is, and the forms of new ones."""
    now = timezone.now()
    invites = [
        (invited, _link(request, invited.invite), voters.refusal(invited.invite, now))
        for invited in voters.invited(run.queue)
    ]
    links = [f"{row.invite.label}\t{link}" for row, link, refused in invites if not refused]
    return {
        "can_vote": run.queue.is_open and run.state not in (Run.State.DRAFT, Run.State.COMPLETE),
        "invites": invites,
        "links": "\n".join(links) if len(links) > 1 else "",
        "invite_form": form or InviteForm(),
        "personal": personal or PersonalInvitesForm(auto_id=PERSONAL_IDS),
    }


def _link(request: HttpRequest, invite: Invite) -> str:
    return request.build_absolute_uri(reverse("join", args=[voters.invite_token(invite)]))


def record(request: HttpRequest, run: Run, event: str, invite: Invite) -> None:
    # What happened to a run is kept; who was invited can be erased.
    named = f": {invite.label}" if invite.label and not invite.person else ""
    run.record("invite", f"{event} by {request.user.get_username()}{named}.")


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
        record(request, run, "An invite was withdrawn", invite)
    return redirect(invites_address(run))


@run_action("vote")
def vote_as_user(request: HttpRequest, run: Run) -> HttpResponse:
    voter = voters.voter_of_user(run.queue.project, user_of(request))
    return voters.remember(redirect("vote", run.queue_id), voter)
