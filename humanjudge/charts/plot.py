"""The same charts for a page: positions are shares of the width, so that letters keep their size.

A file has one width and needs `humanjudge.charts.graphs`; a page has any, and no style attribute
is allowed in it: an SVG without a view box takes its positions in per cent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Final, NamedTuple

from humanjudge.charts.graphs import IntervalRow, Level, ends_of
from humanjudge.charts.labels import SHARE, Axis, Ends, clean, ticks, unprefixed

# Names of two levels that are nearer than this stand on two lines; nearer to an end, within it.
_NEAR: Final = 30.0
_EDGE: Final = 12.0
_MOST_TICKS: Final = 7


class PlotLabel(NamedTuple):
    """Words at a place of the axis, in per cent of its length."""

    text: str
    x: float
    anchor: str = "middle"
    line: int = 1


class PlotRow(NamedTuple):
    """A figure in words and, in per cent of the axis, where it and its intervals lie."""

    name: str
    value: str
    # The ends of its interval, or why there are none.
    beside: str
    x: float | None
    thick: Ends | None
    thin: Ends | None
    beats_floor: bool


class PlotBand(NamedTuple):
    """What figures are measured against: a line with a shade from `low` to `low + width`."""

    style: str
    x: float
    low: float
    width: float
    label: PlotLabel


@dataclass(frozen=True)
class Plot:
    """A chart of figures with their intervals, for a page of any width."""

    words: str
    rows: list[PlotRow]
    bands: list[PlotBand]
    ticks: list[PlotLabel]
    # Said below an axis that does not begin at nothing.
    start: str = ""

    @property
    def lines(self) -> int:
        """How many lines the names of the bands take."""
        return max((band.label.line for band in self.bands), default=1)


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float

    def x(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(100 * share, 2)

    def both(self, interval: Ends | None) -> Ends | None:
        return interval and (self.x(interval[0]), self.x(interval[1]))


def lay_out_plot(
    rows: Sequence[IntervalRow],
    levels: Sequence[Level] = (),
    *,
    title: str,
    axis: Axis = SHARE,
) -> Plot | None:
    """Lay out rows in the order given.

    Parameters
    ----------
    rows : sequence of IntervalRow
        Figures with their intervals, in the unit of the axis.
    levels : sequence of Level
        What they are measured against.
    title : str
        What is measured, for those who hear the chart.
    axis : Axis
        A share begins at the ten below the lowest figure, and ends at 100 %.

    Returns
    -------
    Plot or None
        None without rows.

    Examples
    --------
    >>> plot = lay_out_plot(
    ...     [IntervalRow("gpt", 0.8, (0.77, 0.82))], [Level("floor", 0.48)], title="Agreement"
    ... )
    >>> plot.rows[0].x, plot.rows[0].beside == "77\N{EN DASH}82", plot.start
    (66.67, True, 'The axis begins at 40\xa0%.')
    """
    if not rows:
        return None
    scale = _scale_of(rows, levels, axis)
    names = unprefixed([clean(row.name) for row in rows])
    bands = _bands_of(levels, axis, scale)
    drawn = [
        PlotRow(
            name=name,
            value=axis.write(row.value),
            beside=row.note or _write_interval(row.interval, axis),
            x=None if row.value is None else scale.x(row.value),
            thick=scale.both(row.interval),
            thin=scale.both(row.always),
            beats_floor=row.beats_floor,
        )
        for name, row in zip(names, rows, strict=True)
    ]
    spoken = [
        *(" ".join(filter(None, (row.name, row.value, row.beside))) for row in drawn),
        *(f"{level.words} {axis.write(level.value)}" for level in levels),
    ]
    begins_late = axis is SHARE and scale.low > 0
    return Plot(
        words=f"{title}, best first: {'; '.join(spoken)}",
        rows=drawn,
        bands=bands,
        ticks=_ticks_of(axis, scale),
        start=f"The axis begins at {axis.write(scale.low)}." if begins_late else "",
    )


def _scale_of(rows: Sequence[IntervalRow], levels: Sequence[Level], axis: Axis) -> _Scale:
    numbers = [value for value in ends_of(rows, levels) if value is not None]
    low, high = axis.ends(numbers)
    if axis is SHARE and numbers:
        # A figure in the middle of the ten would else lie on the edge.
        low = floor(min(0.9, *numbers) * 10 + 1e-9) / 10
    return _Scale(low, high)


def _write_interval(interval: Ends | None, axis: Axis) -> str:
    if interval is None:
        return ""
    low, high = (axis.write(end).removesuffix("\N{NO-BREAK SPACE}%") for end in interval)
    return f"{low}\N{EN DASH}{high}"


def _bands_of(levels: Sequence[Level], axis: Axis, scale: _Scale) -> list[PlotBand]:
    bands, last = list[PlotBand](), -_NEAR
    for level in sorted(levels, key=lambda one: one.value):
        x = scale.x(level.value)
        low, high = scale.both(level.interval) or (x, x)
        text = f"{level.style} {axis.write(level.value)}"
        label = PlotLabel(text, *_within(x), line=2 if x - last < _NEAR else 1)
        bands.append(PlotBand(level.style, x, low, round(high - low, 2), label))
        last = x
    return bands


def _ticks_of(axis: Axis, scale: _Scale) -> list[PlotLabel]:
    if scale.high <= scale.low:
        return [PlotLabel(axis.write(scale.low), 50.0)]
    if axis is SHARE:
        tens = range(round(scale.low * 10), round(scale.high * 10) + 1)
        marks = [ten / 10 for ten in tens if len(tens) <= _MOST_TICKS or ten % 2 == 0]
    else:
        marks = ticks(scale.low, scale.high)
    labels = [axis.write(mark).removesuffix("\N{NO-BREAK SPACE}%") for mark in marks]
    if axis is SHARE:
        labels[-1] = axis.write(marks[-1])
    ends = (0.0, 100.0)
    places = [scale.x(mark) for mark in marks]
    return [
        PlotLabel(label, x, "end" if x == ends[1] else "middle" if x != ends[0] else "start")
        for label, x in zip(labels, places, strict=True)
    ]


def _within(x: float) -> tuple[float, str]:
    """Anchor words at an end of the axis so that they stay within it."""
    if x > 100 - _EDGE:
        return 100.0, "end"
    return (0.0, "start") if x < _EDGE else (x, "middle")
