"""The kinds of charts: bars, dots with whiskers, judges beside people, heat maps, lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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

_ROW: Final = 22
_BAR: Final = 14
_DOT: Final = 64
_BASELINE_FILL: Final = 0.2
# More rows than that are no picture any more: each judge then gets one, its mean over people.
MOST_ROWS: Final = 60
_VERSUS_ROW: Final = 18
# Numbers stand beside the names, where a narrow screen still shows them.
_PERSON_AT: Final = -GAP
_JUDGE_AT: Final = _PERSON_AT - 50
_NAME_AT: Final = _JUDGE_AT - 44
_LEGEND: Final = "filled dot: the judge; open dot: the person in its place"
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


@dataclass(frozen=True, slots=True)
class Estimate:
    """A judge's figure with its 95 % interval; None where there is none.

    A baseline is a rule such as "the longer answer wins", which a judge should beat.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    is_baseline: bool = False


def bars(
    rows: Iterable[Estimate], *, title: str, axis: Axis, people: Reference | None = None
) -> Spec | None:
    """Draw a bar from zero per judge, the best first; None without judges.

    `people` is what people reach among themselves.
    """
    return _judges(rows, title, axis, people, are_bars=True)


def intervals(
    rows: Iterable[Estimate], *, title: str, axis: Axis, reference: Reference | None = None
) -> Spec | None:
    """Draw a dot with its interval per judge, the best first; the axis need not hold zero.

    `reference` is for instance 1000 for ratings, or what people reach among themselves.
    """
    return _judges(rows, title, axis, reference, are_bars=False)


def _judges(
    estimates: Iterable[Estimate],
    title: str,
    axis: Axis,
    reference: Reference | None,
    *,
    are_bars: bool,
) -> Spec | None:
    rows = sorted(map(_finite, estimates), key=lambda row: (row.value is None, -(row.value or 0)))
    if not rows:
        return None
    beside = [reference] if reference and finite(reference.value) is not None else []
    measured: list[Estimate | Reference] = [*rows, *beside]
    values = [end for each in measured for end in (each.value, each.low, each.high)]
    x = numeric(axis, axis.ends([*values, 0.0] if are_bars else values))
    y = band("row", len(rows))
    plain = unprefixed([row.name for row in rows])
    names = {i: label(plain[i], row.is_baseline) for i, row in enumerate(rows)}
    numbers = {i: axis.write(row.value) for i, row in enumerate(rows) if row.value is not None}
    room = LETTER_WIDTH * max(map(len, numbers.values()), default=0)
    full = 0.6 if are_bars else 1.0
    drawn: list[Object] = [
        {"row": i, "value": row.value, "fill": _BASELINE_FILL if row.is_baseline else full}
        for i, row in enumerate(rows)
        if row.value is not None
    ]
    ranges: list[Object] = [
        {"row": i, "value": row.low, "high": row.high}
        for i, row in enumerate(rows)
        if row.low is not None
    ]
    whiskers = marks(ranges, "rule", {"x": x, "x2": {"field": "high"}, "y": y})
    below, rule = _reference(beside[0], axis, x) if beside else ([], [])
    bar: Object = {"x": x, "x2": {"datum": 0}, "y": y}
    figures = [
        # Paper below pale bars: the grid would be seen through them.
        marks(drawn, "bar", bar, height=_BAR, style="under"),
        marks(drawn, "bar", bar | {"fillOpacity": unscaled("fill")}, height=_BAR),
        *rule,
        whiskers,
    ]
    if not are_bars:
        figures = [*rule, whiskers, *_dots(drawn, {"x": x, "y": y})]
    words = ", ".join(
        f"{clean(row.name)}{' (baseline)' * row.is_baseline} {axis.write(row.value)}"
        for row in rows
    )
    words += "".join(f"; {each.words} {axis.write(each.value)}" for each in beside)
    return finished(
        [
            *below,
            *figures,
            column(names, -2 * GAP - room, y),
            column(numbers, -GAP, y),
            column({i: NO_FIGURE for i in names if i not in numbers}, GAP, y, "quiet"),
        ],
        title=title,
        words=f"Best first: {words}. Lines are 95 % intervals.",
        height=_ROW * len(rows),
        names={names[i]: row.name for i, row in enumerate(rows)},
    )


def _finite(row: Estimate) -> Estimate:
    value, low, high = finite(row.value), finite(row.low), finite(row.high)
    if value is None or low is None or high is None:
        low = high = None
    return replace(row, value=value, low=low, high=high)


def _dots(rows: Sequence[Object], place: Object) -> list[Object]:
    """Return dots that hide what lies below them, and are filled as much as their rows say."""
    return [
        marks(rows, "point", place, style="under", size=_DOT, filled=True),
        marks(rows, "point", place, size=_DOT),
        marks(rows, "point", place | {"fillOpacity": unscaled("fill")}, size=_DOT, filled=True),
    ]


