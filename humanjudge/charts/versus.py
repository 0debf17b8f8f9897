"""Judges against people, one by one: two dots in a row, the judge's and the person's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Final

from humanjudge.charts.layers import across, finished, layer, rings, rows_down, texts
from humanjudge.charts.parts import (
    NO_FIGURE,
    Axis,
    Spec,
    clean,
    domain,
    finite,
    label,
    shortened,
    unprefixed,
)

if TYPE_CHECKING:
    import altair as alt

ROW: Final = 18
DOT: Final = 56
# An open dot is as large as a full one and half of its line on each side.
FULL_DOT: Final = 84
GAP: Final = 10
# Beside the names, where a narrow screen still shows them.
PERSON_AT: Final = -GAP
JUDGE_AT: Final = PERSON_AT - 50
NAME_AT: Final = JUDGE_AT - 44
# More rows than that are no picture any more: each judge then gets one, its mean over people.
MOST_ROWS: Final = 60
_DASH: Final = "\N{EN DASH}"
_HEADS: Final = -10
_LEGEND: Final = "filled dot: the judge; open dot: the person in its place"


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
    """Draw each judge beside each person; of many people their mean.

    Parameters
    ----------
    rows : iterable of Versus
    title : str
    axis : Axis

    Returns
    -------
    dict or None
        A Vega-Lite specification; None without rows.
    """
    judges: dict[tuple[str, bool], list[Versus]] = {}
    for row in rows:
        judges.setdefault((row.judge, row.is_baseline), []).append(row)
    if not judges:
        return None
    names = [name for name, _ in judges]
    plain = dict(zip(names, unprefixed(names), strict=True))
    listed, text = _every(judges, plain), _LEGEND
    if len(listed) > MOST_ROWS:
        listed = [
            _mean(name, is_baseline, found, plain[name])
            for (name, is_baseline), found in judges.items()
        ]
        text = f"{_LEGEND}; means over people"
    y = rows_down(len(listed))
    ends = domain(axis, [value for row in listed for value in (row.of_judge, row.of_person)])
    return finished(
        [*_names(listed, y), *_dots(listed, across(axis, ends), y), *_numbers(listed, axis, y)],
        title=title,
        text=text,
        words=_in_words(judges, axis),
        height=ROW * len(listed),
        names={row.text: row.full for row in listed},
    )


def _every(
    judges: Mapping[tuple[str, bool], Sequence[Versus]], plain: Mapping[str, str]
) -> list[_Row]:
    return [
        row
        for (name, is_baseline), found in judges.items()
        for row in (
            _Row(label(plain[name], is_baseline), name, is_heading=True),
            *map(_person, found),
        )
    ]


def _person(row: Versus) -> _Row:
    return _Row(shortened(row.person), row.person, finite(row.of_judge), finite(row.of_person))


def _mean(name: str, is_baseline: bool, found: Sequence[Versus], plain: str = "") -> _Row:
    both = [
        (judge, person)
        for row in found
        for judge, person in [(finite(row.of_judge), finite(row.of_person))]
        if judge is not None and person is not None
    ]
    means = (fmean(values) for values in zip(*both, strict=True)) if both else (None, None)
    return _Row(label(plain or name, is_baseline), name, *means)


def _names(listed: Sequence[_Row], y: alt.Y) -> list[alt.Chart]:
    headings = {i: row.text for i, row in enumerate(listed) if row.is_heading}
    people = {i: row.text for i, row in enumerate(listed) if not row.is_heading}
    return [texts(headings, NAME_AT, "right", y, "heading"), texts(people, NAME_AT, "right", y)]


def _dots(listed: Sequence[_Row], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    both = layer(
        {"row": i, "value": row.of_judge, "person": row.of_person}
        for i, row in enumerate(listed)
        if row.of_judge is not None and row.of_person is not None
    )
    people = layer(
        {"row": i, "value": row.of_person}
        for i, row in enumerate(listed)
        if row.of_person is not None
    )
    judges = layer(
        {"row": i, "value": row.of_judge}
        for i, row in enumerate(listed)
        if row.of_judge is not None
    )
    return [
        both.mark_rule(style="connection").encode(x=x, x2="person:Q", y=y),
        *rings(people, x, y, DOT),
        judges.mark_point(size=FULL_DOT, filled=True).encode(x=x, y=y),
    ]


def _numbers(listed: Sequence[_Row], axis: Axis, y: alt.Y) -> list[alt.Chart]:
    import altair as alt

    people = {i: row for i, row in enumerate(listed) if not row.is_heading}
    empty = {i for i, row in people.items() if row.of_judge is None and row.of_person is None}

    def written(values: Mapping[int, float | None]) -> dict[int, str]:
        known = {i: value for i, value in values.items() if i not in empty}
        return {i: _DASH if v is None else axis.write(v) for i, v in known.items()}

    heads = layer([{"x": JUDGE_AT, "text": "judge"}, {"x": PERSON_AT, "text": "person"}])
    return [
        texts(written({i: row.of_judge for i, row in people.items()}), JUDGE_AT, "right", y),
        texts(written({i: row.of_person for i, row in people.items()}), PERSON_AT, "right", y),
        texts(dict.fromkeys(empty, NO_FIGURE), GAP, "left", y, "quiet"),
        heads.mark_text(align="right", style="quiet").encode(
            x=alt.X("x:Q", scale=None, axis=None), y=alt.value(_HEADS), text="text:N"
        ),
    ]


def _in_words(judges: Mapping[tuple[str, bool], Sequence[Versus]], axis: Axis) -> str:
    told = []
    for (name, is_baseline), found in judges.items():
        mean = _mean(name, is_baseline, found)
        if mean.of_judge is None or mean.of_person is None:
            told.append(f"{clean(name)} {NO_FIGURE}")
        else:
            told.append(
                f"{clean(name)} {axis.write(mean.of_judge)} against {axis.write(mean.of_person)}"
            )
    return f"Judge against person, mean over people: {'; '.join(told)}."
