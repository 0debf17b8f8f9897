"""A line per judge with its name at the end, for instance winning rates over epsilon."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from humanjudge.charts.heatmap import (
    CELL_HEIGHT,
    Cells,
    cell_width,
    column_heads,
    drawn_cells,
    row_names,
)
from humanjudge.charts.spec import (
    NO_FIGURE,
    PLOT_WIDTH,
    WORDS_UNITS,
    Axis,
    Ends,
    Object,
    Reference,
    Spec,
    clean,
    domain,
    finished,
    finite,
    label,
    marks,
    numeric,
    shortened,
    spread,
    texts,
    unprefixed,
)

_HEIGHT: Final = 220
_LABEL_ROOM: Final = 15
_LABEL_AT: Final = PLOT_WIDTH + 26
_LEADER: Final = (PLOT_WIDTH + 6, PLOT_WIDTH + 22)
# Lines that lie on each other are drawn side by side, this many pixels apart at most.
_BESIDE: Final = 3.0
_BESIDE_ALL: Final = 9.0
_DOT: Final = 14
# More lines than these cannot be followed by the eye.
MOST_LINES: Final = 6
_WIDER: Final = 8


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's figure at several places, ascending; None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]
    is_baseline: bool = False


@dataclass(frozen=True, slots=True)
class _Line:
    """A curve with the points that have a figure, and its name as it is shown."""

    name: str
    label: str
    points: list[tuple[float, float]]
    is_baseline: bool


def lines(
    series: Sequence[Curve], *, title: str, x: Axis, y: Axis, threshold: Reference | None = None
) -> Spec | None:
    """Draw a line per judge, named at its end; of more than `MOST_LINES` judges a table.

    Parameters
    ----------
    series : sequence of Curve
    title : str
    x, y : Axis
    threshold : Reference, optional
        A rule across the plot, for instance where a judge passes.

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without judges.
    """
    if not series:
        return None
    names = unprefixed([curve.name for curve in series])
    judges = [_line(name, curve) for name, curve in zip(names, series, strict=True)]
    passing = threshold if threshold and finite(threshold.value) is not None else None
    points = [point for judge in judges for point in judge.points]
    wide = domain(x, [place for place, _ in points])
    ends = domain(y, [*(value for _, value in points), passing.value if passing else None])
    words = _in_words(judges, x, y, threshold)
    if len(judges) > MOST_LINES:
        return _table(judges, title, words, x, y, ends, passing)
    height = max(_HEIGHT, _LABEL_ROOM * len(judges))
    pixel = (ends[1] - ends[0]) / height
    moved = _beside(judges, pixel)
    across, up = numeric(x, wide, "x"), numeric(y, ends)
    rule, passes = _threshold(passing, up) if passing else ([], [])
    return finished(
        [
            *rule,
            *_drawn(judges, moved, across, up),
            *_labels(judges, moved, ends, pixel, up),
            *passes,
        ],
        title=title,
        words=words,
        height=height,
        names={judge.label: judge.name for judge in judges},
    )


def _line(name: str, curve: Curve) -> _Line:
    points = [
        (x, value)
        for x, value in curve.points
        if value is not None and finite(x) is not None and finite(value) is not None
    ]
    short = label(name, curve.is_baseline)
    return _Line(
        curve.name, short if points else f"{short} · {NO_FIGURE}", points, curve.is_baseline
    )


def _beside(judges: Sequence[_Line], pixel: float) -> list[list[tuple[float, float]]]:
    """Return each line's points, moved up or down a little so that equal ones are all seen."""
    groups: dict[tuple[tuple[float, float], ...], list[int]] = defaultdict(list)
    for index, judge in enumerate(judges):
        groups[tuple(judge.points)].append(index)
    moved = [judge.points for judge in judges]
    for points, equal in groups.items():
        gaps = len(equal) - 1
        step = min(_BESIDE, _BESIDE_ALL / gaps) if gaps else 0.0
        for place, index in enumerate(equal):
            moved[index] = [(x, y + (gaps / 2 - place) * step * pixel) for x, y in points]
    return moved


