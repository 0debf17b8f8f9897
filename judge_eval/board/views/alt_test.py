"""The Alt-Test tab: who may take a person's place, and how many items such a test takes."""

from collections.abc import Sequence
from functools import lru_cache

from django import forms
from django.http import HttpResponse
from django.shortcuts import render

from humanjudge.core.http import Context, HtmxRequest, Problem
from humanjudge.core.ratelimit import RateLimit
from humanjudge.core.tables import (
    DASH,
    Cell,
    Head,
    Row,
    Table,
    name_cell,
    percent,
    percent_span,
    span,
)
from humanjudge.core.text import listed
from judge_eval.board.board_parts import p_text
from judge_eval.board.cache import FindingsRequest
from judge_eval.board.few import findings_for
from judge_eval.board.model import AltTest, AltTestJudge
from judge_eval.board.pictures import on_page
from judge_eval.board.views.findings import findings_context, findings_version, live_page
from judge_eval.models import Run
from judge_eval.runs.run_page import run_page
from judge_eval.stats import (
    EPSILON_GUIDE,
    GRID,
    PASSES,
    AltTestSettings,
    ItemsNeeded,
    epsilon_advice,
    epsilon_key,
    items_needed,
    outcome_of,
)

EPSILONS = tuple(epsilon_key(epsilon) for epsilon in GRID)
RATERS = {epsilon_key(epsilon): text for epsilon, text in EPSILON_GUIDE.items()}
IN_SHORT = {key: text.partition(":")[0].removesuffix(" workers") for key, text in RATERS.items()}
GUIDE = ", ".join(f"{key} for {text.partition(':')[0]}" for key, text in RATERS.items())
DEFAULT_EPSILON = "0.20"
SETTINGS = AltTestSettings()
FEWEST_PEOPLE = SETTINGS.min_humans
MOST_PEOPLE = 20
MOST_CATEGORIES = 10
MOST_NAMES = 6
# With more people than these left out, they are only counted.
MOST_LEFT_OUT = 12
# The class of the cell that says it.
OUTCOMES = {
    "passes": "nowrap strong",
    "not shown": "nowrap",
    "fails": "nowrap",
    "not tested": "nowrap muted",
}
MISSING = Cell(DASH, css="num muted")
# To simulate tests takes up to 0.15 s of a web process.
limit = RateLimit(per_second=1, burst=8)


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


@run_page("see")
def run_alt_test(request: HtmxRequest, run: Run) -> HttpResponse:
    """The panel; htmx asks for it again while votes come in."""
    requested = findings_for(request, run, request.GET.get("part", ""))
    context = _context(request, run, requested)
    # As many people as the run has, and the choices that they made.
    tests = context["findings"].alt_tests if context["findings"] else {}
    test = tests.get(context["task"])
    people, choices = (test.humans, test.choices) if test else (0, len(run.queue.ballot))
    supposed: Context = {
        "humans": max(FEWEST_PEOPLE, min(MOST_PEOPLE, people)),
        "categories": max(2, min(MOST_CATEGORIES, choices)),
    }
    if (allowed := epsilon_key(run.epsilon)) in EPSILONS:
        supposed["allowed"] = allowed
    context["form"] = ItemsForm(initial=supposed, label_suffix="")
    return live_page(request, "alt_test", findings_version(run, requested), lambda: context)


def _context(request: HtmxRequest, run: Run, requested: FindingsRequest) -> Context:
    figures = requested.findings
    tests = figures.alt_tests if figures else {}
    task = request.GET.get("task") or next(iter(tests), "")
    if tests and task not in tests:
        raise Problem(400, f"task: one of {', '.join(tests)}.")
    test = tests.get(task)
    epsilons = epsilons_of(test, run.epsilon)
    epsilon = request.GET.get("epsilon", epsilon_key(run.epsilon))
    if epsilon not in epsilons:
        raise Problem(400, f"epsilon: one of {', '.join(epsilons)}.")
    context = findings_context(run, requested, "alt-test")
    chart = figures.rate_charts.get(task) if figures else None
    return context | {
        # A part of it, with a page of its own.
        "tab": "board",
        "task": task,
        "tasks": [*tests] if len(tests) > 1 else [],
        "test": panel_of(test, epsilon, request.GET.get("judge", "")) if test else None,
        "chart": on_page(figures, chart) if figures and chart else "",
        "why": figures.alt_test_why if figures else None,
        "guide": RATERS.items(),
        "guide_closing": epsilon_advice().splitlines()[-1],
    }


