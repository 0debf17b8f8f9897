"""The charts of score files: bars, lines, judges beside people. A function returns a chart, or None
where there is nothing to draw.

What has no figure is shown as "no figure", never as zero, and a baseline has a paler mark and the
word beside its name.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import cycle
from statistics import fmean
from typing import Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from humanjudge.core.charts.graphs import Curve, IntervalRow, Level, ends_of
from humanjudge.core.charts.labels import NO_FIGURE, Axis, Ends, clean, labels, shortened, spread
from humanjudge.core.charts.matplot import Chart

# More rows than that are no picture any more: each judge then gets one, its mean over people.
MOST_ROWS: Final = 60
_WORDS_UNITS: Final = 45
# A row, a label at the end of a line, and what stands above and below the rows, in pixels.
_ROW, _LABEL, _AROUND = 24, 17, 100
_LEAST_HEIGHT: Final = 320
_DASHES: Final = ("-", "--", "-.", ":")
_PALE: Final = 0.3
_LEADER: Final = {"arrowstyle": "-", "linewidth": 0.6, "relpos": (0, 0.5)}


class Versus(NamedTuple):
    """A judge and a person, measured against the other people: both, or neither."""

    judge: str
    person: str
    of_judge: float | None
    of_person: float | None
    is_baseline: bool = False


def bars(
    rows: Iterable[IntervalRow], *, title: str, axis: Axis, reference: Level | None = None
) -> Chart | None:
    """Draw a bar with its interval per judge, the best first; None without judges.

    `reference` is for instance what people reach among themselves.
    """
    rows = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0)))
    if not rows:
        return None
    words = ", ".join(
        f"{clean(row.name)}{' (baseline)' * row.is_baseline} {axis.write(row.value)}"
        for row in rows
    )
    words += f"; {reference.words} {axis.write(reference.value)}" if reference else ""
    words = f"{clean(title)}. Best first: {words}. Lines are 95 % intervals."
    draw = partial(_draw_bars, rows, axis, reference)
    return Chart(title, words, _AROUND + _ROW * len(rows), draw)


def _draw_bars(
    rows: Sequence[IntervalRow], axis: Axis, reference: Level | None, axes: Axes
) -> None:
    ends = axis.ends([0.0, *ends_of(rows, [reference] if reference else [])])
    names = labels((row.name, row.is_baseline) for row in rows)
    texts = [
        f"{name}   {axis.write(row.value, '')}".rstrip()
        for name, row in zip(names, rows, strict=True)
    ]
    _rows(axes, texts, axis, ends)
    for place, row in enumerate(rows):
        if row.value is None:
            _no_figure(axes, place)
            continue
        axes.barh(place, row.value, 0.6, color="C0", alpha=_PALE if row.is_baseline else 0.75)
        if row.interval:
            axes.hlines(place, *row.interval, color=mpl.rcParams["text.color"])
    if reference:
        _reference(axes, reference, axis, ends)


def _reference(axes: Axes, reference: Level, axis: Axis, ends: Ends) -> None:
    """Draw a band as wide as its interval, and a rule down the plot with its label above it."""
    ink = mpl.rcParams["text.color"]
    if reference.interval:
        axes.axvspan(*reference.interval, color=ink, alpha=0.08, linewidth=0, zorder=0.5)
    axes.axvline(reference.value, color=ink, linestyle=":", linewidth=1)
    # Towards the middle, so that the chart is no wider for it.
    side = "left" if 2 * reference.value < sum(ends) else "right"
    axes.annotate(
        f"{shortened(reference.words, _WORDS_UNITS)} {axis.write(reference.value)}",
        xy=(reference.value, 1),
        xytext=(0, 4),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        horizontalalignment=side,
        color=mpl.rcParams["xtick.color"],
        fontsize=mpl.rcParams["axes.labelsize"],
    )


def grouped(rows: Iterable[Versus], *, title: str, axis: Axis) -> Chart | None:
    """Draw each judge beside each person, of many people their mean; None without rows."""
    judges: dict[tuple[str, bool], list[Versus]] = {}
    for row in rows:
        judges.setdefault((row.judge, row.is_baseline), []).append(row)
    if not judges:
        return None
    heads = dict(zip(judges, labels(judges), strict=True))
    means = {judge: _mean(people) for judge, people in judges.items()}
    # A row without a person is the head of a judge's.
    listed: list[tuple[str, Versus | None]] = []
    if len(judges) + sum(map(len, judges.values())) > MOST_ROWS:
        title += ", means over people"
        listed += [(heads[judge], mean) for judge, mean in means.items()]
    else:
        for judge, people in judges.items():
            listed += [(heads[judge], None), *((shortened(row.person), row) for row in people)]
    words = "; ".join(
        f"{clean(mean.judge)} {axis.write(mean.of_judge)}"
        + ("" if mean.of_judge is None else f" against {axis.write(mean.of_person)}")
        for mean in means.values()
    )
    words = f"{clean(title)}. Judge against person, mean over people: {words}."
    height = _AROUND + 20 + _ROW * len(listed)
    return Chart(title, words, height, partial(_draw_grouped, listed, axis))


def _mean(people: Sequence[Versus]) -> Versus:
    pairs = [(row.of_judge, row.of_person) for row in people]
    pairs = [pair for pair in pairs if None not in pair]
    of_judge, of_person = map(fmean, zip(*pairs, strict=True)) if pairs else (None, None)
    return people[0]._replace(of_judge=of_judge, of_person=of_person)


def _draw_grouped(listed: Sequence[tuple[str, Versus | None]], axis: Axis, axes: Axes) -> None:
    points = [
        (place, row.of_judge, row.of_person)
        for place, (_, row) in enumerate(listed)
        if row and row.of_judge is not None and row.of_person is not None
    ]
    ends = axis.ends(end for _, *figures in points for end in figures)
    texts = [
        f"{name}   {axis.write(row.of_judge)}  {axis.write(row.of_person)}"
        if row and row.of_judge is not None
        else name
        for name, row in listed
    ]
    _rows(axes, texts, axis, ends)
    for place, (label, (_, row)) in enumerate(zip(axes.get_yticklabels(), listed, strict=True)):
        if row is None:
            label.set_fontweight("bold")
        elif row.of_judge is None:
            _no_figure(axes, place)
    places = [place for place, _, _ in points]
    of_judge, of_person = [point[1] for point in points], [point[2] for point in points]
    axes.hlines(places, of_judge, of_person, color=mpl.rcParams["xtick.color"], linewidth=1)
    paper = mpl.rcParams["axes.facecolor"]
    axes.plot(of_judge, places, "o", color="C0", zorder=3, label="the judge")
    person = "the person in its place"
    axes.plot(of_person, places, "o", color="C0", markerfacecolor=paper, label=person)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)


def lines(
    series: Sequence[Curve], *, title: str, x: Axis, y: Axis, threshold: Level
) -> Chart | None:
    """Draw a line per judge, named at its end.

    `threshold` is a rule across the plot, for instance where a judge passes.
    """
    if not series:
        return None
    courses = "; ".join(f"{clean(curve.name)} {_course(curve, x, y)}" for curve in series)
    words = f"{clean(title)} over {x.words}: {courses}. {threshold.words}."
    height = max(_LEAST_HEIGHT, _AROUND + _LABEL * len(series))
    draw = partial(_draw_lines, series, x, y, threshold, _LABEL / (height - _AROUND))
    return Chart(title, words, height, draw, 800)


def _course(curve: Curve, x: Axis, y: Axis) -> str:
    values = curve.values
    if not values:
        return NO_FIGURE
    ends = [f"{y.write(values[step])} at {x.write(step)}" for step in (min(values), max(values))]
    return f"from {ends[0]} to {ends[1]}"


def _draw_lines(
    series: Sequence[Curve], x: Axis, y: Axis, threshold: Level, gap: float, axes: Axes
) -> None:
    courses = [curve.values for curve in series]
    names = labels((curve.name, curve.is_baseline) for curve in series)
    left, right = x.ends(place for points in courses for place in points)
    low, high = y.ends([threshold.value, *(v for points in courses for v in points.values())])
    axes.grid(axis="y")
    axes.axhline(threshold.value, color=mpl.rcParams["text.color"], linestyle=":", linewidth=1)
    axes.annotate(
        shortened(threshold.words, _WORDS_UNITS),
        xy=(left, threshold.value),
        xytext=(2, 3),
        textcoords="offset points",
        color=mpl.rcParams["xtick.color"],
        fontsize=mpl.rcParams["axes.labelsize"],
    )
    # Equal lines are seen through the gaps of each other.
    drawn = []
    for curve, points, dash in zip(series, courses, cycle(_DASHES), strict=False):
        [line] = axes.plot([*points], [*points.values()], linestyle=dash)
        if curve.is_baseline:
            line.set(color=mpl.rcParams["xtick.color"], linestyle=":")
        drawn.append(line)
    # Where two lines end alike, the one that was higher before is named above the other.
    last = [[*points.values()][-1] if points else low for points in courses]
    order = sorted(range(len(courses)), key=lambda i: (-last[i], -sum(courses[i].values())))
    downs = spread([(high - last[i]) / (high - low or 1.0) for i in order], gap, 1.0)
    for i, down in zip(order, downs, strict=True):
        axes.annotate(
            names[i] if courses[i] else f"{names[i]} · {NO_FIGURE}",
            xy=(right, last[i]),
            xytext=(1.05, high - down * (high - low)),
            textcoords=("axes fraction", "data"),
            verticalalignment="center",
            arrowprops=_LEADER | {"color": drawn[i].get_color()} if courses[i] else None,
        )
    axes.set(xlim=(left, right), ylim=(low, high), xlabel=x.words, ylabel=y.words)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: x.write(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: y.write(value)))


def _rows(axes: Axes, texts: Sequence[str], axis: Axis, ends: Ends) -> None:
    """Give each row its place, the first on top, and the axis its ends and its numbers."""
    axes.set_yticks(range(len(texts)), texts)
    words = shortened(axis.words, _WORDS_UNITS) if axis.words else ""
    axes.set(xlim=ends, ylim=(len(texts) - 0.5, -0.5), xlabel=words)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: axis.write(value)))


def _no_figure(axes: Axes, place: int) -> None:
    soft = mpl.rcParams["xtick.color"]
    transform = axes.get_yaxis_transform()
    axes.text(0.01, place, NO_FIGURE, color=soft, verticalalignment="center", transform=transform)
