"""What every page of a run shares: who may open it, and its header with tabs and the next step."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from django import template
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from humanjudge.core.citation import Citation, version
from humanjudge.core.http import Context, HtmxRequest, problem
from humanjudge.core.tables import DASH
from humanjudge.core.text import listed, number_of
from judge_eval.board.few import VotesFirst
from judge_eval.models import Findings, Judge, Run
from judge_eval.runs import lifecycle
from judge_eval.runs.access import refusal
from judge_eval.runs.queries import counts_as_judge, silent_models
from voting.access.roles import Action, require
from voting.ballot.queries import queue_counts

register = template.Library()
# Of a field for lines of code or configuration.
LINES: Final = {"spellcheck": "false", "autocomplete": "off", "class": "lines"}
MOST_ERRORS: Final = 20
View: TypeAlias = Callable[..., HttpResponse]


def find_run(run_id: UUID) -> Run:
    runs = Run.objects.select_related("queue__project", "queue__rubric", "board")
    return get_object_or_404(runs, pk=run_id)


def invites_address(run: Run) -> str:
    return reverse("run-people", args=[run.pk], fragment="invites")


def lead_to(request: HtmxRequest, page: str, run: Run) -> HttpResponse:
    """Send a browser to another page of a run, also one that asks for a part of this one."""
    address = reverse(page, args=[run.pk])
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def run_page(action: Action) -> Callable[[View], View]:
    """Make a view a page of a run for those who may see it; it is read and never kept."""

    def decorated(view: View) -> View:
        @never_cache
        @require_safe
        @wraps(view)
        def page(request: HtmxRequest, /, run_id: UUID, **options: object) -> HttpResponse:
            run = find_run(run_id)
            try:
                return refusal(request, action, run) or view(request, run, **options)
            except VotesFirst as too_early:
                if request.htmx:
                    raise
                context = {"run": run, "tab": "", "why": str(too_early)}
                return render(request, "judge_eval/runs/votes_first.html", context, status=403)

        return page

    return decorated


def run_action(action: Action) -> Callable[[View], View]:
    """Make a view something that who may can do with a run, or is told why not now."""

    def decorated(view: View) -> View:
        @require_POST
        @wraps(view)
        def act(request: HttpRequest, run_id: UUID, **options: object) -> HttpResponse:
            run = find_run(run_id)
            require(request, action, run.queue.project_id)
            try:
                return view(request, run, **options)
            except lifecycle.LifecycleRefused as refused:
                return not_now(request, run, refused)

        return act

    return decorated


def not_now(request: HttpRequest, run: Run, refused: lifecycle.LifecycleRefused) -> HttpResponse:
    back = ("Back to the run", reverse("run-progress", args=[run.pk]))
    return problem(request, 409, str(refused), title="That cannot be done now", action=back)


def citation_of(request: HttpRequest, run: Run) -> Citation:
    project, address = run.queue.project, reverse("run", args=[run.pk])
    absolute_address = request.build_absolute_uri(address)
    return Citation(
        run.name, absolute_address, timezone.now(), project.head_seq, project.ledger_head, version()
    )


# --- the header ----------------------------------------------------------------------------------

# What a run waits for, and where that is done.
NEXT: dict[str, tuple[str, str]] = {
    Run.State.DRAFT: ("Check the draft and start it", "run-draft"),
    Run.State.STOPPED: ("Resume it, or leave it stopped", "run-progress"),
    Run.State.FAILED: ("See what failed", "run-progress"),
}


class HeaderStep(NamedTuple):
    words: str
    address: str


class Tab(NamedTuple):
    """A page of a run, by the key that its view gives as `tab`."""

    key: str
    title: str
    address: str


# Of a part of a tab that has a page of its own: the tab, its key, title and address, what one must
# be allowed to do, and whether a shared run shows it to all. Apps above add theirs.
Fold: TypeAlias = tuple[str, str, str, str, str, bool]
FOLDS: Final[tuple[Fold, ...]] = (
    ("board", "alt-test", "Could a judge stand in for a person?", "run-alt-test", "see", True),
)


class RunHeader(NamedTuple):
    tabs: list[Tab]
    about: str
    progress: str
    done: int
    total: int
    # Only for who may do it; where it is done too, so that the head is the same on all pages.
    step: HeaderStep | None


@register.simple_tag(takes_context=True)
def run_header(context: Context) -> RunHeader:
    """Return the header of the run whose page this is; costing the same for any size."""
    run, allowed = context["run"], context["may"]
    done, total, preparing = context.get("counts") or queue_counts(run.queue)
    step = _step(run, allowed, has_pending=done < total)
    return RunHeader(
        _tabs(run, allowed),
        about=_about(run),
        progress=_progress(run, done, total, preparing),
        done=done,
        total=total,
        step=step,
    )


def _tabs(run: Run, allowed: Mapping[str, bool]) -> list[Tab]:
    reads = allowed["see"] or run.is_shared
    pages = (
        ("board", "Board", "run", True),
        ("pairs", f"{run.queue.noun.capitalize()}s", "run-pairs", reads),
        ("people", "People", "run-people", allowed["see_people"]),
        ("models", "Models", "run-models", reads),
        ("run", "Run", "run-progress", allowed["see_calls"]),
        ("data", "Data", "run-data", allowed["export"]),
    )
    return [Tab(key, title, reverse(page, args=[run.pk])) for key, title, page, may in pages if may]


@register.simple_tag(takes_context=True)
def run_folds(context: Context) -> list[Tab]:
    """Return the further parts of the tab whose page this is, of those that somebody may see."""
    run, allowed = context["run"], context["may"]
    return [
        Tab(key, title, reverse(page, args=[run.pk]))
        for tab, key, title, page, action, is_public in (*FOLDS, *context["run_folds"])
        if tab == context["tab"] and run.state != Run.State.DRAFT
        if allowed[action.replace(" ", "_")] or (is_public and run.is_shared)
    ]


def _about(run: Run) -> str:
    counts = run.judges.filter(counts_as_judge()).aggregate(
        every=Count("pk"),
        baselines=Count("pk", filter=Q(provider=Judge.BASELINE)),
        examples=Count("pk", filter=Q(provider=Judge.IMPORTED, model=Judge.EXAMPLE)),
    )
    examples, baselines = counts["examples"], counts["baselines"]
    judges = counts["every"] - examples - baselines
    numbers = {"judge": judges, "example judge": examples, "baseline": baselines}
    queue, question = run.queue, run.queue.get_kind_display()
    if queue.kind == "rating" and queue.ballot:
        question += f" from {queue.ballot[0]} to {queue.ballot[-1]}"
    parts = [number_of(number, thing) for thing, number in numbers.items() if number]
    return f"{question[0].upper()}{question[1:]} · {listed(parts) if parts else 'no judges'}"


def _progress(run: Run, done: int, total: int, preparing: int) -> str:
    if not total:
        return f"No {run.queue.noun}s yet"
    have = "has" if total == 1 else "have"
    words = f"{done:,} of {number_of(total, run.queue.noun)} {have} enough votes"
    return f"{words}, {preparing:,} being prepared" if preparing else words


def _step(run: Run, allowed: Mapping[str, bool], *, has_pending: bool) -> HeaderStep | None:
    is_open = run.state in (*Run.AT_WORK, Run.State.VOTING)
    takes_votes = is_open and run.queue.is_open and not run.queue.is_simulated
    invite = allowed["invite"] and takes_votes and has_pending
    if allowed["run"]:
        # A model that answers nothing keeps nobody from voting.
        silent = silent_models([run.pk]).get(run.pk, []) if is_open and not invite else []
        if stuck := unstuck(run, silent):
            return stuck
        if run.state == Run.State.VOTING and _has_best(run):
            return _step_on_page(run, "Stop voting: the best judge is known", "run-progress")
    return HeaderStep("Invite people", invites_address(run)) if invite else None


def unstuck(run: Run, silent: Collection[str]) -> HeaderStep | None:
    """Return what has to be done before a run gets on, given its models that never answer."""
    if silent:
        models = listed(dict.fromkeys(silent))
        words = f"Open a provider: every call to {models} failed"
        return HeaderStep(words, reverse("providers"))
    return _step_on_page(run, *NEXT[run.state]) if run.state in NEXT else None


def _step_on_page(run: Run, words: str, page: str) -> HeaderStep:
    return HeaderStep(words, reverse(page, args=[run.pk]))


def _has_best(run: Run) -> bool:
    claims = Findings.objects.filter(run=run, part="", data__claims__best__isnull=False)
    best = claims.values_list("data__claims__best", flat=True).first()
    return best is not None


# --- texts of several pages ----------------------------------------------------------------------


def scores_in_words(a: float | None, b: float | None) -> str:
    """Return the scores of two outputs, a dash for a missing one; nothing where both are."""
    return "" if a is None and b is None else " : ".join(map(score_text, (a, b)))


def score_text(score: float | None) -> str:
    return DASH if score is None else str(score)


def shortened(errors: Sequence[object]) -> list[str]:
    """Return the first mistakes of a form as texts, and how many more there are."""
    more = len(errors) - MOST_ERRORS
    return [*map(str, errors[:MOST_ERRORS]), *([f"And {more:,} more."] if more > 0 else [])]
