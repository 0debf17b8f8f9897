"""What charts look like, and from a specification to SVG that any page may hold, and to PNG."""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring, tostring

from humanjudge.charts.spec import Object, Spec, clean

Theme: TypeAlias = Literal["page", "light", "dark"]
# As it was read from a file: nothing is known of its values before `checked`.
VegaConfig: TypeAlias = Mapping[str, Any]

# Colours that nobody would ask for stand in specifications for roles, and become a theme's own in
# the drawing: a variable of CSS is no colour to Vega.
INK, SOFT, LINE, EDGE, PAPER, ACCENT = (f"#0a0b0{number}" for number in range(1, 7))
# Light and dark as in static/css/site.css; pages without it fall back on what they have.
_COLOURS: Final = {
    INK: ("#1c1c1a", "#ecece8", "var(--ink, currentColor)"),
    SOFT: ("#5b5b56", "#a8a8a1", "var(--soft, currentColor)"),
    LINE: ("#dcdcd6", "#363633", "var(--line, #8a8a83)"),
    EDGE: ("#8a8a83", "#77776f", "var(--edge, #8a8a83)"),
    ACCENT: ("#0b5cad", "#86bdf7", "var(--accent, #0b5cad)"),
    PAPER: ("#fff", "#161615", "var(--paper, #fff)"),
}
THEMES: Final[Mapping[Theme, Mapping[str, str]]] = {
    "light": {role: light for role, (light, _, _) in _COLOURS.items()},
    "dark": {role: dark for role, (_, dark, _) in _COLOURS.items()},
    "page": {role: page for role, (_, _, page) in _COLOURS.items()},
}

FONT: Final = "Liberation Sans"
# Nobody knows a reader's system font: room is left for letters as wide as these.
WIDE_FONT: Final = "DejaVu Sans"
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
        "labelColor": SOFT,
        "labelFlush": False,
        "labelFontSize": _SMALL,
        "labelPadding": 6,
        "titleColor": SOFT,
        "titleFontSize": _SMALL,
        "titleFontWeight": "normal",
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
    },
    "bar": {"color": ACCENT},
    "rect": {"color": ACCENT},
    "point": {"color": ACCENT, "opacity": 1, "strokeWidth": 1.5},
    "line": {"color": ACCENT, "strokeWidth": 1.5},
    "rule": {"color": INK, "strokeWidth": 1.25},
    "text": {"color": INK, "fontSize": 12, "baseline": "middle"},
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
_SVG: Final = "{http://www.w3.org/2000/svg}"
_ELEMENTS: Final = frozenset(
    "g path line rect circle text tspan defs clipPath linearGradient radialGradient stop".split()
)
_ATTRIBUTES: Final = frozenset(
    "id transform d x y dx dy x1 y1 x2 y2 cx cy r fx fy rx ry width height offset gradientUnits "
    "clip-path fill fill-opacity stroke stroke-opacity stroke-width stroke-dasharray "
    "stroke-dashoffset stroke-linecap stroke-linejoin stroke-miterlimit opacity stop-color "
    "stop-opacity text-anchor font-family font-size font-style font-weight".split()
)
_LOCAL: Final = re.compile(r"url\(#([\w-]+)\)")
# A config may ask for letters a mile high; memory goes with the square of the size.
_MOST_PIXELS: Final = 12_000_000


def svg(
    spec: Spec,
    theme: Theme = "page",
    vega_config: VegaConfig | None = None,
    *,
    for_png: bool = False,
) -> str:
    """Draw a chart as an ``svg`` element of the class ``plot``, and ``large`` if it should scroll.

    Only presentation attributes are used, no style and no script, nothing is loaded, and several
    may stand in one page: it may stand in a page with a strict Content-Security-Policy. The theme
    ``page`` takes its colours from the page's CSS and has no background. `vega_config` is a
    Vega-Lite config, laid over ours. ChartRefused when nothing can be drawn with that config, or
    the picture would be too large.
    """
    font = FONT if for_png else WIDE_FONT
    ours = CONFIG | {"background": "transparent" if theme == "page" else PAPER, "font": font}
    whole = {**spec.vega, "config": checked(vega_config or {})}
    try:
        # By default any address may be read, should a specification name one.
        drawing = _renderer().vegalite_to_svg(
            whole, vl_version="6.4", config=ours, allowed_base_urls=[]
        )
        # The renderer's own output: it has no document type, and so no entities.
        root = fromstring(drawing)  # noqa: S314
    except (TypeError, ValueError, ParseError) as error:
        # What the renderer complains of, without where in its own source.
        why = " ".join(line.strip() for line in str(error).strip().splitlines()[:2])[:300]
        raise ChartRefused(f"the chart cannot be drawn: {why}") from error
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    if not 0 < width * height <= _MOST_PIXELS:
        raise ChartRefused(f"a chart of {width:.0f} by {height:.0f} pixels is too large")
    prefix = f"chart-{sha256(drawing.encode()).hexdigest()[:10]}"
    names = {short: clean(name) for short, name in spec.names.items() if clean(name) not in short}
    _clean(root, prefix, THEMES[theme], font, names)
    root.tag, root.attrib = (
        "svg",
        {
            "xmlns": _SVG[1:-1],
            # A wide chart should be scrolled on a telephone, and not shrunk.
            "class": "plot large" if width > 560 else "plot",
            "width": root.get("width", ""),
            "height": root.get("height", ""),
            "viewBox": f"0 0 {width:g} {height:g}",
            "font-family": FONT if for_png else "system-ui, sans-serif",
            "font-variant": "tabular-nums",
            "role": "img",
            "aria-labelledby": f"{prefix}-title {prefix}-desc",
        },
    )
    for place, (name, text) in enumerate({"title": spec.title, "desc": spec.words}.items()):
        about = Element(name, {"id": f"{prefix}-{name}"})
        about.text = clean(text)
        root.insert(place, about)
    return tostring(root, encoding="unicode")


