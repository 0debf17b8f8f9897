"""Charts of judges as coordinates: figures with their intervals, and lines named at their ends.

A template draws them in the page's own colours: a live page cannot wait for a renderer. Intervals
are laid out here for a file of one width; `humanjudge.core.charts.plot` does it for a page of any.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Final, NamedTuple

from humanjudge.core.charts.labels import (
    RATING,
    SHARE,
    Axis,
    Ends,
    clean,
    shortened,
    spread,
    ticks,
    unprefixed,
    width_of,
)
from humanjudge.core.text import number_of

# Room for a letter of a name, of fonts that a page may come to be shown in a wide one; and for a
# smaller one below the axis.
_LETTER, _SMALL = 7.6, 6.8

# --- figures with intervals -----------------------------------------------------------------------

WIDE: Final = 960
# More rows than these stand closer to each other.
MOST_AIRY: Final = 6
_AIRY_STEP, _CLOSE_STEP = 36, 21
_ROWS_TOP: Final = 8
_LONGEST_NAME: Final = 30
# Between a line and its value, a swatch and its words, two words.
_GAP: Final = 10
_LINE: Final = 18
_SWATCH: Final = 16


class Level(NamedTuple):
    """What figures are measured against: people among themselves, the floor, or the start."""

    words: str
    value: float
    interval: Ends | None = None
    style: str = "floor"


class IntervalRow(NamedTuple):
    """A figure with its 95 % interval and the one that always holds; None where there is none."""

    name: str
    value: float | None
    interval: Ends | None = None
    always: Ends | None = None
    beats_floor: bool = True
    # Beside its value.
    note: str = ""
    # A rule such as "the longer answer wins", which a judge should beat.
    is_baseline: bool = False
    # The same by other means, on a page at the other end of a dumbbell.
    second_level: Level | None = None


class PlotText(NamedTuple):
    text: str
    x: float
    y: float
    anchor: str = "start"


class DrawnRow(NamedTuple):
    name: str
    beats_floor: bool
    y: float
    x: float | None
    thick: Ends | None
    thin: Ends | None
    label: PlotText
    value: PlotText


class Band(NamedTuple):
    style: str
    x: float
    low: float
    width: float
    # Its swatch stands before it.
    label: PlotText


@dataclass(frozen=True)
class IntervalGraph:
    words: str
    width: int
    height: int
    left: float
    right: float
    bottom: int
    ticks: list[PlotText]
    rows: list[DrawnRow]
    bands: list[Band]
    top: int = _ROWS_TOP


def interval_graph(
    rows: Sequence[IntervalRow],
    levels: Sequence[Level] = (),
    *,
    title: str,
    axis: Axis = SHARE,
) -> IntervalGraph | None:
    """Lay out rows in the order given, names and values beside the lines; None without any."""
    if not rows:
        return None
    names = [shortened(name, _LONGEST_NAME) for name in unprefixed([row.name for row in rows])]
    values = [", ".join(filter(None, [axis.write(row.value), row.note])) for row in rows]
    low, high = axis.ends(ends_of(rows, levels))
    # Room for the names, and for a value behind the longest line.
    left = min(round(_LETTER * max(map(width_of, names)) + 24), 260)
    right = WIDE - round(_LETTER * max(map(width_of, values)) + 24)
    step = _AIRY_STEP if len(rows) <= MOST_AIRY else _CLOSE_STEP

    def x(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(left + (right - left) * share, 1)

    def ends(interval: Ends | None) -> Ends | None:
        return interval and (x(interval[0]), x(interval[1]))

    drawn = []
    for place, row in enumerate(rows):
        y = _ROWS_TOP + step * place + step / 2
        thick, thin = ends(row.interval), ends(row.always)
        dot = None if row.value is None else x(row.value)
        last = max([left if dot is None else dot + 8, *(thick or ()), *(thin or ())])
        label = PlotText(names[place], left - 18, y, "end")
        value = PlotText(values[place], last + _GAP, y)
        name = clean(row.name)
        drawn.append(DrawnRow(name, row.beats_floor, y, dot, thick, thin, label, value))
    bottom = _ROWS_TOP + step * len(rows)
    marks = ticks(low, high) if high > low else [low]
    labels = [PlotText(axis.write(mark), x(mark), bottom + 16, "middle") for mark in marks]
    bands = _bands(levels, axis, x, bottom + 16 + _LINE)
    in_words = ", ".join(f"{row.name} {row.value.text}" for row in drawn)
    return IntervalGraph(
        words="; ".join([f"{title}, best first: {in_words}", *(band.label.text for band in bands)]),
        width=WIDE,
        height=round(max([bottom + 16, *(band.label.y for band in bands)]) + 12),
        left=left,
        right=right,
        bottom=bottom,
        ticks=labels,
        rows=drawn,
        bands=bands,
    )


def ends_of(rows: Sequence[IntervalRow], levels: Sequence[Level] = ()) -> Iterator[float | None]:
    """Yield every number that must lie on the axis."""
    for row in rows:
        yield from (row.value, *(row.interval or ()), *(row.always or ()))
        yield row.second_level and row.second_level.value
    for level in levels:
        yield from (level.value, *(level.interval or ()))


def _bands(
    levels: Sequence[Level], axis: Axis, x: Callable[[float], float], y: float
) -> list[Band]:
    """Put the words of each level below it; under each other where they would touch."""
    bands, end_x = list[Band](), 0.0
    for level in sorted(levels, key=lambda level: level.value):
        words = f"{shortened(level.words, 40)} {axis.write(level.value)}"
        room = _SMALL * width_of(words) + _SWATCH
        start = round(min(max(x(level.value) - room / 2, 2), max(WIDE - room, 2)))
        y += _LINE if start < end_x else 0
        end_x = start + room + _GAP
        low, high = level.interval or (level.value, level.value)
        label, breadth = PlotText(words, start + _SWATCH, y), round(x(high) - x(low), 1)
        bands.append(Band(level.style, x(level.value), x(low), breadth, label))
    return bands


# --- lines ---------------------------------------------------------------------------------------

_PLOT_WIDTH: Final = 560
LEAST_HEIGHT: Final = 260
_LEFT, _TOP, _BOTTOM = 44, 12, 28
_RIGHT: Final = _LEFT + _PLOT_WIDTH
# Of words below the ticks.
_WORDS: Final = 18
# Room for the value behind a label.
_VALUE: Final = 48
_SHORT_NAME: Final = 14
# Two labels nearer than this would overlap.
LABEL_GAP: Final = 14.0
_LEADER: Final = 12
_START: Final = Level("", 1000.0)
# Of lines: no two of the first 40 have both in common.
HUES: Final = 8
DASHES: Final = 5
# Where there are more lines than these, all step back but those that agree most.
MOST_EQUAL: Final = 6
LEADING: Final = 3
# The least height of an axis of ratings.
_LEAST_RATINGS: Final = 40.0
_TABLE_ROWS: Final = 12


class Tick(NamedTuple):
    position: float
    label: str
    anchor: str = "middle"


class PlacedGraph:
    """A graph whose ticks can be placed on a page of any width."""

    x_ticks: list[Tick]
    plot_left: int
    plot_width: int

    @property
    def places(self) -> list[tuple[float, Tick]]:
        """Where the ticks below are, in per cent of the plot."""
        return [
            (round(100 * (tick.position - self.plot_left) / self.plot_width, 2), tick)
            for tick in self.x_ticks
        ]


class Curve(NamedTuple):
    """A judge's figure at several places, ascending; None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]
    is_baseline: bool = False

    @property
    def values(self) -> dict[float, float]:
        return {place: value for place, value in self.points if value is not None}


