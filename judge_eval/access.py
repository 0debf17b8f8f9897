"""Who may see boards, pair pages and calls: never a voter who could still vote on what they show.

Calls name models and quote judges, so they are for evaluators alone; one who also votes is kept
from what was said of the pairs that are still open to them.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone
from django_htmx.http import HttpResponseClientRefresh

from humanjudge.http import HtmxRequest, problem
from judge_eval.models import Run
from voting.cookies import voter_here
from voting.models import Assignment, Item, Voter
from voting.selectors import open_to, released_by_me
from voting.services import record_exposure
from voting.voters import voter_of_user


def voter_of_run(request: HttpRequest, run: Run) -> Voter | None:
    """Return who votes in this browser, or votes elsewhere with this login."""
    voter = voter_here(request, run.queue.project_id)
    if voter is None and request.user.is_authenticated:
        voter = Voter.objects.filter(project=run.queue.project_id, user=request.user).first()
    return voter


def refuse_board(request: HttpRequest, run: Run) -> HttpResponse | None:
    """Return the answer to who may not see the run's board, None to who may."""
    if request.user.is_authenticated:
        return None
    voter = voter_of_run(request, run)
    if voter is not None and open_to(voter, run.queue).filter(released_by_me(voter)).exists():
        return _vote_first(
            request,
            run,
            "You still have pairs to vote on, and the board would tell you what others think. "
            "Vote first; evaluators can log in.",
        )
    return None if run.is_shared else redirect_to_login(request.get_full_path())


def refuse_pair(request: HttpRequest, run: Run, item: Item) -> HttpResponse | None:
    """Return the answer to who may not see one pair, its verdicts and its votes.

    Not even a login helps a voter who has this pair open: it is the same pair of eyes. Whoever is
    let in has seen the verdicts, so a vote of theirs on this pair after that is not blind.
    """
    voter = voter_of_run(request, run)
    if voter is not None and _open_to(voter, run, [item.pk]):
        return _vote_first(
            request, run, "You have not voted on this pair yet. Its page opens once you have."
        )
    refused = refuse_board(request, run)
    if refused is None:
        _remember_seen(request, run, voter, item)
    return refused


def refuse_calls(request: HtmxRequest, run: Run) -> HttpResponse | None:
    """Return the answer to who may not see a run's calls, None to who may."""
    if request.user.is_authenticated:
        return None
    if request.htmx:  # the login has ended: not its form in the middle of the page
        return HttpResponseClientRefresh()
    return refuse_board(request, run) or redirect_to_login(request.get_full_path())


def pairs_to_vote_on(request: HttpRequest, run: Run, pairs: Collection[UUID]) -> set[UUID]:
    """Return those of a run's pairs that whoever reads this could still vote on."""
    voter = voter_of_run(request, run)
    return _open_to(voter, run, pairs) if voter is not None else set()


def may_read_verdicts(request: HttpRequest, pair: Item) -> bool:
    """Say whether what judges say of a pair may be shown, and remember it if it is."""
    return refuse_pair(request, pair.queue.run, pair) is None


def is_voting(request: HttpRequest, run: Run) -> bool:
    """Say whether whoever reads this was handed pairs of the run and could still vote on some."""
    voter = voter_of_run(request, run)
    if voter is None:
        return False
    handed_out = Assignment.objects.filter(voter=voter, item__queue=run.queue_id)
    is_open = open_to(voter, run.queue).filter(released_by_me(voter))
    return handed_out.exists() and is_open.exists()


def _vote_first(request: HttpRequest, run: Run, why: str) -> HttpResponse:
    action = ("Go on voting", reverse("vote", args=[run.queue_id]))
    return problem(request, 403, why, action=action)


def _open_to(voter: Voter, run: Run, pairs: Collection[UUID]) -> set[UUID]:
    """Return those of a run's pairs that somebody who votes in it could still vote on.

    An evaluator who has only read pair pages is no voter of the run until pairs are handed out.
    """
    handed_out = Assignment.objects.filter(voter=voter, item__queue=run.queue_id)
    if voter.user_id is not None and not handed_out.exists():
        return set()
    return set(open_to(voter, run.queue).filter(pk__in=pairs).values_list("pk", flat=True))


def _remember_seen(request: HttpRequest, run: Run, voter: Voter | None, item: Item) -> None:
    if voter is None and request.user.is_authenticated:
        # An evaluator who only reads may vote one day; what was seen before must be known then.
        voter = voter_of_user(run.queue.project, request.user)
    if voter is not None:
        record_exposure(voter.pk, [item.pk], timezone.now())
