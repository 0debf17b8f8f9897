"""Refuse a hostile drawing before any renderer sees it.

The drawings are written by models and anyone may submit one. What passes here refers to
nothing outside itself, runs nothing, and is bounded in bytes, depth, elements, size, filters
and expansion. The renderer is limited all the same: see ``voting.rendering``.
"""

from __future__ import annotations

from dataclasses import dataclass

from voting.screening.cost import check_expansion
from voting.screening.css import check_sheet, check_value
from voting.screening.filters import check_filters
from voting.screening.images import pixels_of_data_url
from voting.screening.size import natural_size, view_box
from voting.screening.tree import SVG_NAMESPACE, Node, UnsafeSvg, parse

__all__ = ["Screened", "UnsafeSvg", "element_count", "screen"]

MAX_EMBEDDED_PIXELS = 32_000_000
MAX_TEXT = 20_000
MAX_DASHES = 1_000
_XML_NAMESPACE = "http://www.w3.org/XML/1998/namespace"
_FOREIGN = {
    "http://www.w3.org/1999/xhtml": "HTML",
    "http://www.w3.org/1998/Math/MathML": "MathML",
    "http://www.w3.org/2001/XInclude": "XInclude",
}
_FORBIDDEN_TAGS = {
    *("script", "handler", "listener", "foreignobject", "iframe", "frame", "embed", "object"),
    *("applet", "audio", "video", "source", "link", "base", "meta", "cursor", "color-profile"),
    *("font-face-uri", "font-face-src", "include", "import"),
}
_ANIMATIONS = {"set", "animate", "animatetransform", "animatemotion", "animatecolor", "discard"}
_REFERENCES = {"href", "src", "srcset"}
_TEXTS = {"text", "tspan", "textpath", "tref"}


@dataclass(frozen=True, slots=True)
class Screened:
    """What is known of a drawing that passed.

    Attributes
    ----------
    width, height : float
        Natural size in user units (CSS pixels).
    elements : int
        Number of elements, the root included.
    """

    width: float
    height: float
    elements: int


def screen(source: str | bytes) -> Screened:
    """Check a drawing and return its natural size.

    Parameters
    ----------
    source : str or bytes
        The SVG, in UTF-8 where it is bytes.

    Returns
    -------
    Screened

    Raises
    ------
    UnsafeSvg
        The drawing is refused; ``reason`` says why in words. Nothing else is ever raised.

    Examples
    --------
    >>> screen('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30"/>')
    Screened(width=40.0, height=30.0, elements=1)
    """
    nodes = parse(source)
    root = nodes[0]
    if root.name != "svg":
        raise UnsafeSvg(f"the root element is {root.name[:40]}, not svg")
    if root.namespace != SVG_NAMESPACE:
        raise UnsafeSvg(f'the svg element lacks xmlns="{SVG_NAMESPACE}"')
    for node in nodes:
        _check_element(node)
        for name, value in node.attributes.items():
            _check_attribute(node, name, value)
    _check_amounts(nodes)
    width, height = natural_size(root)
    check_filters(nodes, max(view_box(root) or (width, height)))
    check_expansion(nodes)
    return Screened(width, height, len(nodes))


def element_count(source: str) -> int:
    """Return how many elements a drawing has, or 0 where it cannot be read.

    Examples
    --------
    >>> element_count("<svg><g><path/></g></svg>"), element_count("no drawing")
    (3, 0)
    """
    try:
        return len(parse(source))
    except UnsafeSvg:
        return 0


def _check_element(node: Node) -> None:
    if node.namespace in _FOREIGN:
        raise UnsafeSvg(f"the drawing contains {_FOREIGN[node.namespace]} ({node.name[:40]})")
    if node.tag in _FORBIDDEN_TAGS:
        raise UnsafeSvg(f"the drawing contains a {node.name} element")
    if node.tag in _ANIMATIONS:
        _check_animation(node)
    if node.tag == "style":
        check_sheet("".join(_texts(node)))


def _texts(node: Node) -> list[str]:
    return [node.text, *(text for child in node.children for text in _texts(child))]


def _check_animation(node: Node) -> None:
    for name, value in node.attributes.items():
        if name.rpartition(" ")[2].lower() != "attributename":
            continue
        animated = value.strip().rpartition(":")[2].lower()
        if animated in _REFERENCES or animated.startswith("on"):
            raise UnsafeSvg(f"the drawing animates {value.strip()[:40]}")


def _check_attribute(node: Node, full_name: str, value: str) -> None:
    namespace, _, written = full_name.rpartition(" ")
    name = written.lower()
    if name.startswith("on"):
        raise UnsafeSvg(f"the drawing has an event handler ({written[:40]})")
    if name == "base" and namespace == _XML_NAMESPACE:
        raise UnsafeSvg("the drawing moves the base of its references (xml:base)")
    if name in _REFERENCES:
        _check_reference(node, value)
    elif name == "style":
        check_sheet(value)
    else:
        check_value(value)


def _check_reference(node: Node, value: str) -> None:
    target = value.strip()
    if target.startswith("#"):
        return
    if node.tag in {"image", "feimage"} and target[:5].lower() == "data:":
        return
    shown = target[:100] if target else "nothing"
    raise UnsafeSvg(f"the drawing refers to {shown}; only data: images and #fragments are allowed")


def _check_amounts(nodes: list[Node]) -> None:
    if sum(len(node.text) for node in nodes if node.tag in _TEXTS) > MAX_TEXT:
        raise UnsafeSvg(f"the drawing has more than {MAX_TEXT:,} characters of text")
    pixels = 0
    for node in nodes:
        for name, value in node.attributes.items():
            local = name.rpartition(" ")[2].lower()
            if local in _REFERENCES and not value.strip().startswith("#"):
                pixels += pixels_of_data_url(value.strip())
            elif local == "stroke-dasharray" and len(value.replace(",", " ").split()) > MAX_DASHES:
                raise UnsafeSvg(f"the drawing has a stroke of more than {MAX_DASHES:,} dashes")
    if pixels > MAX_EMBEDDED_PIXELS:
        raise UnsafeSvg(f"the drawing embeds {pixels:,} pixels of pictures: too many")
