"""Figures with their intervals as coordinates, a row for each: of judges on a board, of models.

A template draws it twice, for wide and for narrow pages, in the page's own colours: it must not
wait for a renderer, and its letters must not shrink with the page.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from humanjudge.charts.labels import (
    SHARE,
    Axis,
    Ends,
    clean,
    shortened,
    ticks,
    unprefixed,
    width_of,
)

WIDE: Final = 960
NARROW: Final = 340
# More rows than these stand closer to each other.
MOST_AIRY: Final = 6
_TOP: Final = 8
# Of a letter of a name, and of a smaller one below the axis.
_LETTER, _SMALL = 7.6, 6.8
_LONGEST_NAME: Final = 30
# Between a line and its value, a swatch and its words, two words.
_GAP: Final = 10
_LINE: Final = 18
_SWATCH: Final = 16


class IntervalRow(NamedTuple):
    """A figure with its 95 % interval and the one that always holds; None where there is none."""

    name: str
    value: float | None
    interval: Ends | None = None
    always: Ends | None = None
    beats_floor: bool = True
    # Beside its value.
    note: str = ""
    # A rule such as "the longer answer wins", which a judge should beat.
    is_baseline: bool = False


class Level(NamedTuple):
    """What figures are measured against: people among themselves, the floor, or the start."""

    words: str
    value: float
    interval: Ends | None = None
    style: str = "floor"


class Label(NamedTuple):
    text: str
    x: float
    y: float
    anchor: str = "start"


class DrawnRow(NamedTuple):
    name: str
    beats_floor: bool
    y: float
    x: float | None
    thick: Ends | None
    thin: Ends | None
    label: Label
    value: Label


class Band(NamedTuple):
    style: str
    x: float
    low: float
    width: float
    # Its swatch stands before it.
    label: Label


@dataclass(frozen=True)
class IntervalGraph:
    css: str
    words: str
    width: int
    height: int
    left: float
    right: float
    bottom: int
    ticks: list[Label]
    rows: list[DrawnRow]
    bands: list[Band]
    top: int = _TOP


def interval_graph(
    rows: Sequence[IntervalRow],
    levels: Sequence[Level] = (),
    *,
    title: str,
    axis: Axis = SHARE,
    is_narrow: bool = False,
) -> IntervalGraph | None:
    """Lay out rows in the order given; None without any.

    A narrow picture has names and values above the lines, a wide one has them beside.
    """
    if not rows:
        return None
    names = [shortened(name, _LONGEST_NAME) for name in unprefixed([row.name for row in rows])]
    values = [", ".join(filter(None, [axis.write(row.value), row.note])) for row in rows]
    low, high = axis.ends(ends_of(rows, levels))
    width, left, right = NARROW, 6.0, NARROW - 6.0
    if not is_narrow:
        # Room for the names, and for a value behind the longest line.
        width, left = WIDE, min(round(_LETTER * max(map(width_of, names)) + 24), 260)
        right = WIDE - round(_LETTER * max(map(width_of, values)) + 24)
    close, airy = (38, 44) if is_narrow else (21, 36)
    step = airy if len(rows) <= MOST_AIRY else close

    def x(value: float) -> float:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(left + (right - left) * share, 1)

    def ends(interval: Ends | None) -> Ends | None:
        return interval and (x(interval[0]), x(interval[1]))

    drawn = []
    for place, row in enumerate(rows):
        y = _TOP + step * place + (step - 10 if is_narrow else step / 2)
        thick, thin = ends(row.interval), ends(row.always)
        dot = None if row.value is None else x(row.value)
        if is_narrow:
            label = Label(names[place], left, y - 16)
            value = Label(values[place], right, y - 16, "end")
        else:
            last = max([left if dot is None else dot + 8, *(thick or ()), *(thin or ())])
            label = Label(names[place], left - 18, y, "end")
            value = Label(values[place], last + _GAP, y)
        name = clean(row.name)
        drawn.append(DrawnRow(name, row.beats_floor, y, dot, thick, thin, label, value))
    bottom = _TOP + step * len(rows)
    marks = ticks(low, high) if high > low else [low]
    labels = [Label(axis.write(mark), x(mark), bottom + 16, "middle") for mark in marks]
    if is_narrow:
        labels[0] = labels[0]._replace(anchor="start")
        labels[-1] = labels[-1]._replace(anchor="end")
    bands = _bands(levels, axis, x, width, bottom + 16 + _LINE)
    in_words = ", ".join(f"{row.name} {row.value.text}" for row in drawn)
    return IntervalGraph(
        css="narrow" if is_narrow else "wide",
        words="; ".join([f"{title}, best first: {in_words}", *(band.label.text for band in bands)]),
        width=width,
        height=round(max([bottom + 16, *(band.label.y for band in bands)]) + 12),
        left=left,
        right=right,
        bottom=bottom,
        ticks=labels,
        rows=drawn,
        bands=bands,
    )


def ends_of(rows: Sequence[IntervalRow], levels: Sequence[Level] = ()) -> Iterator[float | None]:
    """Yield every number that must lie on the axis."""
    for row in rows:
        yield from (row.value, *(row.interval or ()), *(row.always or ()))
    for level in levels:
        yield from (level.value, *(level.interval or ()))


def _bands(
    levels: Sequence[Level], axis: Axis, x: Callable[[float], float], width: int, y: float
) -> list[Band]:
    """Put the words of each level below it; under each other where they would touch."""
    bands, taken = list[Band](), 0.0
    for of in sorted(levels, key=lambda level: level.value):
        words = f"{shortened(of.words, 40)} {axis.write(of.value)}"
        room = _SMALL * width_of(words) + _SWATCH
        start = round(min(max(x(of.value) - room / 2, 2), max(width - room, 2)))
        y += _LINE if start < taken else 0
        taken = start + room + _GAP
        low, high = of.interval or (of.value, of.value)
        label, breadth = Label(words, start + _SWATCH, y), round(x(high) - x(low), 1)
        bands.append(Band(of.style, x(of.value), x(low), breadth, label))
    return bands
