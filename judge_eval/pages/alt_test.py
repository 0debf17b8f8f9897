"""The Alt-Test tab: who may take a person's place, and how many items such a test takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from humanjudge.http import HtmxRequest, Problem
from humanjudge.lib.ratelimit import RateLimit
from humanjudge.lib.tables import (
    DASH,
    Cell,
    Head,
    Row,
    Table,
    name_cell,
    percent,
    span,
    text_cell,
)
from humanjudge.lib.text import listed
from judge_eval.findings.cache import Request
from judge_eval.findings.model import AltTest, AltTestJudge
from judge_eval.models import Run
from judge_eval.pages.findings import (
    findings_context,
    live_part,
    refuse,
    requested,
    run_with_board,
)
from judge_eval.stats import (
    EPSILON_GUIDE,
    GRID,
    PASSES,
    AltTestSettings,
    ItemsNeeded,
    epsilon_advice,
    epsilon_key,
    items_needed,
)

EPSILONS = tuple(epsilon_key(epsilon) for epsilon in GRID)
WHO = {epsilon_key(epsilon): who for epsilon, who in EPSILON_GUIDE.items()}
IN_SHORT = {key: who.partition(":")[0].removesuffix(" workers") for key, who in WHO.items()}
DEFAULT_EPSILON = "0.20"
SETTINGS = AltTestSettings()
FEWEST_PEOPLE = SETTINGS.min_humans
MOST_PEOPLE = 20
MOST_CATEGORIES = 10
MOST_NAMES = 6
# With more people than these left out, they are only counted.
MOST_LEFT_OUT = 12
# To simulate tests takes up to 0.15 s of a web process.
limit = RateLimit(per_second=1, burst=8)


@never_cache
@require_safe
def run_alt_test(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """The panel; htmx asks for it again while votes come in."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    wanted = requested(request, run)
    context = _context(request, run, wanted)
    if not request.htmx:
        items = {"form": ItemsForm(initial=_initial(run, wanted), label_suffix="")}
        return render(request, "judge_eval/alt_test.html", context | items)
    return live_part(request, context, "judge_eval/_alt_test.html")


def _context(request: HtmxRequest, run: Run, wanted: Request) -> dict[str, Any]:
    figures = wanted.findings
    test = figures.alt_test if figures else None
    epsilon = request.GET.get("epsilon", test.epsilon if test else DEFAULT_EPSILON)
    if epsilon not in EPSILONS:
        raise Problem(400, f"epsilon: one of {', '.join(EPSILONS)}.")
    judge = request.GET.get("judge", "")
    return findings_context(run, wanted, "alt-test") | {
        "test": panel_of(test, epsilon, judge) if test else None,
        "why": figures.alt_test_why if figures else None,
        "guide": WHO.items(),
        "guide_closing": epsilon_advice().splitlines()[-1],
    }


def _initial(run: Run, wanted: Request) -> dict[str, int]:
    """Suppose as many people as the run has, and the choices that they made."""
    test = wanted.findings.alt_test if wanted.findings else None
    people = test.humans if test else FEWEST_PEOPLE
    choices = test.choices if test else len(run.queue.ballot)
    return {
        "humans": max(FEWEST_PEOPLE, min(MOST_PEOPLE, people)),
        "categories": max(2, min(MOST_CATEGORIES, choices)),
    }


# --- the panel ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ChosenJudge:
    """One judge against each person."""

    id: str
    name: str
    words: str
    people: Table | None
    listed: str
    left_out: list[str]


@dataclass(frozen=True)
class Panel:
    """The test at an epsilon of the reader's choice, from stored rates.

    Attributes
    ----------
    epsilons : list of (key, words)
    too_few : str
        What the test takes, where no judge could be tested.
    """

    epsilon: str
    epsilons: list[tuple[str, str]]
    summary: str
    rates: Table | None
    choices: list[tuple[str, str]]
    chosen: ChosenJudge | None
    advice: list[str]
    too_few: str


def panel_of(test: AltTest, epsilon: str, judge_id: str = "") -> Panel:
    """Lay out a stored test; the judge asked for, or the best, is shown person by person."""
    judges = sorted(test.judges, key=lambda judge: _merit(judge, epsilon), reverse=True)
    asked = [judge for judge in judges if judge.id == judge_id]
    asked = asked or [judge for judge in judges if not judge.is_baseline] or judges
    is_tested = any(_passes(judge, epsilon) is not None for judge in judges)
    return Panel(
        epsilon=epsilon,
        epsilons=[(key, IN_SHORT.get(key, "")) for key in EPSILONS],
        summary=_summary(judges, epsilon),
        rates=_rates_table(judges, epsilon) if judges else None,
        choices=[(judge.id, judge.name) for judge in judges],
        chosen=_chosen(asked[0], test, epsilon) if asked else None,
        advice=test.advice,
        too_few="" if is_tested else f"The test takes {SETTINGS.takes}.",
    )


