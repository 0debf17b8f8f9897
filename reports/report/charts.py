"""The charts of a report: each as a drawing in a file of its own, and as rows of figures."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.template.loader import render_to_string

from humanjudge.charts.quality_graph import Point, quality_graph
from humanjudge.charts.votes_graph import votes_graph
from judge_eval.findings.columns import Value, file_rows
from judge_eval.findings.model import WINNER, RunFindings
from judge_eval.findings.pictures import MODEL_RATES, MODEL_RATINGS, PICTURE, draw, graph_of
from reports.models import Quality
from reports.quality.views import TITLES
from reports.report.model import QualityResults, Report, RunResults, VotesOverTime

# What a drawing takes from the page that it stands in, and its own colour for where it is alone.
_VARIABLE: Final = re.compile(r"var\(--[\w-]+, ([^()]+)\)")
Rows = list[dict[str, Value]]


@dataclass(frozen=True)
class Chart:
    """A chart by the name of its files; `key` is what its run's findings call it."""

    name: str
    title: str
    draw: Callable[[], str]
    rows: Callable[[], Rows]
    key: str = ""

    def svg(self) -> str:
        """Return a drawing that needs no page around it, in the colours of a light one."""
        return _VARIABLE.sub(r"\1", self.draw())


def charts_of(report: Report) -> list[Chart]:
    """Return what there are figures for, in the order of the report."""
    charts = [chart_of_score(of) for of in report.quality]
    if report.pace and report.pace.votes:
        charts.append(chart_of_votes(report.pace))
    for number, run in enumerate(report.runs, start=1):
        charts += charts_of_run(run, "" if number == 1 else f"run-{number}-")
    return charts


def charts_of_run(run: RunResults, prefix: str) -> list[Chart]:
    """Return the charts of a run; those of further runs of a project have a prefix."""
    charts = list[Chart]()
    for key, (name, title, rows) in _charts_by_key(run).items():
        if graph := graph_of(run.findings, key):
            drawing = partial(draw, graph, is_file=True)
            charts.append(Chart(f"{prefix}{name}", title, drawing, rows, key))
    return charts


def _charts_by_key(run: RunResults) -> Mapping[str, tuple[str, str, Callable[[], Rows]]]:
    """Return the name of its files, the title and the rows of each chart that there may be."""
    figures = run.findings
    rates = {
        key: (
            key.replace("_", "-"),
            "Winning rates" if task == WINNER else f"Winning rates: {task}",
            partial(_winning_rates, figures, task),
        )
        for task, key in figures.rate_charts.items()
    }
    models, passes = "Ratings of the models by people", "Pass rate of each model by people"
    of_judges = partial(file_rows, figures, run.elo)
    return {
        PICTURE: ("picture", "Overall agreement with people", of_judges),
        **rates,
        MODEL_RATINGS: ("model-ratings", models, partial(_ratings, figures)),
        MODEL_RATES: ("pass-rates", passes, partial(_pass_rates, figures)),
    }


# --- drawings -------------------------------------------------------------------------------------


def chart_of_score(of: QualityResults) -> Chart:
    points = score_points(of)

    title = f"{TITLES[Quality.Series(of.series)][0]}: score over time"

    def draw() -> str:
        graph = quality_graph(of.initial_score, points)
        return _alone("reports/_quality_svg.html", title, graph)

    rows: Rows = [{**point._asdict(), "at": point.at.isoformat()} for point in points]
    return Chart(f"score-{of.series}", title, draw, lambda: rows)


def score_points(of: QualityResults) -> list[Point]:
    return [Point(at.at, at.score, at.freshness, at.votes, at.passes) for at in of.points]


def chart_of_votes(pace: VotesOverTime) -> Chart:
    title = f"Votes per {pace.unit}"

    def draw() -> str:
        return _alone("judge_eval/_votes_svg.html", title, votes_graph(pace.votes, pace.unit))

    rows: Rows = [{pace.unit: at.isoformat(), "votes": votes} for at, votes in pace.votes]
    return Chart("votes", title, draw, lambda: rows)


def _alone(template: str, title: str, graph: object) -> str:
    return render_to_string(template, {"graph": graph, "title": title, "is_file": True})


# --- rows -----------------------------------------------------------------------------------------


def _winning_rates(figures: RunFindings, task: str) -> Rows:
    return list(_rates_of_judges(figures, task))


def _rates_of_judges(figures: RunFindings, task: str) -> Iterator[dict[str, Value]]:
    for judge in figures.alt_tests[task].judges:
        if judge.winning_rates:
            yield {"judge": judge.name, **judge.winning_rates}


def _ratings(figures: RunFindings) -> Rows:
    assert figures.models is not None  # they are drawn
    return [
        {
            "model": name,
            "rank": rating.rank,
            "rating": rating.value,
            "low": rating.low,
            "high": rating.high,
            "pairs": rating.n,
        }
        for name, rating in zip(figures.models.names, figures.models.boards[0].ratings, strict=True)
    ]


def _pass_rates(figures: RunFindings) -> Rows:
    return [
        {
            "model": of.name,
            "outputs": of.outputs,
            "pass rate": of.people.value,
            "low": of.people.low,
            "high": of.people.high,
            "votes": of.people.n,
        }
        for of in figures.pass_rates or ()
    ]
