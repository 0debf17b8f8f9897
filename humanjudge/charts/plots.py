"""The kinds of charts: bars, dots with whiskers, judges beside people, lines."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import fmean
from typing import Final

from humanjudge.charts.spec import (
    DASH,
    GAP,
    LETTER_WIDTH,
    NO_FIGURE,
    PLOT_WIDTH,
    WORDS_UNITS,
    Axis,
    Ends,
    Object,
    Reference,
    Spec,
    band,
    clean,
    column,
    labels,
    marks,
    numeric,
    shortened,
    spread,
    texts,
    unscaled,
)

_DOT: Final = 64
_FILL: Final = unscaled("fill")
# More rows than that are no picture any more: each judge then gets one, its mean over people.
MOST_ROWS: Final = 60
# Numbers stand beside the names, where a narrow screen still shows them.
_PERSON_AT: Final = -GAP
_JUDGE_AT: Final = _PERSON_AT - 50
_NAME_AT: Final = _JUDGE_AT - 44
_CELL_HEIGHT: Final = 24
# Text in a cell is ink: more of the accent behind it would take the contrast away.
FULLEST_CELL: Final = 0.45
# More lines than these cannot be followed by the eye.
MOST_LINES: Final = 6
_PLOT_HEIGHT: Final = 220


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


def intervals(
    rows: Iterable[Estimate],
    *,
    title: str,
    axis: Axis,
    reference: Reference | None = None,
    are_bars: bool = False,
) -> Spec | None:
    """Draw a dot with its interval per judge, the best first; None without judges.

    The axis need not hold zero, unless they are bars. `reference` is for instance 1000 for ratings,
    or what people reach among themselves.
    """
    rows = sorted(rows, key=lambda row: (row.value is None, -(row.value or 0)))
    if not rows:
        return None
    measured: list[Estimate | Reference] = [*rows, *([reference] if reference else [])]
    values = [end for each in measured for end in (each.value, each.low, each.high)]
    ends = axis.ends([*values, 0.0] if are_bars else values)
    x, y, full = numeric(axis, ends), band("row", len(rows)), 0.6 if are_bars else 1.0
    names = labels((row.name, row.is_baseline) for row in rows)
    numbers = [axis.write(row.value, "") for row in rows]
    fills = [0.2 if row.is_baseline else full for row in rows]
    drawn: list[Object] = [
        {"row": i, "value": row.value, "low": row.low, "high": row.high, "fill": fills[i]}
        for i, row in enumerate(rows)
        if row.value is not None
    ]
    below, rule = _reference(reference, axis, x, ends) if reference else ([], [])
    ranged: Object = {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y}
    whiskers = marks(drawn, "rule", ranged)
    words = ", ".join(
        f"{clean(row.name)}{' (baseline)' * row.is_baseline} {axis.write(row.value)}"
        for row in rows
    )
    words += f"; {reference.words} {axis.write(reference.value)}" if reference else ""
    return Spec(
        [
            *below,
            *(_bars(drawn, x, y) if are_bars else []),
            *rule,
            whiskers,
            *([] if are_bars else _dots(drawn, x, y)),
            column(names, -2 * GAP - LETTER_WIDTH * max(map(len, numbers))),
            column(numbers, -GAP),
            column(["" if number else NO_FIGURE for number in numbers], GAP, "quiet"),
        ],
        title=title,
        words=f"Best first: {words}. Lines are 95 % intervals.",
        height=22 * len(rows),
        names=dict(zip(names, (row.name for row in rows), strict=True)),
    )


bars = partial(intervals, are_bars=True)


def _bars(rows: Sequence[Object], x: Object, y: Object) -> list[Object]:
    """Return bars with paper below them, since they are pale: the grid would be seen through."""
    place: Object = {"x": x, "x2": {"datum": 0}, "y": y}
    return [
        marks(rows, "bar", place, height=14, style="under"),
        marks(rows, "bar", place | {"fillOpacity": _FILL}, height=14),
    ]


def _dots(rows: Sequence[Object], x: Object, y: Object, fill: Object = _FILL) -> list[Object]:
    """Return dots that hide what lies below them, and are filled as much as their rows say."""
    place: Object = {"x": x, "y": y}
    return [
        marks(rows, "point", place, style="under", size=_DOT, filled=True),
        marks(rows, "point", place, size=_DOT),
        marks(rows, "point", place | {"fillOpacity": fill}, size=_DOT, filled=True),
    ]


def _reference(
    reference: Reference, axis: Axis, x: Object, ends: Ends
) -> tuple[list[Object], list[Object]]:
    """Return a band as wide as its interval, and a rule down the plot with its label above it."""
    words = f"{shortened(reference.words, WORDS_UNITS)} {axis.write(reference.value)}"
    row: Object = {"value": reference.value, "text": words}
    # Towards the middle, so that the chart is no wider for it.
    side = "left" if 2 * reference.value < sum(ends) else "right"
    rule = [
        marks([row], "rule", {"x": x}, style="reference"),
        texts([row], x, {"value": -8}, align=side, style="quiet"),
    ]
    if reference.low is None:
        return [], rule
    interval: Object = {"value": reference.low, "high": reference.high}
    return [marks([interval], "rect", {"x": x, "x2": {"field": "high"}}, style="band")], rule


@dataclass(frozen=True, slots=True)
class Versus:
    """A judge and a person, measured against the other people: both, or neither."""

    judge: str
    person: str
    of_judge: float | None
    of_person: float | None
    is_baseline: bool = False


def grouped(rows: Iterable[Versus], *, title: str, axis: Axis) -> Spec | None:
    """Draw each judge beside each person, of many people their mean; None without rows."""
    judges: dict[tuple[str, bool], list[Versus]] = {}
    for row in rows:
        judges.setdefault((row.judge, row.is_baseline), []).append(row)
    if not judges:
        return None
    heads = dict(zip(judges, labels(judges), strict=True))
    means = {judge: _mean(people) for judge, people in judges.items()}
    people = [(shortened(row.person), row.person) for each in judges.values() for row in each]
    text = "filled dot: the judge; open dot: the person in its place"
    # A row without a person is the head of a judge's.
    listed: list[tuple[str, Versus | None]] = []
    if len(judges) + len(people) > MOST_ROWS:
        text += "; means over people"
        listed += [(heads[judge], mean) for judge, mean in means.items()]
    else:
        for judge, each in judges.items():
            listed += [(heads[judge], None), *((shortened(row.person), row) for row in each)]
    words = "; ".join(
        f"{clean(mean.judge)} {axis.write(mean.of_judge)}"
        + ("" if mean.of_judge is None else f" against {axis.write(mean.of_person)}")
        for mean in means.values()
    )
    return Spec(
        _versus(listed, axis),
        title=title,
        text=text,
        words=f"Judge against person, mean over people: {words}.",
        height=18 * len(listed),
        names=dict(people) | {text: name for (name, _), text in heads.items()},
    )


def _mean(people: Sequence[Versus]) -> Versus:
    of_judge = [row.of_judge for row in people if row.of_judge is not None]
    of_person = [row.of_person for row in people if row.of_person is not None]
    if not of_judge or not of_person:
        return replace(people[0], of_judge=None, of_person=None)
    return replace(people[0], of_judge=fmean(of_judge), of_person=fmean(of_person))


def _versus(listed: Sequence[tuple[str, Versus | None]], axis: Axis) -> list[Object]:
    known = [(i, row) for i, (_, row) in enumerate(listed) if row and row.of_judge is not None]
    ends = axis.ends(end for _, row in known for end in (row.of_judge, row.of_person))
    judge, person = numeric(axis, ends, "judge"), numeric(axis, ends, "person")
    y, gaps = band("row", len(listed)), ["" if row is None else NO_FIGURE for _, row in listed]
    of_judge, of_person = [""] * len(listed), [""] * len(listed)
    for i, row in known:
        of_judge[i], of_person[i], gaps[i] = axis.write(row.of_judge), axis.write(row.of_person), ""
    rows: list[Object] = [
        {"row": i, "judge": row.of_judge, "person": row.of_person} for i, row in known
    ]
    over: list[Object] = [
        {"place": _JUDGE_AT, "text": "judge"},
        {"place": _PERSON_AT, "text": "person"},
    ]
    return [
        column(["" if row else text for text, row in listed], _NAME_AT, "heading"),
        column([text if row else "" for text, row in listed], _NAME_AT),
        marks(rows, "rule", {"x": judge, "x2": {"field": "person"}, "y": y}, style="connection"),
        *_dots(rows, person, y, {"value": 0}),
        *_dots(rows, judge, y, {"value": 1}),
        column(of_judge, _JUDGE_AT),
        column(of_person, _PERSON_AT),
        column(gaps, GAP, "quiet"),
        texts(over, unscaled("place"), {"value": -GAP}, align="right", style="quiet"),
    ]


# --- tables and lines -----------------------------------------------------------------------------

Numbers = Sequence[Sequence[float | None]]


def _table(
    names: Sequence[str],
    heads: Sequence[str],
    numbers: Numbers,
    form: Axis,
    ends: Ends,
    bold_from: float = inf,
    **of_heads: str | float,
) -> list[Object]:
    x, y, low = band("column", len(heads)), band("row", len(names)), ends[0]
    plain, bold, gaps = list[Object](), list[Object](), list[Object]()
    for row, line in enumerate(numbers):
        for number, value in enumerate(line):
            cell: Object = {"row": row, "column": number, "text": form.write(value, DASH)}
            if value is None:
                gaps.append(cell)
                continue
            fill = min(max((value - low) / (ends[1] - low), 0.0), 1.0) * FULLEST_CELL
            (bold if value >= bold_from else plain).append(cell | {"fill": round(fill, 4)})
    place: Object = {"x": x, "y": y}
    above: list[Object] = [{"column": i, "text": text} for i, text in enumerate(heads)]
    return [
        marks([*plain, *bold], "rect", place | {"fillOpacity": _FILL}, style="cell"),
        marks(gaps, "rect", place, style="gap"),
        texts(plain, x, y, style="number"),
        texts(bold, x, y, style=["number", "heading"]),
        texts(gaps, x, y, style="quiet"),
        column(names, -GAP),
        texts(above, x, {"value": -GAP}, **of_heads),
    ]


@dataclass(frozen=True, slots=True)
class Curve:
    """A judge's figure at several places, ascending; None where there is none."""

    name: str
    points: Sequence[tuple[float, float | None]]
    is_baseline: bool = False


