"""What people configure, checked by pydantic: every mistake at once, each with its path."""

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError, PydanticKnownError

from humanjudge.core.strict_json import JsonObject
from humanjudge.core.text import UNSTORABLE, excerpt

LONGEST_NAME: Final = 200
_MOST_UNKNOWN: Final = 20
_UNSTORABLE: Final = "must hold no NUL and no half of a surrogate pair"

Model = TypeVar("Model", bound=BaseModel)
Place: TypeAlias = tuple[str | int, ...]
Schema: TypeAlias = JsonObject


@dataclass(frozen=True, slots=True)
class ConfigError:
    """One mistake: where it is, such as ``models[1].id``, and what it is."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigInvalid(ValueError):
    """A config is wrong; the text has one line for each of its errors."""

    def __init__(self, errors: Sequence[ConfigError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)

    @classmethod
    def at(cls, path: str, message: str) -> Self:
        return cls([ConfigError(path, message)])


class Part(BaseModel):
    """One object of a config: nothing is guessed, and no key is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _check_storable(text: str) -> str:
    if UNSTORABLE.search(text):
        raise PydanticCustomError("text", _UNSTORABLE)
    return text


def _check_text(text: str) -> str:
    if not text.strip():
        raise PydanticKnownError("string_too_short", {"min_length": 1})
    return _check_storable(text)


def _check_json(value: object) -> object:
    """Look into all of a JSON value, however deep it is."""
    left = [value]
    while left:
        node = left.pop()
        if isinstance(node, str):
            _check_storable(node)
        elif isinstance(node, float) and not math.isfinite(node):
            raise PydanticKnownError("finite_number")
        elif isinstance(node, dict | list):
            left += [*node, *(node.values() if isinstance(node, dict) else ())]
    return value


def _check_line(text: str) -> str:
    if not text.isprintable():
        raise PydanticCustomError("text", "must be one line without control characters")
    return text


# Text and JSON objects of any kind that a database can store.
Storable: TypeAlias = Annotated[str, AfterValidator(_check_storable)]
StorableJson: TypeAlias = Annotated[JsonObject, AfterValidator(_check_json)]
# Text of any number of lines that is not blank; it is not stripped. Some separators are blank here
# and none in the patterns of JSON schemas.
Text: TypeAlias = Annotated[
    str,
    AfterValidator(_check_text),
    Field(json_schema_extra={"minLength": 1, "pattern": r"[^\s\u001c-\u001f\u0085]"}),
]
# One line, stripped, without control characters.
Line: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1),
    AfterValidator(_check_line),
    Field(json_schema_extra={"pattern": r"^[^\u0000-\u001f\u007f]*\S[^\u0000-\u001f\u007f]*$"}),
]
Name: TypeAlias = Annotated[Line, Field(max_length=LONGEST_NAME)]
# What a run asks or a judge is, in one line, or nothing.
Caption: TypeAlias = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=LONGEST_NAME),
    AfterValidator(_check_line),
]
# To JSON, 30.0 is a whole number; what is strict takes no float for one.
# Last of what an integer is annotated with, or the JSON schema would lose its limits.
INTEGER: Final = BeforeValidator(lambda v: int(v) if isinstance(v, float) and v.is_integer() else v)


def choice_type(options: Sequence[str]) -> Any:
    """Return the type of one of some texts that are known only when the program runs."""
    return Literal.__getitem__(tuple(options))


def alone(key: str) -> Callable[[object], object]:
    """Return a function that takes text alone for an object with nothing but this key."""

    def expanded(value: object) -> object:
        if isinstance(value, str):
            return {key: value}
        if not isinstance(value, Mapping | BaseModel):
            raise PydanticCustomError("wrong_type", "text or an object")
        return value

    return expanded


def validated(
    model: type[Model], data: object, *, path: str = "", conflicts: Sequence[tuple[Place, str]] = ()
) -> Model:
    """Return data as a model, or raise ConfigInvalid with all that is wrong.

    `path` is where the data stand in what was written; `conflicts` are mistakes that the caller
    found, as places and messages.

    Examples
    --------
    >>> class Question(Part):
    ...     text: Line
    ...     temperature: float = Field(0.7, ge=0, le=2)
    >>> validated(Question, {"text": " ", "temprature": 1})
    Traceback (most recent call last):
        ...
    humanjudge.core.validation.ConfigInvalid: text: is empty
    temprature: unknown; did you mean 'temperature'?
    """
    errors = [ConfigError(_path(place, data, path), words) for place, words in conflicts]
    try:
        result = model.model_validate(data)
    except ValidationError as invalid:
        errors = [*_errors(model, invalid, data, path), *errors]
        raise ConfigInvalid(errors) from None
    if errors:
        raise ConfigInvalid(errors)
    return result


@cache
def _schema(model: type[BaseModel]) -> Schema:
    schema = model.model_json_schema()

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(child) for child in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return inlined(schema["$defs"][node["$ref"].rpartition("/")[2]])
        return {key: inlined(child) for key, child in node.items()}

    return {key: inlined(child) for key, child in schema.items() if key != "$defs"}


