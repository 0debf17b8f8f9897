"""Run pages: the board, the pairs, and what judges said after a vote."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest, Problem
from judge_eval import selectors
from judge_eval.access import is_voting, refuse_board, refuse_pair
from judge_eval.models import Run
from judge_eval.pages.board_shown import board_context, board_seen
from judge_eval.pages.calls_list import alarms, made_of
from judge_eval.pages.findings_page import (
    asked_for,
    findings_context,
    live_part,
    refuse,
    run_with_board,
)
from judge_eval.pages.pairs_shown import (
    ORDERS,
    Wanted,
    beside,
    choices_of,
    majority,
    pairs_at,
    places_wanted,
)
from judge_eval.pages.reveal import reveal_of
from judge_eval.pages.verdict_shown import shown_verdicts
from voting.choices import LABELS
from voting.cookies import voter_here
from voting.models import Comparison, Entry, Queue
from voting.selectors import progress
from voting.services import record_exposure
from voting.shown import shown_output

PAIRS_PER_PAGE = 30
# A reveal looks for the new ratings this often, ever more slowly: for about half a minute.
LOOKS = 12


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    return redirect("runs") if request.user.is_authenticated else render(request, "home.html")


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)


@require_safe
@login_required
def runs(request: HttpRequest) -> HttpResponse:
    listed = list(selectors.run_list())
    silent = alarms(listed)
    context = {"runs": [(run, silent.get(run.pk, [])) for run in listed]}
    return render(request, "judge_eval/runs.html", context)


def _run(run_id: UUID) -> Run:
    return get_object_or_404(
        Run.objects.select_related("queue__project", "queue__rubric"), pk=run_id
    )


@never_cache
@require_safe
def run_board(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The board, or a part of it; htmx asks for its live part again while people vote."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    asked = asked_for(request, run)
    board = selectors.board(run)
    context = findings_context(run, asked) | board_context(run, board, asked) | {"tab": "board"}
    if is_voting(request, run):
        # On which pairs people and judges disagree says what to look for on the next one.
        context |= {"disputed": [], "is_voting": True}
    context["seen"] = f"{board_seen(run, board)}-{context['seen']}"
    if not request.htmx:
        return render(request, "judge_eval/board.html", context)
    return live_part(request, context, "judge_eval/_board.html")


@never_cache
@require_safe
def run_pairs(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = _run(run_id)
    refused = refuse_board(request, run)
    if refused is not None:
        return refused
    hides, wanted = is_voting(request, run), _wanted(request)
    if hides and wanted.order:
        raise Problem(403, "You still have pairs to vote on: vote first, then sort them.")
    pages = Paginator(places_wanted(run, wanted), PAIRS_PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    pairs = pairs_at(run, list(page.object_list))
    context = {
        "run": run,
        "page": page,
        "pairs": pairs,
        "wanted": wanted,
        "is_voting": hides,
        "orders": ORDERS,
        "choices": choices_of(run),
        "has_ids": any(pair.external_id for pair in pairs),
        "tab": "pairs",
    }
    return render(request, "judge_eval/pairs.html", context)


def _wanted(request: HttpRequest) -> Wanted:
    return Wanted.parse(request.GET.get("sort", ""), request.GET.get("part", ""))


@never_cache
@require_safe
def run_pair(request: HttpRequest, run_id: UUID, comparison_id: UUID) -> HttpResponse:
    run = _run(run_id)
    comparison = get_object_or_404(
        Comparison.objects.select_related("a__picture", "b__picture"),
        pk=comparison_id,
        queue=run.queue_id,
    )
    refused = refuse_pair(request, run, comparison)
    if refused is not None:
        return refused
    wanted, chosen = _wanted(request), majority(comparison)
    verdicts = shown_verdicts(selectors.verdicts_on(comparison))
    context = {
        "wanted": wanted,
        "beside": beside(run, wanted, comparison),
        "majority": chosen,
        "majority_in_words": LABELS.get(chosen, ""),
        "run": run,
        "comparison": comparison,
        "a": shown_output(comparison.a),
        "b": shown_output(comparison.b),
        "made": made_of(comparison),
        "verdicts": verdicts,
        "asked": [shown for shown in verdicts if shown.calls],
        "votes": selectors.votes_on(comparison),
        "tab": "pairs",
    }
    return render(request, "judge_eval/pair.html", context)


@never_cache
@require_safe
def reveal(request: HtmxRequest, vote_uid: UUID) -> HttpResponse:
    """What the judges said of a pair, for the voter who has just voted on it."""
    vote = get_object_or_404(
        Entry.objects.select_related(
            "voter", "queue", "comparison__a__picture", "comparison__b__picture"
        ),
        uid=vote_uid,
        kind=Entry.Kind.VOTE,
        comparison__isnull=False,
    )
    voter = voter_here(request, vote.project_id)
    if voter is None or voter.pk != vote.voter_id:
        raise Http404
    _must_be_revealed(vote)
    assert vote.comparison_id is not None and vote.voter_id is not None  # noqa: PT018
    # Before anything is shown: a vote cast after this moment is not blind.
    record_exposure(vote.voter_id, [vote.comparison_id], timezone.now())
    template = "judge_eval/_reveal.html" if request.htmx else "judge_eval/reveal.html"
    context = {"reveal": reveal_of(vote), "queue": vote.queue}
    return render(request, template, context | _next_look(request, is_sealed=vote.seq is not None))


def _next_look(request: HttpRequest, *, is_sealed: bool) -> dict[str, Any]:
    asked = request.GET.get("look", "")
    look = int(asked) if asked.isdecimal() and len(asked) < 3 else 0
    if is_sealed or look >= LOOKS:
        return {"gave_up": not is_sealed}
    return {"next_look": look + 1, "delay_ms": min(round(150 * 1.6**look), 5000)}


def _must_be_revealed(vote: Entry) -> None:
    queue, voter = vote.queue, vote.voter
    assert queue is not None and voter is not None  # noqa: PT018
    if queue.reveal == Queue.Reveal.NEVER:
        raise Problem(403, "What the judges said is not shown in this study.")
    if queue.reveal == Queue.Reveal.AT_END and progress(voter, queue).left_for_me:
        raise Problem(403, "What the judges said is shown when you have voted on all your pairs.")