def lines(
    series: Sequence[Curve], *, title: str, x: Axis, y: Axis, threshold: Reference
) -> Spec | None:
    """Draw a line per judge, named at its end; of more than `MOST_LINES` judges a table.

    `threshold` is a rule across the plot, for instance where a judge passes.
    """
    if not series:
        return None
    known = [{place: v for place, v in curve.points if v is not None} for curve in series]
    shorts = [
        short if points else f"{short} · {NO_FIGURE}"
        for short, points in zip(
            labels((curve.name, curve.is_baseline) for curve in series), known, strict=True
        )
    ]
    places = sorted({place for points in known for place in points})
    ends = y.ends([*(value for points in known for value in points.values()), threshold.value])
    courses = "; ".join(
        f"{clean(curve.name)} {_course(list(points.items()), x, y)}"
        for curve, points in zip(series, known, strict=True)
    )
    words = f"{y.words or 'figure'} over {x.words or 'place'}: {courses}. {threshold.words}."
    names = {text: curve.name for text, curve in zip(shorts, series, strict=True)}
    if len(series) <= MOST_LINES:
        baselines = [curve.is_baseline for curve in series]
        across, up = numeric(x, x.ends(places), "x", nice=False), numeric(y, ends, nice=False)
        layers = [*_threshold(threshold, up), *_lines(known, shorts, baselines, across, up, ends)]
        return Spec(layers, title=title, words=words, height=_PLOT_HEIGHT, names=names)
    order = sorted(range(len(known)), key=lambda i: -fmean(known[i].values()) if known[i] else 1.0)
    numbers = [[known[i].get(place) for place in places] for i in order]
    heads, ordered = [x.write(place) for place in places], [shorts[i] for i in order]
    return Spec(
        _table(ordered, heads, numbers, y, ends, threshold.value, style="quiet"),
        title=title,
        text="; ".join([f"across: {x.words}"] * bool(x.words) + [f"bold: {threshold.words}"]),
        words=words,
        height=_CELL_HEIGHT * len(order),
        width=6 * LETTER_WIDTH * max(1, len(places)),
        names=names,
    )


