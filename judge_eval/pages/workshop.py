"""The workshop of a run: variants of a judge, tuned on one half of its votes, told by the other."""

import difflib
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from humanjudge.http import Context, HtmxRequest
from humanjudge.lib.tables import percent
from humanjudge.lib.text import number_of
from humanjudge.lib.validation import ConfigInvalid, validated
from judge_eval.access import hidden_from
from judge_eval.config.run_config import MOST_REPEATS, JoiningJudges, RunConfig, parse
from judge_eval.findings.columns import share_cell
from judge_eval.findings.few import keep_few_from
from judge_eval.findings.workshop import (
    Disagreement,
    HeldOut,
    VariantFigure,
    disagreements,
    look_at_held_out,
    tuning_figures,
)
from judge_eval.models import Judge, Run
from judge_eval.pages.run_form import provider_names
from judge_eval.prompts.judge import CURRENT, PLACEHOLDERS, opening_of
from judge_eval.runs import providers, variants
from judge_eval.runs.drift import floating_models
from judge_eval.runs.lifecycle import LifecycleRefused
from judge_eval.runs.requests import judge_question
from judge_eval.web import run_action, run_page, shortened
from voting import tuning
from voting.access import user_of
from voting.models import Voter
from voting.voters import voter_of_user

_LEFT_OPEN = "Empty: as other judges."
_STEPS: dict[variants.Step, str] = {
    "first": f"{variants.FIRST_ITEMS} items of the tuning half",
    "tuning": "the tuning half",
    "all": "all items",
}


