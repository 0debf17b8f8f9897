"""The picture of a board as coordinates: how far judges agree with people, between people and floor.

A template draws it twice, for wide and for narrow pages, in the page's own colours: it must not
wait for a renderer, and its letters must not shrink with the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from humanjudge.charts.spec import shortened, unprefixed, width_of

WIDE: Final = 920
NARROW: Final = 344
# More rows than these stand closer to each other.
MOST_AIRY: Final = 6
_TOP: Final = 8
# Of a letter of a name, and of a smaller one below the axis.
_LETTER, _SMALL = 7.6, 6.8
_LONGEST_NAME: Final = 30
# Between a line and its value, a swatch and its words, two words.
_GAP: Final = 10
_LINE: Final = 18
Ends = tuple[float, float]


class JudgeShare(NamedTuple):
    """A judge's agreement in [0, 1] with its 95 % interval and the one that always holds."""

    name: str
    value: float
    interval: Ends | None
    always: Ends | None
    beats_floor: bool


class Level(NamedTuple):
    """What judges are measured against: people among themselves, or the floor."""

    words: str
    value: float
    interval: Ends | None


class Row(NamedTuple):
    name: str
    label: str
    percent: str
    style: str
    y: float
    x: float
    thick: Ends | None
    thin: Ends | None
    label_x: float
    label_y: float
    anchor: str
    percent_x: float


class Band(NamedTuple):
    style: str
    words: str
    x: float
    low: float
    width: float
    words_x: float
    words_y: float


@dataclass(frozen=True)
class AgreementGraph:
    css: str
    width: int
    height: int
    left: float
    right: float
    top: int
    bottom: float
    ticks: list[tuple[float, str]]
    rows: list[Row]
    bands: list[Band]

    @property
    def axis_y(self) -> float:
        return self.bottom + 15


def agreement_graph(
    judges: Sequence[JudgeShare],
    people: Level | None = None,
    floor: Level | None = None,
    *,
    is_narrow: bool = False,
) -> AgreementGraph | None:
    """Lay out judges in the order given; None without any.

    A narrow picture has the names above the lines, a wide one has them beside.
    """
    if not judges:
        return None
    names = [shortened(name, _LONGEST_NAME) for name in unprefixed([j.name for j in judges])]
    width, left, right = (NARROW, 4.0, NARROW - 4.0) if is_narrow else _beside(names)
    step = (44 if is_narrow else 36) if len(judges) <= MOST_AIRY else (38 if is_narrow else 25)
    bottom = _TOP + step * len(judges)

    def x(share: float) -> float:
        return round(left + (right - left) * share, 1)

    def row(place: int, judge: JudgeShare) -> Row:
        middle = _TOP + step * (place + 0.5)
        y = middle + _GAP if is_narrow else middle
        ends = [end for pair in (judge.interval, judge.always) if pair for end in pair]
        return Row(
            name=judge.name,
            label=names[place],
            percent=f"{100 * judge.value:.0f} %",
            style="above" if judge.beats_floor else "",
            y=y,
            x=x(judge.value),
            thick=judge.interval and (x(judge.interval[0]), x(judge.interval[1])),
            thin=judge.always and (x(judge.always[0]), x(judge.always[1])),
            label_x=left if is_narrow else left - 16,
            label_y=y - 13 if is_narrow else y,
            anchor="start" if is_narrow else "end",
            percent_x=right if is_narrow else max(x(max([*ends, judge.value])), x(judge.value) + 8),
        )

    levels = [(style, of) for style, of in (("floor", floor), ("people", people)) if of]
    bands = _bands([(style, of, x) for style, of in levels], width, bottom + 15 + _LINE)
    return AgreementGraph(
        css="narrow" if is_narrow else "wide",
        width=width,
        height=round(max([bottom + 15, *(band.words_y for band in bands)]) + 6),
        left=left,
        right=right,
        top=_TOP,
        bottom=bottom,
        ticks=[(x(share), f"{100 * share:.0f} %") for share in (0, 0.25, 0.5, 0.75, 1)],
        rows=[row(place, judge) for place, judge in enumerate(judges)],
        bands=bands,
    )
