"""The first page: what this is, a finished study, and what waits for who is logged in."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.core.charts.plot import Plot
from humanjudge.core.http import Context
from humanjudge.core.text import number_of
from judge_eval.board.cache import request_findings
from judge_eval.board.model import RunFindings
from judge_eval.board.pictures import plot_of
from judge_eval.demo.load import FIRST_START, FIRST_STUDY
from judge_eval.models import Findings, Run
from judge_eval.runs.queries import silent_models
from judge_eval.runs.run_page import NEXT, invites_address, unstuck
from reports.models import Share
from reports.review.services import reviews
from voting.access.roles import can_make_runs, projects_where
from voting.ballot.queries import left_for_user
from voting.models import Invite, Project, Queue
from voting.people.voters import invite_token, refusal

MOST_RUNS: Final = 12
MOST_QUEUES: Final = 3
MOST_SHARES: Final = 5
MOST_CARDS: Final = 6
MOST_WAITING: Final = 5
# Nothing is counted further.
MANY: Final = 1_000
SOON: Final = timedelta(days=7)


class WaitingWork(NamedTuple):
    about: str
    words: str
    address: str


class RunCard(NamedTuple):
    """A run with its board in a clause and a picture, where that tells voters nothing new."""

    run: Run
    headline: str
    plot: Plot | None


class ProjectCards(NamedTuple):
    project: Project
    cards: list[RunCard]


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
        cards = newest_cards(mine)
        context |= {
            "waiting": waiting_for(request),
            "groups": by_project(cards),
            "has_runs": bool(cards),
            "is_member": mine.exists(),
            "may_make": can_make_runs(request.user),
        }
    return render(request, "reports/projects/home.html", context)


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


def _reviews(request: HttpRequest) -> list[WaitingWork]:
    waiting = reviews("waits", request, projects_where(request.user, "decide"))
    number = waiting.values("pk")[:MANY].count()
    words = f"{number:,}{' or more' * (number == MANY)} waiting for a decision"
    return [WaitingWork("Review", words, reverse("review"))] if number else []


def _stuck_runs(user: User) -> list[WaitingWork]:
    mine = Run.objects.filter(archived_at=None, queue__project__in=projects_where(user, "run"))
    at_work = mine.filter(state__in=(*Run.AT_WORK, Run.State.VOTING))
    silent = silent_models(at_work.values("pk"))
    stuck = mine.filter(Q(state__in=NEXT) | Q(pk__in=silent)).order_by("-created_at")
    rows = list(stuck.defer("config")[: MOST_RUNS + 1])
    steps = [(run, unstuck(run, silent.get(run.pk, []))) for run in rows[:MOST_RUNS]]
    alike = defaultdict[str, list[WaitingWork]](list)
    for run, step in steps:
        if step:
            alike[step.words].append(WaitingWork(run.name, step.words, step.address))
    lines = [
        WaitingWork(f"{len(same)} runs", words, reverse("runs")) if len(same) > 1 else same[0]
        for words, same in alike.items()
    ]
    link = WaitingWork("More runs", "See all runs", reverse("runs"))
    more = [link] if len(rows) > MOST_RUNS else []
    return lines + more


def _votes(user: User) -> list[WaitingWork]:
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
        WaitingWork(
            queue.run.name,
            f"Vote on {number_of(numbers.get(queue.pk, 0), queue.noun)}",
            invites_address(queue.run),
        )
        for queue in newest
    ]


def _shares(user: User) -> list[WaitingWork]:
    now = timezone.now()
    ending = Share.objects.filter(
        project__in=projects_where(user, "share"),
        revoked_at=None,
        expires_at__gt=now,
        expires_at__lte=now + SOON,
    )
    soonest = ending.select_related("project", "run").defer("frozen", "run__config")
    return [
        WaitingWork(
            share.run.name if share.run else share.project.name,
            f"The link “{share}” expires on {share.expires_at:%-d %b %Y}",
            share.page,
        )
        for share in soonest.order_by("expires_at")[:MOST_SHARES]
    ]


WAITING: Final = (_stuck_runs, _votes, _shares)


def waiting_for(request: HttpRequest) -> list[WaitingWork]:
    """Return what waits, the most urgent first, and no more than one reads."""
    assert isinstance(request.user, User)
    lines = [*_reviews(request), *(line for find in WAITING for line in find(request.user))]
    return lines[:MOST_WAITING]


# --- runs -----------------------------------------------------------------------------------------


def newest_cards(projects: QuerySet[Project]) -> list[RunCard]:
    """Return the runs that something happened in last, as many as a page is read for."""
    runs = Run.objects.filter(queue__project__in=projects, archived_at=None)
    # Figures follow each vote and decision, so their time is that of the last one.
    computed = Findings.objects.filter(part="", run__in=runs, computed_at__isnull=False)
    active = computed.order_by("-computed_at").values_list("run", flat=True)[:MOST_CARDS]
    newest = runs.order_by("-created_at").values_list("pk", flat=True)[:MOST_CARDS]
    both = runs.filter(pk__in={*active, *newest}).select_related("queue__project", "board")
    computed_at = computed.filter(run=OuterRef("pk")).values("computed_at")
    dated = both.annotate(active_at=Coalesce(computed_at, "created_at")).defer("config")
    card_runs = list(dated.order_by("-active_at", "-created_at")[:MOST_CARDS])
    figures = dict(Findings.objects.filter(part="", run__in=card_runs).values_list("run", "data"))
    return [make_card(run, figures.get(run.pk) or {}) for run in card_runs]


def make_card(run: Run, data: Mapping[str, Any]) -> RunCard:
    best = data.get("claims", {}).get("best")
    if run.state != Run.State.COMPLETE and best is None:
        return RunCard(run, "", None)
    figures = RunFindings.read(data)
    return RunCard(run, data.get("words", ""), plot_of(figures) if figures else None)


def by_project(cards: Sequence[RunCard]) -> list[ProjectCards]:
    """Put cards of one project beside each other, and projects in the order of their first."""
    groups = dict[UUID, ProjectCards]()
    for card in cards:
        project = card.run.queue.project
        groups.setdefault(project.pk, ProjectCards(project, [])).cards.append(card)
    return list(groups.values())
