"""The *Vote on pairs* tab: who may vote, how far they are, and a way in for oneself."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from judge_eval import selectors
from judge_eval.models import Run
from judge_eval.pages.runs import find_run
from judge_eval.runs import events
from voting.cookies import remember
from voting.forms import InviteForm
from voting.models import Invite
from voting.voters import invite_token, make_invite, refusal, voter_of_user, withdraw


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def run_voting(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show the tab; its form makes an invite."""
    run = find_run(run_id)
    form = InviteForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        label, cap = form.cleaned_data["label"], form.cleaned_data["max_voters"]
        make_invite(run.queue, label, form.expires_at(timezone.now()), cap)
        _record(request, run, "An invite was made", label)
        return redirect("run-voting", run.pk)
    board = selectors.board(run)
    context = {
        "run": run,
        "can_vote": run.queue.is_open and run.state != Run.State.COMPLETE,
        "open_words": _open_in_words(run, board),
        "invites": [_invite(request, row) for row in selectors.invite_list(run)],
        "form": form,
        "tab": "vote",
    }
    return render(request, "judge_eval/voting.html", context)


def _record(request: HttpRequest, run: Run, what: str, label: str) -> None:
    named = f": {label}" if label else ""
    events.record(run, "invite", f"{what} by {request.user.get_username()}{named}.")


def _open_in_words(run: Run, board: selectors.BoardView) -> str:
    """Say how far the votes are."""
    if not run.queue.is_open:
        return "Voting has closed."
    if run.state == Run.State.COMPLETE:
        return "Every pair has enough votes."
    preparing = f", {board.preparing} are still being prepared" if board.preparing else ""
    return f"{board.done} of {board.total} pairs have enough votes{preparing}."


@dataclass(frozen=True)
class InviteLine:
    """An invite as the page lists it: its address, unless nobody can join by it any more."""

    row: Invite
    url: str
    refusal: str

    @property
    def joined(self) -> str:
        most = f" of at most {self.row.max_voters}" if self.row.max_voters else ""
        return f"{self.row.joined}{most} voter{'' if self.row.joined == 1 else 's'}"


def _invite(request: HttpRequest, row: Invite) -> InviteLine:
    address = reverse("join", args=[invite_token(row)])
    return InviteLine(row, request.build_absolute_uri(address), refusal(row, timezone.now()))


@require_POST
@login_required
def withdraw_invite(request: HttpRequest, run_id: UUID, invite_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    invite = get_object_or_404(Invite, pk=invite_id, queue=run.queue_id)
    if invite.revoked_at is None:
        withdraw(invite)
        _record(request, run, "An invite was withdrawn", invite.label)
    return redirect("run-voting", run.pk)


@require_POST
@login_required
def vote_as_user(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    assert request.user.is_authenticated  # login_required
    voter = voter_of_user(run.queue.project, request.user)
    return remember(redirect("vote", run.queue_id), voter)
