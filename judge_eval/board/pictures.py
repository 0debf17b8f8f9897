"""The charts of a run, laid out from its findings for pages, files and reports."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from humanjudge.core.charts.graphs import (
    Curve,
    IntervalGraph,
    IntervalRow,
    Level,
    LineGraph,
    interval_graph,
    line_graph,
)
from humanjudge.core.charts.labels import RATING, SHARE, Axis
from humanjudge.core.charts.plot import Plot, PlotScale, lay_out_plot
from judge_eval.board.model import AltTest, RunFindings
from judge_eval.stats.estimate import Interval

Graph: TypeAlias = IntervalGraph | LineGraph

# The names of charts; those of winning rates are `RunFindings.rate_charts`.
PICTURE: Final = "agreement"
MODEL_RATINGS: Final = "model_ratings"
MODEL_RATES: Final = "pass_rates"
# A drawing needs nothing from anywhere, whoever opens it and whatever the names in it say.
INERT: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


@dataclass(frozen=True)
class IntervalChart:
    """Figures with their intervals, which a page draws in its own way and a file in another."""

    title: str
    rows: Sequence[IntervalRow]
    levels: Sequence[Level]
    axis: Axis = SHARE

    def for_page(self) -> Plot | None:
        return lay_out_plot(self.rows, self.levels, title=self.title, axis=self.axis)

    def for_file(self) -> IntervalGraph | None:
        return interval_graph(self.rows, self.levels, title=self.title, axis=self.axis)


def agreement_chart(figures: RunFindings, only: Collection[str] | None = None) -> IntervalChart:
    """Return the overall agreement of judges, of all or of those shown, by their identifiers."""
    ranked = [judge for judge in figures.best_first() if judge.overall.value is not None]
    judges = [
        IntervalRow(
            judge.name,
            judge.overall.value,
            _both(judge.overall.low, judge.overall.high),
            _both(judge.always_low, judge.always_high),
            bool(judge.beats_floor),
            "" if judge.coverage.value else "no verdict",
        )
        for judge in ranked
        if not judge.is_baseline and (only is None or judge.id in only)
    ]
    levels, pairs = list[Level](), figures.among_people.pairs
    if pairs.value is not None:
        words = "people among themselves"
        levels.append(Level(words, pairs.value, _both(pairs.low, pairs.high), "people"))
    floor = next((judge for judge in ranked if judge.is_baseline), None)
    if floor:
        share = floor.overall
        interval = _both(share.low, share.high)
        levels.append(Level(f"floor: {floor.name}", share.value or 0.0, interval))
    return IntervalChart("Overall agreement with people", judges, levels)


def plot_of(figures: RunFindings, only: Collection[str] | None = None) -> Plot | None:
    return agreement_chart(figures, only).for_page()


def chart_names(figures: RunFindings) -> set[str]:
    names = (PICTURE, *figures.rate_charts.values(), MODEL_RATINGS, MODEL_RATES)
    return {name for name in names if graph_of(figures, name)}


def graph_of(figures: RunFindings, name: str) -> Graph | None:
    """Lay out a chart for a file; None where there is none of that name, or nothing to draw."""
    if name in _INTERVAL_CHARTS:
        chart = _INTERVAL_CHARTS[name](figures)
        return chart.for_file() if chart else None
    test = next((figures.alt_tests[t] for t, n in figures.rate_charts.items() if n == name), None)
    return _winning_rates(test) if test else None


def draw(graph: Graph, *, is_file: bool = False) -> SafeString:
    """Draw a chart as SVG, in the colours of the page that it stands in, or for a file."""
    lines = "lines_svg" if is_file else "lines"
    name = lines if isinstance(graph, LineGraph) else "intervals"
    return render_to_string(f"judge_eval/board/_{name}.html", {"graph": graph})


def on_page(figures: RunFindings, name: str) -> SafeString:
    """Draw a chart for a page of any width; nothing where there is none."""
    if name in _INTERVAL_CHARTS:
        chart = _INTERVAL_CHARTS[name](figures)
        plot = chart and chart.for_page()
        return (
            render_to_string("judge_eval/board/_plot.html", {"plot": plot})
            if plot
            else SafeString()
        )
    graph = graph_of(figures, name)
    return draw(graph) if graph else SafeString()


def _winning_rates(test: AltTest) -> LineGraph | None:
    # It brings NumPy, which most pages do without.
    from judge_eval.stats import PASSES

    curves = [
        Curve(
            judge.name,
            [(float(epsilon), rate) for epsilon, rate in rates.items()],
            judge.is_baseline,
        )
        for judge in test.judges
        if (rates := judge.winning_rates)
    ]
    title, passes = "Share of people a judge wins against", Level("passes", PASSES)
    return line_graph(curves, title=title, x=Axis("epsilon"), y=SHARE, rule=passes)


def course_graph(figures: RunFindings) -> LineGraph | None:
    if figures.course is None:
        return None
    names = {judge.id: judge.name for judge in figures.judges}
    votes, levels = figures.course.votes, agreement_chart(figures).levels
    curves = [
        Curve(names[pk], [*zip(votes, shares, strict=True)])
        for pk, shares in figures.course.judges.items()
    ]
    rule = levels[-1] if levels else Level("", 1.0)
    numbers = [rule.value, *(value for curve in curves for value in curve.values.values())]
    return line_graph(
        curves,
        title="Agreement with people as votes came in",
        x=Axis("votes", ",.0f", 0),
        y=replace(SHARE, low=PlotScale.fit(SHARE, numbers).low),
        rule=rule,
        order=range(len(curves)),
    )


def lead_in_words(figures: RunFindings) -> str:
    """Say from how many votes on the first judge has been in front, if it is."""
    if figures.course is None or len(figures.course.judges) < 2:
        return ""
    leader, *judges_behind = figures.course.judges
    courses, since = figures.course.judges, 0
    for place, votes in enumerate(figures.course.votes):
        rest = [courses[pk][place] or 0.0 for pk in judges_behind]
        is_ahead = (courses[leader][place] or 0.0) > max(rest)
        since = (since or votes) if is_ahead else 0
    name = next(judge.name for judge in figures.judges if judge.id == leader)
    return f"{name} is in front from {since:,} votes on." if since else ""


def _model_ratings(figures: RunFindings) -> IntervalChart | None:
    if figures.models is None:
        return None
    named = zip(figures.models.names, figures.models.boards[0].ratings, strict=True)
    rows = [
        IntervalRow(name, rating.value, _both(rating.low, rating.high)) for name, rating in named
    ]
    start = [Level("start", 1000, style="start")]
    return _models("Rating of the models by people", rows, start, RATING)


def _pass_rates(figures: RunFindings) -> IntervalChart | None:
    named = [(rates.name or "not named", rates.people) for rates in figures.pass_rates or ()]
    rows = [IntervalRow(name, share.value, _both(share.low, share.high)) for name, share in named]
    return _models("Pass rate of each model by people", rows, (), SHARE)


def _models(
    title: str, rows: Sequence[IntervalRow], levels: Sequence[Level], axis: Axis
) -> IntervalChart | None:
    if all(row.value is None for row in rows):
        return None
    best = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0)))
    return IntervalChart(title, best, levels, axis)


def _both(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)


_INTERVAL_CHARTS: Final[Mapping[str, Callable[[RunFindings], IntervalChart | None]]] = {
    PICTURE: agreement_chart,
    MODEL_RATINGS: _model_ratings,
    MODEL_RATES: _pass_rates,
}
