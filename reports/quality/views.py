"""The pages of projects: their quality scores, live, and the settings that these are made by."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from humanjudge.core.charts.time_graph import Point, QualityGraph, quality_graph
from humanjudge.core.http import Context, HtmxRequest
from humanjudge.core.listing import Column, Listing
from humanjudge.core.tables import DASH, Cell, percent, percent_span
from humanjudge.core.text import duration, number_of
from humanjudge.core.validation import ConfigInvalid, validated
from judge_eval.board.few import require_votes_first_in_project
from judge_eval.runs.access import open_items_with_votes
from judge_eval.runs.run_page import find_run
from judge_eval.stats.estimate import wilson
from reports.models import Quality
from reports.quality.parameters import (
    DEFAULT,
    PRESETS,
    REPUTATIONS,
    SUGGESTED,
    Parameters,
    change,
    parameters_in,
    parameters_of,
    reputations_in,
    settings_of,
)
from reports.quality.projection import points_of, start_of, votes_in_time
from reports.quality.score import SECONDS, half_life, median_gap, microseconds, start_weight
from voting.access.roles import (
    can_make_projects,
    make_project,
    projects_where,
    require,
    require_login,
    require_making,
    user_of,
)
from voting.ballot.tuning import OF_BOTH, OF_TUNED, is_tuned
from voting.models import Entry, Project, Queue
from voting.people.forms import completed
from voting.people.voters import voter_of_user

MOST_SETTINGS: Final = 20
# So many of the last votes say how far apart votes are.
RECENT_VOTES: Final = 1000
OTHER_VALUE: Final = "other"
FLAGS_TO_REVIEW: Final = {
    "two_or_unsafe": "two people's, or one as unsafe",
    "with_reason": "with a reason",
    "all": "all",
    "none": "none",
}
TITLES: Final = {
    Quality.Series.ITEMS: ("Single items", "A pass counts 1, a flag 0, a graded vote its grade."),
    Quality.Series.PAIRS: (
        "Share of pairs with a good answer",
        "A vote for a side or a tie counts 1, both bad 0.",
    ),
}


# --- the page of a project ------------------------------------------------------------------------


@never_cache
@require_safe
def projects(request: HttpRequest) -> HttpResponse:
    require_login(request)
    tuned = Queue.objects.filter(project=OuterRef("pk"), is_tuning=True)
    visible = projects_where(request.user, "see")
    voting = open_items_with_votes(request, *visible.values_list("pk", flat=True))
    voting = voting.filter(queue__project=OuterRef("pk"))
    visible = visible.annotate(is_withheld=Exists(tuned) | Exists(voting))
    visible = visible.prefetch_related("qualities")
    context: Context = {"may_make": can_make_projects(request.user)}
    context |= PROJECTS.context(visible.order_by("-created_at", "pk"), request.GET)
    return render(request, "reports/quality/projects.html", context)


def pass_rate_in_words(counts: Quality | Point, suffix: str = "") -> str:
    """Return what is said first of a project's votes: the pass rate, which has no start value.

    Examples
    --------
    >>> pass_rate_in_words(Quality(votes=1_250, passes=1_000), " on pairs")
    '80\xa0% of the last 1,250 votes on pairs pass'
    >>> pass_rate_in_words(Quality(votes=1, passes=0))
    'The only vote does not pass'
    """
    votes, rate = counts.votes, percent(counts.passes / counts.votes)
    if votes == 1:
        return f"The only vote{suffix} {'passes' if counts.passes else 'does not pass'}"
    return f"{rate} of the last {votes:,} votes{suffix} pass"


def pass_rates(qualities: Iterable[Quality]) -> str:
    """Return what lists say of a project: of pairs nothing, where nearly all have a good output."""
    items = (row for row in qualities if row.series == Quality.Series.ITEMS and row.votes)
    return ", ".join(map(pass_rate_in_words, items))


def _pass_rate(project: Any) -> str:
    return "" if project.is_withheld else pass_rates(project.qualities.all()) or DASH


PROJECTS: Final = Listing[Project](
    "Projects, the newest first",
    [
        Column(
            "Project",
            lambda project: Cell(
                project.name, href=reverse("project-quality", args=[project.pk]), is_head=True
            ),
        ),
        Column("Pass rate", _pass_rate),
        Column(
            "Votes",
            lambda project: f"{sum(quality.votes for quality in project.qualities.all()):,}",
            css="num",
        ),
        Column("Created", lambda project: f"{project.created_at:%-d %b %Y}", css="nowrap"),
    ],
)


@never_cache
@require_safe
def run_quality(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """Lead to the quality of a run's project."""
    project = find_run(run_id).queue.project_id
    require(request, "see", project)
    return redirect("project-quality", project, permanent=True)


