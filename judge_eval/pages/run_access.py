"""Who may follow a run's calls: they name models and quote judges, so evaluators alone.

An evaluator who also votes is kept from what was said of the pairs that are still open to them.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django_htmx.http import HttpResponseClientRefresh

from humanjudge.http import HtmxRequest
from judge_eval.access import refuse_board, refuse_pair, voter_of_run
from judge_eval.models import Run
from voting.models import Assignment, Comparison
from voting.selectors import open_to


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
    if voter is None:
        return set()
    handed_out = Assignment.objects.filter(voter=voter, comparison__queue=run.queue_id)
    # An evaluator who has only read pair pages is no voter of the run until pairs are handed out.
    if voter.user_id is not None and not handed_out.exists():
        return set()
    return set(open_to(voter, run.queue).filter(pk__in=pairs).values_list("pk", flat=True))


def may_read_verdicts(request: HttpRequest, pair: Comparison) -> bool:
    """Say whether what judges say of a pair may be shown, and remember it if it is."""
    return refuse_pair(request, pair.queue.run, pair) is None
