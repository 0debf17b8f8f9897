"""Read an SVG into a bounded tree with expat, refusing what no drawing needs.

No entity is ever expanded, no document type is ever read, and the tree is bounded in bytes,
depth and elements while it is being built, so that reading costs little whatever the source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
MAX_BYTES = 512 * 1024
MAX_DEPTH = 64
MAX_ELEMENTS = 20_000


class UnsafeSvg(Exception):  # the name is the verdict, and callers read it as one
    """The drawing is refused; ``reason`` is a sentence that a person can read."""

    def __init__(self, reason: str) -> None:
        # A reason may quote the drawing, which is hostile: one line, nothing invisible.
        words = " ".join(reason.split())
        self.reason = "".join(each for each in words if each.isprintable())
        super().__init__(self.reason)


@dataclass(slots=True, eq=False)
class Node:
    """One element: names without prefix, attributes as ``"namespace name"`` or ``"name"``."""

    namespace: str
    name: str
    attributes: dict[str, str]
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    text: str = ""

    @property
    def tag(self) -> str:
        """Name in lower case: a trick of case must not hide an element."""
        return self.name.lower()

    def get(self, name: str) -> str | None:
        """Return the attribute of this name in no namespace."""
        return self.attributes.get(name)


def parse(source: str | bytes) -> list[Node]:
    """Return the elements of a drawing in document order, the root first.

    Parameters
    ----------
    source : str or bytes
        The drawing, in UTF-8 where it is bytes.

    Returns
    -------
    list of Node
        At least one element.

    Raises
    ------
    UnsafeSvg
        Not UTF-8, not well-formed, too large, too deep, or carrying a document type,
        entities or processing instructions.

    Examples
    --------
    >>> [node.name for node in parse("<svg><g/><g/></svg>")]
    ['svg', 'g', 'g']
    """
    return _TreeBuilder().build(_utf8(source))


def _utf8(source: str | bytes) -> bytes:
    if len(source) > MAX_BYTES:
        raise _too_large()
    if isinstance(source, bytes):
        _refuse_other_encodings(source)
        data = source.removeprefix(b"\xef\xbb\xbf")
    else:
        try:
            data = source.removeprefix("\ufeff").encode()
        except UnicodeEncodeError:
            raise UnsafeSvg("the drawing contains characters that no text may contain") from None
    if len(data) > MAX_BYTES:
        raise _too_large()
    if not data.strip():
        raise UnsafeSvg("the drawing is empty")
    if b"\0" in data:
        raise UnsafeSvg("the drawing contains NUL bytes; it is not a text")
    return data


def _refuse_other_encodings(data: bytes) -> None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<")):
        raise UnsafeSvg("the drawing is not in UTF-8, the only encoding accepted, but in UTF-16")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UnsafeSvg("the drawing is not in UTF-8, the only encoding accepted") from None


def _too_large() -> UnsafeSvg:
    return UnsafeSvg(f"the drawing is larger than {MAX_BYTES // 1024} KB")


class _TreeBuilder:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.stack: list[Node] = []
        self.texts: list[list[str]] = []

    def build(self, data: bytes) -> list[Node]:
        parser = expat.ParserCreate("utf-8", namespace_separator=" ")
        parser.buffer_text = True
        parser.XmlDeclHandler = self.declaration
        parser.StartDoctypeDeclHandler = self.doctype
        parser.ProcessingInstructionHandler = self.instruction
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise UnsafeSvg(
                f"the drawing is not well-formed XML: {expat.ErrorString(error.code)} "
                f"(line {error.lineno}, column {error.offset + 1})"
            ) from None
        return self.nodes

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if (encoding or "utf-8").lower() not in {"utf-8", "utf8", "us-ascii"}:
            raise UnsafeSvg(f"the drawing declares the encoding {encoding}; only UTF-8 is accepted")

    def doctype(self, *_details: object) -> NoReturn:
        raise UnsafeSvg("the drawing has a document type (DOCTYPE), which could define entities")

    def instruction(self, target: str, _data: str) -> NoReturn:
        raise UnsafeSvg(f"the drawing has a processing instruction: {target[:40]}")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self.stack) >= MAX_DEPTH:
            raise UnsafeSvg(f"the drawing is nested deeper than {MAX_DEPTH} elements")
        if len(self.nodes) >= MAX_ELEMENTS:
            raise UnsafeSvg(f"the drawing has more than {MAX_ELEMENTS:,} elements")
        namespace, _, local = name.rpartition(" ")
        parent = self.stack[-1] if self.stack else None
        node = Node(namespace, local, attributes, parent)
        if parent is not None:
            parent.children.append(node)
        self.nodes.append(node)
        self.stack.append(node)
        self.texts.append([])

    def end(self, _name: str) -> None:
        self.stack.pop().text = "".join(self.texts.pop())

    def characters(self, text: str) -> None:
        # Character data is never reported outside the root.
        self.texts[-1].append(text)
