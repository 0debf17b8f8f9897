"""The charts of a report: each as a drawing in a file of its own, and as rows of figures."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from django.template.loader import render_to_string

from humanjudge.charts.draw import in_light_colours
from humanjudge.charts.quality_graph import Point, quality_graph
from humanjudge.charts.votes_graph import votes_graph
from judge_eval.findings.columns import Value, file_rows
from judge_eval.findings.model import WINNER, RunFindings
from judge_eval.findings.pictures import PICTURE, picture_of
from reports.models import Quality
from reports.quality.views import TITLES
from reports.report.model import QualityResults, Report, RunResults, VotesOverTime

# What a drawing takes from the page that it stands in, and its own colour for where it is alone.
_VARIABLE: Final = re.compile(r"var\(--[\w-]+, ([^()]+)\)")
Rows = list[dict[str, Value]]


@dataclass(frozen=True)
class Chart:
    """A chart by the name of its files; `key` is what it is kept under where it was drawn."""

    name: str
    title: str
    draw: Callable[[], str]
    rows: Callable[[], Rows]
    key: str = ""

    def svg(self) -> str:
        """Return a drawing that needs no page around it, in the colours of a light one."""
        return _VARIABLE.sub(r"\1", in_light_colours(self.draw()))


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
    found, charts = run.findings, list[Chart]()
    if any(judge.overall.value is not None for judge in found.judges if not judge.is_baseline):
        draw, of_judges = partial(_picture, found), partial(file_rows, found, run.elo)
        title = "Overall agreement with people"
        charts.append(Chart(f"{prefix}picture", title, draw, of_judges, PICTURE))
    for key, (title, rows) in _drawn(found).items():
        if drawing := run.charts.get(key):
            name = f"{prefix}{key.replace('_', '-')}"
            charts.append(Chart(name, title, partial(str, drawing), rows, key))
    return charts


def _drawn(found: RunFindings) -> Mapping[str, tuple[str, Callable[[], Rows]]]:
    """Return what is drawn in the background, by the name under which it is kept."""
    of_tasks = {
        key: (
            "Winning rates" if task == WINNER else f"Winning rates: {task}",
            partial(_winning_rates, found, task),
        )
        for task, key in found.rate_charts.items()
    }
    return {
        **of_tasks,
        "model_ratings": ("Ratings of the models by people", partial(_ratings, found)),
        "pass_rates": ("Pass rate of each model by people", partial(_pass_rates, found)),
    }


# --- drawings -------------------------------------------------------------------------------------


def _picture(found: RunFindings) -> str:
    return _alone("judge_eval/_agreement.html", "", picture_of(found))


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


def _winning_rates(found: RunFindings, task: str) -> Rows:
    return list(_rates_of_judges(found, task))


def _rates_of_judges(found: RunFindings, task: str) -> Iterator[dict[str, Value]]:
    for judge in found.alt_tests[task].judges:
        if judge.winning_rates:
            yield {"judge": judge.name, **judge.winning_rates}


def _ratings(found: RunFindings) -> Rows:
    assert found.models is not None  # they are drawn
    return [
        {
            "model": name,
            "rank": rating.rank,
            "rating": rating.value,
            "low": rating.low,
            "high": rating.high,
            "pairs": rating.n,
        }
        for name, rating in zip(found.models.names, found.models.boards[0].ratings, strict=True)
    ]


def _pass_rates(found: RunFindings) -> Rows:
    return [
        {
            "model": of.name,
            "outputs": of.outputs,
            "pass rate": of.people.value,
            "low": of.people.low,
            "high": of.people.high,
            "votes": of.people.n,
        }
        for of in found.pass_rates or ()
    ]