def _course(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    if not points:
        return NO_FIGURE
    first, last = (f"{y.write(points[i][1])} at {x.write(points[i][0])}" for i in (0, -1))
    return f"from {first} to {last}"


def _threshold(threshold: Reference, up: Object) -> list[Object]:
    row: Object = {"value": threshold.value, "text": shortened(threshold.words, WORDS_UNITS)}
    return [
        marks([row], "rule", {"y": up}, style="reference"),
        texts([row], {"value": 3}, up, style="quiet", align="left", dy=-8),
    ]


def _lines(
    known: Sequence[Mapping[float, float]],
    shorts: Sequence[str],
    baselines: Sequence[bool],
    x: Object,
    y: Object,
    ends: Ends,
) -> list[Object]:
    pixel, equal = (ends[1] - ends[0]) / _PLOT_HEIGHT, Counter[tuple[tuple[float, float], ...]]()
    drawn: list[list[Object]] = [[], []]
    last: list[float] = []
    for index, points in enumerate(known):
        # Lines that lie on each other are drawn side by side, some pixels apart.
        moved = 3 * pixel * equal[tuple(points.items())]
        equal[tuple(points.items())] += 1
        drawn[baselines[index]] += [
            {"curve": index, "x": place, "value": value - moved} for place, value in points.items()
        ]
        last.append([*points.values()][-1] - moved if points else ends[0])
    # Where two lines end alike, the one that was higher before is named above the other.
    order = sorted(range(len(known)), key=lambda i: (-last[i], -sum(known[i].values())))
    downs = spread([(ends[1] - last[i]) / pixel for i in order], 15, _PLOT_HEIGHT)
    names: list[Object] = [
        {"down": down, "text": shorts[i]} for i, down in zip(order, downs, strict=True)
    ]
    place: Object = {"x": x, "y": y}
    each: Object = place | {"detail": {"field": "curve", "type": "nominal"}}
    return [
        marks(drawn[True], "line", each, style="baseline"),
        marks(drawn[False], "line", each),
        marks(drawn[False], "point", place, size=14, filled=True),
        texts(names, {"value": PLOT_WIDTH + GAP}, unscaled("down"), align="left"),
    ]
