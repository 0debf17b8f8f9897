"""The workshop of a run: variants of a judge, tuned on one half of its votes, told by the other."""

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse

from humanjudge.http import Context, HtmxRequest, Problem
from humanjudge.lib.tables import Cell, percent
from humanjudge.lib.text import listed, number_of
from humanjudge.lib.validation import ConfigInvalid, validated
from judge_eval.config.run_config import (
    MOST_EXAMPLES,
    MOST_REPEATS,
    JoiningJudges,
    JudgeSpec,
    parse,
)
from judge_eval.findings.columns import share_cell
from judge_eval.findings.few import require_votes_first
from judge_eval.findings.workshop import (
    HeldOut,
    VariantFigure,
    look_at_held_out,
    tuning_figures,
)
from judge_eval.models import Judge, Run
from judge_eval.pages.run_form import provider_names
from judge_eval.prompts.judge import CURRENT, PLACEHOLDERS, opening_of
from judge_eval.runs import providers, variants
from judge_eval.runs.disagreements import (
    Tag,
    tag_counts,
    tag_disagreement,
    visible_disagreements,
    with_verdicts,
)
from judge_eval.runs.drift import floating_models
from judge_eval.runs.lifecycle import LifecycleRefused, has_outputs
from judge_eval.runs.requests import judge_question
from judge_eval.runs.suggestion import latest, suggest
from judge_eval.web import run_action, run_page, shortened
from voting import tuning
from voting.access import user_of
from voting.kinds import kind_of
from voting.models import Voter
from voting.voters import voter_of_user

# Of a new variant, what is always stated; the rest is folded.
_FIRST = ("id", "model", "provider", "instructions")
_LEFT_OPEN = "Empty: as other judges."
_ORDERS = {
    "": "as other judges",
    "both": "both",
    "random": "one, drawn for each pair",
    "AB": "always as stored",
    "BA": "always swapped",
}
_ELEMENTS = {"-": "del", "+": "ins", " ": "span"}
_STEPS: dict[variants.Step, str] = {
    "first": f"{variants.FIRST_ITEMS} items of the tuning half",
    "tuning": "the tuning half",
    "all": "all items",
}


class VariantForm(forms.Form):
    """A variant: a label, whom it asks, and how."""

    id = forms.CharField(label="Label", max_length=200)
    model = forms.CharField(max_length=200)
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
    orders = forms.ChoiceField(required=False, label="Orders of a pair", choices=_ORDERS.items())
    draw_examples = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_EXAMPLES,
        label="Examples to draw",
        help_text="So many voted items of the tuning half are shown to it with what most people "
        "say, beside the disagreements that you choose above.",
    )
    joining: JoiningJudges | None = None

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_providers(self, run)
        if "orders" not in kind_of(run.queue).figures:
            del self.fields["orders"]

    @property
    def further(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in _FIRST]

    @property
    def examples(self) -> list[str]:
        """Disagreements that were chosen: their boxes stand among these, not in the form."""
        return self.data.getlist("examples") if isinstance(self.data, QueryDict) else []

    def clean(self) -> None:
        given = {name: each for name, each in self.cleaned_data.items() if each not in ("", None)}
        data: Context = {n: given.pop(n) for n in ("provider", "draw_examples") if n in given}
        spec: Context = given | {"examples": self.examples}
        if spec.pop("no_temperature", False):
            spec["temperature"] = None
        try:
            self.joining = validated(JoiningJudges, data | {"judges": [spec]})
        except ConfigInvalid as invalid:
            self.add_error(None, shortened(invalid.errors))


class SuggestForm(forms.Form):
    """Whom to ask for another wording."""

    prefix = "suggest"
    provider = forms.ChoiceField()
    model = forms.CharField(max_length=200)

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_providers(self, run)


class TagForm(forms.Form):
    item_id = forms.UUIDField()
    tag = forms.ChoiceField(choices=Tag.choices)


