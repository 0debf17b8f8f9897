"""The first page: what this is, a finished study, and what waits for whoever comes."""

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from judge_eval.models import Run
from judge_eval.pages.run_head import NEXT, Step, unstuck
from judge_eval.selectors import silent_models
from voting.access import Who, can_make_runs, projects_where

MOST_WAITING = 12


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    listed = Run.objects.filter(archived_at=None).order_by("-created_at").defer("config")
    finished = listed.filter(is_shared=True, state=Run.State.COMPLETE)
    context = {
        "example": finished.first(),
        "waiting_runs": _waiting(request.user) if request.user.is_authenticated else [],
        "may_make": can_make_runs(request.user),
    }
    return render(request, "judge_eval/home.html", context)


def _waiting(user: Who) -> list[tuple[Run, Step]]:
    """Return runs that get no further without this person, with what to do: the newest first."""
    mine = Run.objects.filter(queue__project__in=projects_where(user, "run"))
    at_work = mine.filter(state__in=(*Run.AT_WORK, Run.State.VOTING), archived_at=None)
    silent = silent_models(at_work.values("pk"))
    waiting = mine.filter(Q(state__in=NEXT, archived_at=None) | Q(pk__in=silent))
    newest = waiting.order_by("-created_at").defer("config")[:MOST_WAITING]
    steps = ((run, unstuck(run, silent.get(run.pk, []))) for run in newest)
    return [(run, step) for run, step in steps if step is not None]


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)
