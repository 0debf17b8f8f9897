"""The workshop of a run: variants of a judge, tuned on one half of its votes, told by the other."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django_htmx.http import trigger_client_event

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.tables import Cell, percent
from humanjudge.core.text import listed, number_of
from humanjudge.core.validation import ConfigInvalid, validated
from judge_eval.board.columns import share_cell
from judge_eval.board.disputed import outputs_beginning, pairs_beginning
from judge_eval.board.few import require_votes_first
from judge_eval.board.views.reveal import reason_on_screen
from judge_eval.gate.drift import floating_models
from judge_eval.judging import provider_access
from judge_eval.judging.config.run_config import (
    MOST_EXAMPLES,
    MOST_REPEATS,
    JoiningJudges,
    JudgeSpec,
    parse,
)
from judge_eval.judging.prompts.judge import CURRENT, PLACEHOLDERS, opening_of
from judge_eval.judging.requests import judge_question
from judge_eval.models import Judge, Run
from judge_eval.runs.forms import provider_names
from judge_eval.runs.lifecycle import LifecycleRefused, has_outputs
from judge_eval.runs.run_page import run_action, run_page, shortened
from judge_eval.workshop import services
from judge_eval.workshop.disagreements import (
    Disagreement,
    Tag,
    judges_with_tuning_verdicts,
    tag_counts,
    tag_disagreement,
    visible_disagreements,
)
from judge_eval.workshop.findings import TuningFigures, VariantFigure, judge_in_use, tuning_figures
from judge_eval.workshop.held_out_check import check_held_out
from judge_eval.workshop.queries import (
    Contender,
    WorkshopState,
    cost_of,
    listed_number,
    next_advice,
    picture,
    stages,
)
from judge_eval.workshop.suggestion import latest, suggest
from voting.access.roles import user_of
from voting.ballot import tuning
from voting.items.choices import short_name
from voting.items.kinds import kind_of
from voting.models import Inference, Item, Voter
from voting.people.voters import voter_of_user

# Of a new variant, what is always stated; the rest is folded.
_FIRST = ("id", "instructions")
_LEFT_OPEN = "Empty: as other judges."
_ORDERS = {
    "": "as other judges",
    "both": "both",
    "random": "one, drawn for each pair",
    "AB": "always as stored",
    "BA": "always swapped",
}
_ELEMENTS = {"-": "del", "+": "ins", " ": "span"}
_STEPS: dict[services.Step, str] = {
    "first": f"{services.FIRST_ITEMS} items of the tuning half",
    "tuning": "the tuning half",
    "all": "all items",
}


# What somebody says of a disagreement, with the key that says so.
TAGS = (
    (Tag.JUDGE_WRONG.value, "Judge is wrong", "1"),
    (Tag.VOTE_SLIP.value, "People slipped", "2"),
    (Tag.RUBRIC_UNCLEAR.value, "Rubric unclear", "3"),
    (Tag.BOTH_FINE.value, "Both fine", "4"),
)


class VariantForm(forms.Form):
    id = forms.CharField(label="Label", max_length=200)
    model = forms.CharField(max_length=200)
    provider = forms.ChoiceField(required=False)
    instructions = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text="What the judge is told first. Filled in: "
        + ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        + ". The outputs and the reply format follow it and cannot be changed.",
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
        help_text="Above 1, it is asked repeatedly, to see whether it agrees with itself.",
    )
    orders = forms.ChoiceField(required=False, label="Orders of a pair", choices=_ORDERS.items())
    draw_examples = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=MOST_EXAMPLES,
        label="Examples to draw",
        help_text="Of the tuning half, beside those that you choose above.",
    )
    joining: JoiningJudges | None = None

    def __init__(self, run: Run, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _offer_providers(self, run)
        if "orders" not in kind_of(run.queue).figures:
            del self.fields["orders"]

    @property
    def further_fields(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in _FIRST]

    @property
    def examples(self) -> list[str]:
        """Disagreements that were chosen: their boxes stand among these, not in the form."""
        return self.data.getlist("examples") if isinstance(self.data, QueryDict) else []

    def clean(self) -> None:
        if self.errors:
            return  # said beside its field
        fields = {
            name: value for name, value in self.cleaned_data.items() if value not in ("", None)
        }
        data: Context = {n: fields.pop(n) for n in ("provider", "draw_examples") if n in fields}
        spec: Context = fields | {"examples": self.examples}
        if spec.pop("no_temperature", False):
            spec["temperature"] = None
        try:
            self.joining = validated(JoiningJudges, data | {"judges": [spec]})
        except ConfigInvalid as invalid:
            self.add_error(None, shortened(invalid.errors))


class SuggestForm(forms.Form):
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
    names = provider_names(provider_access.usable_in(run.queue.project_id))
    provider.choices = [(name, name) for name in names]


@run_page("see calls")
def run_workshop(request: HtmxRequest, run: Run) -> HttpResponse:
    if run.queue.held_out_from is not None:
        require_votes_first(request, run)
    if request.htmx and "suggestion" in request.GET:
        context = {"run": run, **_suggested(run, _wordings(run))}
        return render(request, "judge_eval/workshop/_suggestion.html", context)
    return _page(request, run)


def _page(
    request: HttpRequest,
    run: Run,
    form: VariantForm | None = None,
    status: int = 200,
) -> HttpResponse:
    is_split = run.queue.held_out_from is not None
    figures, wordings = tuning_figures(run), _wordings(run)
    contenders = _contenders(run, figures)
    history = tuning.tuning_history(run.queue)
    unseen = run.queue.items.filter(is_held_out=True, unusable="").count() if is_split else 0
    workshop = WorkshopState(run, contenders, figures, history, unseen)
    selected_judge = _selected_judge(request, workshop)
    disagreements = visible_disagreements(request, selected_judge) if selected_judge else []
    in_use = workshop.in_use
    is_asked = in_use is not None and in_use.judge.is_asked and run.queue.is_tuning
    is_other = in_use is not None and in_use.judge != selected_judge
    disagreements_in_use = (
        visible_disagreements(request, in_use.judge) if in_use and is_other else disagreements
    )
    sorted_ones = sum(disagreement.tag is not None for disagreement in disagreements_in_use)
    workshop = replace(workshop, disagreements=len(disagreements_in_use), sorted=sorted_ones)
    advice = next_advice(workshop) if run.queue.is_tuning else None
    sides = [request.GET.get(side, "") for side in ("left", "right")]
    compared = [wordings[side].text for side in sides if side in wordings]
    floating = floating_models(run)
    is_tagged = [disagreement.tag is not None for disagreement in disagreements]
    pairs = pairs_beginning(
        run, [disagreement.verdict.item.position for disagreement in disagreements]
    )
    context: Context = {
        "run": run,
        "tab": "run",
        "has_outputs": has_outputs(run.queue),
        "is_split": is_split,
        "is_counted": workshop.is_counted,
        "is_tuning": run.queue.is_tuning,
        "used": in_use,
        "advice": advice,
        "stages": stages(workshop, advice.stage) if advice else [],
        "plot": picture(workshop),
        "rows": [_row(workshop, contender, wordings, floating) for contender in contenders],
        "behind": figures.behind,
        "is_live": figures.behind or any(contender.waiting for contender in contenders),
        "floor": [
            {"judge": figure.judge, "figure": _tuning_cell(figure, "no votes yet")}
            for figure in figures.figures
            if figure.judge.is_baseline
        ],
        "looks": f"Held-out looked at {number_of(len(history.looks), 'time')}",
        "chosen": selected_judge,
        "disagreements": [
            _card(
                selected_judge.name if selected_judge else "",
                disagreement,
                pairs[disagreement.verdict.item.position],
            )
            for disagreement in disagreements
        ],
        "listed_number": listed_number(len(disagreements), run.queue.noun),
        # The card that is open: the first that nobody has sorted.
        "turn": is_tagged.index(False) if False in is_tagged else 0,
        "tags": TAGS,
        "tag_counts": tag_counts(run),
        "wordings": wordings,
        "sides": [("left", "From", sides[0]), ("right", "to", sides[1])],
        "diff": _diff(*compared) if "right" in request.GET and len(compared) == 2 else [],
        "suggest": SuggestForm(run),
        # What the first step of another wording costs, if it is asked of the model in use.
        "first_try": cost_of(services.first_try(run, in_use.judge)) if in_use and is_asked else "",
        **_suggested(run, wordings),
    }
    context["form"] = form or VariantForm(run, initial=_initial(request, context, workshop))
    return render(request, "judge_eval/workshop/workshop.html", context, status=status)


def _contenders(run: Run, figures: TuningFigures) -> list[Contender]:
    judges = [figure for figure in figures.figures if not figure.judge.is_baseline]
    # None is asked anything here once the tuning has ended.
    to_ask = [figure.judge for figure in judges if run.queue.is_tuning]
    steps, verdict_counts = services.next_steps(run, to_ask), services.verdict_counts(run)
    for figure in judges:
        figure.judge.run = run
    return [
        Contender(figure, steps.get(figure.judge.pk), *verdict_counts.get(figure.judge.pk, (0, 0)))
        for figure in judges
    ]


def _selected_judge(request: HttpRequest, workshop: WorkshopState) -> Judge | None:
    answering = set(judges_with_tuning_verdicts(workshop.run).values_list("pk", flat=True))
    judges = [c.judge for c in workshop.contenders]
    named = (request.GET or request.POST).get("judge", "")
    first = [judge for judge in judges if str(judge.pk) == named]
    judges_in_use = [workshop.in_use.judge] if workshop.in_use else []
    candidates = [*judges_in_use, *judges]
    return next(iter([*first, *(judge for judge in candidates if judge.pk in answering)]), None)


@dataclass(frozen=True)
class DisagreementCard:
    """A disagreement as a card: how its texts begin, and who chose which."""

    disagreement: Disagreement
    prompt: str
    # Of each output: the output, how it begins, and whose choice it is.
    outputs: list[tuple[Inference, str, list[str]]]

    @property
    def item(self) -> Item:
        return self.disagreement.verdict.item

    @property
    def judge_choice(self) -> str:
        return side_in_words(self.disagreement.verdict.winner)

    @property
    def reason(self) -> str:
        return reason_on_screen(self.disagreement.verdict.feedback, left="A")

    @property
    def people_choice(self) -> str:
        return side_in_words(self.disagreement.choice)


def side_in_words(choice: str) -> str:
    """Name a choice as on the card, whose first output stands on the left."""
    return {"A": "the left", "B": "the right"}.get(choice) or short_name(choice)


def _card(name: str, disagreement: Disagreement, pair: Any) -> DisagreementCard:
    verdict = disagreement.verdict
    choices = {
        f"{name}'s choice": verdict.winner,
        "people's choice": disagreement.choice,
    }
    outputs = [
        (output, text, [chooser for chooser, choice in choices.items() if choice == side])
        for side, output, text in outputs_beginning(pair)
    ]
    return DisagreementCard(disagreement, pair.prompt, outputs)


def _initial(request: HttpRequest, context: Context, workshop: WorkshopState) -> Context:
    """Return what stands in the form of a new variant: the wording in use, or a suggested one."""
    suggestion = context["suggestion"]
    in_use = workshop.in_use
    judge = in_use.judge if in_use else None
    text = context["wordings"][str(judge.pk) if judge else ""].text
    if suggestion and suggestion.text and "draft" in request.GET:
        judge, text = suggestion.judge, suggestion.text
    about: Context = {"instructions": text, "repeats": 1}
    if judge is not None:
        about["id"] = _next_label(judge.name, {c.judge.name for c in workshop.contenders})
    if judge is not None and judge.is_asked:
        about |= {"model": judge.model, "provider": judge.provider}
    return about


def _next_label(name: str, existing_labels: Collection[str]) -> str:
    """Return the label of another wording of a judge.

    >>> _next_label("good v2", {"good", "good v2"}), _next_label("good", {"good"})
    ('good v3', 'good v2')
    """
    base = re.sub(r" v\d+$", "", name)
    return next(label for n in count(2) if (label := f"{base} v{n}") not in existing_labels)


class VariantWording(NamedTuple):
    name: str
    text: str
    examples: int = 0


def _wordings(run: Run) -> dict[str, VariantWording]:
    """Return the instructions of a run's judges by their numbers; the usual ones by none."""
    usual = opening_of(CURRENT, judge_question(run.queue))
    config = parse(run.config) if run.config else None
    wordings = {"": VariantWording("the usual wording", usual)}
    for judge in run.judges.exclude(provider=Judge.BASELINE).order_by("position"):
        spec = (config and config.spec_of(judge.name)) or JudgeSpec(id=judge.name)
        about = (judge.name, spec.instructions or usual, len(spec.examples))
        wordings[str(judge.pk)] = VariantWording(*about)
    return wordings