@never_cache
@require_safe
def project_quality(request: HtmxRequest, project_id: UUID) -> HttpResponse:
    """The scores and how they came about; htmx asks for them again while people vote."""
    require(request, "see", project_id)
    project = get_object_or_404(Project, pk=project_id)
    require_votes_first_in_project(request, project)
    waiting = settings_of(project).filter(seq__isnull=True).values_list("pk", flat=True).first()
    version = f"{project.head_seq}-{waiting or ''}"
    if request.htmx and request.GET.get("seen") == version:
        return HttpResponse(status=204)
    context = _live_context(project) | {"seen": version}
    if request.htmx:
        return render(request, "reports/quality/_quality.html", context)
    newest = settings_of(project).values_list("payload", flat=True).first()
    parameters = parameters_in(newest) if newest else DEFAULT
    form = QualitySettingsForm(initial=initial_values(parameters), label_suffix="")
    context |= {"form": form, "tab": "quality"}
    return render(request, "reports/quality/quality.html", context)


def _live_context(project: Project) -> Context:
    parameters = parameters_of(project)
    qualities = project.qualities.filter(votes__gt=0).exclude(OF_TUNED).order_by("series")
    figures = [_quality(project, quality, parameters) for quality in qualities]
    entries = list(settings_of(project).select_related("voter")[:MOST_SETTINGS])
    return {
        "project": project,
        "qualities": figures,
        "withheld": OF_BOTH if is_tuned(project.pk) else "",
        "lambda_in_words": lambda_in_words(parameters),
        "half_life": in_words(parameters.half_life),
        "settings": [_setting(entry) for entry in entries],
        "default": parameters_in_words(DEFAULT),
        "initial": percent(parameters.initial_score),
        "spoken": " ".join(f"{row['title']}: {row['words']}." for row in figures),
    }


def score_in_words(
    series: str, last: Point, begins: datetime, half_life: float, graph: QualityGraph | None
) -> Context:
    """Return what stands wherever a score does: here, and on reports."""
    title, about = TITLES[Quality.Series(series)]
    low, high = wilson(last.passes, last.votes) or (0.0, 0.0)
    seconds = max((timezone.now() - last.at).total_seconds(), 0)
    weight = start_weight(begins, last.at, half_life)
    return {
        "series": series,
        "title": title,
        "about": about,
        "score": percent(last.score),
        "start_weight": percent(weight) if weight > 1 / 2 else "",
        "freshness": percent(last.freshness),
        "votes": last.votes,
        "words": pass_rate_in_words(last),
        "pass_rate": percent(last.passes / last.votes),
        "interval": f"{percent_span(low, high)} %",
        "last": {"at": last.at, "seconds": round(seconds), "ago": duration(seconds)},
        "graph": graph,
    }


def _quality(project: Project, quality: Quality, parameters: Parameters) -> Context:
    assert quality.last_vote_at is not None  # there are votes
    figures = (quality.score, quality.freshness, quality.votes, quality.passes)
    last, half_life = Point(quality.last_vote_at, *figures), parameters.half_life
    low, high = wilson(quality.passes, quality.votes) or (0.0, 0.0)
    begins = start_of(project, quality.series)
    half = begins + timedelta(seconds=half_life)
    graph = quality_graph(parameters.initial_score, points_of(quality), half)
    return score_in_words(quality.series, last, begins, half_life, graph) | {
        "exact": {
            "Score": repr(quality.score),
            "Freshness": repr(quality.freshness),
            "Passes": f"{quality.passes:,} of {quality.votes:,}",
            "Pass rate": repr(quality.passes / quality.votes),
            "95 % interval (Wilson)": f"{low!r} to {high!r}",
        },
        "warning": _warning(project, quality, parameters),
    }


def _warning(project: Project, quality: Quality, parameters: Parameters) -> str:
    """Say where a score forgets all that was voted before the next vote comes."""
    times = votes_in_time(project, quality.series).reverse().values_list("at", flat=True)
    gap = median_gap([microseconds(cast_at) for cast_at in times[:RECENT_VOTES]][::-1])
    if gap is None or parameters.half_life >= gap:
        return ""
    return (
        f"The half-life of {in_words(parameters.half_life)} is shorter than the median time "
        f"between votes, {in_words(gap)}: this score is little more than the last vote."
    )


def in_words(seconds: float) -> str:
    """Return a length of time in the largest unit that it has two of, to two figures.

    Examples
    --------
    >>> [in_words(each) for each in (69.3, 0.069, 7_200, 598_872, 5_988_720)]
    ['69 s', '0.069 s', '2 h', '6.9 days', '69 days']
    """
    sizes = (("days", 86_400), ("h", 3_600), ("min", 60))
    unit, size = next((row for row in sizes if seconds >= 2 * row[1]), ("s", 1))
    value = seconds / size
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.2g} {unit}"


def lambda_in_words(parameters: Parameters) -> str:
    return f"{parameters.decay_rate:g} per {parameters.decay_unit}"


# --- settings -------------------------------------------------------------------------------------


def parameters_in_words(parameters: Parameters) -> dict[str, str]:
    """Return parameters in words, by the titles that pages have for them."""
    window = parameters.batch_window
    return {
        "Lambda": lambda_in_words(parameters),
        "Half-life": in_words(parameters.half_life),
        "Initial score": percent(parameters.initial_score),
        "Batch window": in_words(window) if window else "equal times only",
        "Critical variance": f"{parameters.critical_variance:g}",
        "Minimum votes": str(parameters.min_votes),
        "Flags to review": FLAGS_TO_REVIEW[parameters.flags_to_review],
    }