def epsilons_of(test: AltTest | None, settled: float) -> list[str]:
    """Return every epsilon that a test was computed with; before that, those that it will be."""
    stored = next((judge.winning_rates for judge in test.judges), None) if test else None
    return sorted({*EPSILONS, epsilon_key(settled), *(stored or ())}, key=float)


# --- the panel ----------------------------------------------------------------------------------


def panel_of(test: AltTest, epsilon: str, judge_id: str = "") -> Context:
    """Lay out a stored test; the judge asked for, or the best, is shown person by person."""

    def merit(judge: AltTestJudge) -> tuple[float, float]:
        rate, advantage = _rate(judge, epsilon), judge.advantage
        return -1.0 if rate is None else rate, -1.0 if advantage is None else advantage

    judges = sorted(test.judges, key=merit, reverse=True)
    judges.sort(key=lambda judge: judge.is_baseline)
    requested = [judge for judge in judges if judge.id == judge_id]
    candidates = requested or judges
    summary, epsilons = _summary(judges, epsilon), epsilons_of(test, float(test.epsilon))
    floor = [_line(judge, epsilon) for judge in judges if judge.is_baseline]
    return {
        "epsilon": epsilon,
        "epsilons": [(key, IN_SHORT.get(key, "")) for key in epsilons],
        "settled": test.epsilon,
        "is_settled": epsilon == test.epsilon,
        "guide": GUIDE,
        "summary": summary,
        "lines": [_line(judge, epsilon) for judge in judges if not judge.is_baseline],
        "floor": floor,
        "rates": _rates_table(judges, epsilons, epsilon) if judges else None,
        "judges": judges,
        "chosen": _judge_details(candidates[0], test, epsilon) if candidates else None,
        "advice": test.advice,
        "too_few": "" if summary else f"The test takes {SETTINGS.takes}.",
    }


def _rate(judge: AltTestJudge, epsilon: str) -> float | None:
    return (judge.winning_rates or {}).get(epsilon)


def _outcome(judge: AltTestJudge, epsilon: str) -> str:
    return outcome_of(_rate(judge, epsilon), judge.shortfall, epsilon)


def _line(judge: AltTestJudge, epsilon: str) -> Context:
    rate, interval = _rate(judge, epsilon), judge.advantage_interval
    outcome = _outcome(judge, epsilon)
    return {
        "name": judge.name,
        "outcome": outcome,
        "css": OUTCOMES[outcome],
        "rate": DASH if rate is None else f"{rate:.2f}",
        "advantage": DASH if judge.advantage is None else f"{judge.advantage:.2f}",
        "interval": span(*interval, 2) if interval else "",
        "people": judge.tested,
        "items": judge.items,
    }


def _rates_table(judges: Sequence[AltTestJudge], epsilons: Sequence[str], epsilon: str) -> Table:
    css = {key: "num chosen" if key == epsilon else "num" for key in epsilons}
    heads = [Head("Judge", css=""), *(Head(key, css=css[key]) for key in epsilons)]
    rows = []
    for judge in judges:
        name = name_cell(judge.name, tag="baseline" if judge.is_baseline else "")
        rates = [_rate_cell(_rate(judge, key), css[key]) for key in epsilons]
        rows.append(Row(judge.name, [name, *rates]))
    label = "Winning rates at all epsilons"
    return Table(label, heads, rows, css="rates", described_by="rates-key")


