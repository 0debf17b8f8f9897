"""The first page: what this is, a finished study, and what waits for who is logged in."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, Q, Window
from django.db.models.functions import RowNumber
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import Context
from humanjudge.lib.text import number_of
from judge_eval.access import open_items_with_votes
from judge_eval.findings.cache import request_findings
from judge_eval.findings.pictures import plot_of
from judge_eval.models import Findings, Run
from judge_eval.runs.demo import FIRST_START, FIRST_STUDY
from judge_eval.selectors import silent_models
from judge_eval.web import NEXT, invites_address, unstuck
from reports.models import Quality, Share
from reports.quality.views import pass_rates
from reports.review.services import reviews
from voting.access import can_make_runs, projects_where
from voting.models import Invite, Project, Queue
from voting.selectors import left_for_user
from voting.tuning import OF_TUNED
from voting.voters import invite_token, refusal

MOST_RUNS: Final = 12
MOST_QUEUES: Final = 3
MOST_SHARES: Final = 5
MOST_PROJECTS: Final = 8
RUNS_OF_PROJECT: Final = 4
# Nothing is counted further.
MANY: Final = 1_000
SOON: Final = timedelta(days=7)


class Waiting(NamedTuple):
    """Something that waits."""

    about: str
    words: str
    address: str


class ProjectInShort(NamedTuple):
    project: Project
    pass_rates: str
    # With the headline of its board, where that tells voters nothing that they may not know.
    runs: list[tuple[Run, str]]


@never_cache
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    listed = Run.objects.filter(archived_at=None).order_by("-created_at").defer("config")
    finished = listed.filter(is_shared=True, state=Run.State.COMPLETE)
    example = finished.filter(pk=FIRST_STUDY).first() or finished.first()
    context: Context = {"example": example}
    if not isinstance(request.user, User):
        context["demo_invite"] = _demo_invite()
        context |= _study(example) if example else {}
    if isinstance(request.user, User):
        mine = projects_where(request.user, "see")
        projects = list(mine.order_by("-created_at")[: MOST_PROJECTS + 1])
        context |= {
            "waiting": [*_reviews(request), *(line for of in WAITING for line in of(request.user))],
            "projects": in_short(request.user, projects[:MOST_PROJECTS]),
            "has_runs": Run.objects.filter(queue__project__in=mine).exists(),
            "has_more_projects": len(projects) > MOST_PROJECTS,
            "may_make": can_make_runs(request.user),
        }
    return render(request, "reports/home.html", context)


def _demo_invite() -> str:
    invites = Invite.objects.filter(
        label=FIRST_START,
        queue__is_simulated=False,
        queue__run__archived_at=None,
        queue__run__state__in=(*Run.AT_WORK, Run.State.VOTING),
    )
    invite = invites.select_related("queue").order_by("created_at").first()
    if invite is None or refusal(invite, timezone.now()):
        return ""
    return reverse("join", args=[invite_token(invite)])


def _study(run: Run) -> Context:
    figures = request_findings(run, "").findings
    if figures is None or not figures.as_of.votes:
        return {}
    return {"words": figures.words, "plot": plot_of(figures)}


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    return redirect(static("favicon.svg"), permanent=True)


# --- what waits -----------------------------------------------------------------------------------


def _reviews(request: HttpRequest) -> list[Waiting]:
    waiting = reviews("waits", request, projects_where(request.user, "decide"))
    number = waiting.values("pk")[:MANY].count()
    words = f"{number:,}{' or more' * (number == MANY)} waiting for a decision"
    return [Waiting("Review", words, reverse("review"))] if number else []


def _stuck_runs(user: User) -> list[Waiting]:
    mine = Run.objects.filter(archived_at=None, queue__project__in=projects_where(user, "run"))
    at_work = mine.filter(state__in=(*Run.AT_WORK, Run.State.VOTING))
    silent = silent_models(at_work.values("pk"))
    stuck = mine.filter(Q(state__in=NEXT) | Q(pk__in=silent)).order_by("-created_at")
    rows = list(stuck.defer("config")[: MOST_RUNS + 1])
    steps = [(run, unstuck(run, silent.get(run.pk, []))) for run in rows[:MOST_RUNS]]
    lines = [Waiting(run.name, step.words, step.address) for run, step in steps if step]
    more = [Waiting("More runs", "See all runs", reverse("runs"))] if len(rows) > MOST_RUNS else []
    return lines + more


def _votes(user: User) -> list[Waiting]:
    left = left_for_user(user).filter(queue=OuterRef("pk"))
    queues = Queue.objects.filter(
        Exists(left),
        project__in=projects_where(user, "vote"),
        is_open=True,
        is_simulated=False,
        run__archived_at=None,
        run__state__in=(*Run.AT_WORK, Run.State.VOTING),
    )
    newest = list(queues.select_related("run").order_by("-created_at")[:MOST_QUEUES])
    counts = left_for_user(user).filter(queue__in=newest).values_list("queue")
    numbers = dict(counts.annotate(items=Count("pk")))
    return [
        Waiting(
            queue.run.name,
            f"Vote on {number_of(numbers.get(queue.pk, 0), queue.noun)}",
            invites_address(queue.run),
        )
        for queue in newest
    ]


def _shares(user: User) -> list[Waiting]:
    now = timezone.now()
    ending = Share.objects.filter(
        project__in=projects_where(user, "share"),
        revoked_at=None,
        expires_at__gt=now,
        expires_at__lte=now + SOON,
    )
    soonest = ending.select_related("project", "run").defer("frozen", "run__config")
    return [
        Waiting(
            share.run.name if share.run else share.project.name,
            f"The link “{share}” expires on {share.expires_at:%-d %b %Y}",
            share.page,
        )
        for share in soonest.order_by("expires_at")[:MOST_SHARES]
    ]


WAITING: Final = (_stuck_runs, _votes, _shares)


# --- projects and their runs ----------------------------------------------------------------------


def in_short(user: User, projects: Sequence[Project]) -> list[ProjectInShort]:
    """Return projects with their newest runs, and pass rates that tell the user of no vote."""
    runs = _newest_runs(projects)
    figures = Findings.objects.filter(part="", run__in=[r.pk for own in runs.values() for r in own])
    rows = figures.values_list("run", "run__state", "data__claims__best", "data__words")
    over = Run.State.COMPLETE
    headlines = {run: says for run, state, best, says in rows if state == over or best is not None}
    qualities = defaultdict[UUID, list[Quality]](list)
    voting = open_items_with_votes(user, *(project.pk for project in projects))
    shown = Quality.objects.filter(project__in=projects).exclude(OF_TUNED)
    shown = shown.exclude(project__in=voting.values("queue__project"))
    for each in shown.order_by("series"):
        qualities[each.project_id].append(each)
    return [
        ProjectInShort(
            project,
            pass_rates(qualities[project.pk]),
            [(run, headlines.get(run.pk, "")) for run in runs[project.pk]],
        )
        for project in projects
    ]


def _newest_runs(projects: Sequence[Project]) -> dict[UUID, list[Run]]:
    place = Window(RowNumber(), partition_by="queue__project", order_by="-created_at")
    runs = Run.objects.filter(queue__project__in=projects, archived_at=None)
    newest = runs.annotate(place=place).filter(place__lte=RUNS_OF_PROJECT)
    by_project = defaultdict[UUID, list[Run]](list)
    for run in newest.select_related("queue", "board").defer("config").order_by("place"):
        by_project[run.queue.project_id].append(run)
    return by_project
