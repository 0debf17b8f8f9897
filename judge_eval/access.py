"""Who may see boards, pairs and calls of a run, as `voting.access` says of its project.

Never a voter who could still vote on what they show. Boards and pairs of a run that is shared are
for everybody. Calls name models and quote judges, so they are for members alone; one who also votes
is kept from what was said of the pairs that are still open to them.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from humanjudge.http import HtmxRequest, problem
from judge_eval.models import Run
from voting import access
from voting.access import Action
from voting.models import ApiKey, Assignment, Item, Queue, Voter
from voting.selectors import open_to, released_by_me
from voting.services import record_exposure
from voting.voters import voter_here, voter_of_key, voter_of_user

# It takes a role in the project.
ROLE: Final = "role"
VOTE_FIRST = (
    "You still have {noun}s to vote on, and the board would tell you what others think. "
    "Vote first; evaluators can log in."
)
PAIR_IS_OPEN = "You have not voted on this {noun} yet. Its page opens once you have."


def can(who: HttpRequest | ApiKey, action: Action, run: Run) -> bool:
    """Say whether a visitor, or who holds a key, may do it.

    A key that votes blindly, with the scope `vote` and without `verdicts`, sees nothing of what
    others think while it has pairs to vote on.
    """
    if isinstance(who, HttpRequest):
        return not _obstacle(who, action, run)
    if not access.can(who, action, run.queue.project_id):
        return False
    if ApiKey.Scope.VOTE not in who.scopes or ApiKey.Scope.VERDICTS in who.scopes:
        return True
    return not has_pairs_left(voter_of_key(run.queue.project_id, who), run)


def _obstacle(request: HttpRequest, action: Action, run: Run, pair: Item | None = None) -> str:
    """Say what somebody has to do first; nothing where they may.

    Not even a role helps a voter who has the pair open: it is the same pair of eyes.
    """
    if pair is not None and pairs_to_vote_on(request, run, [pair.pk]):
        return PAIR_IS_OPEN.format(noun=run.queue.noun)
    if access.can(request.user, action, run.queue.project_id):
        return ""
    if action == "see people":
        return ROLE
    voter = voter_of_run(request, run)
    if voter is not None and has_pairs_left(voter, run):
        return VOTE_FIRST.format(noun=run.queue.noun)
    return "" if run.is_shared and action == "see" else ROLE


def refusal(
    request: HtmxRequest, action: Action, run: Run, pair: Item | None = None
) -> HttpResponse | None:
    """Return the answer to who may not do it, None to who may.

    Who is let in to a pair has seen its verdicts, so a later vote of theirs on it is not blind.
    """
    access.note_project(request, run.queue.project_id)
    why = _obstacle(request, action, run, pair)
    if not why:
        if pair is not None:
            remember_seen(request, run, [pair.pk])
        return None
    if why == ROLE:
        access.require(request, action, run.queue.project_id)
    way_out = ("Go on voting", reverse("vote", args=[run.queue_id]))
    return problem(request, 403, why, action=way_out)


def remember_seen(request: HttpRequest, run: Run, pairs: Collection[UUID]) -> None:
    voter = voter_of_run(request, run)
    if voter is None and request.user.is_authenticated:
        # An evaluator who only reads may vote one day; what was seen before must be known then.
        voter = voter_of_user(run.queue.project, request.user)
    if voter is not None:
        record_exposure(voter.pk, pairs, timezone.now())


def voter_of_run(request: HttpRequest, run: Run) -> Voter | None:
    """Return who votes in this browser, or votes elsewhere with this login."""
    voter = voter_here(request, run.queue.project_id)
    if voter is None and request.user.is_authenticated:
        voter = Voter.objects.filter(project=run.queue.project_id, user=request.user).first()
    return voter


def has_pairs_left(voter: Voter, run: Run) -> bool:
    return open_to(voter, run.queue).filter(released_by_me(voter)).exists()


def is_voting(request: HttpRequest, run: Run) -> bool:
    """Say whether somebody was handed pairs of the run and could still vote on some."""
    voter = voter_of_run(request, run)
    return voter is not None and _has_been_asked(voter, run) and has_pairs_left(voter, run)


def pairs_to_vote_on(request: HttpRequest, run: Run, pairs: Collection[UUID]) -> set[UUID]:
    """Return those of a run's pairs that who reads this could still vote on.

    An evaluator who has only read pair pages is no voter of the run until pairs are handed out.
    """
    voter = voter_of_run(request, run)
    if voter is None or (voter.user_id is not None and not _has_been_asked(voter, run)):
        return set()
    return set(open_to(voter, run.queue).filter(pk__in=pairs).values_list("pk", flat=True))


def _has_been_asked(voter: Voter, run: Run) -> bool:
    return Assignment.objects.filter(voter=voter, item__queue=run.queue_id).exists()


def board_address(queue: Queue, user: AbstractBaseUser | AnonymousUser) -> str:
    run = Run.objects.filter(queue=queue).first()
    is_readable = run is not None and (run.is_shared or access.can(user, "see", queue.project_id))
    return reverse("run", args=[run.pk]) if run is not None and is_readable else ""


def reveal_address(vote: UUID) -> str:
    return reverse("reveal", args=[vote])
