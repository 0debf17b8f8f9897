"""What charts look like: colours by role, sizes, and how a Vega config restyles all of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

Theme: TypeAlias = Literal["page", "light", "dark"]
Json: TypeAlias = dict[str, Any]

# Colours that nobody would ask for stand in specifications for roles, and become a theme's own in
# the drawing: a variable of CSS is no colour to Vega.
INK: Final = "#0a0b01"
SOFT: Final = "#0a0b02"
LINE: Final = "#0a0b03"
EDGE: Final = "#0a0b04"
ACCENT: Final = "#0a0b06"
PAPER: Final = "#0a0b05"

# As in static/css/site.css; pages without it fall back on what they have.
THEMES: Final[Mapping[Theme, Mapping[str, str]]] = {
    "light": {
        INK: "#1c1c1a",
        SOFT: "#5b5b56",
        LINE: "#dcdcd6",
        EDGE: "#8a8a83",
        ACCENT: "#0b5cad",
        PAPER: "#fff",
    },
    "dark": {
        INK: "#ecece8",
        SOFT: "#a8a8a1",
        LINE: "#363633",
        EDGE: "#77776f",
        ACCENT: "#86bdf7",
        PAPER: "#161615",
    },
    "page": {
        INK: "var(--ink, currentColor)",
        SOFT: "var(--soft, currentColor)",
        LINE: "var(--line, #8a8a83)",
        EDGE: "var(--edge, #8a8a83)",
        ACCENT: "var(--accent, #0b5cad)",
        PAPER: "var(--paper, #fff)",
    },
}

FONT: Final = "Liberation Sans"
SYSTEM_FONT: Final = "system-ui, sans-serif"
# Nobody knows a reader's system font: room is left for letters as wide as these.
WIDE_FONT: Final = "DejaVu Sans"
TEXT: Final = 12
SMALL: Final = 11
JUDGE_FILL: Final = 0.6
BASELINE_FILL: Final = 0.2
# Text in a cell is ink: more of the accent behind it would take the contrast away.
FULLEST_CELL: Final = 0.45

_AXIS: Final[Json] = {
    "domain": False,
    "ticks": False,
    "gridColor": LINE,
    "gridWidth": 1,
    "labelColor": SOFT,
    "labelFlush": False,
    "labelFontSize": SMALL,
    "labelPadding": 6,
    "titleColor": SOFT,
    "titleFontSize": SMALL,
    "titleFontWeight": "normal",
    "titlePadding": 6,
}
CONFIG: Final[Json] = {
    "aria": False,
    "background": "transparent",
    "padding": 4,
    "view": {"stroke": None},
    "axis": _AXIS,
    "title": {
        "anchor": "start",
        "frame": "bounds",
        "color": INK,
        "fontSize": 13,
        "fontWeight": "bold",
        "offset": 10,
        "subtitleColor": SOFT,
        "subtitleFontSize": SMALL,
        "subtitlePadding": 5,
    },
    "bar": {"color": ACCENT},
    "rect": {"color": ACCENT},
    "point": {"color": ACCENT, "opacity": 1, "strokeWidth": 1.5},
    "line": {"color": ACCENT, "strokeWidth": 1.5},
    "rule": {"color": INK, "strokeWidth": 1.25},
    "text": {"color": INK, "fontSize": TEXT, "baseline": "middle"},
    "style": {
        "quiet": {"color": SOFT, "fontSize": SMALL},
        "number": {"fontSize": SMALL},
        "halo": {"color": PAPER, "stroke": PAPER, "strokeWidth": 3, "fontSize": SMALL},
        "heading": {"fontWeight": "bold"},
        "baseline": {"color": SOFT, "strokeDash": [4, 3]},
        "connection": {"color": EDGE},
        "leader": {"color": EDGE, "strokeWidth": 0.75},
        "under": {"color": PAPER},
        "reference": {"color": INK, "strokeDash": [2, 2], "strokeWidth": 1},
        "band": {"color": INK, "fillOpacity": 0.08},
        "gap": {"color": LINE, "fillOpacity": 0.35},
    },
}


def merged(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Json:
    """Return a configuration with another laid over it, key by key.

    Examples
    --------
    >>> merged({"bar": {"color": "blue", "size": 1}}, {"bar": {"color": "red"}, "font": "Comic"})
    {'bar': {'color': 'red', 'size': 1}, 'font': 'Comic'}
    """
    both = dict(ours)
    for key, value in theirs.items():
        old = both.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            both[key] = merged(old, value)
        else:
            both[key] = value
    return both