def _rate(judge: AltTestJudge, epsilon: str) -> float | None:
    return (judge.winning_rates or {}).get(epsilon)


def _passes(judge: AltTestJudge, epsilon: str) -> bool | None:
    rate = _rate(judge, epsilon)
    return None if rate is None else rate >= PASSES


def _merit(judge: AltTestJudge, epsilon: str) -> tuple[float, float]:
    rate = _rate(judge, epsilon)
    return -1.0 if rate is None else rate, -1.0 if judge.advantage is None else judge.advantage


def _rates_table(judges: Sequence[AltTestJudge], epsilon: str) -> Table:
    heads = [
        *(Head("Judge", css=""), Head(f"At {epsilon}", css="")),
        *(Head(key, css="num chosen" if key == epsilon else "num") for key in EPSILONS),
        *(Head("Advantage probability, 95\N{NO-BREAK SPACE}%"), Head("People"), Head("Items")),
    ]
    rows = [
        Row(
            judge.name,
            [
                name_cell(judge.name, tag="baseline" if judge.is_baseline else ""),
                _passes_cell(judge, epsilon),
                *(_rate_cell(judge, key, is_chosen=key == epsilon) for key in EPSILONS),
                _advantage_cell(judge),
                Cell(f"{judge.tested}"),
                Cell(f"{judge.items}"),
            ],
        )
        for judge in judges
    ]
    return Table("Judges in the Alt-Test", heads, rows, css="rates", described_by="rates-key")


def _passes_cell(judge: AltTestJudge, epsilon: str) -> Cell:
    passes = _passes(judge, epsilon)
    if passes is None:
        return text_cell("not tested", "nowrap muted")
    return text_cell("passes", "nowrap strong") if passes else text_cell("fails", "nowrap")


def _rate_cell(judge: AltTestJudge, key: str, *, is_chosen: bool) -> Cell:
    rate = _rate(judge, key)
    if rate is None:
        return Cell(DASH, css="num muted")
    css = "num chosen" if is_chosen else "num"
    if rate >= PASSES:
        return Cell(f"{rate:.2f}", css=css, mark="passing", after=", passes")
    return Cell(f"{rate:.2f}", css=css)


def _advantage_cell(judge: AltTestJudge) -> Cell:
    if judge.advantage is None:
        return Cell(DASH, css="num muted")
    interval = span(*judge.advantage_interval, 2) if judge.advantage_interval else ""
    return Cell(f"{judge.advantage:.2f}", interval)


def _chosen(judge: AltTestJudge, test: AltTest, epsilon: str) -> ChosenJudge:
    passes = _passes(judge, epsilon)
    people = [human for human in judge.humans if human.why is None]
    table = _people_table(judge, epsilon) if people and passes is not None else None
    number = len(people)
    return ChosenJudge(
        id=judge.id,
        name=judge.name,
        words=judge.words if passes is None else _words(judge, epsilon),
        people=table,
        listed=(
            f"Listed are the {number} people with the most items." if judge.tested > number else ""
        ),
        left_out=[*_too_few(judge), *judge.left_out, *test.left_out],
    )


def _people_table(judge: AltTestJudge, epsilon: str) -> Table:
    heads = [
        *(Head("Person", css=""), Head("Items"), Head("Judge’s advantage")),  # noqa: RUF001
        *(Head("Person’s advantage"), Head(f"p at {epsilon}"), Head("Judge wins", css="")),  # noqa: RUF001
    ]
    rows = [
        Row(
            human.name,
            [
                name_cell(human.name),
                Cell(f"{human.items}"),
                Cell(f"{human.judge:.2f}"),
                Cell(f"{human.human:.2f}"),
                Cell(_p((human.p or {})[epsilon])),
                text_cell("yes", "strong") if (human.rejected or {})[epsilon] else text_cell("no"),
            ],
        )
        for human in judge.humans
        if human.why is None
    ]
    return Table(f"{judge.name} against each person", heads, rows)


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _words(judge: AltTestJudge, epsilon: str) -> str:
    verdict = "Passes" if _passes(judge, epsilon) else "Fails"
    won = round((_rate(judge, epsilon) or 0) * judge.tested)
    return f"{verdict} at epsilon {epsilon}: it wins against {won} of {judge.tested} people."


