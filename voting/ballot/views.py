"""The voting pages: join by a link, vote on items, undo, skip, flag."""

from functools import cache
from uuid import UUID, uuid4

from django import forms
from django.conf import settings
from django.core.files.storage import default_storage
from django.core.paginator import Paginator
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject
from django.utils.module_loading import import_string
from django.views.decorators.cache import cache_control, never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import trigger_client_event

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.ratelimit import RateLimit
from voting.access.login import slow_down
from voting.ballot import services, signed_form
from voting.ballot.assignment import ballot_for, give_back, next_pairs
from voting.ballot.queries import (
    effort,
    has_seen_verdicts,
    last_taken_back,
    latest_votes,
    own_votes,
    progress,
    queues_left,
    reveal_of,
    sent_back,
    taken_back,
)
from voting.ballot.questions import (
    ItemQuestion,
    effort_in_words,
    in_words,
    question_of,
    request_in_words,
)
from voting.items.conversations import latest, messages_of
from voting.items.kinds import SEPARATOR, AnswerInvalid, kind_of
from voting.models import Entry, Flag, Item, Queue, Voter
from voting.people import voters
from voting.people.forms import FlagForm, JoinForm, UndoForm
from voting.pictures.store import stored_path

VOTES_PER_PAGE = 50
QUEUES_NAMED = 5
# One of a study with many criteria names them all.
LONGEST_BALLOT = 20_000
LONGEST_LOOK_MS = 24 * 60 * 60 * 1000
# An output of so few characters is written large.
BRIEF = 280
NOBODY = UUID(int=0)
_WRONG_LINK = (
    "This invite link is not right. Part of it may be missing: copy the whole link from the "
    "message that you got. If that does not help, ask whoever sent it for a new one."
)

limit = RateLimit(settings.VOTES_PER_SECOND, settings.VOTES_BURST)
# Of each address: a class that joins by one link at once is far below both.
WRONG_LINKS = RateLimit(per_second=1 / 3, burst=30)
JOINS = RateLimit(per_second=1 / 2, burst=200)


def go_on_voting(request: HttpRequest) -> Context:
    """Tell templates where a known voter has more to vote on; looked up where a page shows it."""

    def look_up() -> list[tuple[str, str]]:
        present = voters.voters_here(request)
        queues = queues_left(present, QUEUES_NAMED) if present else []
        return [(queue.name, reverse("vote", args=[queue.pk])) for queue in queues]

    return {"go_on_voting": SimpleLazyObject(look_up)}


@never_cache
def join_by_invite(request: HtmxRequest, token: str) -> HttpResponse:
    invite = voters.find_invite(token)
    if invite is None:
        slow_down(WRONG_LINKS, request, "wrong invite links")
        raise Problem(404, _WRONG_LINK)
    queue_page = reverse("vote", args=[invite.queue_id])
    returning = voters.voter_of_cookie(request, invite.queue.project_id)
    if returning is not None and returning.blocked_at is not None:
        raise Problem(403, "You may no longer vote here.")
    # A voter who comes back goes on, even when the invite lets nobody new in.
    if returning is not None and voters.has_come_in(returning, invite):
        return redirect(queue_page)
    reason = voters.refusal(invite, timezone.now())
    if reason:
        raise Problem(403, reason)
    form = JoinForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        slow_down(JOINS, request, "people joined")
        try:
            voter = voters.join(invite, form.cleaned_data["name"], timezone.now(), returning)
        except voters.InviteRefused as refused:
            raise Problem(403, str(refused)) from refused
        return voters.remember(redirect(queue_page), voter)
    left, seconds = effort(invite.queue, returning)
    context = {
        "invite": invite,
        "queue": invite.queue,
        "instruction": request_in_words(invite.queue),
        "effort": effort_in_words(left, kind_of(invite.queue).noun, seconds),
        "form": form,
        "returning": returning,
    }
    return render(request, "voting/people/join.html", context)


def _voter_and_queue(request: HttpRequest, queue_id: UUID) -> tuple[Voter, Queue]:
    queue = get_object_or_404(Queue.objects.select_related("rubric"), pk=queue_id)
    voter = voters.voter_here(request, queue.project_id)
    if voter is None:
        raise Problem(403, "You need an invite link to vote here. Open the one you got.")
    return voter, queue


def _cleaned(form: forms.Form) -> Context:
    for name, errors in form.errors.items():
        raise Problem(422, f"{name}: {errors[0]}")
    return form.cleaned_data