def json_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a model with nothing left to look up elsewhere, as OpenAPI takes it."""
    return deepcopy(_schema(model))


def meant(word: str, names: Sequence[str]) -> str:
    """Return what follows an unknown word: the name that is nearest, if one is near."""
    near = [name for name in get_close_matches(word[:60], names, n=1) if name != word]
    return f"; did you mean '{near[0]}'?" if near else ""


def _errors(
    model: type[BaseModel], invalid: ValidationError, data: object, path: str
) -> Iterator[ConfigError]:
    unknown = 0
    for error in invalid.errors(include_url=False):
        kind = error["type"]
        message = _message(error)
        # pydantic counts only what is right in a list.
        if kind == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]:
            continue
        if kind == "extra_forbidden":
            unknown += 1
            if unknown > _MOST_UNKNOWN:
                continue
            *above, key = error["loc"]
            message = f"unknown{meant(str(key), _keys(_schema(model), above))}"
        yield ConfigError(_error_path(error, data, path), message)
    if unknown > _MOST_UNKNOWN:
        yield ConfigError(path, f"{unknown - _MOST_UNKNOWN:,} more keys are unknown")


# In the words of JSON, not those of Python. What takes a value of another type comes with it.
_TYPE_NAMES: Final = {
    "model_type": "an object",
    "model_attributes_type": "text or an object",
    "dict_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
}
_MESSAGES: Final = {
    "missing": "is missing",
    "union_tag_not_found": "is missing",
    "string_too_short": "is empty",
    "string_unicode": _UNSTORABLE,
    "string_pattern_mismatch": "must be plain words on one line",
    "finite_number": "must be a finite number",
    "invalid_key": "unknown",
    "greater_than": "must be greater than {gt:,}",
    "greater_than_equal": "must be at least {ge:,}",
    "less_than": "must be less than {lt:,}",
    "less_than_equal": "must be at most {le:,}",
    "too_short": "must have at least {min_length:,}, has {length:,}",
    "too_long": "has {length:,}, the most is {max_length:,}",
    "string_too_long": "has {length:,} characters, the most is {max_length:,}",
}
_TYPES: Final = {
    type(None): "null",
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a decimal number",
}


def _message(error: ErrorDetails) -> str:
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "literal_error" and not isinstance(value, str):
        kind = "string_type"
    if kind in ("too_long", "too_short") and isinstance(value, str):
        kind = f"string_{kind}"
    if kind == "wrong_type" or kind in _TYPE_NAMES:
        # The value is not quoted: the text of one nested deeply cannot even be made.
        is_huge = isinstance(value, int) and abs(value) > sys.float_info.max
        type_name = "one this large" if is_huge else _TYPES.get(type(value), type(value).__name__)
        return f"must be {_TYPE_NAMES.get(kind, error['msg'])}, not {type_name}"
    if kind in ("literal_error", "union_tag_invalid"):
        options = re.findall("'([^']*)'", context.get("expected") or context["expected_tags"])
        choice = str(context.get("tag", value))
        return f"{excerpt(choice, 60)} must be one of {', '.join(options)}{meant(choice, options)}"
    if kind in _MESSAGES:
        length = len(value) if hasattr(value, "__len__") else 0
        limits = {k: int(v) for k, v in context.items() if isinstance(v, float) and v.is_integer()}
        return _MESSAGES[kind].format_map({**context, **limits, "length": length})
    return error["msg"].removeprefix("Value error, ")


def _error_path(error: ErrorDetails, data: object, path: str) -> str:
    """Return where a mistake stands, without what pydantic adds to the place for itself."""
    place = error["loc"]
    path = _path(place[:-1] if place[-1:] == ("[key]",) else place, data, path, skips=True)
    if error["type"].startswith("union_tag"):
        return _path(re.findall("'([^']*)'", error["ctx"]["discriminator"])[-1:], None, path)
    return _path(place[-1:], None, path) if error["type"] == "missing" else path


def _path(place: Sequence[str | int], data: object, path: str, *, skips: bool = False) -> str:
    """Return a place as it is written, no deeper than text that stands for a whole object.

    `skips` leaves out what is not there, such as the kind of an object that may be of several.
    """
    for step in place:
        if isinstance(data, str):
            break
        try:
            data = data[step]  # type: ignore[index]
        except (TypeError, LookupError):
            if skips:
                continue
            data = None
        word = f"[{step}]" if isinstance(step, int) else excerpt(step, 60)[1:-1] or "''"
        path += word if isinstance(step, int) or not path else f".{word}"
    return path


def _keys(node: Schema, place: Sequence[str | int]) -> list[str]:
    """Return the keys of the objects that a schema allows at a place."""
    if options := node.get("anyOf") or node.get("oneOf"):
        return [key for option in options for key in _keys(option, place)]
    if not place:
        return list(node.get("properties", ()))
    step, *rest = place
    inner = node.get("properties", {}).get(step)
    inner = inner or node.get("items" if isinstance(step, int) else "additionalProperties")
    return _keys(inner or node, rest)