class VariantForm(forms.Form):
    """A variant: a label, whom it asks, and how."""

    id = forms.CharField(label="Label", max_length=200)
    model = forms.CharField(max_length=200, help_text="It may stand here more than once.")
    provider = forms.ChoiceField(required=False)
    instructions = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text="What the judge is told first. Filled in: "
        + ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        + ". What encloses the outputs and the form of the reply follow and stay as they are.",
    )
    temperature = forms.FloatField(required=False, min_value=0, max_value=2, help_text=_LEFT_OPEN)
    no_temperature = forms.BooleanField(required=False, label="Send no temperature")
    reasoning_effort = forms.CharField(required=False, max_length=20, help_text=_LEFT_OPEN)
    max_tokens = forms.IntegerField(required=False, min_value=1, help_text=_LEFT_OPEN)
    samples = forms.IntegerField(required=False, min_value=1, max_value=25, help_text=_LEFT_OPEN)
    repeats = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_REPEATS,
        help_text="Above 1 it is asked the same again, to see whether it agrees with itself.",
    )
    joining: JoiningJudges | None = None

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = provider_names(providers.usable_in(run.queue.project_id))
        provider = self.fields["provider"]
        assert isinstance(provider, forms.ChoiceField)  # as declared above
        provider.choices = [(name, name) for name in names]

    def clean(self) -> None:
        got = {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
        spec: Context = {n: v for n, v in got.items() if n not in ("provider", "no_temperature")}
        if got.get("no_temperature"):
            spec["temperature"] = None
        try:
            data = {"judges": [spec], **{n: got[n] for n in ("provider",) if n in got}}
            self.joining = validated(JoiningJudges, data)
        except ConfigInvalid as invalid:
            self.add_error(None, shortened(invalid.errors))


@run_page("see calls")
def run_workshop(request: HtmxRequest, run: Run) -> HttpResponse:
    if run.queue.held_out_from is not None:
        keep_few_from(request, run)
    return _page(request, run)


def _page(
    request: HttpRequest,
    run: Run,
    form: VariantForm | None = None,
    held: HeldOut | None = None,
    status: int = 200,
) -> HttpResponse:
    is_split = run.queue.held_out_from is not None
    figures = tuning_figures(run) if is_split else []
    usual = opening_of(CURRENT, judge_question(run.queue))
    config = parse(run.config) if run.config else None
    rows = [_row(run, config, figure, usual) for figure in figures if not figure.judge.is_baseline]
    chosen = request.GET.get("judge", "")
    judge = next((row["judge"] for row in rows if str(row["judge"].pk) == chosen), None)
    first = next((row["judge"] for row in rows if row["asked"]), None)
    judge = judge or first
    looks = len(tuning.looks_at(run.queue)) if is_split else 0
    context: Context = {
        "run": run,
        "tab": "run",
        "is_split": is_split,
        "is_tuning": run.queue.is_tuning,
        "rows": rows,
        "floor": [_floor(figure) for figure in figures if figure.judge.is_baseline],
        "looks": f"Held-out looked at {number_of(looks, 'time')}",
        "held": held and _held(held),
        "chosen": judge,
        "disagreements": _visible(request, run, disagreements(run, judge)) if judge else [],
        "form": form or VariantForm(run, initial={"instructions": usual, "repeats": 1}),
    }
    floating = floating_models(run)
    for row in rows:
        row["note"] = floating.get(row["judge"].pk, "")
    return render(request, "judge_eval/workshop.html", context, status=status)


def _visible(request: HttpRequest, run: Run, found: Sequence[Disagreement]) -> list[Disagreement]:
    """Leave out what somebody has to vote on first."""
    closed = hidden_from(request, run.queue.project, [each.item.pk for each in found])
    return [each for each in found if each.item.pk not in closed]


def _row(run: Run, config: RunConfig | None, figure: VariantFigure, usual: str) -> Context:
    judge, repeats = figure.judge, figure.repeats
    step = variants.next_step(run, judge) if run.queue.is_tuning and judge.is_tuned else None
    spec = config.spec_of(judge.name) if config else None
    cost = "cost not known" if step and step.usd is None else step and f"at most ${step.usd:.4f}"
    words = step and f"{number_of(step.items, 'item')}, {number_of(step.calls, 'call')}, {cost}"
    return {
        "judge": judge,
        "figure": share_cell(figure.overall, "votes", "not asked yet"),
        "asked": figure.overall.n,
        "itself": percent(repeats.share.value) if repeats.share.value is not None else "",
        "itself_why": repeats.share.why or "",
        "flips": [n + 1 for n in repeats.flips[: variants.FIRST_ITEMS]],
        "step": step,
        "step_words": step and f"Ask about {_STEPS[step.step]} ({words})",
        "diff": _diff(usual, spec.instructions) if spec and spec.instructions else [],
    }


def _floor(figure: VariantFigure) -> Context:
    return {"judge": figure.judge, "figure": share_cell(figure.overall, "votes", "no votes yet")}


def _held(held: HeldOut) -> Context:
    gap = "" if held.gap is None else f"{held.gap:+.1f} points above it on the tuning half"
    return {
        "judge": held.judge,
        "figure": share_cell(held.overall, "votes", "it was not asked about this half"),
        "gap": gap.replace("+-", "-"),
    }


def _diff(usual: str, own: str) -> list[str]:
    """Return the lines by which instructions differ from the usual ones."""
    before, after = usual.splitlines(), own.splitlines()
    return [line for line in difflib.ndiff(before, after) if not line.startswith("?")]


# --- what can be done ----------------------------------------------------------------------------


@run_action("run")
def open_tuning(request: HttpRequest, run: Run) -> HttpResponse:
    variants.open_for_tuning(run, _by(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def end_tuning(request: HttpRequest, run: Run) -> HttpResponse:
    variants.end(run, _by(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def add_variant(request: HttpRequest, run: Run) -> HttpResponse:
    form = VariantForm(run, request.POST)
    if form.is_valid() and form.joining is not None:
        try:
            variants.add(run, form.joining)
            return redirect("run-workshop", run.pk)
        except ConfigInvalid as invalid:
            form.add_error(None, shortened(invalid.errors))
    return _page(request, run, form, status=422)


@run_action("run")
def ask_variant(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    judge = _judge(run, judge_id)
    if step := variants.next_step(run, judge):
        variants.ask(run, judge, step.step)
    return redirect("run-progress", run.pk)


@run_action("run")
def look(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    """Show a variant's figure on the half held out; that is counted, so it takes a button."""
    judge = _judge(run, judge_id)
    return _page(request, run, held=look_at_held_out(run, judge, _by(request, run)))


def _judge(run: Run, judge_id: UUID) -> Judge:
    judge = get_object_or_404(run.judges, pk=judge_id)
    if not judge.is_tuned:
        raise LifecycleRefused(f"{judge.name} joined before the tuning: it is no variant.")
    return judge


def _by(request: HttpRequest, run: Run) -> Voter:
    return voter_of_user(run.queue.project, user_of(request))
