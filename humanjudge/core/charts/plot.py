"""The same charts for a page: positions are shares of the width, so that letters keep their size.

A file has one width and needs `humanjudge.core.charts.graphs`; a page has any, and no style
attribute is allowed in it: an SVG without a view box takes its positions in per cent.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor
from typing import Final, NamedTuple

from humanjudge.core.charts.graphs import IntervalRow, Level, ends_of
from humanjudge.core.charts.labels import SHARE, Axis, Ends, clean, ticks, unprefixed

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
    # The same by other means, in words for those who hear the chart.
    second: PlotLabel | None = None


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
class PlotScale:
    """An axis from `low` to `high`: it places numbers in per cent of its length."""

    axis: Axis
    low: float
    high: float

    @classmethod
    def fit(cls, axis: Axis, numbers: Sequence[float]) -> "PlotScale":
        """Return an axis as long as the numbers need; of shares, from the ten below them."""
        low, high = axis.ends(numbers)
        if axis is SHARE and numbers:
            low = floor(min(0.9, *numbers) * 10 + 1e-9) / 10
        return cls(axis, low, high)

    def place(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low) if self.high > self.low else 0.5
        return round(100 * share, 2)

    def place_both(self, interval: Ends | None) -> Ends | None:
        return interval and (self.place(interval[0]), self.place(interval[1]))

    def write(self, value: float) -> str:
        """Write a number without its unit, which the last tick has."""
        return self.axis.write(value).removesuffix("\N{NO-BREAK SPACE}%")

    def lay_out_row(self, name: str, row: IntervalRow) -> PlotRow:
        ends = [self.write(end) for end in row.interval or ()]
        return PlotRow(
            name=name,
            value=self.axis.write(row.value),
            beside=row.note or "\N{EN DASH}".join(ends),
            x=None if row.value is None else self.place(row.value),
            thick=self.place_both(row.interval),
            thin=self.place_both(row.always),
            beats_floor=row.beats_floor,
            second=row.second_level and self.lay_out_second(row.second_level),
        )

    def lay_out_second(self, level: Level) -> PlotLabel:
        return PlotLabel(f"{level.words} {self.axis.write(level.value)}", self.place(level.value))

    def lay_out_bands(self, levels: Sequence[Level]) -> list[PlotBand]:
        bands, last = list[PlotBand](), -_NEAR
        for level in sorted(levels, key=lambda one: one.value):
            x = self.place(level.value)
            low, high = self.place_both(level.interval) or (x, x)
            # Words near an end of the axis are anchored so that they stay within it.
            label = PlotLabel(f"{level.style} {self.axis.write(level.value)}", x)
            if x > 100 - _EDGE:
                label = label._replace(x=100.0, anchor="end")
            elif x < _EDGE:
                label = label._replace(x=0.0, anchor="start")
            label = label._replace(line=2 if x - last < _NEAR else 1)
            bands.append(PlotBand(level.style, x, low, round(high - low, 2), label))
            last = x
        return bands

    def lay_out_ticks(self) -> list[PlotLabel]:
        if self.high <= self.low:
            return [PlotLabel(self.axis.write(self.low), 50.0)]
        marks = ticks(self.low, self.high)
        if self.axis is SHARE:
            tens = range(round(self.low * 10), round(self.high * 10) + 1)
            marks = [ten / 10 for ten in tens if len(tens) <= _MOST_TICKS or ten % 2 == 0]
        labels = [PlotLabel(self.write(mark), self.place(mark)) for mark in marks]
        if self.axis is SHARE:
            labels[-1] = labels[-1]._replace(text=self.axis.write(marks[-1]))
        anchors = {0.0: "start", 100.0: "end"}
        return [label._replace(anchor=anchors.get(label.x, "middle")) for label in labels]


def lay_out_plot(
    rows: Sequence[IntervalRow],
    levels: Sequence[Level] = (),
    *,
    title: str,
    axis: Axis = SHARE,
) -> Plot | None:
    """Lay out rows in the order given; None without rows.

    An axis of shares begins at the ten below the lowest figure, and ends at 100 %. `title` is for
    those who hear the chart.

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
    numbers = [value for value in ends_of(rows, levels) if value is not None]
    scale = PlotScale.fit(axis, numbers)
    names = unprefixed([clean(row.name) for row in rows])
    drawn = [scale.lay_out_row(name, row) for name, row in zip(names, rows, strict=True)]
    spoken = [
        *(
            " ".join(
                filter(None, (row.name, row.value, row.beside, row.second and row.second.text))
            )
            for row in drawn
        ),
        *(f"{level.words} {axis.write(level.value)}" for level in levels),
    ]
    begins_late = axis is SHARE and scale.low > 0
    return Plot(
        words=f"{title}, best first: {'; '.join(spoken)}",
        rows=drawn,
        bands=scale.lay_out_bands(levels),
        ticks=scale.lay_out_ticks(),
        start=f"The axis begins at {axis.write(scale.low)}." if begins_late else "",
    )
