"""From a specification to SVG that any page may hold, and to PNG."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Final
from xml.etree.ElementTree import Element, ParseError, SubElement, fromstring, tostring

from humanjudge.charts.spec import Spec, Texts
from humanjudge.charts.theme import (
    CONFIG,
    FONT,
    PAPER,
    SYSTEM_FONT,
    THEMES,
    WIDE_FONT,
    ChartRefused,
    Theme,
    VegaConfig,
    checked,
    merged,
)

_FONTS: Final = Path(__file__).parents[2] / "voting" / "fonts"
# Of Vega-Lite, which the specifications are written for.
_VERSION: Final = "6.4"
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
# A wider chart should be scrolled on a telephone, and not shrunk.
_LARGE: Final = 560
# A config may ask for letters a mile high; memory goes with the square of the size.
_MOST_PIXELS: Final = 12_000_000


def svg(spec: Spec, theme: Theme = "page", vega_config: VegaConfig | None = None) -> str:
    """Draw a chart as an ``svg`` element of the class ``plot``, and ``large`` if it should scroll.

    Only presentation attributes are used, no style and no script, nothing is loaded, and several
    may stand in one page: it may stand in a page with a strict Content-Security-Policy. The theme
    ``page`` takes its colours from the page's CSS and has no background. `vega_config` is a
    Vega-Lite config, laid over ours. ChartRefused when nothing can be drawn with that config, or
    the picture would be too large.
    """
    return _svg(spec, theme, vega_config or {}, WIDE_FONT, SYSTEM_FONT)


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

    drawing = _svg(spec, theme, vega_config or {}, FONT, FONT)
    # The renderer is in a hurry: packed again, the same picture has a third of the bytes.
    packed = BytesIO()
    with Image.open(BytesIO(_renderer().svg_to_png(drawing, scale=scale))) as picture:
        picture.save(packed, "PNG")
    return packed.getvalue()


def _svg(
    spec: Spec, theme: Theme, vega_config: VegaConfig, measured_font: str, named_font: str
) -> str:
    background = "transparent" if theme == "page" else PAPER
    ours = CONFIG | {"background": background, "font": measured_font}
    try:
        whole = json.dumps({**spec, "config": merged(ours, checked(vega_config))}, allow_nan=False)
        # By default any address may be read, should a specification name one.
        drawing = _renderer().vegalite_to_svg(whole, vl_version=_VERSION, allowed_base_urls=[])
        # The renderer's own output: it has no document type, and so no entities.
        root = fromstring(drawing)  # noqa: S314
    except ChartRefused:
        raise
    except (TypeError, ValueError, ParseError) as error:
        raise ChartRefused(f"the chart cannot be drawn: {_why(error)}") from error
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    if not 0 < width * height <= _MOST_PIXELS:
        raise ChartRefused(f"a chart of {width:.0f} by {height:.0f} pixels is too large")
    prefix = f"chart-{sha256(drawing.encode()).hexdigest()[:10]}"
    inherited = frozenset((("font-family", measured_font), ("opacity", "1")))
    copier = _Copier(prefix, THEMES[theme], spec["usermeta"]["names"], inherited)
    return tostring(copier.root(root, spec["usermeta"], named_font), encoding="unicode")


@cache
def _renderer() -> ModuleType:
    # Only where something is drawn: it is 30 MB of V8, and its threads do not survive a fork.
    import vl_convert

    vl_convert.register_font_directory(str(_FONTS))
    return vl_convert


def _why(error: Exception) -> str:
    """Return what the renderer complains of, without where in its own source."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join(line.strip() for line in lines[:2])[:300]


@dataclass(frozen=True)
class _Copier:
    """Copies of a drawing only what is known to be harmless, in the colours of a theme."""

    prefix: str
    colours: Mapping[str, str]
    names: Mapping[str, str]
    inherited: frozenset[tuple[str, str]]

    def root(self, drawing: Element, texts: Texts, font: str) -> Element:
        width, height = drawing.get("width", ""), drawing.get("height", "")
        about = {"title": texts["title"], "desc": texts["words"]}
        root = Element(
            "svg",
            {
                "xmlns": _SVG[1:-1],
                "class": "plot large" if float(width) > _LARGE else "plot",
                "width": width,
                "height": height,
                "viewBox": f"0 0 {width} {height}",
                "font-family": font,
                "font-variant": "tabular-nums",
                "role": "img",
                "aria-labelledby": " ".join(f"{self.prefix}-{name}" for name in about),
            },
        )
        for name, text in about.items():
            SubElement(root, name, {"id": f"{self.prefix}-{name}"}).text = text
        self._copy_children(drawing, root)
        return root

    def _copy_children(self, drawing: Element, into: Element) -> None:
        for child in drawing:
            tag = child.tag.removeprefix(_SVG)
            if tag not in _ELEMENTS or _is_unseen(child):
                continue
            values = {name: self._value(name, value) for name, value in child.items()}
            copy = Element(tag, {name: v for name, v in values.items() if v is not None})
            copy.text = child.text
            self._copy_children(child, copy)
            whole = self.names.get(child.text or "") if tag == "text" else None
            if whole is not None:
                tooltip = SubElement(copy, "title")
                tooltip.text, tooltip.tail, copy.text = whole, copy.text, None
            if tag != "g" or len(copy):
                into.append(copy)

    def _value(self, name: str, value: str) -> str | None:
        """Return an attribute's value; None where it is left out."""
        if name not in _ATTRIBUTES or (name, value) in self.inherited:
            return None
        if name == "id":
            return f"{self.prefix}-{value}"
        local = _LOCAL.sub(rf"url(#{self.prefix}-\1)", value)
        if "url(" in _LOCAL.sub("", value).lower():
            return None
        return self.colours.get(local, local)


def _is_unseen(drawing: Element) -> bool:
    if drawing.get("display") == "none" or drawing.get("fill") == "transparent":
        return True
    # The frames of groups: without a colour of their own there is nothing of them.
    return drawing.get("class") in ("background", "foreground") and not (
        drawing.get("fill") or drawing.get("stroke")
    )
