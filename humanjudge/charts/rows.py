"""A row per judge: bars or dots with whiskers, and judges beside people one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from humanjudge.charts.spec import (
    DASH,
    GAP,
    LETTER_WIDTH,
    NO_FIGURE,
    WORDS_UNITS,
    Axis,
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