@dataclass(frozen=True)
class ChartLine:
    name: str
    label: str
    style: str
    points: str
    end_y: float
    label_y: float
    value: str
    # As it stands on a narrow page.
    short: str = ""


@dataclass(frozen=True)
class LineGraph(PlacedGraph):
    lines: list[ChartLine]
    y_ticks: list[Tick]
    x_ticks: list[Tick]
    # Across the plot: where ratings start, or where a judge passes.
    rule: Tick
    # Below the ticks, and all of it for those who cannot see it.
    x_words: str
    words: str
    plot_bottom: int
    height: int
    width: int
    plot_left: int = _LEFT
    plot_right: int = _RIGHT
    plot_width: int = _PLOT_WIDTH
    label_x: int = _RIGHT + _LEADER
    # Some of the places with the value of each line there.
    table: list[tuple[int, list[float]]] = field(default_factory=list)

    @property
    def names_width(self) -> int:
        """The room of the names on a page that is wide enough, in pixels."""
        return self.width - self.label_x


def line_graph(
    curves: Sequence[Curve],
    *,
    title: str,
    x: Axis,
    y: Axis,
    rule: Level,
    order: Sequence[int] | None = None,
) -> LineGraph | None:
    """Lay out a line for each judge; None where there is nothing to draw.

    `rule` is a level across the plot, for instance where a judge passes. Of many lines the first of
    `order` stand out, or those that are highest in the mean.
    """
    curves = [curve for curve in curves if curve.values]
    if not curves:
        return None
    if order is None:
        means = [fmean(curve.values.values()) for curve in curves]
        order = sorted(range(len(curves)), key=lambda place: -means[place])
    courses = [[*curve.values.items()] for curve in curves]
    left, right = x.ends(place for course in courses for place, _ in course)
    low, high = y.ends([rule.value, *(value for course in courses for _, value in course)])
    # As high as its labels under each other, however many judges there are.
    bottom = max(LEAST_HEIGHT - _BOTTOM, round(_TOP + LABEL_GAP * len(curves)))

    def across(place: float) -> float:
        share = (place - left) / (right - left) if right > left else 1.0
        return round(_LEFT + _PLOT_WIDTH * share, 1)

    def down(value: float) -> float:
        return round(_TOP + (bottom - _TOP) * (high - value) / (high - low), 1)

    names = [clean(curve.name) for curve in curves]
    labels = [shortened(name, 40) for name in unprefixed(names)]
    last = [course[-1][1] for course in courses]
    label_ys = spread([down(value) for value in last], LABEL_GAP, float(bottom))
    stepping_back = order[LEADING:] if len(curves) > MOST_EQUAL else ()
    lines = [
        ChartLine(
            name=names[place],
            label=labels[place],
            style=("baseline" if curve.is_baseline else f"hue-{place % HUES} dash-{place % DASHES}")
            + " many" * (place in stepping_back),
            points=" ".join(f"{across(step)},{down(value)}" for step, value in courses[place]),
            end_y=down(last[place]),
            label_y=label_ys[place],
            value=y.write(last[place]),
            short=shortened(labels[place], _SHORT_NAME),
        )
        for place, curve in enumerate(curves)
    ]
    in_words = "; ".join(
        f"{name} from {y.write(course[0][1])} to {y.write(course[-1][1])}"
        for name, course in zip(names, courses, strict=True)
    )
    marks = ticks(left, right) if right > left else [left]
    return LineGraph(
        lines=lines,
        y_ticks=[Tick(down(value), y.write(value)) for value in ticks(low, high)],
        x_ticks=[Tick(across(place), x.write(place)) for place in marks],
        rule=Tick(down(rule.value), rule.words),
        x_words=x.words,
        words=f"{title}: {in_words}.",
        plot_bottom=bottom,
        height=bottom + _BOTTOM + (_WORDS if x.words else 0),
        width=round(_RIGHT + _LEADER + _LETTER * max(map(width_of, labels)) + _VALUE),
    )


