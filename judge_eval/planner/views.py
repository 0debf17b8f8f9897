"""The planner: how many items, votes and people a study needs, before anything is collected."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil
from typing import Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from humanjudge.core.charts.graphs import Curve, Level, line_graph
from humanjudge.core.charts.labels import SHARE, Axis
from humanjudge.core.http import Context, Problem
from humanjudge.core.ratelimit import RateLimit
from humanjudge.core.tables import Cell, Head, Row, Table, missing, name_cell, numbered, percent
from humanjudge.core.text import number_of
from judge_eval.board.corrected_table import LEAST_SAVING
from judge_eval.board.pictures import draw
from judge_eval.stats import items_needed
from judge_eval.stats.planning import (
    MOST_ITEMS,
    POWERS,
    Method,
    Study,
    StudyPlan,
    items_for,
    most_saved,
    plan,
)
from voting.access.roles import require_login

ALTERNATIVES: Final = (1, 2, 3, 5, 7)
POINTS_OF_CURVE: Final = 24
METHODS: Final[dict[Method, str]] = {"evidence": "evidence", "interval": "95 % interval"}
# A plan takes up to a second of a web process.
limit = RateLimit(per_second=1, burst=8)


class PlanForm(forms.Form):
    judges = forms.IntegerField(label="Judges compared", min_value=2, max_value=50, initial=3)
    people_agreement = forms.FloatField(
        label="People choose the same on, % of items",
        help_text="Any two of them, on items that are no tie: 68 where each is right on 80 %.",
        min_value=51,
        max_value=100,
        initial=70,
    )
    difference = forms.FloatField(
        label="Smallest difference that matters, points",
        help_text="Of overall agreement, between the two judges that are hardest to tell apart.",
        min_value=0.5,
        max_value=100,
        initial=10,
    )
    votes_per_item = forms.IntegerField(
        label="Votes per item", min_value=1, max_value=99, initial=1
    )
    ties = forms.FloatField(
        label="Ties and both bad, % of items", min_value=0, max_value=95, initial=10
    )
    power = forms.FloatField(
        label="Find it in, % of studies", min_value=50, max_value=99, initial=80
    )
    method = forms.ChoiceField(
        label="Sure by",
        help_text="Evidence: look as often as you like. Interval: fix the number, look once.",
        choices=[*METHODS.items()],
        initial="evidence",
    )
    seconds_per_vote = forms.FloatField(
        label="Seconds a vote takes", min_value=1, max_value=3600, initial=20
    )
    hours_per_person = forms.FloatField(
        label="Hours a person gives", min_value=0.1, max_value=1000, initial=2
    )

    def clean(self) -> None:
        if self.errors:
            return
        try:
            self.cleaned_data["study"] = self._study()
        except ValueError as invalid:
            name, _, message = str(invalid).partition(": ")
            self.add_error(name, f"{message[:1].upper()}{message[1:]}.")

    def _study(self) -> Study:
        cleaned = self.cleaned_data
        percents = ("people_agreement", "difference", "ties", "power")
        shares = {name: cleaned[name] / 100 for name in percents}
        return Study(cleaned["judges"], votes_per_item=cleaned["votes_per_item"], **shares)


@require_safe
def planner(request: HttpRequest) -> HttpResponse:
    require_login(request)
    usual = {name: field.initial for name, field in PlanForm.base_fields.items()}
    form = PlanForm(usual | request.GET.dict())
    context: Context = {"form": form}
    if not form.is_valid():
        return render(request, "judge_eval/planner/planner.html", context, status=422)
    if not limit.allow(request.user.pk):
        raise Problem(429, "Too many plans at once. Ask again in some seconds.")
    cleaned = form.cleaned_data
    result = planned(
        cleaned["study"],
        cleaned["method"],
        cleaned["seconds_per_vote"],
        cleaned["hours_per_person"],
    )
    return render(request, "judge_eval/planner/planner.html", context | result)


@lru_cache(maxsize=256)
def planned(study: Study, method: Method, seconds: float, hours: float) -> Context:
    costs = {"seconds_per_vote": seconds, "hours_per_person": hours}
    chosen_plan = plan(study, method, **costs)
    tried = sorted({*ALTERNATIVES, study.votes_per_item})
    plans = [plan(replace(study, votes_per_item=votes), method, **costs) for votes in tried]
    return {
        "plan": chosen_plan,
        "words": in_words(study, method, chosen_plan, seconds),
        "alt_test": alt_test_in_words(study),
        "saving": saving_in_words(study),
        "table": _table(plans, chosen_plan),
        "svg": _chart(study),
    }


def in_words(study: Study, method: Method, study_plan: StudyPlan, seconds: float) -> str:
    difference = f"{100 * study.difference:g} points"
    if study_plan.items is None:
        return (
            f"No study of up to {MOST_ITEMS:,} items tells judges apart that differ by "
            f"{difference}: look for a larger difference, or ask for more votes per item."
        )
    method_text = {
        "evidence": "by evidence, however often one looks",
        "interval": "by a 95 % interval that is looked at once",
    }[method]
    assert study_plan.votes is not None
    assert study_plan.hours is not None
    assert study_plan.people is not None
    people = "1 person" if study_plan.people == 1 else f"{study_plan.people:,} people"
    votes_text = number_of(study_plan.votes_per_item, "vote")
    return (
        f"{number_of(study_plan.items, 'item')} with {votes_text} each: "
        f"{number_of(study_plan.votes, 'vote')}, {_hours(study_plan.hours)} of voting at "
        f"{seconds:g} s a vote, {people}. A difference of {difference} between two of "
        f"{study.judges} judges is then found in {percent(study.power)} of studies, {method_text}."
    )


def alt_test_in_words(study: Study) -> str:
    """Say how many items the Alt-Test takes for a judge that is as good as a person."""
    needed = items_needed(study.person, 2 * (1 - study.person), categories=2, simulations=300)
    if needed.items is None:
        return (
            "With three such people no judge that is only as good as one of them passes the "
            "Alt-Test surely at epsilon 0.2, on up to 300 items."
        )
    return (
        f"For the Alt-Test at epsilon 0.2 with three such people, {needed.items} items that all of "
        "them label are enough for a judge that is as good as a person."
    )


def saving_in_words(study: Study) -> str:
    """Say how many votes on models a judge saves that is as good as a person."""
    saving = most_saved(study)
    if saving < LEAST_SAVING:
        return "For models' win rates a judge that is as good as such a person saves nothing."
    return (
        "For models' win rates, corrected by the votes, a judge that is as good as such a person "
        f"saves at most {percent(saving)} of the votes, however many items it judges without them."
    )


def _hours(hours: float) -> str:
    if hours < 1:
        return f"{ceil(60 * hours)} min"
    return f"{hours:,.1f} h" if hours < 100 else f"{hours:,.0f} h"


def _table(plans: Sequence[StudyPlan], chosen_plan: StudyPlan) -> Table:
    rows, notes = numbered(
        [_row(study_plan, is_chosen=study_plan == chosen_plan) for study_plan in plans]
    )
    heads = [Head("With", css=""), *map(Head, ("Items", "Votes", "Hours", "People"))]
    label = "The same study with other numbers of votes per item"
    return Table(label, heads, rows, css="list", caption=label, notes=notes, are_cards=True)


def _row(study_plan: StudyPlan, *, is_chosen: bool) -> Row:
    name = f"{number_of(study_plan.votes_per_item, 'vote')} per item"
    cells = [missing(f"More than {MOST_ITEMS:,} items.")] * 4
    if study_plan.items is not None:
        cells = [
            Cell(f"{study_plan.items:,}", label="Items"),
            Cell(f"{study_plan.votes:,}", label="Votes"),
            Cell(_hours(study_plan.hours or 0), label="Hours"),
            Cell(f"{study_plan.people:,}", label="People"),
        ]
    return Row(name, [name_cell(name), *cells], css="passing" if is_chosen else "")


def _chart(study: Study) -> str:
    """Draw how often the difference is found by numbers of items, in both ways."""
    counts = [items for method in METHODS if (items := items_for(study, method))]
    most = min(MOST_ITEMS, ceil(1.4 * max(counts, default=MOST_ITEMS)))
    places = [
        max(1, round(most * step / POINTS_OF_CURVE)) for step in range(1, POINTS_OF_CURVE + 1)
    ]
    curves = []
    for method in METHODS:
        power = POWERS[method](study)
        curves.append(Curve(f"by {method}", [(items, power(items)) for items in places]))
    title, needed = "How often such a difference is found", Level("required", study.power)
    graph = line_graph(curves, title=title, x=Axis("items", ",.0f", 0), y=SHARE, rule=needed)
    return draw(graph) if graph else ""