def _rate_cell(rate: float | None, css: str) -> Cell:
    if rate is None:
        return MISSING
    mark, after = ("passing", ", passes") if rate >= PASSES else ("", "")
    return Cell(f"{rate:.2f}", css=css, mark=mark, after=after)


def _judge_details(judge: AltTestJudge, test: AltTest, epsilon: str) -> Context:
    people = [human for human in judge.humans if human.why is None]
    rate, words, against = _rate(judge, epsilon), judge.words, []
    if rate is not None:
        wins = f"{round(rate * judge.tested)} of {judge.tested} people"
        outcome = _outcome(judge, epsilon).capitalize()
        words = f"{outcome} at epsilon {epsilon}: it wins against {wins}."
        for human in people:
            p, is_won = (human.p or {})[epsilon], (human.rejected or {})[epsilon]
            against.append((human, p_text(p), is_won))
    left_out = [*judge.left_out, *test.left_out]
    if judge.untested:
        people_noun = "person" if judge.untested == 1 else "people"
        names = ", ".join(f"{human.name} ({human.items})" for human in judge.humans if human.why)
        name_list = f": {names}" if judge.untested <= MOST_LEFT_OUT else ""
        untested_people = f"{people_noun} with too few items that others voted on too"
        left_out.insert(0, f"{judge.untested} {untested_people}{name_list}")
    is_cut = judge.tested > len(people)
    return {
        "id": judge.id,
        "name": judge.name,
        "words": words,
        "people": against,
        "listed": f"Listed are the {len(people)} people with the most items." if is_cut else "",
        "left_out": left_out,
    }


def _summary(judges: Sequence[AltTestJudge], epsilon: str) -> str:
    """Say who passes and who fails, judges before baselines, by name where they are few."""
    parts = []
    for is_baseline, kind in ((False, "judge"), (True, "baseline")):
        of_kind = [judge for judge in judges if judge.is_baseline is is_baseline]
        passing, failing, open_ones = (
            [judge.name for judge in of_kind if _outcome(judge, epsilon) == outcome]
            for outcome in ("passes", "fails", "not shown")
        )
        number = len(passing) + len(failing) + len(open_ones)
        if number > MOST_NAMES:
            parts.append(f"{len(passing)} of {number} {kind}s pass")
        elif is_baseline and number and not passing:
            parts.append("no baseline passes")
        else:
            for names, singular, plural in (
                (passing, "passes", "pass"),
                (failing, "fails", "fail"),
                (open_ones, "is not shown to pass", "are not shown to pass"),
            ):
                ending, verb = ("", singular) if len(names) == 1 else ("s", plural)
                subject = f"the baseline{ending} " if is_baseline else ""
                parts += [f"{subject}{listed(names)} {verb}"] if names else []
    return f"At epsilon {epsilon}: {'; '.join(parts)}." if parts else ""


# --- how many items -----------------------------------------------------------------------------


@run_page("see")
def run_items_needed(request: HtmxRequest, run: Run) -> HttpResponse:
    """How many items are needed: apart from the panel, since it is computed while one waits."""
    form = ItemsForm(request.GET, label_suffix="")
    context: Context = {"run": run, "form": form}
    # Readers of a shared board have one allowance between them.
    if form.is_valid() and limit.allow(request.user.pk or "visitors"):
        needed = _needed(**form.cleaned_data)
        passing = []
        for size, share in needed.passing.items():
            low, high = share.interval or (0, 1)
            passing.append((size, percent(share.value or 0), percent_span(low, high)))
        number = next(iter(needed.passing.values())).n
        context |= {"needed": needed, "passing": passing, "simulations": number}
    elif form.is_valid():
        context["is_busy"] = True
    if request.htmx:  # which shows nothing of an answer that is an error
        return render(request, "judge_eval/board/_items_needed.html", context)
    status = 429 if "is_busy" in context else 200
    requested = findings_for(request, run, request.GET.get("part", ""))
    page = _context(request, run, requested) | {"seen": findings_version(run, requested)} | context
    return render(request, "judge_eval/board/alt_test.html", page, status=status)


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