def _ballot(request: HttpRequest, queue_id: UUID) -> signed_form.Ballot:
    # By hand: a form copies its fields for each request, which took longer than all else of a vote.
    token = request.POST.get("ballot", "")
    if not 0 < len(token) <= LONGEST_BALLOT:
        raise Problem(422, "ballot: there is none, or it is too long; reload the page")
    try:
        ballot = signed_form.read(token)
    except signed_form.BallotInvalid as invalid:
        raise Problem(422, f"ballot: {invalid}") from invalid
    if voters.voter_id_here(request, ballot.project) != ballot.voter or ballot.queue != queue_id:
        raise Problem(403, "This ballot was given to another voter. Reload the page.")
    return ballot


def _uuids(text: str) -> list[UUID]:
    try:
        return [UUID(part) for part in text.split(",") if part]
    except ValueError:
        raise Problem(400, "A list of identifiers was expected.") from None


def on_page(voter: Voter, queue: Queue, item: Item, question: ItemQuestion) -> Context:
    """Return what a voter is shown of an item: never more than its outputs."""
    ballot = ballot_for(voter, queue, item)
    outputs = dict(zip(("left", "right"), item.displayed(ballot.left), strict=False))
    is_brief = all(
        len(output.output) <= BRIEF and messages_of(output.output) is None
        for output in outputs.values()
    )
    token = signed_form.issue(ballot)
    return {"item": item, **outputs, "token": token, "question": question, "is_brief": is_brief}


def _context(
    request: HttpRequest, voter: Voter, queue: Queue, items: list[Item], *, with_progress: bool
) -> Context:
    question = question_of(queue)
    context = {
        "queue": queue,
        "voter": voter,
        "pairs": [on_page(voter, queue, item, question) for item in items],
        "kind": kind_of(queue),
        "question": question,
        "flag_categories": Flag.Category.choices,
        # Without a judge to reveal the next item follows at once.
        "reveal": reveal_of(queue),
    }
    if with_progress:
        context["progress"] = progress(voter, queue)
        context["board_url"] = import_string(settings.BOARD_ADDRESS)(queue, request.user)
    return context


def _again(voter: Voter, queue: Queue, items: list[Item]) -> list[Context]:
    votes = {item: last_taken_back(voter, item) for item in items}
    return [on_page(voter, queue, item, question_of(queue, vote)) for item, vote in votes.items()]


def _reveal_address(vote: UUID) -> str:
    return str(import_string(settings.REVEAL_ADDRESS)(vote))


