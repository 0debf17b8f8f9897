"""A composite of several components, with gates that no weight can buy back.

The weighted mean of components in [0, 1], unless a gate is not fully met: then 0. The components
are always shown, the composite is the headline and never stands alone.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from math import fsum, inf
from typing import Final, Generic, TypeVar

from reports.composite_config import CompositeConfig, Weight
from reports.composite_parsing import parse

__all__ = [
    "Composite",
    "CompositeConfig",
    "CompositeError",
    "CompositeRow",
    "Weight",
    "composite_of_item",
    "composite_table",
    "parse",
]

OK: Final = "ok"
Item = TypeVar("Item", bound=Hashable)


class CompositeError(ValueError):
    """An item has no composite, or the weights make none; the message says why."""


@dataclass(frozen=True, slots=True)
class Composite:
    """The composite of one item.

    Attributes
    ----------
    value : float
        In [0, 1]; 0 where a gate failed.
    reason : str
        ``ok`` or ``hard-gate fail: NAME``.
    failed_gate : str or None
    """

    value: float
    reason: str = OK
    failed_gate: str | None = None


@dataclass(frozen=True, slots=True)
class CompositeRow(Generic[Item]):
    """One line of a table: the components first, then what they come to.

    Attributes
    ----------
    item : hashable
    components : mapping of str to float or None
        In the order of the config, the weighted ones first; None where missing.
    composite : float or None
        None for an item that has none: `reason` is then the error.
    failed_gate : str or None
    reason : str
    """

    item: Item
    components: Mapping[str, float | None]
    composite: float | None
    failed_gate: str | None
    reason: str

    def record(self) -> dict[str, object]:
        """Return the row as a file has it: id, components, composite, failed gate.

        Examples
        --------
        >>> CompositeRow("q1", {"safety": 0.0}, 0.0, "safety", "hard-gate fail: safety").record()
        {'id': 'q1', 'safety': 0.0, 'composite': 0.0, 'failed_gate': 'safety', \
'reason': 'hard-gate fail: safety'}
        """
        end = {"composite": self.composite, "failed_gate": self.failed_gate}
        return {"id": self.item, **self.components, **end, "reason": self.reason}


def composite_of_item(
    components: Mapping[str, float | None],
    weights: Mapping[str, float],
    gates: Collection[str] = (),
) -> Composite:
    """Compute the composite of one item.

    ``sum(weight * component) / sum(weight)`` over the weighted components; 0 where a gate is below
    1 or missing.

    Parameters
    ----------
    components : mapping of str to float
        Each in [0, 1]; None is missing.
    weights : mapping of component to float
        All above 0; only their ratios count.
    gates : collection of str
        Components that must be 1, looked at in this order. A gate may be weighted too.

    Raises
    ------
    CompositeError
        Where a component is outside [0, 1], or a weighted one is missing and no gate failed; where
        there is no weight, or one that is not above 0.

    Examples
    --------
    >>> weights, gates = {"correctness": 0.6, "brevity": 0.4}, ("safety", "format")
    >>> item = {"correctness": 0.9, "brevity": 0.7, "safety": 1, "format": 1}
    >>> round(composite_of_item(item, weights, gates).value, 12)
    0.82
    >>> composite_of_item(item | {"safety": 0}, weights, gates)
    Composite(value=0.0, reason='hard-gate fail: safety', failed_gate='safety')
    >>> composite_of_item(item | {"brevity": None}, weights, gates)
    Traceback (most recent call last):
        ...
    reports.composite.CompositeError: component 'brevity' is missing
    """
    total = _total(weights)
    known = {name: value for name, value in components.items() if value is not None}
    for name, value in known.items():
        if not 0 <= value <= 1:
            raise CompositeError(f"component {name!r} is {value:g}, which is outside [0, 1]")
    for gate in gates:
        if known.get(gate, 0) < 1:
            return Composite(0.0, f"hard-gate fail: {gate}", gate)
    for name in weights:
        if name not in known:
            raise CompositeError(f"component {name!r} is missing")
    # Each product is made of a share, so that no rounding leaves [0, 1] by more than the last bit.
    return Composite(min(1.0, fsum(w / total * known[name] for name, w in weights.items())))


def composite_table(
    items: Mapping[Item, Mapping[str, float | None]], config: CompositeConfig
) -> list[CompositeRow[Item]]:
    """Compute the composite of every item; one that has none keeps its row, with the error.

    Examples
    --------
    >>> config = parse(
    ...     {
    ...         "weights": {"correctness": {"weight": 1, "reason": "It is all that counts."}},
    ...         "gates": ["safety"],
    ...     }
    ... )
    >>> items = {"q1": {"correctness": 0.5, "safety": 1}, "q2": {"safety": 1}}
    >>> for row in composite_table(items, config):
    ...     print(row.item, row.composite, row.reason)
    q1 0.5 ok
    q2 None component 'correctness' is missing
    """
    names, weights = config.components, config.weighting
    return [
        _row(item, {name: components.get(name) for name in names}, weights, config.gates)
        for item, components in items.items()
    ]


def _row(
    item: Item,
    shown: Mapping[str, float | None],
    weights: Mapping[str, float],
    gates: Collection[str],
) -> CompositeRow[Item]:
    try:
        found = composite_of_item(shown, weights, gates)
    except CompositeError as error:
        return CompositeRow(item, shown, None, None, str(error))
    return CompositeRow(item, shown, found.value, found.failed_gate, found.reason)


def _total(weights: Mapping[str, float]) -> float:
    if not weights:
        raise CompositeError("there is no weight")
    for name, weight in weights.items():
        if not 0 < weight < inf:
            raise CompositeError(f"the weight of {name!r} is {weight:g}, and must be above 0")
    return fsum(weights.values())