def _offer_providers(form: forms.Form, run: Run) -> None:
    provider = form.fields["provider"]
    assert isinstance(provider, forms.ChoiceField)  # as declared above
    names = provider_names(providers.usable_in(run.queue.project_id))
    provider.choices = [(name, name) for name in names]


@run_page("see calls")
def run_workshop(request: HtmxRequest, run: Run) -> HttpResponse:
    if run.queue.held_out_from is not None:
        require_votes_first(request, run)
    if request.htmx and "suggestion" in request.GET:
        context = {"run": run, **_suggested(run, _wordings(run))}
        return render(request, "judge_eval/_suggestion.html", context)
    return _page(request, run)


def _page(
    request: HttpRequest,
    run: Run,
    form: VariantForm | None = None,
    held: HeldOut | None = None,
    status: int = 200,
) -> HttpResponse:
    is_split = run.queue.held_out_from is not None
    figures, behind = tuning_figures(run)
    wordings = _wordings(run)
    judges = [figure for figure in figures if not figure.judge.is_baseline]
    # None is asked anything here once the tuning has ended.
    to_ask = [each.judge for each in judges if run.queue.is_tuning]
    steps = variants.next_steps(run, to_ask)
    floating = floating_models(run)
    answering = set(with_verdicts(run).values_list("pk", flat=True))
    rows = [
        _row(run, each, steps, wordings)
        | {"note": floating.get(each.judge.pk, ""), "asked": each.judge.pk in answering}
        for each in judges
    ]
    chosen = (request.GET or request.POST).get("judge", "")
    judge = next((row["judge"] for row in rows if str(row["judge"].pk) == chosen), None)
    judge = judge or next((row["judge"] for row in rows if row["asked"]), None)
    looks = len(tuning.looks_at(run.queue)) if is_split else 0
    sides = [request.GET.get(side, "") for side in ("left", "right")]
    compared = [wordings[side].text for side in sides if side in wordings]
    context: Context = {
        "run": run,
        "tab": "run",
        "has_outputs": has_outputs(run.queue),
        "is_split": is_split,
        "is_tuning": run.queue.is_tuning,
        "rows": rows,
        "behind": behind,
        "floor": [_floor(figure) for figure in figures if figure.judge.is_baseline],
        "looks": f"Held-out looked at {number_of(looks, 'time')}",
        "held": held and _held(held),
        "chosen": judge,
        "disagreements": visible_disagreements(request, judge) if judge else [],
        "tags": Tag.choices,
        "tag_counts": tag_counts(run),
        "wordings": wordings,
        "sides": [("left", "From", sides[0]), ("right", "to", sides[1])],
        "diff": _diff(*compared) if "right" in request.GET and len(compared) == 2 else [],
        "suggest": SuggestForm(run),
        **_suggested(run, wordings),
    }
    context["form"] = form or VariantForm(run, initial=_initial(request, context))
    return render(request, "judge_eval/workshop.html", context, status=status)


def _initial(request: HttpRequest, context: Context) -> Context:
    """Return what stands in the form of a new variant: the usual wording, or the suggested one."""
    suggestion = context["suggestion"]
    if suggestion and suggestion.text and "draft" in request.GET:
        judge = suggestion.judge
        about = {"model": judge.model, "provider": judge.provider}
        return about | {"instructions": suggestion.text, "repeats": 1}
    return {"instructions": context["wordings"][""].text, "repeats": 1}


class Wording(NamedTuple):
    name: str
    text: str
    examples: int = 0


def _wordings(run: Run) -> dict[str, Wording]:
    """Return the instructions of a run's judges by their numbers; the usual ones by none."""
    usual = opening_of(CURRENT, judge_question(run.queue))
    config = parse(run.config) if run.config else None
    wordings = {"": Wording("the usual wording", usual)}
    for judge in run.judges.exclude(provider=Judge.BASELINE).order_by("position"):
        spec = (config and config.spec_of(judge.name)) or JudgeSpec(id=judge.name)
        about = (judge.name, spec.instructions or usual, len(spec.examples))
        wordings[str(judge.pk)] = Wording(*about)
    return wordings


