"""A line per judge with its name at the end, for instance winning rates over epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from humanjudge.charts.layers import Ends, across, drawn_axis, finished, layer
from humanjudge.charts.parts import (
    NO_FIGURE,
    PLOT_WIDTH,
    WORDS_UNITS,
    Axis,
    Reference,
    Spec,
    clean,
    domain,
    finite,
    shortened,
    unprefixed,
)
from humanjudge.charts.rates import Curve, curve_label, rate_table

if TYPE_CHECKING:
    import altair as alt

HEIGHT: Final = 220
LABEL_ROOM: Final = 15
LABEL_AT: Final = PLOT_WIDTH + 26
LEADER: Final = (PLOT_WIDTH + 6, PLOT_WIDTH + 22)
# Lines that lie on each other are drawn side by side, this many pixels apart at most.
BESIDE: Final = 3.0
BESIDE_ALL: Final = 9.0
DOT: Final = 14
# More lines than these cannot be followed by the eye.
MOST_LINES: Final = 6


def lines(
    series: Iterable[Curve], *, title: str, x: Axis, y: Axis, threshold: Reference | None = None
) -> Spec | None:
    """Draw a line per judge, named at its end; of more than `MOST_LINES` judges a table.

    Parameters
    ----------
    series : iterable of Curve
    title : str
    x, y : Axis
    threshold : Reference, optional
        A rule across the plot, for instance where a judge passes.

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without judges.
    """
    curves = [_known(curve) for curve in series]
    if not curves:
        return None
    points = [point for curve in curves for point in curve.points]
    wide = domain(x, [place for place, _ in points])
    marks = [value for _, value in points] + ([threshold.value] if threshold else [])
    ends, words = domain(y, marks), _in_words(curves, x, y, threshold)
    if len(curves) > MOST_LINES:
        return rate_table(
            curves, title=title, words=words, axes=(x, y), ends=ends, threshold=threshold
        )
    plot = _Plot(ends, max(HEIGHT, LABEL_ROOM * len(curves)))
    drawn = _placed(curves, plot)
    up = plot.up(y)
    rule, passing = _threshold(threshold, up)
    return finished(
        [
            *rule,
            *_lines(drawn, across(x, wide, "x"), up),
            *_labels(drawn, plot, up),
            *passing,
        ],
        title=title,
        words=words,
        height=plot.height,
        names={one.label: one.curve.name for one in drawn},
    )


@dataclass(frozen=True, slots=True)
class _Plot:
    """The vertical axis: its ends, and how many pixels lie between them."""

    ends: Ends
    height: int

    @property
    def pixel(self) -> float:
        return (self.ends[1] - self.ends[0]) / self.height

    def down(self, value: float) -> float:
        """Return how many pixels below the top a value is."""
        return (self.ends[1] - value) / self.pixel

    def at(self, down: float) -> float:
        return self.ends[1] - down * self.pixel

    def up(self, axis: Axis) -> alt.Y:
        import altair as alt

        scale = alt.Scale(domain=list(self.ends), zero=False, nice=False)
        return alt.Y("value:Q", scale=scale, axis=drawn_axis(axis, self.ends))


@dataclass(frozen=True, slots=True)
class _Placed:
    """A curve as it is drawn: moved a little if it lies on others, and where its label stands."""

    curve: Curve
    label: str
    points: list[tuple[float, float]]
    label_down: float


def _known(curve: Curve) -> Curve:
    points = [(x, value) for x, value in curve.points if finite(x) is not None]
    return replace(curve, points=[(x, v) for x, v in points if v is not None and finite(v) == v])


def _placed(curves: Sequence[Curve], plot: _Plot) -> list[_Placed]:
    moved = [
        [(x, (value or 0.0) + by * plot.pixel) for x, value in curve.points]
        for curve, by in zip(curves, _beside(curves), strict=True)
    ]
    bottom = float(plot.height)
    ends = [plot.down(points[-1][1]) if points else bottom for points in moved]
    heights = [sum(value for _, value in points) for points in moved]
    downs = _spread(list(zip(ends, [-height for height in heights], strict=True)), bottom)
    names = unprefixed([curve.name for curve in curves])
    labels = [curve_label(name, curve) for name, curve in zip(names, curves, strict=True)]
    return [_Placed(*parts) for parts in zip(curves, labels, moved, downs, strict=True)]


def _beside(curves: Sequence[Curve]) -> list[float]:
    """Return by how many pixels each curve is moved up, so that equal ones are all to be seen."""
    groups: dict[tuple[tuple[float, float | None], ...], list[int]] = {}
    for index, curve in enumerate(curves):
        groups.setdefault(tuple(curve.points), []).append(index)
    moves = [0.0] * len(curves)
    for equal in groups.values():
        gaps = len(equal) - 1
        step = min(BESIDE, BESIDE_ALL / gaps) if gaps else 0.0
        for place, index in enumerate(equal):
            moves[index] = (gaps / 2 - place) * step
    return moves


def _spread(ends: Sequence[tuple[float, float]], bottom: float) -> list[float]:
    """Move labels apart, keeping their order, as little as a sweep down and one up can."""
    order = sorted(range(len(ends)), key=ends.__getitem__)
    placed = [down for down, _ in ends]
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + LABEL_ROOM)
    lowest = bottom
    for index in reversed(order):
        placed[index] = min(placed[index], lowest)
        lowest = placed[index] - LABEL_ROOM
    return placed


def _lines(drawn: Sequence[_Placed], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    def rows(is_baseline: bool) -> list[dict[str, float]]:
        return [
            {"curve": index, "x": place, "value": value}
            for index, one in enumerate(drawn)
            if one.curve.is_baseline == is_baseline
            for place, value in one.points
        ]

    judges, baselines = layer(rows(False)), layer(rows(True))
    return [
        baselines.mark_line(style="baseline").encode(x=x, y=y, detail="curve:N"),
        judges.mark_line().encode(x=x, y=y, detail="curve:N"),
        judges.mark_point(size=DOT, filled=True).encode(x=x, y=y),
    ]


def _labels(drawn: Sequence[_Placed], plot: _Plot, y: alt.Y) -> list[alt.Chart]:
    import altair as alt

    told = [
        {"value": plot.at(one.label_down), "end": one.points[-1][1] if one.points else None}
        | {"text": one.label}
        for one in drawn
    ]
    start, stop = map(alt.value, LEADER)
    ended = layer(row for row in told if row["end"] is not None)
    leaders = ended.mark_rule(style="leader").encode(x=start, x2=stop, y="end:Q", y2="value:Q")
    named = layer(told).mark_text(align="left")
    return [leaders, named.encode(x=alt.value(LABEL_AT), y=y, text="text:N")]


def _threshold(threshold: Reference | None, y: alt.Y) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """Return a rule below the lines, and its words above them with paper around the letters."""
    import altair as alt

    value = finite(threshold.value) if threshold else None
    if threshold is None or value is None:
        return [], []
    said = layer([{"value": value, "text": shortened(threshold.words, WORDS_UNITS)}])
    words = [
        # Winning rates rise: below the rule, on the right, there is most room.
        said.mark_text(style=style, align="right", baseline="top", dx=-3, dy=3).encode(
            x=alt.value(PLOT_WIDTH), y=y, text="text:N"
        )
        for style in ("halo", "quiet")
    ]
    return [said.mark_rule(style="reference").encode(y=y)], words


def _in_words(curves: Sequence[Curve], x: Axis, y: Axis, threshold: Reference | None) -> str:
    told = "; ".join(f"{clean(curve.name)} {_course(curve, x, y)}" for curve in curves)
    rule = f" {threshold.words}." if threshold else ""
    return f"{y.words or 'figure'} over {x.words or 'place'}: {told}.{rule}"


def _course(curve: Curve, x: Axis, y: Axis) -> str:
    told = [f"{y.write(v)} at {x.write(at)}" for at, v in curve.points if v is not None]
    return f"from {told[0]} to {told[-1]}" if told else NO_FIGURE
