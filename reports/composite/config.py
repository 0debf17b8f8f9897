"""What a composite is made of: weights with reasons, gates, and where components come from."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.validation import Line, Part, Place, alone, validated
from judge_eval.imports.fields import Unfit, number

LARGEST: Final = 1_000_000_000
MOST_COMPONENTS: Final = 30
LONGEST_NAME: Final = 60
NAME: Final = r"^[^\W\d]\w*(?:[ .-]\w+)*$"
_WORDS: Final = {
    "win_rate": "share of votes it won, a tie half",
    "pass_rate": "share of people's votes that passed it",
    "rendered": "1 where it could be rendered, 0 where not",
    "judge_score": "mean score by {judge}",
    "judge_wins": "win rate by {judge}",
    "agreement": "mean share of votes that agree with {judge} about it",
    "label": "{task}, mean of what {judge} said",
    "metadata": "{key} among the metadata",
}
_ONE_RULE: Final = "say which 'range' becomes 0 to 1, as [1, 5], or which value it 'equals'"


def _require(is_right: bool, problem: str) -> None:
    if not is_right:
        raise ValueError(problem)


def _scalar(value: object) -> object:
    _require(isinstance(value, str | int | float | bool), "must be text, a number, true or false")
    # No database stores half a surrogate pair.
    _require(not re.search("[\ud800-\udfff]", str(value)), "holds half a surrogate pair")
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _range(ends: tuple[float, float]) -> tuple[float, float]:
    _require(ends[0] < ends[1], "must be two numbers, the lower one first, as [1, 5]")
    return ends


def _gates(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = [name for place, name in enumerate(names) if name in names[:place]]
    _require(not twice, f"{', '.join(twice)}: is given twice")
    return names


Name: TypeAlias = Annotated[str, StringConstraints(max_length=LONGEST_NAME, pattern=NAME)]
End: TypeAlias = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Range: TypeAlias = Annotated[tuple[End, End], Field(strict=False), AfterValidator(_range)]


class Weight(Part):
    """How much a component counts, relative to the others, and why so much."""

    weight: float = Field(gt=0, le=LARGEST)
    reason: Line = Field(max_length=500)


class OfOutput(Part):
    """The share of votes that an output won or that passed it, or whether it was rendered."""

    kind: Literal["win_rate", "pass_rate", "rendered"] = Field(alias="from")


class OfVerdicts(Part):
    """How often a judge chose an output, or how far its choices agree with people's."""

    kind: Literal["judge_wins", "agreement"] = Field(alias="from")
    judge: Line = Field(max_length=200)


def _parsed_text(value: object) -> object:
    """Return the number, or the truth, that a text of a table writes; anything else as it is.

    >>> _parsed_text(" 0,9 "), _parsed_text("True"), _parsed_text("4 stars"), _parsed_text("nan")
    (0.9, True, '4 stars', 'nan')
    """
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in ("true", "false"):
        return word == "true"
    try:
        return number(word) if word else value
    except Unfit:
        return value


def _scaled(value: object, ends: tuple[float, float]) -> float | None:
    value = _parsed_text(value)
    if isinstance(value, bool):
        return float(value)
    return (value - ends[0]) / (ends[1] - ends[0]) if isinstance(value, int | float) else None


class Score(Part):
    kind: Literal["judge_score"] = Field(alias="from")
    judge: Line = Field(max_length=200)
    range: Range = (0.0, 10.0)

    def scaled(self, value: object) -> float | None:
        return _scaled(value, self.range)


class _Value(Part):
    """Values of which a range becomes 0 to 1, or which count 1 where they equal one value."""

    range: Range | None = None
    equals: Annotated[object, AfterValidator(_scalar)] | None = None

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        _require((self.range is None) != (self.equals is None), _ONE_RULE)
        return self

    def scaled(self, value: object) -> float | None:
        """Return what a value comes to, None for one that is neither a number nor compared."""
        if self.range is not None:
            return _scaled(value, self.range)
        # 1 and 1.0 are the same, 1 and true are not. In a table all is text.
        if not isinstance(self.equals, str):
            value = _parsed_text(value)
        is_same = value == self.equals and isinstance(value, bool) == isinstance(self.equals, bool)
        return None if value is None else float(is_same)


class Label(_Value):
    """What people, or a judge, answered to a further task."""

    kind: Literal["label"] = Field(alias="from")
    task: Line = Field(max_length=60)
    judge: Line | None = Field(default=None, max_length=200)


class Metadata(_Value):
    kind: Literal["metadata"] = Field(alias="from")
    key: Line = Field(max_length=60)


Source: TypeAlias = OfOutput | OfVerdicts | Score | Label | Metadata


def source_in_words(source: Mapping[str, object]) -> str:
    """Say what a source, as a config writes it, makes of an output; its rule is not said.

    Examples
    --------
    >>> source_in_words({"from": "label", "task": "stars"})
    'stars, mean of what people said'
    """
    return _WORDS[str(source["from"])].format_map({"judge": "people", **source})


class CompositeConfig(Part):
    """Weights and gates of a composite, with what is needed to read its components.

    `gates` must be 1, and are looked at in their order; `sources` are empty where the caller brings
    the components; `check` names the votes that the composite is checked against.
    """

    label: Line | None = Field(default=None, max_length=60)
    weights: dict[Name, Weight] = Field(min_length=1, max_length=MOST_COMPONENTS)
    gates: Annotated[tuple[Name, ...], AfterValidator(_gates)] = Field(
        default=(), max_length=MOST_COMPONENTS, strict=False
    )
    # Text alone is a source without options.
    sources: dict[
        Name, Annotated[Source, Field(discriminator="kind"), BeforeValidator(alone("from"))]
    ] = Field(default={}, max_length=MOST_COMPONENTS)
    check: Literal["win_rate", "pass_rate"] = "win_rate"

    @property
    def weighting(self) -> dict[str, float]:
        return {name: weight.weight for name, weight in self.weights.items()}

    @property
    def components(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.weights, *self.gates]))

    @property
    def judges(self) -> dict[str, str]:
        named = {name: getattr(source, "judge", None) for name, source in self.sources.items()}
        return {name: judge for name, judge in named.items() if judge}

    @property
    def version(self) -> str:
        """The beginning of the SHA-256 of what decides: weights, gates and sources, no words."""
        text = json.dumps(
            [self.weighting, sorted(self.gates), self.as_data["sources"]],
            sort_keys=True,
            separators=(",", ":"),
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def is_circular(self) -> bool:
        return any(source.kind == self.check for source in self.sources.values())

    @property
    def as_data(self) -> JsonObject:
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def parse(data: object, *, needs_sources: bool = False) -> CompositeConfig:
    """Check a config, as JSON or YAML hold it; raise ConfigInvalid with all that is wrong.

    With `needs_sources` every component must have a source.
    """
    # Names are compared on the data itself, so that these mistakes and all others come at once.
    components = dict.fromkeys([*_names(data, "weights"), *_names(data, "gates")])
    sources = _names(data, "sources")
    conflicts: list[tuple[Place, str]] = []
    if needs_sources or sources:
        conflicts += [(("sources", n), "is missing") for n in components if n not in sources]
        conflicts += [(("sources", n), "is not used") for n in sources if n not in components]
    return validated(CompositeConfig, data, conflicts=conflicts)


def _names(data: object, key: str) -> list[str]:
    section = data.get(key) if isinstance(data, dict) else None
    names = section if isinstance(section, dict | list | tuple) else ()
    return [name for name in names if isinstance(name, str) and re.fullmatch(NAME, name)]
