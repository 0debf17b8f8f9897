"""Make of a drawing by a model what may be given to a renderer, or refuse it with the reason.

A drawing is read with expat and written anew: what comes out refers to nothing outside itself, runs
nothing, holds no markup but SVG, and is bounded in bytes, depth, elements and size. What it
referred to outside is left out and named, as in a browser without a network. How long it takes to
draw is not foretold here: the renderer's process is limited, see ``voting.pictures.rendering``.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any, Final, TypeAlias
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import tinycss2

Node: TypeAlias = Any  # of tinycss2, which tells no types

SVG: Final = "http://www.w3.org/2000/svg"
XLINK: Final = "http://www.w3.org/1999/xlink"
MAX_BYTES: Final = 512 * 1024
MAX_DEPTH: Final = 64
MAX_ELEMENTS: Final = 20_000
MAX_SIDE: Final = 100_000.0
MAX_ASPECT: Final = 50.0
# Of style sheets that have to be read: reading takes some 15 microseconds a character at worst.
MAX_CSS: Final = 64 * 1024
MAX_NOTES: Final = 10
# What a browser shows of a drawing that states neither a size nor a viewBox.
DEFAULT_SIZE: Final = (300.0, 150.0)

# No still picture shows what these would: a drawing without them would be another one.
_REFUSED: Final = {
    *("script", "handler", "listener", "foreignobject", "iframe", "frame", "embed", "object"),
    *("applet", "audio", "video", "canvas"),
}
_NOT_DRAWN: Final = {
    *("set", "animate", "animatetransform", "animatemotion", "animatecolor", "discard"),
    *("cursor", "color-profile", "font-face"),
}
_REFERENCES: Final = {"href", "src", "srcset"}
# Attributes that no still picture shows.
_UNSEEN: Final = ("on", "aria-", "data-")
_PREFIXES: Final = {"": "", XLINK: "xlink:", "http://www.w3.org/XML/1998/namespace": "xml:"}
# By their first bytes in base64: what calls itself a PNG may be another drawing.
_PICTURE: Final = re.compile(
    r"(?i:data:image/(?:png|jpe?g|gif|webp)\s*;\s*base64\s*,)\s*"
    r"(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR)"
)
_HREF: Final = re.compile(r"href\s*=\s*[\"']([^\"']*)")
_PIXELS_PER_UNIT: Final = {"": 1.0, "px": 1.0, "pt": 96 / 72, "pc": 16.0, "in": 96.0} | {
    "mm": 96 / 25.4,
    "cm": 96 / 2.54,
    "q": 96 / 101.6,
    "em": 16.0,
    "ex": 8.0,
}
# No two neighbours of a pattern can match the same letters: the source chooses their number.
_ESCAPED: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
_LENGTH: Final = re.compile(
    r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*|%)\s*", re.ASCII
)
_SEPARATOR: Final = re.compile(r"[\s,]+")
# Only CSS that holds one of these can refer to anything, in whatever disguise.
_SUSPECT: Final = re.compile(r"\\|@|(?:url|src)\s*\((?!\s*[\"']?#)", re.IGNORECASE)
_KEPT_RULES: Final = {"media", "supports"}
_LOADING_RULES: Final = {"import", "font-face"}


class RenderingFailed(Exception):
    """There is no picture; the text is a sentence that a person can read."""

    # Screening refused the drawing, so no other try can bring a picture of it.
    is_refused = False

    def __init__(self, reason: str) -> None:
        super().__init__(one_line(reason))


def one_line(text: str) -> str:
    """Return on one line, with nothing invisible, what may quote a drawing, which is hostile."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


class UnsafeSvg(RenderingFailed):
    """The drawing is refused: no renderer ever sees it."""

    is_refused = True


@dataclass(frozen=True, slots=True)
class SafeDrawing:
    """A drawing that may be rendered: written anew, with its natural size in CSS pixels.

    `left_out` names what it refers to outside itself, each once, the first few.
    """

    svg: str
    width: float
    height: float
    left_out: tuple[str, ...]


def screen(source: str) -> SafeDrawing:
    """Return a drawing as it may be given to a renderer; nothing but UnsafeSvg is ever raised.

    >>> drawing = screen(f'<svg xmlns="{SVG}" width="9" height="6"><image href="a.png"/></svg>')
    >>> drawing.width, drawing.height, drawing.left_out
    (9.0, 6.0, ('a.png',))
    """
    writer = _Writer()
    root = _read(source, writer.instruction)
    namespace, _, local = root.tag.rpartition(" ")
    if local != "svg":
        raise UnsafeSvg(f"the root element is {local[:40]}, not svg")
    if namespace != SVG:
        raise UnsafeSvg(f'the svg element lacks xmlns="{SVG}"')
    width, height = natural_size(root.attrib)
    root.attrib |= {"xmlns": SVG, "xmlns:xlink": XLINK}
    root.attrib |= {"width": f"{width:.9g}", "height": f"{height:.9g}"}
    writer.write(root)
    return SafeDrawing("".join(writer.parts), width, height, tuple(writer.left_out))


