"""How charts write names and numbers: names that fit, axes, labels that do not touch."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, takewhile
from math import ceil, floor, log10
from typing import Final, TypeAlias

Ends: TypeAlias = tuple[float, float]

NO_FIGURE: Final = "no figure"
NAME_UNITS: Final = 30


@dataclass(frozen=True, slots=True)
class Axis:
    """What is measured, and how it is written.

    Without `low` or `high` an axis goes as far as the figures do, and further if they leave the
    ends given.
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
        ('82\xa0%', '0.00', '1,034', 'no figure')
        """
        if value is None:
            return missing
        text = f"{value:z{self.form}}".replace("-", "\N{MINUS SIGN}")
        return text.replace("%", "\N{NO-BREAK SPACE}%")

    def ends(self, values: Iterable[float | None]) -> Ends:
        numbers = [value for value in (*values, self.low, self.high) if value is not None]
        return min(numbers, default=0.0), max(numbers, default=1.0)


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


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers of an axis.

    Examples
    --------
    >>> ticks(0.0, 1.0), ticks(-150.0, 0.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [-150.0, -100.0, -50.0, 0.0])
    """
    least = (high - low) / 5 * 0.999
    power = 10.0 ** floor(log10(least))
    step = next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]