def _setting(entry: Entry) -> Context:
    payload, note = entry.payload or {}, ""
    if REPUTATIONS in payload:
        note = f"with today's reputations of {number_of(len(reputations_in(payload)), 'voter')}"
    return {"entry": entry, "values": parameters_in_words(parameters_in(payload)), "note": note}


def _presets() -> list[tuple[str, str]]:
    offered = []
    for rate, unit, remembers, remark in PRESETS:
        half = in_words(half_life(rate, unit))
        words = f"{remembers}: {rate:g} per {unit}, half-life {half}{remark}"
        offered.append((f"{rate:g}/{unit}", words))
    return [*offered, (OTHER_VALUE, "another value:")]


class QualitySettingsForm(forms.Form):
    """What a project's quality score is made by; the values are checked as those of the API are."""

    parameters = DEFAULT

    decay = forms.ChoiceField(
        label="The score remembers",
        choices=_presets,
        widget=forms.RadioSelect(attrs={"class": "one-per-line"}),
    )
    decay_rate = forms.FloatField(label="Another lambda", required=False)
    decay_unit = forms.ChoiceField(
        label="per", choices=[(unit, unit) for unit in SECONDS], required=False
    )
    initial_score = forms.FloatField(help_text="From 0 to 1: where the score begins.")
    batch_window = forms.FloatField(
        label="Batch window, in seconds",
        help_text="Votes within this time form one batch. 0: only simultaneous votes do.",
    )
    critical_variance = forms.FloatField(
        help_text="Above 0 and below 0.25. Items with a larger variance of votes are ambiguous."
    )
    min_votes = forms.IntegerField(
        label="Minimum votes", help_text="With fewer votes no item is ambiguous."
    )
    flags_to_review = forms.ChoiceField(
        choices=FLAGS_TO_REVIEW.items(),
        help_text="Which flags put an item on the review list. A category or comment is a reason.",
    )
    apply_reputations = forms.BooleanField(
        label="Apply today's reputations to earlier votes, too", required=False
    )

    def clean(self) -> None:
        cleaned = self.cleaned_data
        values = {name: cleaned[name] for name in Parameters.model_fields if name in cleaned}
        choice = cleaned.get("decay", "0.01/second")
        if choice != OTHER_VALUE:
            rate, _, unit = choice.partition("/")
            values |= {"decay_rate": float(rate), "decay_unit": unit}
        elif values.get("decay_rate", 0) is None:
            self.add_error("decay_rate", "Enter another lambda, or choose one of those above.")
            values.pop("decay_rate")
        try:
            self.parameters = validated(Parameters, values)
        except ConfigInvalid as invalid:
            for error in invalid.errors:
                self.add_error(error.path, f"{error.message[:1].upper()}{error.message[1:]}.")


class NewProjectForm(QualitySettingsForm):
    apply_reputations = None  # type: ignore[assignment]  # nobody has voted yet
    name = forms.CharField(max_length=200)
    field_order = ["name"]

    def __init__(self, data: QueryDict | None, **kwargs: Any) -> None:
        super().__init__(data and completed(data, initial_values(SUGGESTED)), **kwargs)


def initial_values(parameters: Parameters) -> Context:
    values = {n: f"{v:g}" if v in (0, 1) else v for n, v in parameters}
    rate, unit = parameters.decay_rate, parameters.decay_unit
    if (rate, unit) in {(preset.rate, preset.unit) for preset in PRESETS}:
        return values | {"decay": f"{rate:g}/{unit}", "decay_rate": None}
    return values | {"decay": OTHER_VALUE}


@require_POST
def change_settings(request: HttpRequest, project_id: UUID) -> HttpResponse:
    require(request, "manage", project_id)
    project = get_object_or_404(Project, pk=project_id)
    form = QualitySettingsForm(request.POST, label_suffix="")
    if form.is_valid():
        _change(request, project, form)
        return redirect("project-quality", project.pk)
    context = _live_context(project) | {"form": form, "seen": "none"}
    return render(request, "reports/quality/quality.html", context, status=422)


def _change(request: HttpRequest, project: Project, form: QualitySettingsForm) -> None:
    restate = form.cleaned_data.get("apply_reputations", False)
    actor = voter_of_user(project, user_of(request))
    change(project, dict(form.parameters), actor, apply_reputations=restate)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def new_project(request: HttpRequest) -> HttpResponse:
    """The form of a new project: a name is enough."""
    require_login(request)
    require_making(request.user)
    form = NewProjectForm(request.POST or None, initial=initial_values(SUGGESTED), label_suffix="")
    if request.method == "POST" and form.is_valid():
        with transaction.atomic():
            project = make_project(form.cleaned_data["name"], user_of(request))
            _change(request, project, form)
        return redirect("project-quality", project.pk)
    status = 422 if form.errors else 200
    return render(request, "reports/quality/new_project.html", {"form": form}, status=status)