def _reference(reference: Reference, axis: Axis, x: Object) -> tuple[list[Object], list[Object]]:
    """Return a band as wide as its interval, and a rule down the plot with its label above it."""
    words = f"{shortened(reference.words, WORDS_UNITS)} {axis.write(reference.value)}"
    row: Object = {"value": reference.value, "text": words}
    rule = [
        marks([row], "rule", {"x": x}, style="reference"),
        texts([row], x, {"value": -8}, align="center", style="quiet"),
    ]
    low, high = finite(reference.low), finite(reference.high)
    if low is None or high is None:
        return [], rule
    ends: Object = {"x": x, "x2": {"field": "high"}}
    return [marks([{"value": low, "high": high}], "rect", ends, style="band")], rule


@dataclass(frozen=True, slots=True)
class Versus:
    """A judge and a person, measured against the other people; None where there is no figure."""

    judge: str
    person: str
    of_judge: float | None
    of_person: float | None
    is_baseline: bool = False


def grouped(rows: Iterable[Versus], *, title: str, axis: Axis) -> Spec | None:
    """Draw each judge beside each person, of many people their mean; None without rows."""
    judges: dict[tuple[str, bool], list[Versus]] = {}
    for row in rows:
        known = replace(row, of_judge=finite(row.of_judge), of_person=finite(row.of_person))
        judges.setdefault((row.judge, row.is_baseline), []).append(known)
    if not judges:
        return None
    labels = [
        label(short, is_baseline)
        for short, (_, is_baseline) in zip(
            unprefixed([name for name, _ in judges]), judges, strict=True
        )
    ]
    means = [_mean(people) for people in judges.values()]
    # A row without a person is the head of a judge's.
    listed: list[tuple[str, Versus | None]] = []
    for text, people in zip(labels, judges.values(), strict=True):
        listed += [(text, None), *((shortened(person.person), person) for person in people)]
    has_means = len(listed) > MOST_ROWS
    if has_means:
        listed = list(zip(labels, means, strict=True))
    whole = {shortened(p.person): p.person for people in judges.values() for p in people}
    return finished(
        _versus_layers(listed, axis),
        title=title,
        text=f"{_LEGEND}; means over people" if has_means else _LEGEND,
        words=_means_in_words(means, axis),
        height=_VERSUS_ROW * len(listed),
        names=(whole if not has_means else {})
        | {text: name for text, (name, _) in zip(labels, judges, strict=True)},
    )


def _mean(people: Sequence[Versus]) -> Versus:
    both = [
        (row.of_judge, row.of_person)
        for row in people
        if row.of_judge is not None and row.of_person is not None
    ]
    of_judge, of_person = map(fmean, zip(*both, strict=True)) if both else (None, None)
    return replace(people[0], of_judge=of_judge, of_person=of_person)


def _versus_layers(listed: Sequence[tuple[str, Versus | None]], axis: Axis) -> list[Object]:
    y = band("row", len(listed))
    rows = {i: row for i, (_, row) in enumerate(listed) if row is not None}
    x = numeric(axis, axis.ends(v for row in rows.values() for v in (row.of_judge, row.of_person)))
    people: list[Object] = [
        {"row": i, "value": row.of_person, "fill": 0.0, "other": row.of_judge}
        for i, row in rows.items()
        if row.of_person is not None
    ]
    judges: list[Object] = [
        {"row": i, "value": row.of_judge, "fill": 1.0}
        for i, row in rows.items()
        if row.of_judge is not None
    ]
    both = [row for row in people if row["other"] is not None]
    known = {i: row for i, row in rows.items() if (row.of_judge, row.of_person) != (None, None)}
    heads: list[Object] = [
        {"place": _JUDGE_AT, "text": "judge"},
        {"place": _PERSON_AT, "text": "person"},
    ]
    line: Object = {"x": x, "x2": {"field": "other"}, "y": y}
    return [
        column(
            {i: text for i, (text, row) in enumerate(listed) if not row}, _NAME_AT, y, "heading"
        ),
        column({i: listed[i][0] for i in rows}, _NAME_AT, y),
        marks(both, "rule", line, style="connection"),
        *_dots(people, {"x": x, "y": y}),
        *_dots(judges, {"x": x, "y": y}),
        column({i: axis.write(row.of_judge, DASH) for i, row in known.items()}, _JUDGE_AT, y),
        column({i: axis.write(row.of_person, DASH) for i, row in known.items()}, _PERSON_AT, y),
        column({i: NO_FIGURE for i in rows if i not in known}, GAP, y, "quiet"),
        texts(heads, unscaled("place"), {"value": -GAP}, align="right", style="quiet"),
    ]


def _means_in_words(means: Iterable[Versus], axis: Axis) -> str:
    figures = "; ".join(
        f"{clean(mean.judge)} {axis.write(mean.of_judge)}"
        + ("" if mean.of_judge is None else f" against {axis.write(mean.of_person)}")
        for mean in means
    )
    return f"Judge against person, mean over people: {figures}."


# --- tables and lines -----------------------------------------------------------------------------

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
