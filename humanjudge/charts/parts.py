"""What charts are made of: plain data, names that fit, ends of axes."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import ceil, floor, isfinite, log10
from typing import Any, Final, TypeAlias

Spec: TypeAlias = dict[str, Any]

NO_FIGURE: Final = "no figure"
PLOT_WIDTH: Final = 320
NAME_UNITS: Final = 30
# Of a number or a name, in the letters of a chart.
LETTER_WIDTH: Final = 7
# Words beside the plot: longer ones would make it a strip.
WORDS_UNITS: Final = 60
_TITLE_LETTERS: Final = 56
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A judge's figure with its 95 % interval.

    Attributes
    ----------
    name : str
    value : float or None
        None where there is no figure.
    low, high : float or None
    is_baseline : bool
        A rule such as "the longer answer wins", which a judge should beat.
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


def ordered(rows: Iterable[Estimate]) -> list[Estimate]:
    """Return the best first, and those without a figure last, in the order given."""

    def key(row: Estimate) -> tuple[bool, float]:
        value = finite(row.value)
        return value is None, -(value or 0.0)

    return sorted(rows, key=key)


def clean(name: str) -> str:
    """Return a name on one line, without what XML refuses and without what turns text around.

    Examples
    --------
    >>> clean("gpt\\n4\\x00\\u202eo "), clean(" ")
    ('gpt 4o', '(no name)')
    """
    visible = "".join(" " if c.isspace() else c for c in name if c.isspace() or _shown(c))
    return " ".join(visible.split()) or "(no name)"


def _shown(letter: str) -> bool:
    # Cc control, Cf format (bidirectional overrides, zero widths), Cs surrogate, Cn not assigned.
    return unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Cn")


def shortened(name: str, units: float = NAME_UNITS) -> str:
    """Return a name that fits, its middle left out where it does not.

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
    if _units(name) <= units:
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


def _units(text: str) -> float:
    return sum(_width(letter) for letter in text)


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


def title_lines(title: str) -> list[str]:
    return textwrap.wrap(clean(title), _TITLE_LETTERS, max_lines=3, placeholder=" …")


def domain(
    axis: Axis, values: Iterable[float | None], *, zero: bool = False
) -> tuple[float, float]:
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
