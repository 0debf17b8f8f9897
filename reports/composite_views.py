"""The composite of a run: its components first, then what they come to, and whether it holds."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from humanjudge.http import Problem
from judge_eval.access import refuse_board, voter_of_run
from judge_eval.analysis.slices import Slice, SliceInvalid
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.models import Run
from judge_eval.pages.config_form import LINES, shortened
from judge_eval.pages.run_access import pairs_to_vote_on
from judge_eval.pages.run_views import find_run
from reports import composite_shown as shown
from reports.composite_config import CompositeConfig
from reports.composite_items import items_of_run
from reports.composite_services import as_json, example, read_config, store, versions_of
from reports.parts import parts_of
from voting.services import record_exposure
from voting.voters import voter_of_user

ROWS_PER_PAGE = 50
MOST_VERSIONS = 4
LONGEST_CONFIG = 50_000


class CompositeForm(forms.Form):
    """The whole config of a composite as JSON."""

    config = forms.CharField(
        label="Config", max_length=LONGEST_CONFIG, widget=forms.Textarea(attrs=LINES | {"rows": 20})
    )
    parsed: CompositeConfig | None = None

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **(kwargs | {"label_suffix": ""}))
        self.run = run

    def clean_config(self) -> str:
        text = str(self.cleaned_data["config"])
        try:
            self.parsed = read_config(self.run, text)
        except ConfigInvalid as invalid:
            raise forms.ValidationError(shortened([str(each) for each in invalid.errors])) from None
        return text


@never_cache
@require_safe
def run_composite(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    return refuse_board(request, run) or _page(request, run)


@require_POST
@login_required
def save_composite(request: HttpRequest, run_id: UUID) -> HttpResponse:
    run = find_run(run_id)
    form = CompositeForm(run, request.POST)
    if form.is_valid() and form.parsed is not None:
        store(run, form.parsed)
        return redirect("run-composite", run.pk)
    return _page(request, run, form, status=422)


def _page(
    request: HttpRequest, run: Run, form: CompositeForm | None = None, status: int = 200
) -> HttpResponse:
    versions = versions_of(run, MOST_VERSIONS)
    context: dict[str, Any] = {"run": run, "tab": "composite", "form": form}
    if versions:
        context |= _composite(request, run, versions)
    if form is None and request.user.is_authenticated:
        config = versions[0][1] if versions else example(run)
        context["form"] = CompositeForm(run, initial={"config": as_json(config)})
    return render(request, "reports/composite.html", context, status=status)


def _composite(request: HttpRequest, run: Run, versions: list[Any]) -> dict[str, Any]:
    definition, config = versions[0]
    part = _part(request)
    items = items_of_run(run, [each for _, each in versions], part)
    ranked = shown.ranked(items, config)
    page = Paginator(ranked, ROWS_PER_PAGE).get_page(request.GET.get("page"))
    pairs = [pair for row in page for pair in items.items[row.item].pairs]
    closed = pairs_to_vote_on(request, run, pairs)
    if any(source.judge for source in config.sources.values()):
        _remember_seen(request, run, set(pairs) - closed)
    return {
        "definition": definition,
        "config": config,
        "weights": shown.shown_weights(config),
        "page": page,
        "outputs": _outputs(page.paginator.count, part),
        "rows": shown.shown_rows(list(page), items, closed),
        "drift": shown.shown_drift(versions, items, ranked),
        "parts": parts_of(run, str(part)),
        "part": part,
    }


def _outputs(count: int, part: Slice) -> str:
    outputs = f"{count:,} {'output' if count == 1 else 'outputs'}"
    return f"{outputs}: {part.in_words}" if part.kind else outputs


def _part(request: HttpRequest) -> Slice:
    try:
        return Slice.parse(request.GET.get("part", ""))
    except SliceInvalid as invalid:
        raise Problem(400, f"{invalid}.") from invalid


def _remember_seen(request: HttpRequest, run: Run, pairs: Collection[UUID]) -> None:
    """A judge's scores tell what it said: a later vote on these pairs is not blind."""
    voter = voter_of_run(request, run)
    if voter is None and request.user.is_authenticated:
        voter = voter_of_user(run.queue.project, request.user)
    if voter is not None:
        record_exposure(voter.pk, sorted(pairs), timezone.now())
