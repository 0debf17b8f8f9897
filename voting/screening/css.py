"""What CSS in a drawing may say: nothing that names a resource outside the drawing.

Renderers differ in how they read escapes and comments, so a text is looked at in every
reading at once, and is refused where any of them names something outside.
"""

from __future__ import annotations

import re

from voting.screening.tree import UnsafeSvg

_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_URL = re.compile(r"(?<![\w-])url\s*\([\s\"']*")
_FORBIDDEN_RULE = re.compile(r"@\s*(import|font-face|namespace|charset|document|-moz-document)")
_FORBIDDEN_FUNCTION = re.compile(
    r"(?<![\w-])((?:-\w+-)?(?:image|image-set|src|cross-fade|element|expression))\s*\("
)
_FRAGMENT = re.compile(r"url\s*\([\s\"']*#([^\"')]*)", re.IGNORECASE)


def check_value(text: str) -> None:
    """Refuse an attribute value in which some reader could see a url outside the drawing.

    Raises
    ------
    UnsafeSvg
        A ``url(…)`` that is not a ``#fragment``.

    Examples
    --------
    >>> check_value("url(#sky)")
    >>> check_value(r"u\\72l(http://example.org)")
    Traceback (most recent call last):
    voting.screening.tree.UnsafeSvg: the drawing refers to http://example.org in CSS; ...
    """
    if "(" not in text and "\\" not in text:
        return
    for reading in _readings(text):
        for found in _URL.finditer(reading):
            target = reading[found.end() : found.end() + 100]
            if not target.startswith("#"):
                outside = re.split(r"[\"')]", target)[0].strip() or "nothing"
                raise UnsafeSvg(
                    f"the drawing refers to {outside} in CSS; only url(#fragment) is allowed"
                )


def check_sheet(text: str) -> None:
    """Refuse a style sheet or style attribute that escapes, imports, or loads anything.

    Raises
    ------
    UnsafeSvg
        A CSS escape, ``@import``, ``@font-face``, a function that loads, or a url outside.
    """
    if "\\" in text:
        raise UnsafeSvg("the drawing has an escape (backslash) in its CSS")
    check_value(text)
    for reading in _readings(text):
        if rule := _FORBIDDEN_RULE.search(reading):
            raise UnsafeSvg(f"the drawing uses @{rule[1]} in its CSS")
        if function := _FORBIDDEN_FUNCTION.search(reading):
            raise UnsafeSvg(f"the drawing uses {function[1]}() in its CSS")


def fragments(text: str) -> list[str]:
    """Return the ids that a value refers to by ``url(#…)``."""
    return [name.strip() for name in _FRAGMENT.findall(text)] if "#" in text else []


def without_comments(text: str) -> str:
    """Return CSS without its comments."""
    return _COMMENT.sub("", text)


def _readings(text: str) -> set[str]:
    plain = {text, _ESCAPE.sub(_unescaped, text)}
    return {reading.lower() for each in plain for reading in (each, without_comments(each))}


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[2]
    code = int(escape[1], 16)
    return chr(code) if code < 0x110000 else "\ufffd"
