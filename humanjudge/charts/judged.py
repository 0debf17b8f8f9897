"""One row per judge: bars with whiskers, and dots with whiskers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from humanjudge.charts.layers import (
    across,
    finished,
    layer,
    reference_across,
    rings,
    rows_down,
    texts,
)
from humanjudge.charts.look import BASELINE_FILL, JUDGE_FILL
from humanjudge.charts.parts import (
    LETTER_WIDTH,
    NO_FIGURE,
    Axis,
    Estimate,
    Reference,
    Spec,
    clean,
    domain,
    finite,
    label,
    ordered,
    unprefixed,
)

if TYPE_CHECKING:
    import altair as alt

Kind: TypeAlias = Literal["bar", "point"]

ROW: Final = 22
BAR: Final = 14
DOT: Final = 64
GAP: Final = 10


def bars(
    rows: Iterable[Estimate], *, title: str, axis: Axis, people: Reference | None = None
) -> Spec | None:
    """Draw a bar from zero per judge, the best first.

    Parameters
    ----------
    rows : iterable of Estimate
    title : str
    axis : Axis
    people : Reference, optional
        What people reach among themselves.

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without judges.
    """
    return _judges("bar", ordered(rows), title, axis, people)


def intervals(
    rows: Iterable[Estimate], *, title: str, axis: Axis, reference: Reference | None = None
) -> Spec | None:
    """Draw a dot with its interval per judge, the best first; the axis need not hold zero.

    Parameters
    ----------
    rows : iterable of Estimate
    title : str
    axis : Axis
    reference : Reference, optional
        For instance 1000 for ratings, or what people reach among themselves.

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without judges.
    """
    return _judges("point", ordered(rows), title, axis, reference)


def _judges(
    kind: Kind, rows: Sequence[Estimate], title: str, axis: Axis, reference: Reference | None
) -> Spec | None:
    if not rows:
        return None
    ends = domain(axis, _values(rows, reference), zero=kind == "bar")
    x, y = across(axis, ends), rows_down(len(rows))
    plain = unprefixed([row.name for row in rows])
    names = {i: label(plain[i], row.is_baseline) for i, row in enumerate(rows)}
    numbers = {i: _written(row, axis) for i, row in enumerate(rows) if _has_figure(row)}
    gaps = {i: NO_FIGURE for i, row in enumerate(rows) if not _has_figure(row)}
    band, rule = reference_across(reference, axis, ends, x)
    layers = [
        *band,
        *(_bars if kind == "bar" else _dots)(rows, x, y, rule),
        # Beside the names, where a narrow screen still shows them.
        texts(names, -2 * GAP - _room(numbers.values()), "right", y),
        texts(numbers, -GAP, "right", y),
        texts(gaps, GAP, "left", y, "quiet"),
    ]
    return finished(
        layers,
        title=title,
        words=_in_words(rows, axis, reference),
        height=ROW * len(rows),
        names={names[index]: row.name for index, row in enumerate(rows)},
    )


def _bars(
    rows: Sequence[Estimate], x: alt.X, y: alt.Y, rule: Sequence[alt.Chart]
) -> list[alt.Chart]:
    import altair as alt

    opacity = alt.FillOpacity("fill:Q", scale=None, legend=None)
    known = layer(_drawn(rows, JUDGE_FILL))
    # Paper below pale marks: the grid, or a whisker, would be seen through them.
    under = known.mark_bar(height=BAR, style="under").encode(x=x, x2=alt.datum(0), y=y)
    marks = known.mark_bar(height=BAR).encode(x=x, x2=alt.datum(0), y=y, fillOpacity=opacity)
    return [under, marks, *rule, _whiskers(rows, x, y)]


def _dots(
    rows: Sequence[Estimate], x: alt.X, y: alt.Y, rule: Sequence[alt.Chart]
) -> list[alt.Chart]:
    import altair as alt

    known = layer(_drawn(rows, 1.0))
    opacity = alt.FillOpacity("fill:Q", scale=None, legend=None)
    filled = known.mark_point(size=DOT, filled=True).encode(x=x, y=y, fillOpacity=opacity)
    return [*rule, _whiskers(rows, x, y), *rings(known, x, y, DOT), filled]


def _drawn(rows: Sequence[Estimate], fill: float) -> list[Mapping[str, object]]:
    return [
        {"row": i, "value": row.value, "fill": BASELINE_FILL if row.is_baseline else fill}
        for i, row in enumerate(rows)
        if _has_figure(row)
    ]


def _whiskers(rows: Sequence[Estimate], x: alt.X, y: alt.Y) -> alt.Chart:
    known = [
        {"row": i, "value": row.low, "high": row.high}
        for i, row in enumerate(rows)
        if _has_figure(row) and finite(row.low) is not None and finite(row.high) is not None
    ]
    rules: alt.Chart = layer(known).mark_rule().encode(x=x, x2="high:Q", y=y)
    return rules


def _has_figure(row: Estimate) -> bool:
    return finite(row.value) is not None


def _written(row: Estimate, axis: Axis) -> str:
    value = finite(row.value)
    return NO_FIGURE if value is None else axis.write(value)


def _room(numbers: Iterable[str]) -> int:
    return LETTER_WIDTH * max(map(len, numbers), default=0)


def _values(rows: Sequence[Estimate], reference: Reference | None) -> list[float | None]:
    marks: list[Estimate | Reference] = [row for row in rows if _has_figure(row)]
    marks += [reference] if reference else []
    return [value for mark in marks for value in (mark.value, mark.low, mark.high)]


def _in_words(rows: Sequence[Estimate], axis: Axis, reference: Reference | None) -> str:
    told = ", ".join(
        f"{clean(row.name)}{' (baseline)' if row.is_baseline else ''} {_written(row, axis)}"
        for row in rows
    )
    value = finite(reference.value) if reference else None
    beside = f"; {reference.words} {axis.write(value)}" if reference and value is not None else ""
    return f"Best first: {told}{beside}. Lines are 95 % intervals."