def element_count(source: str) -> int:
    """Return how many elements a drawing has, or 0 where it cannot be read."""
    try:
        return len(list(_read(source).iter()))
    except UnsafeSvg:
        return 0


def _read(source: str, instruction: Callable[[str, str], None] | None = None) -> Element:
    """Read XML within bounds, and expand no entity."""
    builder = TreeBuilder()
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.buffer_text = True
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse_entity
    parser.ProcessingInstructionHandler = instruction
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(_bounded(source), True)
    except expat.ExpatError as error:
        raise UnsafeSvg(
            f"the drawing is not well-formed XML: {expat.ErrorString(error.code)} "
            f"(line {error.lineno}, column {error.offset + 1})"
        ) from None
    root = builder.close()
    if sum(1 for _ in root.iter()) > MAX_ELEMENTS:
        raise UnsafeSvg(f"the drawing has more than {MAX_ELEMENTS:,} elements")
    return root


def _refuse_entity(name: str, *_details: object) -> None:
    raise UnsafeSvg(f"the drawing's document type defines entities ({name[:40]})")


class _Writer:
    """Writes what was read, without what lies outside or is never drawn."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.left_out: list[str] = []
        self.css = 0

    def write(self, element: Element, depth: int = 1) -> None:
        namespace, _, local = element.tag.rpartition(" ")
        tag = local.lower()
        if depth > MAX_DEPTH:
            raise UnsafeSvg(f"the drawing is nested deeper than {MAX_DEPTH} elements")
        if namespace == SVG and tag in _REFUSED:
            raise UnsafeSvg(f"the drawing contains a {local} element")
        if namespace != SVG or tag in _NOT_DRAWN:
            return
        attributes = "".join(self._safe_attributes(tag, element))
        self.parts.append(f"<{local}{attributes}>")
        if tag == "style":
            words = [element.text, *(child.tail for child in element)]
            sheet = self._css("".join(filter(None, words)), is_sheet=True)
            self.parts.append(escape(sheet, quote=False))
        else:
            self._write_inside(element, depth)
        self.parts.append(f"</{local}>")

    def _write_inside(self, element: Element, depth: int) -> None:
        self.parts.append(escape(element.text or "", quote=False))
        for child in element:
            self.write(child, depth + 1)
            self.parts.append(escape(child.tail or "", quote=False))

    def instruction(self, target: str, data: str) -> None:
        if target == "xml-stylesheet":
            match = _HREF.search(data)
            self._leave_out(match[1] if match else target)

    def _leave_out(self, label: str) -> None:
        name = one_line(label)[:100]
        if name and name not in self.left_out and len(self.left_out) < MAX_NOTES:
            self.left_out.append(name)

    def _safe_attributes(self, tag: str, element: Element) -> Iterator[str]:
        for full_name, value in element.items():
            namespace, _, name = full_name.rpartition(" ")
            lowered = name.lower()
            # xml:base would move where references lead.
            if namespace not in _PREFIXES or lowered == "base" or lowered.startswith(_UNSEEN):
                continue
            if lowered in _REFERENCES:
                safe_value = self._reference(tag, value.strip())
            else:
                safe_value = value if lowered == "id" else self._css(value)
            if safe_value is not None:
                yield f' {_PREFIXES[namespace]}{name}="{safe_value.translate(_ESCAPED)}"'

    def _reference(self, tag: str, target: str) -> str | None:
        if target.startswith("#"):
            return target
        if tag in {"image", "feimage"} and target[:5].lower() == "data:":
            if _PICTURE.match(target):
                return target
            kinds = "only PNG, JPEG, GIF and WebP in base64 are allowed"
            raise UnsafeSvg(f"the drawing embeds {target[:40]}…; {kinds}")
        if tag != "a":  # a link shows nothing of what it leads to
            self._leave_out(target)
        return None

    def _css(self, text: str, *, is_sheet: bool = False) -> str:
        if not _SUSPECT.search(text):
            return text
        self.css += len(text)
        if self.css > MAX_CSS:
            raise UnsafeSvg(f"the drawing has more than {MAX_CSS // 1024} KB of CSS that may load")
        parse = tinycss2.parse_stylesheet if is_sheet else tinycss2.parse_component_value_list
        try:
            return str(tinycss2.serialize(self._safe_nodes(parse(text, skip_comments=True))))
        except RecursionError:
            raise UnsafeSvg("the drawing's CSS is nested too deeply") from None

    def _safe_nodes(self, nodes: list[Node]) -> list[Node]:
        safe_nodes: list[Node] = []
        for index, node in enumerate(nodes):
            outside = _external_source(node)
            if outside is None:
                for field in ("prelude", "content", "arguments"):
                    if inner := getattr(node, field, None):
                        setattr(node, field, self._safe_nodes(inner))
                safe_nodes.append(node)
                continue
            self._leave_out(outside)
            if node.type in {"url", "function"} and _is_alone(safe_nodes, nodes, index):
                safe_nodes += tinycss2.parse_component_value_list("none")
        return safe_nodes


def _external_source(node: Node) -> str | None:
    """Return what a piece of CSS loads ("" for nothing), None for a piece that may stay."""
    if node.type == "error":
        return ""
    if node.type in {"at-rule", "at-keyword"}:
        name = node.lower_at_keyword if node.type == "at-rule" else node.lower_value
        if name in _LOADING_RULES:
            return _loaded(getattr(node, "prelude", [])) or f"@{name}"
        return None if name in _KEPT_RULES else ""
    if node.type == "url":
        target = str(node.value)
    elif node.type == "function" and node.lower_name in {"url", "src"}:
        target = _loaded(node.arguments)
    else:
        return None
    return None if target.strip().startswith("#") else target


def _loaded(nodes: list[Node]) -> str:
    named = (node for node in nodes if node.type in {"string", "url", "function"})
    first = next(named, None)
    if first is not None and first.type == "function":
        return _loaded(first.arguments)
    return str(first.value) if first is not None else ""


def _is_alone(before: list[Node], nodes: list[Node], index: int) -> bool:
    last = next((node for node in reversed(before) if node.type != "whitespace"), None)
    after = (node for node in islice(nodes, index + 1, None) if node.type != "whitespace")
    next_node = next(after, None)
    return (last is None or last == ":") and (next_node is None or next_node in (";", "!"))


def natural_size(attributes: dict[str, str]) -> tuple[float, float]:
    """Return the width and height in pixels at which a browser shows a drawing by itself.

    Raises UnsafeSvg for no area, or one beyond the limits on side and aspect ratio.

    >>> natural_size({"width": "1in", "viewBox": "0 0 2 1"}), natural_size({"width": "50%"})
    ((96.0, 48.0), (150.0, 150.0))
    """
    box = _view_box(attributes.get("viewBox", ""))
    default = box or DEFAULT_SIZE
    width = _side(attributes.get("width", ""), default[0])
    height = _side(attributes.get("height", ""), default[1])
    if box and width is None and height is not None:
        width = height * box[0] / box[1]
    elif box and height is None and width is not None:
        height = width * box[1] / box[0]
    width = default[0] if width is None else width
    height = default[1] if height is None else height
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise UnsafeSvg(f"the drawing has no area ({width:g} by {height:g})")
    if max(width, height) > MAX_SIDE:
        raise UnsafeSvg(f"the drawing is {max(width, height):g} wide or high; {MAX_SIDE:g} at most")
    if max(width, height) > MAX_ASPECT * min(width, height):
        raise UnsafeSvg(
            f"the drawing is {width:g} by {height:g}; "
            f"one side may be at most {MAX_ASPECT:g} times the other"
        )
    return width, height


def _view_box(text: str) -> tuple[float, float] | None:
    parts = [_LENGTH.fullmatch(part) for part in _SEPARATOR.split(text.strip())]
    numbers = [float(part[1]) for part in parts if part and not part[2]]
    if len(numbers) != 4 or not all(map(math.isfinite, numbers)):
        return None
    return (numbers[2], numbers[3]) if min(numbers[2:]) > 0 else None


def _side(text: str, full_length: float) -> float | None:
    """Return a length in pixels, or a share of the whole, None for anything else."""
    match = _LENGTH.fullmatch(text)
    if match is None:
        return None
    value, unit = float(match[1]), match[2].lower()
    if unit == "%":
        return full_length * value / 100
    factor = _PIXELS_PER_UNIT.get(unit)
    return None if factor is None else value * factor


def _bounded(source: str) -> bytes:
    try:
        data = source.removeprefix("\ufeff")[: MAX_BYTES + 1].encode()
    except UnicodeEncodeError:
        raise UnsafeSvg("the drawing contains characters that no text may contain") from None
    if len(data) > MAX_BYTES:
        raise UnsafeSvg(f"the drawing is larger than {MAX_BYTES // 1024} KB")
    if not data.strip():
        raise UnsafeSvg("the drawing is empty")
    return data
