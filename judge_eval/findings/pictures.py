"""The charts of a run, laid out from its findings for pages, files and reports."""

from collections.abc import Collection, Sequence
from typing import Final, TypeAlias

from django.template.loader import render_to_string
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from humanjudge.charts.graphs import (
    Curve,
    IntervalGraph,
    IntervalRow,
    Level,
    LineGraph,
    interval_graph,
    line_graph,
)
from humanjudge.charts.labels import RATING, SHARE, Axis
from judge_eval.findings.model import AltTest, RunFindings
from judge_eval.stats.estimate import Interval

Graph: TypeAlias = IntervalGraph | LineGraph

# The names of charts; those of winning rates are `RunFindings.rate_charts`.
PICTURE: Final = "agreement"
MODEL_RATINGS: Final = "model_ratings"
MODEL_RATES: Final = "pass_rates"
# A drawing needs nothing from anywhere, whoever opens it and whatever the names in it say.
INERT: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"


def picture_of(
    figures: RunFindings, *, is_narrow: bool = False, only: Collection[str] | None = None
) -> IntervalGraph | None:
    """Lay out the overall agreement of judges, of all or of those shown, by their identifiers."""
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
        of = floor.overall
        levels.append(Level(f"floor: {floor.name}", of.value or 0.0, _both(of.low, of.high)))
    title = "Overall agreement with people"
    return interval_graph(judges, levels, title=title, is_narrow=is_narrow)


def pictures_of(figures: RunFindings, only: Collection[str] | None = None) -> list[IntervalGraph]:
    """Return the same for wide pages and for narrow ones; none where no judge has a figure."""
    both = (picture_of(figures, is_narrow=is_narrow, only=only) for is_narrow in (False, True))
    return [graph for graph in both if graph]


def chart_names(figures: RunFindings) -> set[str]:
    """Return the names of the charts that there are figures for."""
    names = (PICTURE, *figures.rate_charts.values(), MODEL_RATINGS, MODEL_RATES)
    return {name for name in names if graph_of(figures, name)}


def graph_of(figures: RunFindings, name: str, *, is_narrow: bool = False) -> Graph | None:
    """Lay out a chart; None where there is none of that name, or nothing to draw."""
    if name == PICTURE:
        return picture_of(figures, is_narrow=is_narrow)
    if name == MODEL_RATINGS:
        return _model_ratings(figures, is_narrow=is_narrow)
    if name == MODEL_RATES:
        return _pass_rates(figures, is_narrow=is_narrow)
    test = next((figures.alt_tests[t] for t, n in figures.rate_charts.items() if n == name), None)
    return _winning_rates(test) if test else None


def draw(graph: Graph, *, is_file: bool = False) -> SafeString:
    """Draw a chart as SVG, in the colours of the page that it stands in, or for a file."""
    name = "lines_svg" if isinstance(graph, LineGraph) else "intervals"
    return render_to_string(f"judge_eval/_{name}.html", {"graph": graph, "is_file": is_file})


def on_page(figures: RunFindings, name: str) -> SafeString:
    """Draw a chart for wide pages and for narrow ones, where these differ."""
    graphs = [graph_of(figures, name), graph_of(figures, name, is_narrow=True)]
    drawings = dict.fromkeys((draw(graph),) for graph in graphs if graph)
    return format_html_join("", "{}", drawings)


def _winning_rates(test: AltTest) -> LineGraph | None:
    # It brings NumPy, which most pages do without.
    from judge_eval.stats import PASSES

    curves = [
        Curve(judge.name, [(float(at), rate) for at, rate in rates.items()], judge.is_baseline)
        for judge in test.judges
        if (rates := judge.winning_rates)
    ]
    title, passes = "Share of people a judge wins against", Level("passes", PASSES)
    return line_graph(curves, title=title, x=Axis("epsilon"), y=SHARE, rule=passes)


def _model_ratings(figures: RunFindings, *, is_narrow: bool) -> IntervalGraph | None:
    if figures.models is None:
        return None
    named = zip(figures.models.names, figures.models.boards[0].ratings, strict=True)
    rows = [IntervalRow(name, of.value, _both(of.low, of.high)) for name, of in named]
    return _models(rows, "Rating of the models by people", RATING, is_narrow=is_narrow)


def _pass_rates(figures: RunFindings, *, is_narrow: bool) -> IntervalGraph | None:
    named = [(of.name or "not named", of.people) for of in figures.pass_rates or ()]
    rows = [IntervalRow(name, of.value, _both(of.low, of.high)) for name, of in named]
    return _models(rows, "Pass rate of each model by people", SHARE, is_narrow=is_narrow)


def _models(
    rows: Sequence[IntervalRow], title: str, axis: Axis, *, is_narrow: bool
) -> IntervalGraph | None:
    if all(row.value is None for row in rows):
        return None
    best = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0)))
    start = [Level("start", 1000)] if axis is RATING else []
    return interval_graph(best, start, title=title, axis=axis, is_narrow=is_narrow)


def _both(low: float | None, high: float | None) -> Interval | None:
    return None if low is None or high is None else (low, high)
