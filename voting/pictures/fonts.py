"""Names of fonts that drawings ask for, and the shipped fonts that stand in for them.

A renderer draws a family that it does not have with its default, a serif: a chart lettered
in Arial would come out in something like Times. The stand-ins have the same widths.
"""

from __future__ import annotations

import re

SANS, SERIF, MONO, HAND = "Liberation Sans", "Liberation Serif", "Liberation Mono", "Comic Neue"
_ASKED = {
    SANS: (
        "arial, arial black, arial narrow, helvetica, helvetica neue, verdana, tahoma, geneva, "
        "trebuchet ms, segoe ui, calibri, lucida grande, lucida sans, lucida sans unicode, "
        "gill sans, futura, avenir, avenir next, century gothic, franklin gothic medium, impact, "
        "system-ui, ui-sans-serif, ui-rounded, -apple-system, blinkmacsystemfont, sf pro display, "
        "sf pro text, roboto, open sans, lato, montserrat, inter, poppins, nunito, raleway, "
        "ubuntu, noto sans, source sans pro, work sans, dm sans, oswald, bebas neue"
    ),
    SERIF: "times, times new roman, georgia, garamond, palatino, cambria, ui-serif, baskerville",
    MONO: (
        "courier, courier new, consolas, monaco, menlo, lucida console, andale mono, sf mono, "
        "ui-monospace, fira code, fira mono, jetbrains mono, source code pro, roboto mono"
    ),
    HAND: (
        "comic sans ms, comic sans, chalkboard, chalkboard se, brush script mt, bradley hand, "
        "marker felt, pacifico, caveat, segoe script, lucida handwriting"
    ),
}
_STAND_INS = {name: ours for ours, names in _ASKED.items() for name in names.split(", ")}
_NAME = r"(?:[\w -]{1,60}|'[^'\"<>;{}]{0,60}'|\"[^'\"<>;{}]{0,60}\"|&quot;[^&<>;{}]{0,60}&quot;)"
# Every repetition is bounded: the source is hostile and this runs outside the child.
_LIST = re.compile(
    r"(font-family\s{0,9}(?::|=\s{0,9}[\"'])\s{0,9}"
    r"|font\s{0,9}:[\w\s.%-]{0,60}?\d[\w.%]{0,12}(?:/[\w.%]{1,12})?\s{1,9})"
    rf"({_NAME}(?:\s{{0,9}},\s{{0,9}}{_NAME}){{0,20}})"
)
_WORDS = re.compile(r"-?\w[\w -]*\w")


def with_shipped_families(source: str) -> str:
    """Return a drawing with well-known font families replaced by their shipped stand-ins.

    Parameters
    ----------
    source : str
        The drawing. Only names in ``font-family`` and ``font`` values are touched.

    Returns
    -------
    str

    Examples
    --------
    >>> with_shipped_families('<text font-family="Courier New, monospace">Arial</text>')
    '<text font-family="Liberation Mono, monospace">Arial</text>'
    """
    if "font" not in source:
        return source
    return _LIST.sub(lambda found: found[1] + _WORDS.sub(_stand_in, found[2]), source)


def _stand_in(name: re.Match[str]) -> str:
    return _STAND_INS.get(name[0].lower(), name[0])
