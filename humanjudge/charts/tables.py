"""Numbers in cells, the darker the more; and a line per judge with its name at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from humanjudge.charts.spec import (
    DASH,
    GAP,
    LETTER_WIDTH,
    NO_FIGURE,
    PLOT_WIDTH,
    SHARE,
    WORDS_UNITS,
    Axis,
    Ends,
    Object,
    Reference,
    Spec,
    band,
    clean,
    column,
    finished,
    finite,
    label,
    marks,
    numeric,
    shortened,
    spread,
    texts,
    unprefixed,
    unscaled,
)

_CELL_HEIGHT: Final = 24
# Text in a cell is ink: more of the accent behind it would take the contrast away.
FULLEST_CELL: Final = 0.45
_MOST_IN_WORDS: Final = 40
# More lines than these cannot be followed by the eye.
MOST_LINES: Final = 6
_PLOT_HEIGHT: Final = 220
_LABEL_ROOM: Final = 15
# Lines that lie on each other are drawn side by side, so many pixels apart.
_BESIDE: Final = 3

Numbers = Sequence[Sequence[float | None]]


def heat_map(names: Sequence[str], cells: Numbers, *, title: str, text: str) -> Spec | None:
    """Draw a square table of shares, by row and column; None without names.

    None in a cell is drawn as a dash. `text` says what a cell is, for instance "share of pairs on
    which both said the same".
    """
    if any(len(row) != len(names) for row in cells) or len(cells) != len(names):
        raise ValueError(f"a table of {len(names)} names has as many rows and columns")
    if not names:
        return None
    labels = [shortened(name) for name in unprefixed(names)]
    figures = [
        f"{clean(names[row])} to {clean(names[number])} {SHARE.write(value)}"
        for row, line in enumerate(cells)
        for number, value in enumerate(line)
        if value is not None and finite(value) is not None
    ]
    more = len(figures) - _MOST_IN_WORDS
    words = "; ".join(figures[:_MOST_IN_WORDS] + [f"and {more} more"] * (more > 0))
    # Upright heads: they would not fit beside each other.
    heads = _heads(labels, align="left", angle=270)
    return finished(
        [*_cells(cells, SHARE, (0.0, 1.0), len(names)), _names(labels), heads],
        title=title,
        text=text,
        words=f"{text}: {words or 'no figures'}.",
        height=_CELL_HEIGHT * len(names),
        width=5 * LETTER_WIDTH * len(names),
        names=dict(zip(labels, names, strict=True)),
    )


def _names(labels: Sequence[str]) -> Object:
    return column(dict(enumerate(labels)), -GAP, band("row", len(labels)))


def _heads(words: Sequence[str], **options: str | float) -> Object:
    rows: list[Object] = [{"column": i, "text": text} for i, text in enumerate(words)]
    return texts(rows, band("column", len(words)), {"value": -GAP}, **options)


def _cells(
    numbers: Numbers, form: Axis, ends: Ends, count: int, bold_from: float | None = None
) -> list[Object]:
    """Return the cells of a table with so many columns; None is a dash."""
    low, high = ends
    known: list[Object] = []
    gaps: list[Object] = []
    for row, line in enumerate(numbers):
        for number, value in enumerate(map(finite, line)):
            cell: Object = {"row": row, "column": number, "text": form.write(value, DASH)}
            if value is None:
                gaps.append(cell)
                continue
            fill = min(max((value - low) / (high - low), 0.0), 1.0) * FULLEST_CELL
            is_bold = bold_from is not None and value >= bold_from
            known.append(cell | {"fill": round(fill, 4), "is_bold": is_bold})
    x, y = band("column", count), band("row", len(numbers))
    bold = [cell for cell in known if cell["is_bold"]]
    plain = [cell for cell in known if not cell["is_bold"]]
    return [
        marks(known, "rect", {"x": x, "y": y, "fillOpacity": unscaled("fill")}, style="cell"),
        marks(gaps, "rect", {"x": x, "y": y}, style="gap"),
        texts(plain, x, y, style="number"),
        texts(bold, x, y, style=["number", "heading"]),
        texts(gaps, x, y, style="quiet"),
    ]


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
    points: tuple[tuple[float, float], ...]
    is_baseline: bool

    def in_words(self, x: Axis, y: Axis) -> str:
        if not self.points:
            return f"{clean(self.name)} {NO_FIGURE}"
        first, last = (
            f"{y.write(self.points[i][1])} at {x.write(self.points[i][0])}" for i in (0, -1)
        )
        return f"{clean(self.name)} from {first} to {last}"


def lines(
    series: Sequence[Curve], *, title: str, x: Axis, y: Axis, threshold: Reference | None = None
) -> Spec | None:
    """Draw a line per judge, named at its end; of more than `MOST_LINES` judges a table.

    `threshold` is a rule across the plot, for instance where a judge passes.
    """
    if not series:
        return None
    names = unprefixed([curve.name for curve in series])
    judges = [_line(name, curve) for name, curve in zip(names, series, strict=True)]
    passing = threshold if threshold and finite(threshold.value) is not None else None
    places = sorted({place for judge in judges for place, _ in judge.points})
    values = [value for judge in judges for _, value in judge.points]
    ends = y.ends([*values, passing.value if passing else None])
    words = "; ".join(judge.in_words(x, y) for judge in judges)
    words = f"{y.words or 'figure'} over {x.words or 'place'}: {words}."
    words += f" {passing.words}." if passing else ""
    about = {judge.label: judge.name for judge in judges}
    if len(judges) <= MOST_LINES:
        layers = _lines(judges, numeric(x, x.ends(places), "x", nice=False), y, ends, passing)
        return finished(layers, title=title, words=words, height=_PLOT_HEIGHT, names=about)
    rows = sorted(judges, key=lambda j: -fmean(v for _, v in j.points) if j.points else 1.0)
    numbers = [[dict(judge.points).get(place) for place in places] for judge in rows]
    texts_ = [f"across: {x.words}"] * bool(x.words)
    texts_ += [f"bold: {passing.words}"] if passing else []
    return finished(
        [
            *_cells(numbers, y, ends, len(places), passing.value if passing else None),
            _names([judge.label for judge in rows]),
            _heads([x.write(place) for place in places], style="quiet"),
        ],
        title=title,
        text="; ".join(texts_),
        words=words,
        height=_CELL_HEIGHT * len(rows),
        width=6 * LETTER_WIDTH * max(1, len(places)),
        names=about,
    )


def _line(name: str, curve: Curve) -> _Line:
    points = tuple(
        (x, value)
        for x, value in curve.points
        if value is not None and finite(x) is not None and finite(value) is not None
    )
    short = label(name, curve.is_baseline)
    text = short if points else f"{short} · {NO_FIGURE}"
    return _Line(curve.name, text, points, curve.is_baseline)


def _lines(
    judges: Sequence[_Line], x: Object, axis: Axis, ends: Ends, threshold: Reference | None
) -> list[Object]:
    y, pixel = numeric(axis, ends, nice=False), (ends[1] - ends[0]) / _PLOT_HEIGHT
    equal = Counter[tuple[tuple[float, float], ...]]()
    drawn: list[Object] = []
    last: list[float] = []
    for index, judge in enumerate(judges):
        moved = _BESIDE * pixel * equal[judge.points]
        equal[judge.points] += 1
        drawn += [
            {"curve": index, "x": place, "value": value - moved, "is_baseline": judge.is_baseline}
            for place, value in judge.points
        ]
        last.append(judge.points[-1][1] - moved if judge.points else ends[0])
    # Where two lines end alike, the one that was higher before is named above the other.
    order = sorted(
        range(len(judges)), key=lambda i: (-last[i], -sum(v for _, v in judges[i].points))
    )
    downs = spread([(ends[1] - last[i]) / pixel for i in order], _LABEL_ROOM, _PLOT_HEIGHT)
    names: list[Object] = [
        {"down": down, "text": judges[i].label} for i, down in zip(order, downs, strict=True)
    ]
    place: Object = {"x": x, "y": y}
    each: Object = place | {"detail": {"field": "curve", "type": "nominal"}}
    own = [row for row in drawn if not row["is_baseline"]]
    rules: list[Object] = []
    if threshold:
        row: Object = {"value": threshold.value, "text": shortened(threshold.words, WORDS_UNITS)}
        rules = [
            marks([row], "rule", {"y": y}, style="reference"),
            texts([row], {"value": 3}, y, style="quiet", align="left", dy=-8),
        ]
    return [
        *rules,
        marks([row for row in drawn if row["is_baseline"]], "line", each, style="baseline"),
        marks(own, "line", each),
        marks(own, "point", place, size=14, filled=True),
        texts(names, {"value": PLOT_WIDTH + GAP}, unscaled("down"), align="left"),
    ]
