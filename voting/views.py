"""The voting pages: join by a link, vote on pairs, undo, skip, flag."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django import forms
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from humanjudge.http import HtmxRequest, Problem, is_from_htmx
from humanjudge.lib.ratelimit import RateLimit
from voting import assignment, ballots, services
from voting.choices import spoken
from voting.cookies import remember, voter_here, voter_id_here, voter_known_here
from voting.forms import (
    FlagForm,
    JoinForm,
    PairForm,
    UndoForm,
    VoteInvalid,
    first_error,
    read_vote,
)
from voting.kinds import kind_of
from voting.models import Entry, Flag, Invite, Item, Queue, Voter
from voting.pictures.store import png_path, thumbnail_path
from voting.selectors import (
    has_seen_verdicts,
    own_votes,
    progress,
    taken_back,
    votes_in_order,
)
from voting.shown import own_vote, shown_pair
from voting.voters import InviteRefused, admit, find_invite, has_come_in, join, refusal

AnyForm = TypeVar("AnyForm", bound=forms.Form)
VOTES_PER_PAGE = 50
NOBODY = UUID(int=0)
_WRONG_LINK = (
    "This invite link is not right. Part of it may be missing: copy the whole link from the "
    "message that you got. If that does not help, ask whoever sent it for a new one."
)

limit = RateLimit(settings.VOTES_PER_SECOND, settings.VOTES_BURST)


@never_cache
def join_by_invite(request: HtmxRequest, token: str) -> HttpResponse:
    invite = find_invite(token)
    if invite is None:
        raise Problem(404, _WRONG_LINK)
    queue_page = reverse("vote", args=[invite.queue_id])
    known = voter_known_here(request, invite.queue.project_id)
    if known is not None and known.blocked_at is not None:
        raise Problem(403, "You may no longer vote here.")
    # A voter who comes back goes on, even when the invite lets nobody new in.
    if known is not None and has_come_in(known, invite):
        return redirect(queue_page)
    reason = refusal(invite, timezone.now())
    if reason:
        raise Problem(403, reason)
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        voter = _let_in(invite, known, form.cleaned_data["name"])
        return remember(redirect(queue_page), voter)
    context = {"queue": invite.queue, "form": form, "known": known}
    return render(request, "voting/join.html", context)


def _let_in(invite: Invite, known: Voter | None, name: str) -> Voter:
    try:
        if known is None:
            return join(invite, name, timezone.now())
        admit(invite, known, timezone.now())
    except InviteRefused as refused:
        raise Problem(403, str(refused)) from refused
    return known


def _voter_and_queue(request: HttpRequest, queue_id: UUID) -> tuple[Voter, Queue]:
    queue = get_object_or_404(Queue.objects.select_related("project"), pk=queue_id)
    voter = voter_here(request, queue.project_id)
    if voter is None:
        raise Problem(403, "You need an invite link to vote here. Open the one you got.")
    return voter, queue


def _valid(form: AnyForm) -> AnyForm:
    if not form.is_valid():
        raise Problem(422, first_error(form))
    return form


def _ballot(request: HttpRequest, token: str, queue_id: UUID) -> ballots.Ballot:
    """Read a ballot that was given to the voter of this browser, for this queue."""
    try:
        ballot = ballots.read(token)
    except ballots.BallotInvalid as invalid:
        raise Problem(422, f"ballot: {invalid}") from invalid
    if voter_id_here(request, ballot.project) != ballot.voter or ballot.queue != queue_id:
        raise Problem(403, "This ballot was given to another voter. Reload the page.")
    return ballot


@never_cache
@require_safe
def vote_page(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    # Without scripts a vote and an undo lead back here and name what they were about.
    voted = _first_of(own_votes(voter, queue), _uuids(request.GET.get("voted", "")))
    undone = _uuids(request.GET.get("again", ""))[:1]
    if voted is not None and voted.retracted and voted.item_id is not None:
        undone = [voted.item_id]
    again = [pair for pk in undone if (pair := taken_back(voter, queue, pk))]
    pairs = again + _next_pairs(voter, queue, [pair.pk for pair in again]).pairs
    context = _context(voter, queue, pairs) | {"progress": progress(voter, queue)}
    context["has_seen"] = any(has_seen_verdicts(voter, pair) for pair in again)
    context["undo_number"] = uuid4()
    context["voted"] = voted
    return render(request, "voting/vote.html", context)


def _first_of(votes: QuerySet[Entry], uids: list[UUID]) -> Entry | None:
    return votes.filter(uid__in=uids[:1]).first() if uids else None


@never_cache
@require_safe
def more_pairs(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    have = _uuids(request.GET.get("have", ""))
    handed = _next_pairs(voter, queue, have)
    context = _context(voter, queue, handed.pairs)
    if not handed.pairs and not have:
        # Only a page that has nothing left says how far everybody is: that costs a count.
        context["progress"] = progress(voter, queue)
    response = render(request, "voting/_more.html", context)
    if handed.gone:
        trigger_client_event(response, "gone", {"pairs": handed.gone})
    return response


@require_POST
def leave(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    """Give back what a page had leased that nobody looks at any more."""
    voter, queue = _voter_and_queue(request, queue_id)
    have = _uuids(request.POST.get("have", ""))
    assignment.give_back(voter, queue, have, timezone.now())
    return HttpResponse(status=204)


def _uuids(text: str) -> list[UUID]:
    try:
        return [UUID(part) for part in text.split(",") if part]
    except ValueError:
        raise Problem(400, "A list of identifiers was expected.") from None


def _next_pairs(voter: Voter, queue: Queue, have: list[UUID]) -> assignment.Handed:
    if not queue.is_open or queue.is_simulated:
        return assignment.Handed([], [])
    return assignment.next_pairs(voter, queue, have, settings.PAIRS_HELD, timezone.now())


def _context(voter: Voter, queue: Queue, pairs: list[Item]) -> dict[str, Any]:
    kind = kind_of(queue)
    return {
        "queue": queue,
        "voter": voter,
        "pairs": [shown_pair(voter, queue, item) for item in pairs],
        "kind": kind,
        "buttons": kind.buttons(queue.ballot),
        "flag_categories": Flag.Category.choices,
    }


@require_POST
def vote(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    """Record one vote: one INSERT, and nothing else is asked of the database here."""
    try:
        sent = read_vote(request.POST)
    except VoteInvalid as invalid:
        raise Problem(422, str(invalid)) from invalid
    ballot = _ballot(request, sent.ballot, queue_id)
    choice = ballot.choice(sent.position)
    if choice is None:
        raise Problem(422, "choice: this ballot does not offer it")
    if not limit.allow(ballot.voter):
        raise Problem(429, "Too many votes in a moment. This one was not recorded; go on.")
    try:
        recorded = services.cast_vote(ballot, choice, sent.elapsed_ms)
    except services.VoteConflict as conflict:
        stands = spoken(conflict.recorded.choice, ballot.left)
        raise Problem(
            409, f"You chose {stands} on this pair before, and that stands. Undo it to change it."
        ) from conflict
    except services.VoteTakenBack as taken:
        text = "ballot: its vote was taken back; reload the page for a new ballot"
        raise Problem(422, text) from taken
    except services.VotingClosed as closed:
        raise Problem(409, f"{closed} This vote was not recorded.") from closed
    if not is_from_htmx(request):
        return redirect(f"{reverse('vote', args=[queue_id])}?voted={recorded.uid}")
    return HttpResponse(_answer_without_number().replace(str(NOBODY), str(recorded.uid)))


@cache
def _answer_without_number() -> str:
    """The answer to a vote is the same but for its number, so it is rendered only once."""
    return render_to_string("voting/_voted.html", {"uid": NOBODY})


@require_POST
def undo(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    form = _valid(UndoForm(request.POST))
    try:
        item = services.undo_last_vote(voter, queue, form.cleaned_data["undo"])
    except services.NothingToUndo:
        raise Problem(409, "There is no vote of yours to undo here.") from None
    if not request.htmx:
        return redirect(f"{reverse('vote', args=[queue_id])}?again={item.pk}")
    context = _context(voter, queue, [item]) | {"progress": progress(voter, queue)}
    context["has_seen"] = has_seen_verdicts(voter, item)
    return render(request, "voting/_more.html", context)


@require_POST
def skip(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    _voter_and_queue(request, queue_id)
    form = _valid(PairForm(request.POST))
    ballot = _ballot(request, form.cleaned_data["ballot"], queue_id)
    services.skip(ballot)
    return HttpResponse(status=204) if request.htmx else redirect("vote", queue_id)


@require_POST
def flag(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, _ = _voter_and_queue(request, queue_id)
    form = _valid(FlagForm(request.POST))
    ballot = _ballot(request, form.cleaned_data["ballot"], queue_id)
    services.flag(voter, ballot.item, form.cleaned_data["category"], form.cleaned_data["comment"])
    return HttpResponse(status=204) if request.htmx else redirect("vote", queue_id)


@never_cache
@require_safe
def my_votes(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    """A voter's own standing votes, the latest first."""
    voter, queue = _voter_and_queue(request, queue_id)
    page = Paginator(votes_in_order(voter, queue), VOTES_PER_PAGE).get_page(request.GET.get("page"))
    so_far = progress(voter, queue)
    at_end = queue.reveal == Queue.Reveal.AT_END and not so_far.left_for_me
    context = {
        "queue": queue,
        "page": page,
        "votes": [own_vote(vote) for vote in page],
        "progress": so_far,
        "is_revealed": at_end or queue.reveal == Queue.Reveal.AFTER_EACH,
    }
    return render(request, "voting/mine.html", context)


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def picture(request: HttpRequest, png_sha256: str) -> FileResponse:
    """Serve PNG bytes under their own hash: whoever knows the hash has seen the picture."""
    return _file(png_path(png_sha256), "image/png")


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def thumbnail(request: HttpRequest, png_sha256: str) -> FileResponse:
    """Serve the same, small, under the same hash and to the same people."""
    return _file(thumbnail_path(png_sha256), "image/webp")


def _file(path: str, content_type: str) -> FileResponse:
    try:
        return FileResponse(default_storage.open(path), content_type=content_type)
    except FileNotFoundError:
        raise Http404 from None
