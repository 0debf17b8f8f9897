"""A style sheet of Matplotlib's from somebody else: only keys that say how a chart looks.

Web servers check styles with this; Matplotlib reads the values, in a worker.
"""

import ast
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

Value: TypeAlias = str | float | list[str | float]
# As it came: the text of a style sheet, or its keys and values.
GivenStyle: TypeAlias = str | Mapping[str, object]

MOST_LETTERS: Final = 50_000
LARGEST: Final = 2_000
# Dashes shorter than this would fill the memory.
SMALLEST: Final = 0.01
MOST_COLOURS: Final = 100
CYCLE: Final = "axes.prop_cycle"
# What says how charts look; no other key is read. Of these some do more than that: they import
# code, run LaTeX, read formulas out of names, or let a picture grow.
ALLOWED: Final = (
    *("axes.", "boxplot.", "contour.", "errorbar.", "figure.", "font.", "grid.", "hatch."),
    *("image.cmap", "legend.", "lines.", "markers.", "mathtext.", "patch.", "savefig."),
    *("scatter.", "svg.fonttype", "text.color", "xtick.", "ytick."),
)
REFUSED: Final = (
    *("axes.formatter.", "figure.hooks", "savefig.bbox", "savefig.directory", "savefig.format"),
)
_LINE: Final = re.compile(r'((?:[^"#]|"[^"]*")*)')
_CYCLER: Final = re.compile(r"cycler\(\s*(?:color\s*=|(?:'color'|\"color\")\s*,)(.+)\)", re.DOTALL)
_WORDS: Final = re.compile(r"[^\s,()\[\]'\"]+")


class StyleRefused(ValueError):
    """A style that is not applied; the message names the line, the key, and says why."""


class Setting(NamedTuple):
    place: str
    key: str
    value: Value

    def refused(self, reason: str) -> StyleRefused:
        return StyleRefused(f"{self.place}{self.key}: {reason}")


def settings_of(style: GivenStyle) -> list[Setting]:
    """Return the settings of a style sheet in their order, or raise StyleRefused.

    Examples
    --------
    >>> settings_of("font.size: 12  # of all letters")
    [Setting(place='line 1: ', key='font.size', value='12')]
    >>> settings_of({"text.usetex": True})
    Traceback (most recent call last):
    humanjudge.core.charts.style.StyleRefused: text.usetex: this key cannot be set
    """
    settings = list(_lines(style) if isinstance(style, str) else _entries(style))
    if sum(len(setting.key) + len(str(setting.value)) for setting in settings) > MOST_LETTERS:
        raise StyleRefused(f"a style has at most {MOST_LETTERS:,} characters")
    for setting in settings:
        _check(setting)
    return settings


def _lines(text: str) -> Iterator[Setting]:
    if len(text) > MOST_LETTERS:
        raise StyleRefused(f"a style has at most {MOST_LETTERS:,} characters")
    for number, line in enumerate(text.splitlines(), start=1):
        content = _LINE.match(line)[1].strip()  # type: ignore[index]  # it matches anything
        if not content:
            continue
        key, colon, value = content.partition(":")
        if not colon:
            raise StyleRefused(f"line {number}: must be a key, a colon and a value")
        value = value.strip()
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        yield Setting(f"line {number}: ", key.strip()[:80], value[1:-1] if is_quoted else value)


def _entries(style: Mapping[str, object]) -> Iterator[Setting]:
    for key, value in style.items():
        setting = Setting("", str(key)[:80], "")
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(element, str | int | float) for element in values):
            raise setting.refused("must be text, a number, true or false, or a list of these")
        yield setting._replace(value=value)  # type: ignore[arg-type]  # as just checked


def _check(setting: Setting) -> None:
    key, value = setting.key, setting.value
    if not key.startswith(ALLOWED) or key.startswith(REFUSED):
        raise setting.refused("this key cannot be set")
    if key == CYCLE:
        colours(setting)
        return
    for element in value if isinstance(value, list) else [value]:
        text = str(element)
        if any(unicodedata.category(letter) in ("Cc", "Cs", "Cn") for letter in text):
            raise setting.refused("a character that cannot be shown")
        # Six digits can be a colour.
        for word in () if "color" in key else _WORDS.findall(text):
            _check_number(setting, word)


def _check_number(setting: Setting, word: str) -> None:
    try:
        number = abs(float(word))
    except ValueError:
        return
    # No comparison with NaN is true.
    if not (number == 0 or SMALLEST <= number <= LARGEST):
        raise setting.refused(f"numbers must be 0, or from {SMALLEST} to {LARGEST:,}")


def colours(setting: Setting) -> list[str]:
    """Return the colours of a cycle: a list, or as ``cycler('color', [...])``, which is not run.

    Examples
    --------
    >>> colours(Setting("", CYCLE, "cycler('color', ['E24A33', 'k'])"))
    ['E24A33', 'k']
    >>> colours(Setting("", CYCLE, "cycler(color='rgb')"))
    ['r', 'g', 'b']
    """
    cycle: object = setting.value
    if isinstance(cycle, str):
        call = _CYCLER.fullmatch(cycle.strip())
        try:
            cycle = list(ast.literal_eval(call[1])) if call else None
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            cycle = None
    if isinstance(cycle, list) and 0 < len(cycle) <= MOST_COLOURS:
        names = [name for name in cycle if isinstance(name, str)]
        if len(names) == len(cycle):
            return names
    raise setting.refused(f"must be cycler('color', […]) with up to {MOST_COLOURS} colours")
