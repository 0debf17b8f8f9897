"""What a composite is made of: weights with reasons, gates, and where components come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

# What a component of an output can be read from, and what people's word it is checked against.
KINDS: Final = (
    "win_rate",
    "pass_rate",
    "judge_score",
    "judge_wins",
    "agreement",
    "label",
    "metadata",
    "rendered",
)
# What is read from a judge's verdicts alone; a label may be a judge's or people's.
OF_JUDGES: Final = ("judge_score", "judge_wins", "agreement")
CHECKS: Final = ("pass_rate", "win_rate")


@dataclass(frozen=True)
class Weight:
    """How much a component counts, relative to the others, and why so much."""

    value: float
    reason: str


@dataclass(frozen=True)
class Source:
    """Where a component of an output comes from.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    judge : str
        Whose score, verdicts or label; of a label, empty means people's.
    key : str
        The task of a label, or the key of metadata.
    low, high : float
        The range that becomes 0 to 1; beyond it a component is an error.
    equals : str
        The value that counts 1, every other 0, as JSON text; empty where there is a range.
    """

    kind: str
    judge: str = ""
    key: str = ""
    low: float = 0.0
    high: float = 1.0
    equals: str = ""

    def scaled(self, value: object) -> float | None:
        """Return what a value comes to, None for one that is neither a number nor compared.

        Examples
        --------
        >>> Source("label", key="stars", low=1, high=5).scaled(4)
        0.75
        >>> Source("label", key="safe", equals='"yes"').scaled("no")
        0.0
        """
        if value is None:
            return None
        if self.equals:
            return float(as_text(value) == self.equals)
        if isinstance(value, bool):
            return float(value)
        if not isinstance(value, int | float):
            return None
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class CompositeConfig:
    """Weights and gates of a composite, with what is needed to read its components.

    Attributes
    ----------
    weights : mapping of component to Weight
    gates : tuple of str
        Components that must be 1, in the order in which they are looked at.
    label : str
        What people call this version.
    sources : mapping of component to Source
        Empty where the caller brings the components.
    check : str
        What people's word the composite is checked against, one of `CHECKS`.

    Examples
    --------
    >>> weights = {"correctness": Weight(0.6, "Wrong answers help nobody.")}
    >>> config = CompositeConfig(weights, gates=("safety",))
    >>> config.weighting, config.gates, config.version
    ({'correctness': 0.6}, ('safety',), '75711cd63d41')
    """

    weights: Mapping[str, Weight]
    gates: tuple[str, ...] = ()
    label: str = ""
    sources: Mapping[str, Source] = field(default_factory=dict)
    check: str = CHECKS[0]

    @property
    def weighting(self) -> dict[str, float]:
        """The bare weights by component."""
        return {name: weight.value for name, weight in self.weights.items()}

    @property
    def components(self) -> tuple[str, ...]:
        """Every component, the weighted ones first."""
        return tuple(dict.fromkeys([*self.weights, *self.gates]))

    @property
    def version(self) -> str:
        """The name of what decides a composite: weights, gates and sources, and nothing else.

        The first 12 digits of the SHA-256 of their canonical JSON: other words, the same version.
        """
        sources = {name: vars(source) for name, source in self.sources.items()}
        facts = [self.weighting, sorted(self.gates), sources]
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def is_circular(self) -> bool:
        """Whether it contains what it is checked against."""
        return any(source.kind == self.check for source in self.sources.values())


def as_text(value: object) -> str:
    """Return a value as JSON text: 1 and 1.0 are the same, 1 and true are not.

    Examples
    --------
    >>> as_text(1) == as_text(1.0), as_text(1) == as_text(True)
    (True, False)
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
