"""Which elements of a drawing refer to which ids, and by which property.

Style sheets are matched by the last simple selector of each rule only, which finds every
element that a rule applies to, and some that it does not.
"""

from __future__ import annotations

import re
from collections import defaultdict

from voting.screening.css import fragments, without_comments
from voting.screening.tree import Node, UnsafeSvg

MAX_EXPANDED = 100_000
GRADIENTS = {"lineargradient", "radialgradient"}
# Stands for the names that the same property of the parent has.
INHERITED = ["inherit"]
_FOLLOWED = {
    *("use", "image", "feimage", "pattern", "filter", "mask", "clippath", "marker"),
    *("textpath", "tref", *GRADIENTS),
}
_NOT_INHERITED = {"filter", "mask", "clip-path"}
_BRACE = re.compile(r"([{}])")
_SIMPLE_SELECTOR = re.compile(r"[#.]?[\w-]+")

References = dict[str, list[str]]


def references_of(nodes: list[Node]) -> dict[int, References]:
    """Return the ids that each element refers to, by ``id(node)`` and property.

    Parameters
    ----------
    nodes : list of Node
        The elements in document order.

    Raises
    ------
    UnsafeSvg
        More than ``MAX_EXPANDED`` references.
    """
    sheet = _sheet_references(nodes)
    found: dict[int, References] = {}
    total = 0
    for node in nodes:
        declarations = _declarations(node)
        for key in _selector_keys(node) if sheet else ():
            declarations += sheet.get(key, [])
        references: References = defaultdict(list)
        for prop, named in declarations:
            above = found.get(id(node.parent), {})
            names = above.get(prop, []) if named is INHERITED else named
            references[prop] += names
            total += 1 + len(names)
            if total > MAX_EXPANDED:
                raise UnsafeSvg(f"the drawing has more than {MAX_EXPANDED:,} references")
        if references:
            found[id(node)] = references
    return found


def _declarations(node: Node) -> list[tuple[str, list[str]]]:
    found = []
    for full_name, value in node.attributes.items():
        name = full_name.rpartition(" ")[2].lower()
        if name == "style":
            found += _style_declarations(value)
        elif name == "href" and node.tag in _FOLLOWED and value.strip().startswith("#"):
            found.append(("href", [value.strip()[1:]]))
        elif names := _named(name, value):
            found.append((name, names))
    return found


def _style_declarations(style: str) -> list[tuple[str, list[str]]]:
    found = []
    for part in without_comments(style).split(";"):
        prop, _, value = part.partition(":")
        name = prop.strip().lower()
        if names := _named(name, value):
            found.append((name, names))
    return found


def _named(prop: str, value: str) -> list[str]:
    if prop in _NOT_INHERITED and value.strip().lower() == "inherit":
        return INHERITED
    return fragments(value)


def _sheet_references(nodes: list[Node]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return, by the last simple selector of each rule, the declarations that refer."""
    found: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for node in nodes:
        if node.tag != "style":
            continue
        for selectors, body in _rules(without_comments(node.text)):
            declarations = _style_declarations(body)
            for selector in selectors.split(",") if declarations else ():
                found[_last_simple_selector(selector)] += declarations
    return found


def _rules(css: str) -> list[tuple[str, str]]:
    """Return selectors and body of each innermost block; one cut short counts as well."""
    found = []
    pieces = _BRACE.split(css)
    for before, brace, body in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        if brace == "{":
            found.append((before, body))
    return found


def _last_simple_selector(selector: str) -> str:
    compound = re.split(r"[\s>+~]+", selector.strip())[-1]
    simple = _SIMPLE_SELECTOR.findall(re.split(r"[\[:]", compound)[0])
    # The last part of `rect.cloud` is the narrower one; `*` and `[x]` match anything.
    return simple[-1].lower() if simple else "*"


def _selector_keys(node: Node) -> set[str]:
    classes = {f".{name.lower()}" for name in (node.get("class") or "").split()}
    identity = node.get("id")
    return {"*", node.tag, *classes, *({f"#{identity.lower()}"} if identity else ())}