def _too_few(judge: AltTestJudge) -> list[str]:
    """Say who voted on too few pairs, by name where they are few."""
    if not judge.untested:
        return []
    who = "person" if judge.untested == 1 else "people"
    words = f"{judge.untested} {who} with too few items that others voted on too"
    if judge.untested > MOST_LEFT_OUT:
        return [words]
    names = (f"{human.name} ({human.items})" for human in judge.humans if human.why)
    return [f"{words}: {', '.join(names)}"]


def _summary(judges: Sequence[AltTestJudge], epsilon: str) -> str:
    tested = [judge for judge in judges if _passes(judge, epsilon) is not None]
    parts = [
        part
        for is_baseline, kind in ((False, "judge"), (True, "baseline"))
        for part in _who_passes([j for j in tested if j.is_baseline is is_baseline], kind, epsilon)
    ]
    return f"At epsilon {epsilon}: {'; '.join(parts)}." if parts else ""


def _who_passes(judges: Sequence[AltTestJudge], kind: str, epsilon: str) -> list[str]:
    """Say who passes and who fails, by name where they are few."""
    passing = [judge.name for judge in judges if _passes(judge, epsilon)]
    failing = [judge.name for judge in judges if not _passes(judge, epsilon)]
    if len(judges) > MOST_NAMES:
        return [f"{len(passing)} of {len(judges)} {kind}s pass"]
    if kind == "baseline" and judges and not passing:
        return ["no baseline passes"]
    sides = ((passing, "passes", "pass"), (failing, "fails", "fail"))
    return [_clause(names, kind, one, many) for names, one, many in sides if names]


def _clause(names: Sequence[str], kind: str, one: str, many: str) -> str:
    is_one = len(names) == 1
    of_kind = f"the baseline{'' if is_one else 's'} " if kind == "baseline" else ""
    return f"{of_kind}{listed(names)} {one if is_one else many}"


# --- how many items -----------------------------------------------------------------------------


class ItemsForm(forms.Form):
    accuracy = forms.IntegerField(
        label="The judge is right on, %", min_value=0, max_value=100, initial=85
    )
    noise = forms.IntegerField(
        label="A person labels blindly, %", min_value=0, max_value=100, initial=20
    )
    humans = forms.IntegerField(
        label="People", min_value=FEWEST_PEOPLE, max_value=MOST_PEOPLE, initial=FEWEST_PEOPLE
    )
    categories = forms.IntegerField(
        label="Choices that people make", min_value=2, max_value=MOST_CATEGORIES, initial=3
    )
    allowed = forms.ChoiceField(
        label="Epsilon", choices=[(key, key) for key in EPSILONS], initial=DEFAULT_EPSILON
    )


@never_cache
@require_safe
def run_items_needed(request: HtmxRequest, run_id: UUID) -> HttpResponse:
    """How many items are needed: apart from the panel, since it is computed while one waits."""
    run = run_with_board(run_id)
    refused = refuse(request, run)
    if refused is not None:
        return refused
    form = ItemsForm(request.GET, label_suffix="")
    context: dict[str, Any] = {"run": run, "form": form}
    # Readers of a shared board have one allowance between them.
    if form.is_valid() and limit.allow(request.user.pk or "visitors"):
        context |= _simulated(_needed(**form.cleaned_data))
    elif form.is_valid():
        context["is_busy"] = True
    if request.htmx:  # which shows nothing of an answer that is an error
        return render(request, "judge_eval/_items_needed.html", context)
    context |= _context(request, run, requested(request, run))
    status = 429 if "is_busy" in context else 200
    return render(request, "judge_eval/alt_test.html", context, status=status)


def _simulated(needed: ItemsNeeded) -> dict[str, Any]:
    rows = []
    for size, share in needed.passing.items():
        low, high = share.interval or (0, 1)
        cells = [
            Cell(f"{size}", is_head=True),
            Cell(percent(share.value or 0)),
            Cell(span(100 * low, 100 * high)),
        ]
        rows.append(Row(f"{size}", cells, "passing" if size == needed.items else ""))
    interval = Head("95\N{NO-BREAK SPACE}% interval")
    return {
        "needed": needed,
        "passing": Table(
            label="Share of tests that pass, by number of items",
            heads=[Head("Items"), Head("Tests that pass"), interval],
            rows=rows,
        ),
        "simulations": next(iter(needed.passing.values())).n,
    }


@lru_cache(maxsize=1024)
def _needed(accuracy: int, noise: int, humans: int, categories: int, allowed: str) -> ItemsNeeded:
    return items_needed(
        accuracy / 100,
        noise / 100,
        humans=humans,
        categories=categories,
        epsilon=float(allowed),
        simulations=max(300, min(600, 5000 // humans)),
    )
