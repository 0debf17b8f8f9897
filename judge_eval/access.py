"""Who may see boards and pair pages: never a voter who could still vote on what they show."""

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from humanjudge.http import problem
from judge_eval.models import Run
from voting.identity import voter_here
from voting.models import Comparison, Voter
from voting.selectors import open_to, released_by_me
from voting.services import record_exposure


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
        return problem(
            request,
            403,
            "You still have pairs to vote on, and the board would tell you what others think. "
            "Vote first; evaluators can log in.",
            action=("Go on voting", f"/vote/{run.queue_id}/"),
        )
    return None if run.is_shared else redirect_to_login(request.get_full_path())


def refuse_pair(request: HttpRequest, run: Run, comparison: Comparison) -> HttpResponse | None:
    """Return the answer to who may not see one pair, its verdicts and its votes.

    Not even a login helps a voter who has this pair open: it is the same pair of eyes. A voter who
    is let in has seen the verdicts, so a vote on this pair after that is not blind.
    """
    voter = voter_of_run(request, run)
    if voter is not None and open_to(voter, run.queue).filter(pk=comparison.pk).exists():
        return problem(
            request,
            403,
            "You have not voted on this pair yet. Its page opens once you have.",
            action=("Go on voting", f"/vote/{run.queue_id}/"),
        )
    refused = refuse_board(request, run)
    if refused is None and voter is not None:
        record_exposure(voter.pk, [comparison.pk], timezone.now())
    return refused
