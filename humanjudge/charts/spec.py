"""What charts are made of: names that fit, axes, and layers of Vega-Lite specifications.

A function of `plots` returns a specification of plain data, or None where there is nothing to draw;
`draw` makes SVG or PNG of it. Rendering starts threads: never render before a fork.
"""

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from typing import Final, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
Object: TypeAlias = dict[str, Json]
Ends: TypeAlias = tuple[float, float]

NO_FIGURE: Final = "no figure"
DASH: Final = "\N{EN DASH}"
PLOT_WIDTH: Final = 320
# Between texts and the plot.
GAP: Final = 10
# Of a number or a name, in the letters of a chart.
LETTER_WIDTH: Final = 7
NAME_UNITS: Final = 30
# Words beside the plot: longer ones would make it a strip.
WORDS_UNITS: Final = 60


@dataclass(frozen=True, slots=True)
class Spec:
    """A chart as layers of Vega-Lite, with words for those who cannot see it.

    `names` has its labels with what they are in full, for tooltips where they were shortened.
    """

    layers: Sequence[Object]
    title: str
    words: str
    names: Mapping[str, str]
    height: float
    width: float = PLOT_WIDTH
    text: str = ""

    @property
    def vega(self) -> Object:
        """The specification without its config, which `draw` adds."""
        subtitle: Object = {"subtitle": _wrapped(self.text)} if self.text else {}
        title: Object = {"text": _wrapped(self.title), **subtitle}
        return {"title": title, "layer": self.layers, "width": self.width, "height": self.height}


@dataclass(frozen=True, slots=True)
class Reference:
    """A value to measure figures against: what people reach among themselves, or the start."""

    value: float
    words: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is measured, and how it is written.

    `form` is a format of numbers that Python and D3 both read. Without `low` or `high` an axis goes
    as far as the figures do, and further if they leave the ends given.
    """

    words: str = ""
    form: str = ".2f"
    low: float | None = None
    high: float | None = None

    def write(self, value: float | None, missing: str = NO_FIGURE) -> str:
        """Return a number as it is labelled.

        Examples
        --------
        >>> SHARE.write(0.825), SCORE.write(-0.004), RATING.write(1034.2), RATING.write(None)
        ('82%', '0.00', '1,034', 'no figure')
        """
        if value is None:
            return missing
        return f"{value:z{self.form}}".replace("-", "\N{MINUS SIGN}")

    def ends(self, values: Iterable[float | None]) -> Ends:
        known = [value for value in (*values, self.low, self.high) if value is not None]
        return min(known, default=0.0), max(known, default=1.0)


SHARE: Final = Axis("", ".0%", 0.0, 1.0)
SCORE: Final = Axis("", ".2f", 0.0, 1.0)
RATING: Final = Axis("rating", ",.0f")


# --- names --------------------------------------------------------------------------------------


def clean(name: str) -> str:
    """Return a name on one line, without what XML refuses and without what turns text around.

    Examples
    --------
    >>> clean("gpt\\n4\\x00\\u202eo "), clean(" ")
    ('gpt 4o', '(no name)')
    """
    # Cc control, Cf format (bidirectional overrides, zero widths), Cs surrogate, Cn not assigned.
    hidden = ("Cc", "Cf", "Cs", "Cn")
    spaced = (" " if letter.isspace() else letter for letter in name)
    visible = "".join(letter for letter in spaced if unicodedata.category(letter) not in hidden)
    return " ".join(visible.split()) or "(no name)"


def shortened(name: str, units: float = NAME_UNITS) -> str:
    """Return a name that fits, its middle left out where it does not: names differ at their ends.

    Examples
    --------
    >>> shortened("mistralai/mistral-large-2411", 24), shortened("gpt")
    ('mistralai/…-large-2411', 'gpt')
    """
    name = clean(name)
    if width_of(name) <= units:
        return name
    half = (units - 1) / 2
    return f"{_fitting(name, half)}…{_fitting(name[::-1], half)[::-1]}"


def unprefixed(names: Sequence[str]) -> list[str]:
    """Return names without the folders that all names with folders have in common.

    Examples
    --------
    >>> unprefixed(["open/a/gpt", "open/b/gpt", "longer wins"])
    ['a/gpt', 'b/gpt', 'longer wins']
    >>> unprefixed(["open/gpt", "open/o4", "gpt"])
    ['open/gpt', 'open/o4', 'gpt']
    """
    folders = [name.split("/")[:-1] for name in names if "/" in name]
    levels = zip(*folders, strict=False) if len(folders) > 1 else ()
    common = takewhile(lambda level: len(set(level)) == 1, levels)
    start = "".join(f"{level[0]}/" for level in common)
    short = [name.removeprefix(start) for name in names]
    return short if len(set(short)) == len(set(names)) else list(names)


def labels(named: Iterable[tuple[str, bool]]) -> list[str]:
    """Return names, and whether they are baselines', as they stand beside a plot."""
    names, baselines = zip(*named, strict=True)
    return [
        f"{shortened(name, NAME_UNITS - 9)} · baseline" if is_baseline else shortened(name)
        for name, is_baseline in zip(unprefixed(names), baselines, strict=True)
    ]


def width_of(text: str) -> float:
    """Return how wide a text is, in small Latin letters; a Chinese one takes two."""
    return sum(map(_width, text))


def _width(letter: str) -> float:
    if letter in "MW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    return 1.4 if letter.isupper() or letter in "mw" else 1.0


def _fitting(text: str, units: float) -> str:
    widths = accumulate(map(_width, text))
    return "".join(letter for letter, end in zip(text, widths, strict=True) if end <= units)


def spread(places: Sequence[float], gap: float, bottom: float) -> list[float]:
    """Move labels apart, keeping their order, as little as a sweep down and one up can.

    Examples
    --------
    >>> spread([10, 90, 12], 14, 100)
    [10, 90, 24]
    """
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + gap)
    for index in reversed(order):
        moved[index] = min(moved[index], bottom)
        bottom = moved[index] - gap
    return moved


# --- layers -------------------------------------------------------------------------------------


def marks(rows: Sequence[Object], mark: str, encoding: Object, **options: Json) -> Object:
    return {"data": {"values": rows}, "mark": {"type": mark, **options}, "encoding": encoding}


def band(field: str, count: int) -> Object:
    """Return the places of so many rows or columns, by their number."""
    scale: Object = {"domain": list(range(count))}
    return {"field": field, "type": "ordinal", "axis": None, "scale": scale}


def numeric(axis: Axis, ends: Ends, field: str = "value", *, nice: bool = True) -> Object:
    words = shortened(axis.words, WORDS_UNITS) if axis.words else None
    drawn: Object = {"title": words, "format": axis.form, "tickCount": 5}
    scale: Object = {"domain": ends, "zero": False, "nice": nice}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": drawn}


def unscaled(field: str) -> Object:
    """Return a channel whose numbers are what is drawn, such as an opacity."""
    return {"field": field, "type": "quantitative", "scale": None, "legend": None}


def texts(rows: Sequence[Object], x: Object, y: Object, **options: Json) -> Object:
    encoding: Object = {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}}
    return marks(rows, "text", encoding, **options)


def column(words: Sequence[str], place: float, style: str = "label") -> Object:
    """Return a text for each row, so many pixels left or right of the plot's edge."""
    rows: list[Object] = [{"row": row, "text": text} for row, text in enumerate(words) if text]
    align, y = "right" if place < 0 else "left", band("row", len(words))
    return texts(rows, {"value": place}, y, style=style, align=align)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(clean(text), 56, max_lines=3, placeholder=" …")
