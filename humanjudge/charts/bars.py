"""A row per judge: bars or dots with whiskers, and judges beside people one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final, Literal

from humanjudge.charts.spec import (
    DASH,
    GAP,
    LETTER_WIDTH,
    NO_FIGURE,
    WORDS_UNITS,
    Axis,
    Ends,
    Estimate,
    Object,
    Reference,
    Side,
    Spec,
    band,
    clean,
    column,
    domain,
    finished,
    finite,
    label,
    marks,
    numeric,
    open_dots,
    shortened,
    texts,
    unprefixed,
    unscaled,
)

_ROW: Final = 22
_BAR: Final = 14
_DOT: Final = 64
_JUDGE_FILL: Final = 0.6
_BASELINE_FILL: Final = 0.2
_ABOVE: Final = -8

# More rows than that are no picture any more: each judge then gets one, its mean over people.
MOST_ROWS: Final = 60
_VERSUS_ROW: Final = 18
_PERSON_DOT: Final = 56
# An open dot is as large as a full one and half of its line on each side.
_JUDGE_DOT: Final = 84
# Numbers stand beside the names, where a narrow screen still shows them.
_PERSON_AT: Final = -GAP
_JUDGE_AT: Final = _PERSON_AT - 50
_NAME_AT: Final = _JUDGE_AT - 44
_LEGEND: Final = "filled dot: the judge; open dot: the person in its place"


def bars(
    rows: Iterable[Estimate], *, title: str, axis: Axis, people: Reference | None = None
) -> Spec | None:
    """Draw a bar from zero per judge, the best first; None without judges.

    `people` is what people reach among themselves.
    """
    return _judges("bar", rows, title, axis, people)


def intervals(
    rows: Iterable[Estimate], *, title: str, axis: Axis, reference: Reference | None = None
) -> Spec | None:
    """Draw a dot with its interval per judge, the best first; the axis need not hold zero.

    `reference` is for instance 1000 for ratings, or what people reach among themselves.
    """
    return _judges("point", rows, title, axis, reference)


def _judges(
    kind: Literal["bar", "point"],
    estimates: Iterable[Estimate],
    title: str,
    axis: Axis,
    people: Reference | None,
) -> Spec | None:
    rows = sorted(map(_finite, estimates), key=_best_first)
    if not rows:
        return None
    reference = people if people and finite(people.value) is not None else None
    measured: list[Estimate | Reference] = [*rows, *([reference] if reference else [])]
    values = [value for each in measured for value in (each.value, each.low, each.high)]
    ends = domain(axis, values, zero=kind == "bar")
    x, y = numeric(axis, ends), band("row", len(rows))
    plain = unprefixed([row.name for row in rows])
    names = {i: label(plain[i], row.is_baseline) for i, row in enumerate(rows)}
    numbers = {i: axis.write(row.value) for i, row in enumerate(rows) if row.value is not None}
    gaps = {i: NO_FIGURE for i in names if i not in numbers}
    room = LETTER_WIDTH * max(map(len, numbers.values()), default=0)
    below, rule = _reference(reference, axis, ends, x) if reference else ([], [])
    layers = [
        *below,
        *(_bars if kind == "bar" else _dots)(rows, x, y, rule),
        column(names, -2 * GAP - room, "right", y),
        column(numbers, -GAP, "right", y),
        column(gaps, GAP, "left", y, "quiet"),
    ]
    return finished(
        layers,
        title=title,
        words=_in_words(rows, axis, reference),
        height=_ROW * len(rows),
        names={names[index]: row.name for index, row in enumerate(rows)},
    )


def _finite(row: Estimate) -> Estimate:
    value, low, high = finite(row.value), finite(row.low), finite(row.high)
    if value is None or low is None or high is None:
        low = high = None
    return replace(row, value=value, low=low, high=high)


def _best_first(row: Estimate) -> tuple[bool, float]:
    return row.value is None, -(row.value or 0.0)


def _reference(
    reference: Reference, axis: Axis, ends: Ends, x: Object
) -> tuple[list[Object], list[Object]]:
    """Return a band as wide as its interval, and a rule down the plot with its label above it."""
    value = reference.value or 0.0
    place = (value - ends[0]) / (ends[1] - ends[0])
    towards_the_middle: Side = "left" if place < 0.3 else "right" if place > 0.7 else "center"
    words = f"{shortened(reference.words, WORDS_UNITS)} {axis.write(value)}"
    named: list[Object] = [{"value": value, "text": words}]
    rule = [
        marks(named, "rule", {"x": x}, style="reference"),
        texts(named, x, {"value": _ABOVE}, towards_the_middle, style="quiet"),
    ]
    low, high = finite(reference.low), finite(reference.high)
    if low is None or high is None:
        return [], rule
    interval: list[Object] = [{"value": low, "high": high}]
    return [marks(interval, "rect", {"x": x, "x2": {"field": "high"}}, style="band")], rule


def _bars(rows: Sequence[Estimate], x: Object, y: Object, rule: Sequence[Object]) -> list[Object]:
    known = _known(rows, _JUDGE_FILL)
    place: Object = {"x": x, "x2": {"datum": 0}, "y": y}
    fill: Object = {"fillOpacity": unscaled("fill")}
    return [
        # Paper below pale marks: the grid, or a whisker, would be seen through them.
        marks(known, "bar", place, height=_BAR, style="under"),
        marks(known, "bar", place | fill, height=_BAR),
        *rule,
        _whiskers(rows, x, y),
    ]


def _dots(rows: Sequence[Estimate], x: Object, y: Object, rule: Sequence[Object]) -> list[Object]:
    known = _known(rows, 1.0)
    place: Object = {"x": x, "y": y}
    fill: Object = {"fillOpacity": unscaled("fill")}
    return [
        *rule,
        _whiskers(rows, x, y),
        *open_dots(known, place, _DOT),
        marks(known, "point", place | fill, size=_DOT, filled=True),
    ]


def _known(rows: Sequence[Estimate], fill: float) -> list[Object]:
    return [
        {"row": i, "value": row.value, "fill": _BASELINE_FILL if row.is_baseline else fill}
        for i, row in enumerate(rows)
        if row.value is not None
    ]


def _whiskers(rows: Sequence[Estimate], x: Object, y: Object) -> Object:
    known: list[Object] = [
        {"row": i, "value": row.low, "high": row.high}
        for i, row in enumerate(rows)
        if row.low is not None
    ]
    return marks(known, "rule", {"x": x, "x2": {"field": "high"}, "y": y})


def _in_words(rows: Sequence[Estimate], axis: Axis, reference: Reference | None) -> str:
    figures = ", ".join(
        f"{clean(row.name)}{' (baseline)' if row.is_baseline else ''} "
        f"{NO_FIGURE if row.value is None else axis.write(row.value)}"
        for row in rows
    )
    beside = f"; {reference.words} {axis.write(reference.value or 0.0)}" if reference else ""
    return f"Best first: {figures}{beside}. Lines are 95 % intervals."


@dataclass(frozen=True, slots=True)
class Versus:
    """A judge and a person, measured against the other people; None where there is no figure."""

    judge: str
    person: str
    of_judge: float | None
    of_person: float | None
    is_baseline: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    full: str
    of_judge: float | None = None
    of_person: float | None = None
    is_heading: bool = False


def grouped(rows: Iterable[Versus], *, title: str, axis: Axis) -> Spec | None:
    """Draw each judge beside each person, of many people their mean; None without rows."""
    judges: dict[tuple[str, bool], list[Versus]] = {}
    for row in rows:
        judges.setdefault((row.judge, row.is_baseline), []).append(row)
    if not judges:
        return None
    short = unprefixed([name for name, _ in judges])
    means, listed = [], []
    for plain, ((name, is_baseline), people) in zip(short, judges.items(), strict=True):
        means.append(_mean(label(plain, is_baseline), name, people))
        listed.append(_Row(label(plain, is_baseline), name, is_heading=True))
        listed += map(_person, people)
    text = _LEGEND
    if len(listed) > MOST_ROWS:
        listed, text = means, f"{_LEGEND}; means over people"
    y = band("row", len(listed))
    ends = domain(axis, [value for row in listed for value in (row.of_judge, row.of_person)])
    return finished(
        [
            *_names(listed, y),
            *_two_dots(listed, numeric(axis, ends), y),
            *_numbers(listed, axis, y),
        ],
        title=title,
        text=text,
        words=_means_in_words(means, axis),
        height=_VERSUS_ROW * len(listed),
        names={row.text: row.full for row in listed},
    )


def _person(row: Versus) -> _Row:
    return _Row(shortened(row.person), row.person, finite(row.of_judge), finite(row.of_person))


def _mean(text: str, name: str, people: Iterable[Versus]) -> _Row:
    both = [
        (row.of_judge, row.of_person)
        for row in map(_person, people)
        if row.of_judge is not None and row.of_person is not None
    ]
    if not both:
        return _Row(text, name)
    return _Row(text, name, fmean(judge for judge, _ in both), fmean(person for _, person in both))


def _names(listed: Sequence[_Row], y: Object) -> list[Object]:
    headings = {i: row.text for i, row in enumerate(listed) if row.is_heading}
    people = {i: row.text for i, row in enumerate(listed) if not row.is_heading}
    return [
        column(headings, _NAME_AT, "right", y, "heading"),
        column(people, _NAME_AT, "right", y),
    ]


def _two_dots(listed: Sequence[_Row], x: Object, y: Object) -> list[Object]:
    every: list[Object] = [
        {"row": i, "judge": row.of_judge, "person": row.of_person} for i, row in enumerate(listed)
    ]
    judges = [row for row in every if row["judge"] is not None]
    people = [row for row in every if row["person"] is not None]
    both = [row for row in judges if row["person"] is not None]
    of_judge, of_person = x | {"field": "judge"}, x | {"field": "person"}
    line: Object = {"x": of_judge, "x2": {"field": "person"}, "y": y}
    return [
        marks(both, "rule", line, style="connection"),
        *open_dots(people, {"x": of_person, "y": y}, _PERSON_DOT),
        marks(judges, "point", {"x": of_judge, "y": y}, size=_JUDGE_DOT, filled=True),
    ]


def _numbers(listed: Sequence[_Row], axis: Axis, y: Object) -> list[Object]:
    judges, people, empty = {}, {}, {}
    for i, row in enumerate(listed):
        if row.is_heading:
            continue
        if row.of_judge is None and row.of_person is None:
            empty[i] = NO_FIGURE
            continue
        judges[i] = DASH if row.of_judge is None else axis.write(row.of_judge)
        people[i] = DASH if row.of_person is None else axis.write(row.of_person)
    heads: list[Object] = [
        {"place": _JUDGE_AT, "text": "judge"},
        {"place": _PERSON_AT, "text": "person"},
    ]
    return [
        column(judges, _JUDGE_AT, "right", y),
        column(people, _PERSON_AT, "right", y),
        column(empty, GAP, "left", y, "quiet"),
        texts(heads, unscaled("place"), {"value": -GAP}, "right", style="quiet"),
    ]


def _means_in_words(means: Iterable[_Row], axis: Axis) -> str:
    figures = "; ".join(
        f"{clean(mean.full)} {NO_FIGURE}"
        if mean.of_judge is None or mean.of_person is None
        else f"{clean(mean.full)} {axis.write(mean.of_judge)} against {axis.write(mean.of_person)}"
        for mean in means
    )
    return f"Judge against person, mean over people: {figures}."