def rating_graph(
    names: Sequence[str],
    series: Sequence[tuple[int, Sequence[float]]],
    baselines: Collection[int] = (),
    order: Sequence[int] = (),
) -> LineGraph | None:
    """Lay out ratings over votes; None when there is nothing to draw yet.

    `series` has votes so far and the ratings after them, oldest first, judges in the order of
    `names`: one that joined later is missing at the end of earlier rows and stood at 1000 there.
    `baselines` are drawn dashed. `order` is judges by agreement: of many, the first stand out.
    """
    rows = rating_rows(len(names), series)
    if not rows:
        return None
    curves = [
        Curve(name, [(votes, ratings[judge]) for votes, ratings in rows], judge in baselines)
        for judge, name in enumerate(names)
    ]
    low, high = RATING.ends(rating for _, ratings in rows for rating in ratings)
    slack = max((_LEAST_RATINGS - (high - low)) / 2, 0.0)
    y = replace(RATING, low=low - slack, high=high + slack)
    votes = Axis("", ",.0f", 0)
    graph = line_graph(curves, title="Ratings", x=votes, y=y, rule=_START, order=order)
    if graph is None:
        return None
    last = number_of(rows[-1][0], "vote")
    # About a dozen rows, always with the first and the last.
    step = -(-(len(rows) - 1) // _TABLE_ROWS)
    return replace(
        graph,
        x_ticks=[Tick(_LEFT, "0", "start"), Tick(_RIGHT, last, "end")],
        table=[*rows[:-1:step], rows[-1]],
    )


def rating_rows(
    judges: int, series: Sequence[tuple[int, Sequence[float]]]
) -> list[tuple[int, list[float]]]:
    """Return votes and the ratings of all judges after them, from 0 votes on.

    Examples
    --------
    >>> rating_rows(2, [(1, [1016.0]), (2, [1030.0, 986.0])])
    [(0, [1000.0, 1000.0]), (1, [1016.0, 1000.0]), (2, [1030.0, 986.0])]
    """
    start = [_START.value] * judges
    padded = [(votes, [*row, *start[len(row) :]][:judges]) for votes, row in series]
    return [(0, start), *padded] if padded else []
