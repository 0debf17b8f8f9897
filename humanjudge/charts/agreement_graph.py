"""The picture of a board as coordinates: how often judges agree with people, above the floor.

A template draws it twice, for wide and for narrow pages, in the page's own colours: it must not
wait for a renderer, and its letters must not shrink with the page.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from humanjudge.charts.spec import shortened, unprefixed, width_of

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
Ends = tuple[float, float]


class JudgeShare(NamedTuple):
    """A judge's agreement in [0, 1] with its 95 % interval and the one that always holds."""

    name: str
    value: float
    interval: Ends | None
    always: Ends | None
    beats_floor: bool
    # Beside its value.
    note: str = ""


class Level(NamedTuple):
    """What judges are measured against: people among themselves, or the floor."""

    words: str
    value: float
    interval: Ends | None


class Label(NamedTuple):
    text: str
    x: float
    y: float
    anchor: str = "start"


class Row(NamedTuple):
    name: str
    beats_floor: bool
    y: float
    x: float
    thick: Ends | None
    thin: Ends | None
    label: Label
    percent: Label


class Band(NamedTuple):
    style: str
    x: float
    low: float
    width: float
    swatch_x: float
    swatch_y: float
    label: Label


@dataclass(frozen=True)
class AgreementGraph:
    css: str
    width: int
    height: int
    left: float
    right: float
    bottom: int
    ticks: list[Label]
    rows: list[Row]
    bands: list[Band]
    top: int = _TOP

    @property
    def plot_height(self) -> int:
        return self.bottom - self.top

    @property
    def words(self) -> str:
        """Say it to those who cannot see it."""
        judges = ", ".join(f"{row.name} {row.percent.text}" for row in self.rows)
        levels = "".join(f"; {band.label.text}" for band in self.bands)
        return f"Overall agreement with people, best first: {judges}{levels}"


def agreement_graph(
    judges: Sequence[JudgeShare],
    people: Level | None = None,
    floor: Level | None = None,
    *,
    is_narrow: bool = False,
) -> AgreementGraph | None:
    """Lay out judges in the order given; None without any.

    A narrow picture has names and values above the lines, a wide one has them beside.
    """
    if not judges:
        return None
    names = [shortened(name, _LONGEST_NAME) for name in unprefixed([j.name for j in judges])]
    percents = [
        ", ".join(filter(None, [f"{100 * judge.value:.0f} %", judge.note])) for judge in judges
    ]
    width, left, right = NARROW, 6.0, NARROW - 6.0
    if not is_narrow:
        # Room for the names, and for a value behind the longest line.
        width, left = WIDE, min(round(_LETTER * max(map(width_of, names)) + 24), 260)
        right = WIDE - round(_LETTER * max(map(width_of, percents)) + 24)
    close, airy = (38, 44) if is_narrow else (21, 36)
    step = airy if len(judges) <= MOST_AIRY else close

    def x(share: float) -> float:
        return round(left + (right - left) * share, 1)

    def ends(interval: Ends | None) -> Ends | None:
        return interval and (x(interval[0]), x(interval[1]))

    def row(place: int, judge: JudgeShare) -> Row:
        top = _TOP + step * place
        y = top + step - 10 if is_narrow else top + step / 2
        drawn = [*(ends(judge.interval) or ()), *(ends(judge.always) or ())]
        last = max([x(judge.value) + 8, *drawn])
        return Row(
            name=judge.name,
            beats_floor=judge.beats_floor,
            y=y,
            x=x(judge.value),
            thick=ends(judge.interval),
            thin=ends(judge.always),
            label=Label(names[place], left, y - 16)
            if is_narrow
            else Label(names[place], left - 18, y, "end"),
            percent=Label(percents[place], right, y - 16, "end")
            if is_narrow
            else Label(percents[place], last + _GAP, y),
        )

    bottom = _TOP + step * len(judges)
    ticks = [Label(f"{n} %", x(n / 100), bottom + 16, "middle") for n in range(0, 101, 25)]
    if is_narrow:
        ticks[0], ticks[-1] = ticks[0]._replace(anchor="start"), ticks[-1]._replace(anchor="end")
    levels = [(style, of) for style, of in (("floor", floor), ("people", people)) if of]
    bands = _bands(levels, x, width, bottom + 16 + _LINE)
    return AgreementGraph(
        css="narrow" if is_narrow else "wide",
        width=width,
        height=round(max([bottom + 16, *(band.label.y for band in bands)]) + 12),
        left=left,
        right=right,
        bottom=bottom,
        ticks=ticks,
        rows=[row(place, judge) for place, judge in enumerate(judges)],
        bands=bands,
    )


def _bands(
    levels: Sequence[tuple[str, Level]], x: Callable[[float], float], width: int, y: float
) -> list[Band]:
    """Put the words of each level below it; under each other where they would touch."""
    bands, taken = list[Band](), 0.0
    for style, of in sorted(levels, key=lambda level: level[1].value):
        words = f"{shortened(of.words, 40)} {100 * of.value:.0f} %"
        room = _SMALL * width_of(words) + _SWATCH
        start = round(min(max(x(of.value) - room / 2, 2), max(width - room, 2)))
        y += _LINE if start < taken else 0
        taken = start + room + _GAP
        low, high = of.interval or (of.value, of.value)
        label, breadth = Label(words, start + _SWATCH, y), round(x(high) - x(low), 1)
        bands.append(Band(style, x(of.value), x(low), breadth, start, y - 5, label))
    return bands
