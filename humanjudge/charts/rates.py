"""Many judges' figures at several places: a table, since so many lines would be a knot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from humanjudge.charts.cells import CELL_HEIGHT, GAP, Cells, cell_width, columns, drawn_cells
from humanjudge.charts.layers import Ends, finished, layer, rows_down, texts
from humanjudge.charts.parts import NO_FIGURE, Axis, Reference, Spec, finite, label, unprefixed

if TYPE_CHECKING:
    import altair as alt

_WIDER: Final = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's figure at several places, ascending; None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]
    is_baseline: bool = False


def rate_table(
    curves: Sequence[Curve],
    *,
    title: str,
    words: str,
    axes: tuple[Axis, Axis],
    ends: Ends,
    threshold: Reference | None,
) -> Spec:
    """Draw a row per judge and a column per place, the best first; a reached threshold is bold."""
    x, y = axes
    listed = sorted(curves, key=_height)
    places = sorted({place for curve in listed for place, _ in curve.points})
    known = [dict(curve.points) for curve in listed]
    numbers = [[points.get(place) for place in places] for points in known]
    form = Cells(y.write, lambda value: (value - ends[0]) / (ends[1] - ends[0]))
    reached = finite(threshold.value) if threshold else None
    down = rows_down(len(listed))
    plain = unprefixed([curve.name for curve in listed])
    labels = [curve_label(name, curve) for name, curve in zip(plain, listed, strict=True)]
    layers = [
        *drawn_cells(numbers, form, down, len(places), reached),
        texts(dict(enumerate(labels)), -GAP, "right", down),
        _heads([x.write(place) for place in places]),
    ]
    said = [f"across: {x.words}"] if x.words else []
    said += [f"bold: {threshold.words}"] if threshold and reached is not None else []
    return finished(
        layers,
        title=title,
        text="; ".join(said),
        words=words,
        height=CELL_HEIGHT * len(listed),
        width=(cell_width(numbers, form) + _WIDER) * max(1, len(places)),
        names={name: curve.name for name, curve in zip(labels, listed, strict=True)},
    )


def _height(curve: Curve) -> tuple[bool, float]:
    values = [value for _, value in curve.points if value is not None]
    return not values, -fmean(values) if values else 0.0


def curve_label(name: str, curve: Curve) -> str:
    """Return a judge's name as it stands beside its figures."""
    shown = label(name, curve.is_baseline)
    return shown if curve.points else f"{shown} · {NO_FIGURE}"


def _heads(words: Sequence[str]) -> alt.Chart:
    import altair as alt

    told = layer({"column": column, "text": text} for column, text in enumerate(words))
    heads: alt.Chart = told.mark_text(style="quiet").encode(
        x=columns(len(words)), y=alt.value(-GAP), text="text:N"
    )
    return heads