def _drawn(
    judges: Sequence[_Line], moved: Sequence[Sequence[tuple[float, float]]], x: Object, y: Object
) -> list[Object]:
    def rows(is_baseline: bool) -> list[Object]:
        return [
            {"curve": index, "x": place, "value": value}
            for index, judge in enumerate(judges)
            if judge.is_baseline == is_baseline
            for place, value in moved[index]
        ]

    place: Object = {"x": x, "y": y}
    each: Object = place | {"detail": {"field": "curve", "type": "nominal"}}
    return [
        marks(rows(True), "line", each, style="baseline"),
        marks(rows(False), "line", each),
        marks(rows(False), "point", place, size=_DOT, filled=True),
    ]


def _labels(
    judges: Sequence[_Line],
    moved: Sequence[Sequence[tuple[float, float]]],
    ends: Ends,
    pixel: float,
    up: Object,
) -> list[Object]:
    """Return the names at the ends of lines, apart from each other, and what leads to them."""
    last = [points[-1][1] if points else ends[0] for points in moved]
    # Where two lines end alike, the one that was higher before is named above the other.
    order = sorted(range(len(judges)), key=lambda i: (-last[i], -sum(y for _, y in moved[i])))
    bottom = (ends[1] - ends[0]) / pixel
    downs = spread([(ends[1] - last[i]) / pixel for i in order], _LABEL_ROOM, bottom)
    rows: list[Object] = [
        {"value": ends[1] - down * pixel, "end": last[i], "text": judges[i].label}
        for i, down in zip(order, downs, strict=True)
    ]
    ended = [row for i, row in zip(order, rows, strict=True) if moved[i]]
    start, stop = _LEADER
    leader: Object = {
        "x": {"value": start},
        "x2": {"value": stop},
        "y": up | {"field": "end"},
        "y2": {"field": "value"},
    }
    return [
        marks(ended, "rule", leader, style="leader"),
        texts(rows, {"value": _LABEL_AT}, up, "left"),
    ]


def _threshold(threshold: Reference, up: Object) -> tuple[list[Object], list[Object]]:
    """Return a rule below the lines, and its words above them with paper around the letters."""
    text = shortened(threshold.words, WORDS_UNITS)
    rows: list[Object] = [{"value": threshold.value, "text": text}]
    words = [
        # Winning rates rise: below the rule, on the right, there is most room.
        texts(rows, {"value": PLOT_WIDTH}, up, "right", style=style, baseline="top", dx=-3, dy=3)
        for style in ("halo", "quiet")
    ]
    return [marks(rows, "rule", {"y": up}, style="reference")], words


def _table(
    judges: Sequence[_Line],
    title: str,
    words: str,
    x: Axis,
    y: Axis,
    ends: Ends,
    threshold: Reference | None,
) -> Spec:
    """Draw a row per judge and a column per place, the best first; a reached threshold is bold."""
    rows = sorted(judges, key=_highest_first)
    places = sorted({place for judge in rows for place, _ in judge.points})
    numbers = [[dict(judge.points).get(place) for place in places] for judge in rows]
    form = Cells(y.write, lambda value: (value - ends[0]) / (ends[1] - ends[0]))
    text = [f"across: {x.words}"] if x.words else []
    text += [f"bold: {threshold.words}"] if threshold else []
    return finished(
        [
            *drawn_cells(numbers, form, len(places), threshold.value if threshold else None),
            row_names([judge.label for judge in rows]),
            column_heads([x.write(place) for place in places], style="quiet"),
        ],
        title=title,
        text="; ".join(text),
        words=words,
        height=CELL_HEIGHT * len(rows),
        width=(cell_width(numbers, form) + _WIDER) * max(1, len(places)),
        names={judge.label: judge.name for judge in rows},
    )


def _highest_first(judge: _Line) -> tuple[bool, float]:
    return not judge.points, -fmean(y for _, y in judge.points) if judge.points else 0.0


def _in_words(judges: Sequence[_Line], x: Axis, y: Axis, threshold: Reference | None) -> str:
    courses = "; ".join(f"{clean(judge.name)} {_course(judge, x, y)}" for judge in judges)
    rule = f" {threshold.words}." if threshold else ""
    return f"{y.words or 'figure'} over {x.words or 'place'}: {courses}.{rule}"


def _course(judge: _Line, x: Axis, y: Axis) -> str:
    told = [f"{y.write(value)} at {x.write(place)}" for place, value in judge.points]
    return f"from {told[0]} to {told[-1]}" if told else NO_FIGURE
