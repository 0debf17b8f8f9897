"""Layers that several charts share: texts beside the plot, axes, and the reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from humanjudge.charts.look import CONFIG
from humanjudge.charts.parts import (
    PLOT_WIDTH,
    WORDS_UNITS,
    Axis,
    Reference,
    Spec,
    clean,
    finite,
    shortened,
    ticks,
    title_lines,
)

if TYPE_CHECKING:
    import altair as alt

Side: TypeAlias = Literal["left", "center", "right"]
Ends: TypeAlias = tuple[float, float]

_ABOVE: Final = -8


def layer(rows: Iterable[Mapping[str, object]]) -> alt.Chart:
    """Return a chart of plain rows, to which a mark and encodings are to be given."""
    import altair as alt

    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def rows_down(count: int) -> alt.Y:
    """Return a band for each row; `row` is its number."""
    import altair as alt

    return alt.Y("row:O", axis=None, scale=alt.Scale(domain=list(range(count))))


def across(axis: Axis, ends: Ends, field: str = "value") -> alt.X:
    """Return a horizontal axis between these ends."""
    import altair as alt

    scale = alt.Scale(domain=list(ends), zero=False, nice=False)
    return alt.X(f"{field}:Q", scale=scale, axis=drawn_axis(axis, ends))


def drawn_axis(axis: Axis, ends: Ends) -> alt.Axis:
    import altair as alt

    title = shortened(axis.words, WORDS_UNITS) if axis.words else None
    return alt.Axis(title=title, format=axis.form, values=ticks(*ends))


def texts(
    told: Mapping[int, str], place: float, side: Side, y: alt.Y, style: str = "label"
) -> alt.Chart:
    """Return a column of texts, one in each row of the mapping, so many pixels from the plot."""
    import altair as alt

    rows = layer({"row": row, "text": text} for row, text in told.items())
    mark = rows.mark_text(align=side, style=style)
    column: alt.Chart = mark.encode(x=alt.value(place), y=y, text="text:N")
    return column


def rings(rows: alt.Chart, x: alt.X, y: alt.Y, size: int) -> list[alt.Chart]:
    """Return open dots that hide what lies below them."""
    return [
        rows.mark_point(style="under", size=size, filled=True).encode(x=x, y=y),
        rows.mark_point(size=size).encode(x=x, y=y),
    ]


def reference_across(
    reference: Reference | None, axis: Axis, ends: Ends, x: alt.X
) -> tuple[list[alt.Chart], list[alt.Chart]]:
    """Return a band as wide as its interval, and a rule down the plot with its label above it."""
    import altair as alt

    value = finite(reference.value) if reference else None
    if reference is None or value is None:
        return [], []
    place = (value - ends[0]) / (ends[1] - ends[0])
    said = layer(
        [{"value": value, "text": f"{shortened(reference.words, WORDS_UNITS)} {axis.write(value)}"}]
    )
    rule = said.mark_rule(style="reference").encode(x=x)
    above = said.mark_text(style="quiet", align=_towards_the_middle(place))
    label = above.encode(x=x, y=alt.value(_ABOVE), text="text:N")
    low, high = finite(reference.low), finite(reference.high)
    if low is None or high is None:
        return [], [rule, label]
    band = layer([{"value": low, "high": high}]).mark_rect(style="band")
    return [band.encode(x=x, x2="high:Q")], [rule, label]


def _towards_the_middle(place: float) -> Side:
    return "left" if place < 0.3 else "right" if place > 0.7 else "center"


def finished(
    layers: Sequence[alt.Chart],
    *,
    title: str,
    words: str,
    height: float,
    width: float = PLOT_WIDTH,
    names: Mapping[str, str] | None = None,
    text: str = "",
) -> Spec:
    """Return a specification of layers.

    Parameters
    ----------
    layers : sequence of Chart
    title : str
    words : str
        What is to be seen, for those who cannot see it.
    height, width : float
        Of the plot, in pixels.
    names : mapping of str to str, optional
        Labels that were shortened and what they are in full, for tooltips.
    text : str
        A line under the title.
    """
    import altair as alt

    lines = title_lines(title)
    head = alt.Title(lines, subtitle=title_lines(text)) if text else alt.Title(lines)
    chart = alt.layer(*layers).properties(title=head, width=width, height=height)
    told = {
        "title": clean(title),
        "words": clean(words),
        "names": {
            short: whole
            for short, name in (names or {}).items()
            if (whole := clean(name)) not in short
        },
    }
    return {**chart.to_dict(validate=False), "config": CONFIG, "usermeta": told}
