"""What charts are made of: plain data, names that fit, and parts of Vega-Lite specifications."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from math import ceil, floor, isfinite, log10
from typing import Final, Literal, TypeAlias, TypedDict

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
Object: TypeAlias = dict[str, Json]
Ends: TypeAlias = tuple[float, float]
Side: TypeAlias = Literal["left", "center", "right"]

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
_TITLE_LETTERS: Final = 56
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)


class Texts(TypedDict):
    """What a chart says to those who cannot see it, and names that it shows shortened."""

    title: str
    words: str
    names: Mapping[str, str]


class Spec(TypedDict):
    """A Vega-Lite specification without its config, which `draw` adds."""

    title: Json
    width: float
    height: float
    layer: Sequence[Object]
    usermeta: Texts


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


@dataclass(frozen=True, slots=True)
class Reference:
    """A value to measure figures against: what people reach among themselves, or the start."""

    value: float | None
    words: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is measured, and how it is written.

    Attributes
    ----------
    words : str
        The axis title.
    form : str
        A format of numbers that Python and D3 both read, such as ``.2f`` and ``.0%``.
    low, high : float or None
        Ends of the axis. Without one it goes as far as the figures do, and further if they leave
        the ends given.
    """

    words: str = ""
    form: str = ".2f"
    low: float | None = None
    high: float | None = None

    def write(self, value: float) -> str:
        """Return a number as it is labelled.

        Examples
        --------
        >>> SHARE.write(0.825), SCORE.write(-0.004), RATING.write(1034.2)
        ('82%', '0.00', '1,034')
        """
        return f"{value:z{self.form}}".replace("-", "\N{MINUS SIGN}")


SHARE: Final = Axis("", ".0%", 0.0, 1.0)
SCORE: Final = Axis("", ".2f", 0.0, 1.0)
RATING: Final = Axis("rating", ",.0f")


def finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


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

    Parameters
    ----------
    units : float
        Widths of a small Latin letter; a Chinese one takes two.

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


def label(name: str, is_baseline: bool) -> str:
    """Return a judge's name as it is shown.

    Examples
    --------
    >>> label("longer wins", True), label("gpt", False)
    ('longer wins · baseline', 'gpt')
    """
    return f"{shortened(name, NAME_UNITS - 9)} · baseline" if is_baseline else shortened(name)


def width_of(text: str) -> float:
    """Return how wide a text is, in small Latin letters."""
    return sum(map(_width, text))


def _width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if letter in "MW@%" or unicodedata.east_asian_width(letter) in "WF":
        return 2.0
    return 1.4 if letter.isupper() or letter in "mw" else 1.0


def _fitting(text: str, units: float) -> str:
    taken = 0.0
    for index, letter in enumerate(text):
        taken += _width(letter)
        if taken > units:
            return text[:index]
    return text


def domain(axis: Axis, values: Iterable[float | None], *, zero: bool = False) -> Ends:
    """Return the ends of an axis: the given ones, or round numbers around all values.

    Examples
    --------
    >>> domain(RATING, [941.0, 1080.0, None]), domain(SCORE, [-0.31, 0.4])
    ((900.0, 1100.0), (-0.5, 1.0))
    """
    known = [value for value in values if value is not None and isfinite(value)]
    known += [end for end in (axis.low, axis.high) if end is not None] + [0.0] * zero
    low, high = min(known, default=0.0), max(known, default=1.0)
    if low == high:
        low, high = low - 1.0, high + (0.0 if zero and high == 0 else 1.0)
    step = _step(high - low)
    low = low if low == axis.low else floor(low / step + 1e-9) * step
    high = high if high == axis.high else ceil(high / step - 1e-9) * step
    return round(low, 10), round(high, 10)


def ticks(low: float, high: float) -> list[float]:
    """Return the round numbers of an axis.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(-150.0, 0.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-150.0, -100.0, -50.0, 0.0])
    """
    step = _step(high - low)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def _step(span: float) -> float:
    """Return a round number that goes into a span about five times."""
    power = 10.0 ** floor(log10(span / 5))
    return next(step * power for step in _STEPS if step * power >= span / 5 * 0.999)


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


def marks(rows: Iterable[Object], mark: str, encoding: Object, **options: Json) -> Object:
    """Return a layer of marks, one for each row."""
    rows = list(rows)
    return {"data": {"values": rows}, "mark": {"type": mark, **options}, "encoding": encoding}


def band(field: str, count: int) -> Object:
    """Return the places of so many rows or columns, by their number."""
    scale: Object = {"domain": list(range(count))}
    return {"field": field, "type": "ordinal", "axis": None, "scale": scale}


def numeric(axis: Axis, ends: Ends, field: str = "value") -> Object:
    """Return places on an axis between these ends."""
    drawn: Object = {
        "title": shortened(axis.words, WORDS_UNITS) if axis.words else None,
        "format": axis.form,
        "values": ticks(*ends),
    }
    scale: Object = {"domain": ends, "zero": False, "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": drawn}


def unscaled(field: str) -> Object:
    """Return a channel whose numbers are what is drawn, such as an opacity."""
    return {"field": field, "type": "quantitative", "scale": None, "legend": None}


def texts(rows: Iterable[Object], x: Object, y: Object, side: Side, **options: Json) -> Object:
    """Return the `text` of each row as text."""
    encoding: Object = {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}}
    return marks(rows, "text", encoding, align=side, **options)


def column(
    said: Mapping[int, str], place: float, side: Side, y: Object, style: str = "label"
) -> Object:
    """Return a column of texts by the number of their row, so many pixels from the plot."""
    rows: list[Object] = [{"row": row, "text": text} for row, text in said.items()]
    return texts(rows, {"value": place}, y, side, style=style)


def open_dots(rows: Sequence[Object], encoding: Object, size: int) -> list[Object]:
    """Return dots that hide what lies below them."""
    return [
        marks(rows, "point", encoding, style="under", size=size, filled=True),
        marks(rows, "point", encoding, size=size),
    ]


def finished(
    layers: Sequence[Object],
    *,
    title: str,
    words: str,
    height: float,
    width: float = PLOT_WIDTH,
    names: Mapping[str, str],
    text: str = "",
) -> Spec:
    """Return a specification of layers.

    Parameters
    ----------
    title, text : str
        The heading, and a line under it.
    words : str
        What is to be seen, for those who cannot see it.
    height, width : float
        Of the plot, in pixels.
    names : mapping of str to str
        Labels and what they are in full, for tooltips where they were shortened.
    """
    whole = {short: clean(name) for short, name in names.items()}
    head: Object = {"text": _wrapped(title), **({"subtitle": _wrapped(text)} if text else {})}
    return {
        "title": head,
        "width": width,
        "height": height,
        "layer": layers,
        "usermeta": {
            "title": clean(title),
            "words": clean(words),
            "names": {short: name for short, name in whole.items() if name not in short},
        },
    }


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(clean(text), _TITLE_LETTERS, max_lines=3, placeholder=" …")