def _diff(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of two wordings behind their signs, each with the element that shows it."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [(_ELEMENTS[line[0]], line) for line in lines if line[0] in _ELEMENTS]


def _suggested(run: Run, wordings: Mapping[str, Wording]) -> Context:
    suggestion = latest(run)
    diff = []
    if suggestion and suggestion.text:
        diff = _diff(wordings[str(suggestion.judge.pk)].text, suggestion.text)
    return {"suggestion": suggestion, "suggested_diff": diff}


def _row(
    run: Run,
    figure: VariantFigure,
    steps: Mapping[UUID, variants.NextStep],
    wordings: Mapping[str, Wording],
) -> Context:
    judge, itself = figure.judge, figure.itself
    judge.run = run
    step = steps.get(judge.pk)
    return {
        "judge": judge,
        "examples": wordings[str(judge.pk)].examples,
        "figure": _tuning_cell(figure, "not asked yet"),
        "itself": percent(itself.value) if itself.value is not None else "",
        "itself_why": (itself.n and itself.why) or "",
        "flips": [n + 1 for n in figure.flips[: variants.FIRST_ITEMS]],
        "step": _in_words(step) if step else "",
    }


def _in_words(step: variants.NextStep) -> str:
    cost = "cost not known" if step.usd is None else f"at most ${step.usd:.4f}"
    what = f"{number_of(step.items, 'item')}, {number_of(step.calls, 'call')}, {cost}"
    return f"Ask about {_STEPS[step.step]} ({what})"


def _floor(figure: VariantFigure) -> Context:
    return {"judge": figure.judge, "figure": _tuning_cell(figure, "no votes yet")}


def _tuning_cell(figure: VariantFigure, nothing: str) -> Cell:
    return replace(share_cell(figure.overall, "votes", nothing), label="Tuning half")


def _held(held: HeldOut) -> Context:
    gap = held.gap or 0
    than = f"{abs(gap):.1f} points {'less' if gap >= 0 else 'more'} than on the tuning half"
    return {
        "judge": held.judge,
        "figure": share_cell(held.overall, "votes", "it was not asked about this half"),
        "gap": "" if held.gap is None else than,
    }


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


@run_action("run")
def tag(request: HtmxRequest, run: Run, judge_id: UUID) -> HttpResponse:
    form, judge = TagForm(request.POST), _model(run, judge_id)
    if not form.is_valid():
        raise Problem(422, f"Name an item, and a tag: {listed(Tag.values)}.")
    by = _by(request, run)
    each = tag_disagreement(request, judge, **form.cleaned_data, by=by)
    if not request.htmx:
        where = f"{reverse('run-workshop', args=[run.pk])}?judge={judge.pk}#disagreements"
        return redirect(where)
    context = {"run": run, "chosen": judge, "each": each, "tags": Tag.choices}
    context |= {"is_tagged": True, "tag_counts": tag_counts(run)}
    return render(request, "judge_eval/_tag_form.html", context)


@run_action("run")
def suggest_wording(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    form = SuggestForm(run, request.POST)
    if not form.is_valid():
        raise Problem(422, "Choose a provider, and name a model of it.")
    suggest(run, _model(run, judge_id), **form.cleaned_data)
    return redirect(f"{reverse('run-workshop', args=[run.pk])}?judge={judge_id}#suggestion")


def _model(run: Run, judge_id: UUID) -> Judge:
    judge: Judge = get_object_or_404(run.judges.exclude(provider=Judge.BASELINE), pk=judge_id)
    return judge


def _judge(run: Run, judge_id: UUID) -> Judge:
    judge = _model(run, judge_id)
    if not judge.is_tuned:
        raise LifecycleRefused(f"{judge.name} joined before the tuning: it is no variant.")
    return judge


def _by(request: HttpRequest, run: Run) -> Voter:
    return voter_of_user(run.queue.project, user_of(request))