def in_light_colours(drawing: str) -> str:
    """Return a drawing of the theme `page` as it is on a light page, for a file of its own."""
    for light, _, page in _COLOURS.values():
        drawing = drawing.replace(page, light)
    return drawing


def png(
    spec: Spec,
    theme: Theme = "light",
    scale: float = 2.0,
    vega_config: VegaConfig | None = None,
) -> bytes:
    """Draw a chart as PNG, on white or on the dark theme's paper, `scale` pixels for one of it."""
    if theme == "page":
        raise ValueError("a PNG needs real colours: choose light or dark")
    from PIL import Image

    drawing = svg(spec, theme, vega_config, for_png=True)
    # The renderer is in a hurry: packed again, the same picture has a third of the bytes.
    packed = BytesIO()
    with Image.open(BytesIO(_renderer().svg_to_png(drawing, scale=scale))) as picture:
        picture.save(packed, "PNG")
    return packed.getvalue()


@cache
def _renderer() -> ModuleType:
    # Only where something is drawn: it is 30 MB of V8, and its threads do not survive a fork.
    import vl_convert

    fonts = Path(__file__).parents[2] / "voting" / "fonts"
    vl_convert.register_font_directory(str(fonts))
    return vl_convert


def _clean(
    parent: Element, prefix: str, colours: Mapping[str, str], font: str, names: Mapping[str, str]
) -> None:
    """Leave in a drawing only what is known to be harmless, in the colours of a theme."""
    for child in list(parent):
        _clean(child, prefix, colours, font, names)
        tag, fill = child.tag.removeprefix(_SVG), child.get("fill")
        # The frames of groups: without a colour of their own there is nothing of them.
        is_frame = child.get("class") in ("background", "foreground")
        is_unseen = child.get("display") == "none" or fill == "transparent"
        is_unseen = is_unseen or (is_frame and not (fill or child.get("stroke")))
        if tag not in _ELEMENTS or is_unseen or (tag == "g" and not len(child)):
            parent.remove(child)
            continue
        local = {name: _LOCAL.sub(rf"url(#{prefix}-\1)", v) for name, v in child.attrib.items()}
        child.tag = tag
        child.attrib = {
            name: f"{prefix}-{value}" if name == "id" else colours.get(value, value)
            for name, value in local.items()
            # What is inherited is not said again: a page has a font of its own.
            if name in _ATTRIBUTES
            and (name, value) != ("font-family", font)
            and "url(" not in _LOCAL.sub("", value).lower()
        }
        whole = names.get(child.text or "") if tag == "text" else None
        if whole is not None:
            tooltip = SubElement(child, "title")
            tooltip.text, tooltip.tail, child.text = whole, child.text, None


# --- a config of others ---------------------------------------------------------------------------

_MOST_LETTERS: Final = 50_000
_LARGEST: Final = 2_000
# Expressions could count to any number, whatever is refused here.
_COMPUTING: Final = frozenset("expr signal signals params labelExpr test init update".split())


class ChartRefused(ValueError):
    """A chart that cannot be drawn, mostly for its Vega config; the message says why."""


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
    _check(config, "")
    return config


def _check(value: Any, path: str) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{path}.{key}".lstrip(".")
            if key in _COMPUTING:
                raise ChartRefused(f"{place}: a config must not compute anything")
            _check(key, f"{path}.key".lstrip("."))
            _check(inner, place)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check(inner, path)
    elif wrong := _wrong(value):
        raise ChartRefused(f"{path}: {wrong}")


def _wrong(value: object) -> str:
    if isinstance(value, str):
        bad = any(unicodedata.category(letter) in ("Cc", "Cs", "Cn") for letter in value)
        return "a character that cannot be shown" if bad else ""
    # No comparison with NaN is true.
    if isinstance(value, int | float) and not -_LARGEST <= value <= _LARGEST:
        return f"a number that is not between -{_LARGEST} and {_LARGEST}"
    # Dashes shorter than this fill the memory.
    too_small = isinstance(value, float) and 0 < abs(value) < 0.01
    return f"{value:g} is too near to zero" if too_small else ""
