"""What charts look like: colours by role, sizes, and what a Vega config of others may restyle."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, Literal, TypeAlias

from humanjudge.charts.spec import Object

Theme: TypeAlias = Literal["page", "light", "dark"]
# As it was read from a file: nothing is known of its values before `checked`.
VegaConfig: TypeAlias = Mapping[str, Any]

# Colours that nobody would ask for stand in specifications for roles, and become a theme's own in
# the drawing: a variable of CSS is no colour to Vega.
INK: Final = "#0a0b01"
SOFT: Final = "#0a0b02"
LINE: Final = "#0a0b03"
EDGE: Final = "#0a0b04"
PAPER: Final = "#0a0b05"
ACCENT: Final = "#0a0b06"
_ROLES: Final = (INK, SOFT, LINE, EDGE, ACCENT, PAPER)

# As in static/css/site.css; pages without it fall back on what they have.
_LIGHT: Final = ("#1c1c1a", "#5b5b56", "#dcdcd6", "#8a8a83", "#0b5cad", "#fff")
_DARK: Final = ("#ecece8", "#a8a8a1", "#363633", "#77776f", "#86bdf7", "#161615")
_PAGE: Final = (
    "var(--ink, currentColor)",
    "var(--soft, currentColor)",
    "var(--line, #8a8a83)",
    "var(--edge, #8a8a83)",
    "var(--accent, #0b5cad)",
    "var(--paper, #fff)",
)
THEMES: Final[Mapping[Theme, Mapping[str, str]]] = {
    "light": dict(zip(_ROLES, _LIGHT, strict=True)),
    "dark": dict(zip(_ROLES, _DARK, strict=True)),
    "page": dict(zip(_ROLES, _PAGE, strict=True)),
}

FONT: Final = "Liberation Sans"
SYSTEM_FONT: Final = "system-ui, sans-serif"
# Nobody knows a reader's system font: room is left for letters as wide as these.
WIDE_FONT: Final = "DejaVu Sans"
_TEXT: Final = 12
_SMALL: Final = 11

CONFIG: Final[Object] = {
    "aria": False,
    "background": "transparent",
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "domain": False,
        "ticks": False,
        "gridColor": LINE,
        "gridWidth": 1,
        "labelColor": SOFT,
        "labelFlush": False,
        "labelFontSize": _SMALL,
        "labelPadding": 6,
        "titleColor": SOFT,
        "titleFontSize": _SMALL,
        "titleFontWeight": "normal",
        "titlePadding": 6,
    },
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "color": INK,
        "fontSize": 13,
        "fontWeight": "bold",
        "offset": 10,
        "subtitleColor": SOFT,
        "subtitleFontSize": _SMALL,
        "subtitlePadding": 5,
    },
    "bar": {"color": ACCENT},
    "rect": {"color": ACCENT},
    "point": {"color": ACCENT, "opacity": 1, "strokeWidth": 1.5},
    "line": {"color": ACCENT, "strokeWidth": 1.5},
    "rule": {"color": INK, "strokeWidth": 1.25},
    "text": {"color": INK, "fontSize": _TEXT, "baseline": "middle"},
    "style": {
        "quiet": {"color": SOFT, "fontSize": _SMALL},
        "number": {"fontSize": _SMALL},
        "heading": {"fontWeight": "bold"},
        "baseline": {"color": SOFT, "strokeDash": [4, 3]},
        "connection": {"color": EDGE},
        "under": {"color": PAPER},
        "reference": {"color": INK, "strokeDash": [2, 2], "strokeWidth": 1},
        "band": {"color": INK, "fillOpacity": 0.08},
        "gap": {"color": LINE, "fillOpacity": 0.35},
    },
}

_MOST_LETTERS: Final = 50_000
_LARGEST: Final = 2_000
# Dashes shorter than this fill the memory.
_LEAST: Final = 0.01
# Expressions could count to any number, whatever is refused here.
_COMPUTING: Final = frozenset("expr signal signals params labelExpr test init update".split())


class ChartRefused(ValueError):
    """A chart that cannot be drawn, mostly for its Vega config; the message says why."""


def merged(ours: VegaConfig, theirs: VegaConfig) -> Object:
    """Return a configuration with another laid over it, key by key."""
    both = dict(ours)
    for key, value in theirs.items():
        old = both.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            both[key] = merged(old, value)
        else:
            both[key] = value
    return both


def checked(config: VegaConfig) -> VegaConfig:
    """Return a config that says nothing but how things look, or raise ChartRefused.

    A renderer that computes, or that is out of memory, takes its process with it.
    """
    try:
        letters = len(json.dumps(config))
    except (TypeError, ValueError, RecursionError) as error:
        raise ChartRefused(f"this is no Vega config: {error}") from error
    if letters > _MOST_LETTERS:
        raise ChartRefused(f"a Vega config has at most {_MOST_LETTERS:,} characters")
    for path, value in _leaves(config, ()):
        wrong = _wrong(value)
        if wrong:
            raise ChartRefused(f"{'.'.join(path)}: {wrong}")
    return config


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _COMPUTING:
                raise ChartRefused(f"{'.'.join((*path, key))}: a config must not compute anything")
            yield (*path, "key"), key
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value


def _wrong(value: object) -> str | None:
    if isinstance(value, str):
        bad = any(unicodedata.category(letter) in ("Cc", "Cs", "Cn") for letter in value)
        return "a character that cannot be shown" if bad else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not isfinite(value) or abs(value) > _LARGEST:
        return f"{value:g} is not between -{_LARGEST} and {_LARGEST}"
    return f"{value:g} is too near to zero" if 0 < abs(value) < _LEAST else None
