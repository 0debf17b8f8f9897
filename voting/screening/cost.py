"""How large a drawing becomes once every reference in it is followed.

A few kilobytes of nested ``use``, masks, patterns or markers can stand for millions of
elements. The expansion is counted here without being made; where it cannot be known exactly
(style sheets, inheritance) it is overestimated.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from voting.screening.references import GRADIENTS, MAX_EXPANDED, References, references_of
from voting.screening.tree import Node, UnsafeSvg

MAX_EXPANDED_DEPTH = 128
MAX_REFERENCE_DEPTH = 12
# A layer or a filter pass touches every pixel it covers: it costs as much as many shapes.
LAYER = 20
_LAYERS = {"filter", "mask", "pattern", "marker", "clippath"}
_SHAPES = {
    *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
    *("text", "tspan", "textpath", "use", "image"),
}
_POINT = re.compile(r"[a-zA-Z]|[\d.]+")


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
    followed: int = 0

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
                # Each counts in the root in the end: stop here, not after following them all.
                self.followed += 1
                if self.followed > MAX_EXPANDED:
                    raise _too_large()
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
    Expander(targets, references_of(nodes)).expand(nodes[0])


def _joined(found: Expansion, prop: str, target: Node, part: Expansion) -> Expansion:
    layer = LAYER if target.tag in _LAYERS else 0
    cost = 1 if target.tag in GRADIENTS else part.cost + layer
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
        raise _too_large()
    if found.depth > MAX_EXPANDED_DEPTH or found.references > MAX_REFERENCE_DEPTH:
        raise _too_deep()
    return found


def _too_large() -> UnsafeSvg:
    return UnsafeSvg(
        f"the drawing stands for more than {MAX_EXPANDED:,} elements once its references "
        "(use, mask, pattern, marker, filter) are followed"
    )


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
