"""Limits on filters: the one part of SVG whose cost has nothing to do with its size."""

from __future__ import annotations

import re

from voting.screening.css import without_comments
from voting.screening.size import number, proportion_or_number
from voting.screening.tree import Node, UnsafeSvg

MAX_PRIMITIVES = 40
MAX_FILTERS = 200
MAX_OCTAVES = 8
MAX_ORDER = 9
MAX_REGION = 20.0
_SHORTHAND = re.compile(r"(?<![\w-])(?:blur|drop-shadow)\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)")
_SEPARATOR = re.compile(r"[\s,]+")


def check_filters(nodes: list[Node], extent: float) -> None:
    """Refuse filters that no drawing needs and that keep a renderer busy for minutes.

    Parameters
    ----------
    nodes : list of Node
        The elements in document order.
    extent : float
        The longer side of the drawing in its own user units.

    Raises
    ------
    UnsafeSvg
        Too many filters or primitives, a region far larger than the drawing, or a blur,
        radius, kernel or number of octaves beyond the limits.
    """
    filters = [node for node in nodes if node.tag == "filter"]
    if len(filters) > MAX_FILTERS:
        raise UnsafeSvg(f"the drawing has {len(filters)} filters; {MAX_FILTERS} at most")
    for node in filters:
        _check_filter(node, extent)
    for node in nodes:
        for text in (node.get("filter"), node.get("style"), _sheet(node)):
            _check_shorthand(text or "", extent)


def _check_filter(node: Node, extent: float) -> None:
    if len(node.children) > MAX_PRIMITIVES:
        raise UnsafeSvg(
            f"the drawing has a filter of {len(node.children)} steps; {MAX_PRIMITIVES} at most"
        )
    _check_region(node, node.get("filterUnits") == "userSpaceOnUse", extent)
    # objectBoundingBox lengths are fractions of the shape they are used on.
    in_fractions = node.get("primitiveUnits") == "objectBoundingBox"
    for primitive in node.children:
        _check_region(primitive, not in_fractions, extent)
        _check_lengths(primitive, 2.0 if in_fractions else extent)
        _check_effort(primitive)


def _check_region(node: Node, in_user_space: bool, extent: float) -> None:
    for name in ("x", "y", "width", "height"):
        text = node.get(name)
        value = proportion_or_number(text) if text else None
        if text is None or value is None:
            continue
        is_length = in_user_space and not text.strip().endswith("%")
        if abs(value) > MAX_REGION * (extent if is_length else 1.0):
            raise UnsafeSvg(
                f"the drawing has a filter region with {name} {text.strip()[:40]}; "
                f"at most {MAX_REGION:g} times the size is allowed"
            )


def _check_lengths(primitive: Node, limit: float) -> None:
    for name in ("stdDeviation", "radius", "scale", "dx", "dy"):
        for value in _numbers(primitive.get(name)):
            if abs(value) > limit * (10 if name in {"scale", "dx", "dy"} else 1):
                raise UnsafeSvg(f"the drawing has a filter with {name} {value:g}: too large")


def _check_effort(primitive: Node) -> None:
    for name, limit in (("numOctaves", MAX_OCTAVES), ("order", MAX_ORDER)):
        for value in _numbers(primitive.get(name)):
            if value > limit:
                raise UnsafeSvg(
                    f"the drawing has a filter with {name} {value:g}; {limit} at most is allowed"
                )


def _numbers(text: str | None) -> list[float]:
    parts = (number(part) for part in _SEPARATOR.split((text or "").strip()))
    return [part for part in parts if part is not None]


def _sheet(node: Node) -> str | None:
    return node.text if node.tag == "style" else None


def _check_shorthand(text: str, extent: float) -> None:
    if "(" not in text:
        return
    for arguments in _SHORTHAND.findall(without_comments(text).lower()):
        for part in _SEPARATOR.split(arguments.strip()):
            value = proportion_or_number(part)
            if value is not None and abs(value) > extent:
                raise UnsafeSvg(f"the drawing has a CSS filter with a length of {part[:40]}")
