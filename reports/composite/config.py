"""What a composite is made of: weights with reasons, gates, and where components come from."""

from __future__ import annotations

import hashlib
import json
import re
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from judge_eval.config.fields import ConfigError
from judge_eval.config.run_config import ConfigInvalid
from judge_eval.dialogue.reply_text import excerpt

LARGEST: Final = 1_000_000_000
MOST_COMPONENTS: Final = 30
_NAME: Final = re.compile(r"[^\W\d]\w*(?:[ .-]\w+)*")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("is no name: take a few plain words")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line without control characters")
    return text


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"{name!r} stands twice")
    return names


def _ascending(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] >= ends[1]:
        raise ValueError("must be two numbers, the lower one first, as [1, 5]")
    return ends


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


def _scalar_as_text(value: object) -> str:
    if not isinstance(value, str | int | float | bool):
        raise ValueError("must be text, a number, true or false")  # noqa: TRY004  pydantic's rule
    return as_text(value)


Name: TypeAlias = Annotated[str, Field(max_length=60), AfterValidator(_name)]
Line: TypeAlias = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1), AfterValidator(_printable)
]
Key: TypeAlias = Annotated[Line, Field(max_length=60)]
Judge: TypeAlias = Annotated[Line, Field(max_length=200)]
_End: TypeAlias = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Range: TypeAlias = Annotated[tuple[_End, _End], Field(strict=False), AfterValidator(_ascending)]
# Held as JSON text, since Python takes 1 and true for the same.
Scalar: TypeAlias = Annotated[
    str, BeforeValidator(_scalar_as_text), PlainSerializer(json.loads, return_type=Any)
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Weight(_Part):
    """How much a component counts, relative to the others, and why so much."""

    weight: Annotated[float, Field(gt=0, le=LARGEST)]
    reason: Annotated[Line, Field(max_length=500)]


class WinRate(_Part):
    """The share of the votes on an output's pairs that it won; a tie is half."""

    kind: Literal["win_rate"] = Field(default="win_rate", alias="from")


class PassRate(_Part):
    """The mean of people's pass and flag votes on an output."""

    kind: Literal["pass_rate"] = Field(default="pass_rate", alias="from")


class Rendered(_Part):
    """1 where an output could be rendered or needs no rendering, 0 where it could not."""

    kind: Literal["rendered"] = Field(default="rendered", alias="from")


class JudgeScore(_Part):
    """The mean of a judge's scores of an output."""

    kind: Literal["judge_score"] = Field(default="judge_score", alias="from")
    judge: Judge
    range: Range = (0.0, 10.0)

    def scaled(self, value: object) -> float | None:
        return _by_range(value, self.range)


class JudgeWins(_Part):
    """The share of an output's pairs that a judge said it won; a tie is half."""

    kind: Literal["judge_wins"] = Field(default="judge_wins", alias="from")
    judge: Judge


class Agreement(_Part):
    """The mean share of the votes on an output's pairs that are what a judge said."""

    kind: Literal["agreement"] = Field(default="agreement", alias="from")
    judge: Judge


class _Value(_Part):
    """Some value, of which a range becomes 0 to 1, or which counts 1 where it equals another."""

    range: Range | None = None
    equals: Scalar | None = None

    @model_validator(mode="after")
    def _has_one_rule(self) -> Self:
        if (self.range is None) == (self.equals is None):
            raise ValueError(
                "say which 'range' becomes 0 to 1, as [1, 5], or which value it 'equals': "
                "one of the two"
            )
        return self

    def scaled(self, value: object) -> float | None:
        """Return what a value comes to, None for one that is neither a number nor compared.

        Examples
        --------
        >>> Label(task="stars", range=(1, 5)).scaled(4)
        0.75
        >>> Label(task="safe", equals="yes").scaled("no")
        0.0
        """
        if value is None or self.equals is None:
            return _by_range(value, self.range or (0.0, 1.0))
        return float(as_text(value) == self.equals)


class Label(_Value):
    """The mean of what a judge, or people, answered to a further task about an output."""

    kind: Literal["label"] = Field(default="label", alias="from")
    task: Key
    judge: Judge | None = None


class Metadata(_Value):
    """A value that came with an output."""

    kind: Literal["metadata"] = Field(default="metadata", alias="from")
    key: Key


def _by_range(value: object, ends: tuple[float, float]) -> float | None:
    if not isinstance(value, int | float):
        return None
    # True is 1 on every scale.
    return float(value) if isinstance(value, bool) else (value - ends[0]) / (ends[1] - ends[0])


Source: TypeAlias = (
    WinRate | PassRate | Rendered | JudgeScore | JudgeWins | Agreement | Label | Metadata
)
_SOURCES: Final[dict[str, type[_Part]]] = {
    source.model_fields["kind"].default: source for source in get_args(Source)
}
# Text alone is a source without options.
_Source: TypeAlias = Annotated[
    Source,
    Field(discriminator="kind"),
    BeforeValidator(lambda value: {"from": value} if isinstance(value, str) else value),
]


class CompositeConfig(_Part):
    """Weights and gates of a composite, with what is needed to read its components.

    Attributes
    ----------
    label : str
        What people call this version.
    weights : mapping of component to Weight
    gates : tuple of str
        Components that must be 1, in the order in which they are looked at.
    sources : mapping of component to Source
        Empty where the caller brings the components.
    check : {'win_rate', 'pass_rate'}
        Which votes the composite is checked against: those on pairs, or those on single outputs.

    Examples
    --------
    >>> weights = {"correctness": Weight(weight=0.6, reason="Wrong answers help nobody.")}
    >>> config = CompositeConfig(weights=weights, gates=("safety",))
    >>> config.weighting, config.gates, config.version
    ({'correctness': 0.6}, ('safety',), '75711cd63d41')
    """

    label: Annotated[
        str, StringConstraints(strip_whitespace=True, max_length=60), AfterValidator(_printable)
    ] = ""
    weights: dict[Name, Weight] = Field(min_length=1, max_length=MOST_COMPONENTS)
    gates: Annotated[
        tuple[Name, ...], Field(max_length=MOST_COMPONENTS, strict=False), AfterValidator(_distinct)
    ] = ()
    sources: dict[Name, _Source] = Field(default={}, max_length=MOST_COMPONENTS)
    check: Literal["win_rate", "pass_rate"] = "win_rate"

    @property
    def weighting(self) -> dict[str, float]:
        """The bare weights by component."""
        return {name: weight.weight for name, weight in self.weights.items()}

    @property
    def components(self) -> tuple[str, ...]:
        """Every component, the weighted ones first."""
        return tuple(dict.fromkeys([*self.weights, *self.gates]))

    @property
    def judges(self) -> dict[str, str]:
        """The judges whose verdicts are read, by component."""
        named = {name: getattr(source, "judge", None) for name, source in self.sources.items()}
        return {name: judge for name, judge in named.items() if judge}

    @property
    def version(self) -> str:
        """The name of what decides a composite: weights, gates and sources, and nothing else.

        The first 12 digits of the SHA-256 of their canonical JSON: other words, the same version.
        """
        sources = self.model_dump(by_alias=True, exclude_none=True)["sources"]
        decisive = [self.weighting, sorted(self.gates), sources]
        text = json.dumps(decisive, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def is_circular(self) -> bool:
        """Whether it contains what it is checked against."""
        return any(source.kind == self.check for source in self.sources.values())

    def as_json(self) -> str:
        """Return what `parse` reads as this config again, as JSON."""
        return self.model_dump_json(by_alias=True, exclude_none=True, indent=2)


def parse(data: object, *, needs_sources: bool = False) -> CompositeConfig:
    """Check a config, as JSON or YAML hold it.

    Parameters
    ----------
    data : mapping
        ``weights`` maps each component to ``weight`` (above 0) and ``reason``; ``gates`` lists
        components; ``label``, ``sources`` (component to ``from`` and its options) and ``check``
        (``win_rate`` or ``pass_rate``) may be there.
    needs_sources : bool
        Whether every component must have a source.

    Raises
    ------
    ConfigInvalid
        With all that is wrong, each mistake named by its path.

    Examples
    --------
    >>> parse({"weights": {"brevity": {"weight": 0, "reason": "x"}}, "gate": []})
    Traceback (most recent call last):
        ...
    judge_eval.config.run_config.ConfigInvalid: weights.brevity.weight: must be greater than 0
    gate: unknown; did you mean 'gates'?
    """
    errors = _unmatched(data, needs_sources=needs_sources)
    try:
        config = CompositeConfig.model_validate(data)
    except ValidationError as invalid:
        errors = [*map(_config_error, invalid.errors(include_url=False)), *errors]
    if errors:
        raise ConfigInvalid(errors)
    return config


def _unmatched(data: object, *, needs_sources: bool) -> list[ConfigError]:
    """Compare names on the data itself, so that one list has these mistakes and all others."""
    components = [*_names(data, "weights"), *_names(data, "gates")]
    sources = _names(data, "sources")
    if not (needs_sources or sources):
        return []
    missing = [name for name in dict.fromkeys(components) if name not in sources]
    unused = [name for name in sources if name not in components]
    return [
        *(ConfigError(f"sources.{name}", "is missing") for name in missing),
        *(ConfigError(f"sources.{name}", "is not used") for name in unused),
    ]


def _names(data: object, key: str) -> list[str]:
    names = data.get(key) if isinstance(data, dict) else None
    given = names if isinstance(names, dict | list | tuple) else ()
    return [name for name in given if isinstance(name, str) and _NAME.fullmatch(name)]


# How pydantic calls what JSON calls otherwise.
_WANTED: Final = {
    "model_type": "an object",
    "model_attributes_type": "text or an object",
    "dict_type": "an object",
    "tuple_type": "a list",
    "string_type": "text",
    "float_type": "a number",
}
_TYPES: Final = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


def _config_error(error: ErrorDetails) -> ConfigError:
    places, message = list(error["loc"]), _message(error)
    if places[-1:] == ["[key]"]:
        message = f"{excerpt(str(places[-2]), 40)} {message}"
        del places[-2:]
    if places[:1] == ["sources"]:
        del places[2:3]  # which kind of source pydantic took it for
    if error["type"].startswith("union_tag"):
        places.append("from")
    words = [f"[{p}]" if isinstance(p, int) else f".{excerpt(p, 60)[1:-1]}" for p in places]
    return ConfigError("".join(words).removeprefix("."), message)


def _message(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {_TYPES.get(type(error['input']), 'this')}"
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return f"unknown{_did_you_mean(error['loc'])}"
    if kind.startswith("union_tag"):
        given = f"{excerpt(context['tag'], 60)} is none" if "tag" in context else "is missing: one"
        return f"{given} of {', '.join(_SOURCES)}"
    message = re.sub(r"^\w+ should", "must", error["msg"].removeprefix("Value error, "))
    return message.replace(" after validation", "")


def _did_you_mean(places: tuple[int | str, ...]) -> str:
    """Offer the key that is most like the last place, of those that are allowed there."""
    model: type[_Part] = CompositeConfig
    if len(places) > 1:
        model = _SOURCES[str(places[2])] if places[0] == "sources" else Weight
    keys = [field.alias or name for name, field in model.model_fields.items()]
    near = get_close_matches(str(places[-1])[:60], keys, n=1)
    return f"; did you mean '{near[0]}'?" if near else ""
