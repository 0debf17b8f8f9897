"""How large a drawing becomes once every reference in it is followed.

A few kilobytes of nested ``use``, masks, patterns or markers can stand for millions of
elements. The expansion is counted here without being made; where it cannot be known exactly
(style sheets, inheritance) it is overestimated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from voting.screening_css import fragments, without_comments
from voting.screening_tree import Node, UnsafeSvg

MAX_EXPANDED = 100_000
MAX_EXPANDED_DEPTH = 128
MAX_REFERENCE_DEPTH = 12
# A layer or a filter pass touches every pixel it covers: it costs as much as many shapes.
LAYER = 20
_LAYERS = {"filter", "mask", "pattern", "marker", "clippath"}
_GRADIENTS = {"lineargradient", "radialgradient"}
_FOLLOWED = {
    *("use", "image", "feimage", "pattern", "filter", "mask", "clippath", "marker"),
    *("textpath", "tref", *_GRADIENTS),
}
_SHAPES = {
    *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
    *("text", "tspan", "textpath", "use", "image"),
}
_NOT_INHERITED = {"filter", "mask", "clip-path"}
_POINT = re.compile(r"[a-zA-Z]|[\d.]+")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_SIMPLE_SELECTOR = re.compile(r"[#.]?[\w-]+")

References = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Expansion:
    """What one element stands for, itself and everything it refers to included."""

    cost: int = 0
    shapes: int = 0
    points: int = 0
    depth: int = 0
    references: int = 0


@dataclass(slots=True)
class Expander:
    """Follows the references of one drawing, each element once."""

    targets: dict[str, list[Node]]
    references: dict[int, References]
    known: dict[int, Expansion] = field(default_factory=dict)
    path: set[int] = field(default_factory=set)

    def expand(self, node: Node) -> Expansion:
        """Return the expansion of an element.

        Raises
        ------
        UnsafeSvg
            It contains itself, or is too large or too deep.
        """
        key = id(node)
        if key in self.known:
            return self.known[key]
        if key in self.path:
            raise UnsafeSvg(f"the drawing has {_article(node)} that refers to itself")
        if len(self.path) >= MAX_EXPANDED_DEPTH:
            raise _too_deep()
        self.path.add(key)
        found = self._with_references(node, self._with_children(node))
        self.path.remove(key)
        self.known[key] = _checked(found)
        return found

    def _with_children(self, node: Node) -> Expansion:
        parts = [self.expand(child) for child in node.children]
        points = _points(node)
        return Expansion(
            cost=_own_cost(node) + points // 50 + sum(part.cost for part in parts),
            shapes=(node.tag in _SHAPES) + sum(part.shapes for part in parts),
            points=points + sum(part.points for part in parts),
            depth=1 + max((part.depth for part in parts), default=0),
            references=max((part.references for part in parts), default=0),
        )

    def _with_references(self, node: Node, found: Expansion) -> Expansion:
        for prop, names in self.references.get(id(node), {}).items():
            for target in (each for name in names for each in self.targets.get(name, [])):
                found = _checked(_joined(found, prop, target, self.expand(target)))
        return found


def check_expansion(nodes: list[Node]) -> None:
    """Refuse a drawing whose references contain themselves or expand beyond the limits.

    Parameters
    ----------
    nodes : list of Node
        The elements in document order.

    Raises
    ------
    UnsafeSvg
        A cycle, or more than ``MAX_EXPANDED`` elements after expansion.
    """
    targets: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if name := node.get("id"):
            # Renderers disagree on which of two equal ids wins: count both.
            targets[name.strip()].append(node)
    Expander(targets, _references(nodes)).expand(nodes[0])


def _joined(found: Expansion, prop: str, target: Node, part: Expansion) -> Expansion:
    layer = LAYER if target.tag in _LAYERS else 0
    cost = 1 if target.tag in _GRADIENTS else part.cost + layer
    times = 1
    if prop in {"fill", "stroke"}:
        times = max(1, found.shapes)
    elif prop.startswith("marker"):
        times = max(1, found.points)
    drawn = prop == "href"
    return Expansion(
        cost=found.cost + cost * times,
        shapes=found.shapes + (part.shapes if drawn else 0),
        points=found.points + (part.points if drawn else 0),
        depth=max(found.depth, 1 + part.depth),
        references=max(found.references, 1 + part.references),
    )


def _checked(found: Expansion) -> Expansion:
    if found.cost > MAX_EXPANDED:
        raise UnsafeSvg(
            f"the drawing stands for more than {MAX_EXPANDED:,} elements once its references "
            "(use, mask, pattern, marker, filter) are followed"
        )
    if found.depth > MAX_EXPANDED_DEPTH or found.references > MAX_REFERENCE_DEPTH:
        raise _too_deep()
    return found


def _too_deep() -> UnsafeSvg:
    return UnsafeSvg(
        f"the drawing's references are nested too deeply: at most {MAX_REFERENCE_DEPTH} references "
        f"and {MAX_EXPANDED_DEPTH} elements one inside the other"
    )


def _article(node: Node) -> str:
    return f"{'an' if node.name[:1] in 'aeiouAEIOU' else 'a'} {node.name} element"


def _own_cost(node: Node) -> int:
    cost = 1 + (len(node.text) // 4 if node.tag in {"text", "tspan", "textpath"} else 0)
    if node.parent is not None and node.parent.tag == "filter":
        cost += LAYER
    return cost


def _points(node: Node) -> int:
    outline = (node.get("d") or "") + (node.get("points") or "")
    return len(_POINT.findall(outline)) if outline else int(node.tag in _SHAPES)


def _references(nodes: list[Node]) -> dict[int, References]:
    sheet = _sheet_references(nodes)
    found: dict[int, References] = {}
    for node in nodes:
        references: References = defaultdict(list)
        for prop, value in _declarations(node):
            _collect(references, prop, value, node, found)
        for key in _selector_keys(node) if sheet else ():
            for prop, value in sheet.get(key, ()):
                _collect(references, prop, value, node, found)
        if references:
            found[id(node)] = references
    return found


def _collect(
    references: References, prop: str, value: str, node: Node, found: dict[int, References]
) -> None:
    if prop == "href":
        references[prop].append(value)
    elif prop in _NOT_INHERITED and value.strip().lower() == "inherit" and node.parent is not None:
        references[prop] += found.get(id(node.parent), {}).get(prop, [])
    else:
        references[prop] += fragments(value)


def _declarations(node: Node) -> list[tuple[str, str]]:
    found = []
    for full_name, value in node.attributes.items():
        name = full_name.rpartition(" ")[2].lower()
        if name == "style":
            found += _style_declarations(value)
        elif name == "href" and node.tag in _FOLLOWED and value.strip().startswith("#"):
            found.append(("href", value.strip()[1:]))
        elif "#" in value or value.strip().lower() == "inherit":
            found.append((name, value))
    return [(prop, value) for prop, value in found if prop == "href" or _matters(value)]


def _style_declarations(style: str) -> list[tuple[str, str]]:
    pairs = (part.partition(":") for part in without_comments(style).split(";"))
    return [(prop.strip().lower(), value) for prop, _, value in pairs if _matters(value)]


def _matters(value: str) -> bool:
    return bool(fragments(value)) or value.strip().lower() == "inherit"


def _sheet_references(nodes: list[Node]) -> dict[str, list[tuple[str, str]]]:
    """Return, by the last simple selector of each rule, the declarations that refer."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node in nodes:
        if node.tag != "style":
            continue
        for selectors, body in _RULE.findall(without_comments(node.text)):
            declarations = _style_declarations(body)
            for selector in selectors.split(",") if declarations else ():
                found[_last_simple_selector(selector)] += declarations
    return found


def _last_simple_selector(selector: str) -> str:
    compound = re.split(r"[\s>+~]+", selector.strip())[-1]
    simple = _SIMPLE_SELECTOR.findall(re.split(r"[\[:]", compound)[0])
    # The last part of `rect.cloud` is the narrower one; `*` and `[x]` match anything.
    return simple[-1].lower() if simple else "*"


def _selector_keys(node: Node) -> list[str]:
    classes = [f".{name.lower()}" for name in (node.get("class") or "").split()]
    identity = node.get("id")
    return ["*", node.tag, *classes, *([f"#{identity.lower()}"] if identity else [])]