@never_cache
@require_safe
def vote_page(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    # Without scripts a vote and an undo lead back here and name what they were about.
    numbers = _uuids(request.GET.get("voted", ""))[:1]
    voted = own_votes(voter, queue).filter(uid__in=numbers).first()
    undone = _uuids(request.GET.get("again", ""))[:1]
    if voted is not None and voted.retracted and voted.item_id is not None:
        undone = [voted.item_id]
    undone = undone if queue.is_open else []
    again = [item for pk in undone if (item := taken_back(voter, queue, pk))]
    have = [item.pk for item in again]
    items, _ = next_pairs(voter, queue, have, settings.PAIRS_HELD, timezone.now())
    context = _context(request, voter, queue, items, with_progress=True)
    context["pairs"] = _again(voter, queue, again) + context["pairs"]
    context |= {
        "has_seen": any(has_seen_verdicts(voter, item) for item in again),
        "sent_back": [
            {"decision": decision, "undo_number": uuid4(), "is_open": decision.item in again}
            for decision in (sent_back(voter, queue) if queue.is_open else ())
        ],
        "undo_number": uuid4(),
        "voted": voted,
        "reveal_url": _reveal_address(voted.uid) if voted else "",
    }
    return render(request, "voting/ballot/vote.html", context)


@never_cache
@require_safe
def more_pairs(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    have = _uuids(request.GET.get("have", ""))
    items, gone = next_pairs(voter, queue, have, settings.PAIRS_HELD, timezone.now())
    # Only a page that has nothing left says how far everybody is: that costs a count.
    is_empty = not items and not have
    context = _context(request, voter, queue, items, with_progress=is_empty)
    response = render(request, "voting/ballot/_more.html", context)
    if gone:
        trigger_client_event(response, "gone", {"pairs": gone})
    if not queue.is_open:
        trigger_client_event(response, "closed")
    return response


@require_POST
def leave(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    give_back(voter, queue, _uuids(request.POST.get("have", "")), timezone.now())
    return HttpResponse(status=204)


@require_POST
def vote(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    """Record one vote: one INSERT, and nothing else is asked of the database here."""
    ballot = _ballot(request, queue_id)
    # Boxes that are ticked have one name, and come as one set.
    fields = {name: SEPARATOR.join(map(str, values)) for name, values in request.POST.lists()}
    try:
        answer = ballot.answer(fields)
    except AnswerInvalid as invalid:
        raise Problem(422, str(invalid)) from invalid
    if not limit.allow(ballot.voter):
        raise Problem(429, "Too many votes in a moment. This one was not recorded; go on.")
    # The clock of a browser is kept when it makes sense, and never a reason to lose a vote.
    elapsed = request.POST.get("elapsed_ms", "")
    is_time = elapsed.isdecimal() and len(elapsed) <= 9
    elapsed_ms = min(int(elapsed), LONGEST_LOOK_MS) if is_time else None
    try:
        recorded = services.cast_vote(ballot, answer.choice, elapsed_ms, details=answer.details)
    except services.VoteConflict as conflict:
        stands = kind_of(ballot).spoken(conflict.recorded.choice, ballot.left)
        about = f"{stands} on this {kind_of(ballot).noun}" if stands else "otherwise"
        text = f"You chose {about} before, and that stands. Undo it to change it."
        raise Problem(409, text) from conflict
    except services.VoteTakenBack as taken:
        text = "ballot: its vote was taken back; reload the page for a new ballot"
        raise Problem(422, text) from taken
    except services.VotingClosed as closed:
        raise Problem(409, f"{closed} This vote was not recorded.") from closed
    if not request.htmx:
        return redirect(f"{reverse('vote', args=[queue_id])}?voted={recorded.uid}")
    return HttpResponse(_answer_without_number().replace(str(NOBODY), str(recorded.uid)))


@cache
def _answer_without_number() -> str:
    """The answer to a vote is the same but for its number, so it is rendered only once."""
    context = {"uid": NOBODY, "reveal_url": _reveal_address(NOBODY)}
    return render_to_string("voting/ballot/_voted.html", context)


@require_POST
def undo(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    fields = _cleaned(UndoForm(request.POST))
    try:
        item = services.undo_last_vote(voter, queue, fields["undo"], vote=fields["vote"])
    except services.NothingToUndo:
        raise Problem(409, "There is no vote of yours to undo here.") from None
    except services.VotingClosed as closed:
        raise Problem(409, f"{str(closed).rstrip('.')}; your vote stands.") from closed
    if not request.htmx:
        return redirect(f"{reverse('vote', args=[queue_id])}?again={item.pk}")
    context = _context(request, voter, queue, [], with_progress=True)
    context["pairs"] = _again(voter, queue, [item])
    context["has_seen"] = has_seen_verdicts(voter, item)
    return render(request, "voting/ballot/_more.html", context)


@require_POST
def skip(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    _voter_and_queue(request, queue_id)
    services.skip(_ballot(request, queue_id))
    return HttpResponse(status=204) if request.htmx else redirect("vote", queue_id)


@require_POST
def flag(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, _ = _voter_and_queue(request, queue_id)
    ballot = _ballot(request, queue_id)
    services.flag(voter, ballot.item, **_cleaned(FlagForm(request.POST)))
    return HttpResponse(status=204) if request.htmx else redirect("vote", queue_id)


@never_cache
@require_safe
def my_votes(request: HtmxRequest, queue_id: UUID) -> HttpResponse:
    voter, queue = _voter_and_queue(request, queue_id)
    related = ("queue", "item__a__picture", "item__b__picture")
    votes = latest_votes(voter, queue).select_related(*related)
    page = Paginator(votes.order_by("-id"), VOTES_PER_PAGE).get_page(request.GET.get("page"))
    voter_progress = progress(voter, queue)
    reveal = reveal_of(queue)
    at_end = reveal == Queue.Reveal.AT_END and not voter_progress.left_for_me
    context = {
        "queue": queue,
        "page": page,
        "votes": [_vote_context(vote, queue) for vote in page],
        "progress": voter_progress,
        "reveal": reveal,
        "is_revealed": at_end or reveal == Queue.Reveal.AFTER_EACH,
    }
    return render(request, "voting/ballot/mine.html", context)


def _vote_context(vote: Entry, queue: Queue) -> Context:
    assert vote.item is not None  # only votes on items are listed
    side = vote.left_side or "A"
    return {
        "vote": vote,
        "prompt": latest(vote.item.a.prompt),
        "chosen": in_words(vote),
        "receipt": f"{vote.seq}:{bytes(vote.hash).hex()}" if vote.seq and vote.hash else "",
        "pictures": [
            (name, output.picture)
            for name, output in zip(kind_of(queue).names, vote.item.displayed(side), strict=True)
        ],
        "reveal_url": _reveal_address(vote.uid),
        "undo_number": uuid4(),
    }


@require_safe
@cache_control(public=True, max_age=31_536_000, immutable=True)
def picture(request: HttpRequest, png_sha256: str, suffix: str) -> FileResponse:
    """Serve an image or its thumbnail by content hash: who knows it has seen the picture."""
    try:
        file = default_storage.open(stored_path(png_sha256, suffix))
    except FileNotFoundError:
        raise Http404 from None
    return FileResponse(file, content_type=f"image/{suffix}")