def _diff(before: str, after: str) -> list[tuple[str, str]]:
    """Return the lines of two wordings behind their signs, each with the element that shows it."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [(_ELEMENTS[line[0]], line) for line in lines if line[0] in _ELEMENTS]


def _suggested(run: Run, wordings: Mapping[str, VariantWording]) -> Context:
    suggestion = latest(run)
    diff = []
    if suggestion and suggestion.text:
        diff = _diff(wordings[str(suggestion.judge.pk)].text, suggestion.text)
    return {"suggestion": suggestion, "suggested_diff": diff}


def _row(
    workshop: WorkshopState,
    contender: Contender,
    wordings: Mapping[str, VariantWording],
    floating: Mapping[UUID, str],
) -> Context:
    judge, itself, step = contender.judge, contender.figure.itself, contender.step
    in_use, ask = workshop.in_use, ""
    if step:
        items = number_of(step.items, "item")
        ask = f"Ask about {_STEPS[step.step]} ({items}, {cost_of(step)})"
    return {
        "judge": judge,
        "examples": wordings[str(judge.pk)].examples,
        "figure": _tuning_cell(contender.figure, "not asked yet"),
        "itself": percent(itself.value) if itself.value is not None else "",
        "itself_why": (itself.n and itself.why) or "",
        "flips": [n + 1 for n in contender.figure.flips[: services.FIRST_ITEMS]],
        "step": ask,
        "note": floating.get(judge.pk, ""),
        "asked": contender.wanted_verdicts > contender.waiting,
        "in_use": in_use is not None and in_use.judge == judge,
        "dropped": str(judge.pk) in workshop.history.dropped,
    }


def _tuning_cell(figure: VariantFigure, nothing: str) -> Cell:
    return replace(share_cell(figure.overall, "votes", nothing), label="Tuning half")


# --- what can be done ----------------------------------------------------------------------------


@run_action("run")
def open_tuning(request: HttpRequest, run: Run) -> HttpResponse:
    services.open_for_tuning(run, _acting_voter(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def end_tuning(request: HttpRequest, run: Run) -> HttpResponse:
    services.end(run, _acting_voter(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def add_variant(request: HttpRequest, run: Run) -> HttpResponse:
    """Let a variant join, and where that is wanted ask it about a few items at once."""
    form = VariantForm(run, request.POST)
    if form.is_valid() and form.joining is not None:
        try:
            [judge] = services.add(run, form.joining)
        except ConfigInvalid as invalid:
            form.add_error(None, shortened(invalid.errors))
        else:
            if "try" in request.POST:
                services.ask(run, judge, "first")
            return redirect("run-workshop", run.pk)
    return _page(request, run, form, status=422)


@run_action("run")
def ask_variant(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    judge = _judge(run, judge_id)
    if step := services.next_step(run, judge):
        services.ask(run, judge, step.step)
    return redirect("run-workshop", run.pk)


@run_action("run")
def look(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    """Hold a variant against the judge in use on the half held out; it is counted."""
    judge = _judge(run, judge_id)
    current_judge = judge_in_use(run)
    if current_judge is None or current_judge == judge:
        raise LifecycleRefused("Choose the judge in use first: the variant is compared with it.")
    check_held_out(run, judge, current_judge, _acting_voter(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def use_judge(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    services.use(run, _model(run, judge_id), _acting_voter(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def drop(request: HttpRequest, run: Run, judge_id: UUID) -> HttpResponse:
    services.drop(run, _judge(run, judge_id), _acting_voter(request, run))
    return redirect("run-workshop", run.pk)


@run_action("run")
def tag(request: HtmxRequest, run: Run, judge_id: UUID) -> HttpResponse:
    form, judge = TagForm(request.POST), _model(run, judge_id)
    if not form.is_valid():
        raise Problem(422, f"Name an item, and a tag: {listed(Tag.values)}.")
    voter = _acting_voter(request, run)
    tagged = tag_disagreement(request, judge, **form.cleaned_data, voter=voter)
    if not request.htmx:
        address = f"{reverse('run-workshop', args=[run.pk])}?judge={judge.pk}#disagreements"
        return redirect(address)
    context = {"run": run, "chosen": judge, "each": tagged, "tags": TAGS}
    context |= {"is_tagged": True, "tag_counts": tag_counts(run)}
    response = render(request, "judge_eval/workshop/_tag_form.html", context)
    return trigger_client_event(response, "sorted")


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
        raise LifecycleRefused(f"{judge.name} is not a variant: it was added before tuning began.")
    return judge


def _acting_voter(request: HttpRequest, run: Run) -> Voter:
    return voter_of_user(run.queue.project, user_of(request))
