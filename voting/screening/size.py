"""The natural size of a drawing in user units, and the limits on it."""

from __future__ import annotations

import math
import re

from voting.screening.tree import Node, UnsafeSvg

MAX_SIDE = 100_000.0
MAX_ASPECT = 50.0
PIXELS_PER_UNIT = {
    "": 1.0,
    "px": 1.0,
    "pt": 96 / 72,
    "pc": 16.0,
    "mm": 96 / 25.4,
    "cm": 96 / 2.54,
    "q": 96 / 101.6,
    "in": 96.0,
    "em": 16.0,
    "ex": 8.0,
}
# No two neighbours of a pattern can match the same letters: the source chooses their number.
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_LENGTH = re.compile(rf"({_NUMBER})\s*([a-zA-Z]*|%)", re.ASCII)
_SEPARATOR = re.compile(r"[\s,]+")


def natural_size(root: Node) -> tuple[float, float]:
    """Return the width and height at which the drawing would be shown by itself.

    Parameters
    ----------
    root : Node
        The outermost ``svg`` element.

    Returns
    -------
    tuple of float
        Width and height in user units (CSS pixels).

    Raises
    ------
    UnsafeSvg
        No usable size, or one beyond the limits on side and aspect ratio.

    Examples
    --------
    >>> from voting.screening.tree import parse
    >>> natural_size(parse('<svg width="1in" viewBox="0 0 2 1"/>')[0])
    (96.0, 48.0)
    """
    box = view_box(root)
    width = _side(root.get("width"), box[0] if box else None)
    height = _side(root.get("height"), box[1] if box else None)
    if box:
        width, height = _completed(width, height, box)
    if width is None or height is None:
        raise UnsafeSvg("the drawing has neither a width and height nor a viewBox")
    _check_limits(width, height)
    return width, height


def view_box(root: Node) -> tuple[float, float] | None:
    """Return width and height of the viewBox, or None where there is no usable one."""
    parts = [part for part in _SEPARATOR.split(root.get("viewBox") or "") if part]
    numbers = [number(part) for part in parts]
    if len(numbers) != 4 or any(value is None for value in numbers):
        return None
    width, height = numbers[2] or 0.0, numbers[3] or 0.0
    if width <= 0 or height <= 0:
        return None
    _check_limits(width, height, "viewBox")
    return width, height


def number(text: str) -> float | None:
    """Return a plain finite number, or None."""
    found = _LENGTH.fullmatch(text.strip())
    if found is None or found[2]:
        return None
    value = float(found[1])
    return value if math.isfinite(value) else None


def proportion_or_number(text: str) -> float | None:
    """Return ``"25%"`` as 0.25 and a length as its number of user units, or None."""
    found = _LENGTH.fullmatch(text.strip())
    if found is None:
        return None
    if found[2] == "%":
        return float(found[1]) / 100
    factor = PIXELS_PER_UNIT.get(found[2].lower())
    return None if factor is None else float(found[1]) * factor


def _side(text: str | None, box_side: float | None) -> float | None:
    found = _LENGTH.fullmatch((text or "").strip())
    if found is None:
        return None
    value, unit = float(found[1]), found[2].lower()
    if unit == "%":
        return None if box_side is None else box_side * value / 100
    factor = PIXELS_PER_UNIT.get(unit)
    return None if factor is None else value * factor


def _completed(
    width: float | None, height: float | None, box: tuple[float, float]
) -> tuple[float, float]:
    if width is None and height is None:
        return box
    if width is None:
        width = (height or 0.0) * box[0] / box[1]
    elif height is None:
        height = width * box[1] / box[0]
    return width, height or 0.0


def _check_limits(width: float, height: float, name: str = "drawing") -> None:
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise UnsafeSvg(f"the {name} has no area ({width:g} by {height:g})")
    if max(width, height) > MAX_SIDE:
        raise UnsafeSvg(f"the {name} is {max(width, height):g} wide or high; {MAX_SIDE:g} at most")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise UnsafeSvg(
            f"the {name} is {width:g} by {height:g}; "
            f"one side may be at most {MAX_ASPECT:g} times the other"
        )
