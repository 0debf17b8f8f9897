"""What finds a value in a record: a column by its name, or a JMESPath expression.

An expression comes from whoever brings a file, so it is bounded: by its length, by the steps that
it takes on one record, and by the size of what it makes on the way.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import jmespath  # type: ignore[import-untyped]
from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped]
from jmespath.visitor import TreeInterpreter  # type: ignore[import-untyped]

from humanjudge.core.strict_json import JsonObject
from voting.items.conversations import conversation

LONGEST: Final = 1_000
MOST_STEPS: Final = 50_000
# Characters of a text, or elements of a list, made on the way.
LARGEST: Final = 2_000_000
_BARE: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SIZED: Final = (str, list, dict)


class TooMuch(ValueError):
    """An expression asks for more than one record may take."""


class _Bounded(TreeInterpreter):  # type: ignore[misc]  # without types
    """Evaluates an expression, and gives up where it explodes."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.made = MOST_STEPS, 0

    def visit(self, node: Any, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        value = super().visit(node, *args, **kwargs)
        self.made += len(value) if isinstance(value, _SIZED) else 0
        if self.left < 0 or self.made > LARGEST:
            raise TooMuch("the expression takes too many steps, or makes too much")
        return value


class Expression:
    """A name, or an expression that is one only where no column has it for a name.

    Examples
    --------
    >>> Expression("turns[-1].text").evaluate({"turns": [{"text": "Hi"}, {"text": "Ho"}]})
    'Ho'
    >>> Expression("winner (human)").evaluate({"winner (human)": "A"})
    'A'
    """

    def __init__(self, text: str, *, is_name: bool = False) -> None:
        self.text, self.fault = text, ""
        self._parsed: Any = None
        if is_name:
            return
        if len(text) > LONGEST:
            raise TooMuch(f"longer than {LONGEST:,} characters")
        try:
            parsed = jmespath.compile(text).parsed
        except (JMESPathError, RecursionError) as error:
            self.fault = " ".join(str(error).split())[:200]
            return  # a column with such a name
        if parsed["type"] != "field":
            self._parsed = parsed

    @property
    def is_path(self) -> bool:
        return self._parsed is not None

    @property
    def roots(self) -> set[str]:
        """The columns that it may read."""
        return {self.text, *_fields(self._parsed)} if self.is_path else {self.text}

    def evaluate(self, record: JsonObject) -> object:
        """Return what it finds in a record, or None; raises ValueError."""
        if self._parsed is None or self.text in record:
            return record.get(self.text)
        try:
            value = _Bounded().visit(self._parsed, record)
            _check_size(value)
        except (JMESPathError, RecursionError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200] or "nested too deeply"
            raise ValueError(f"{self.text!r} cannot be evaluated: {reason}") from error
        return value


def _check_size(value: object) -> None:
    """Refuse a value of very many parts: an expression may hold one of them very often."""
    left, parts = MOST_STEPS, [value]
    while parts:
        part = parts.pop()
        if isinstance(part, dict | list):
            parts += part.values() if isinstance(part, dict) else part
        left -= 1
        if left < len(parts):
            raise TooMuch("the expression finds too much")


def _fields(node: Any) -> set[str]:
    field_names = {node["value"]} if node["type"] == "field" else set()
    # Those of a slice are numbers.
    inner = [child for child in node.get("children", ()) if isinstance(child, dict)]
    return field_names.union(*map(_fields, inner))


def paths_of(record: JsonObject, depth: int = 4) -> Iterator[tuple[str, object]]:
    """Yield each path into a record with its value; of a list, those of its first and last element.

    Of a conversation: what stands before its last message, and that one's text.

    Examples
    --------
    >>> [path for path, _ in paths_of({"a": {"b c": 1}, "l": [{"x": 2}]})]
    ['a', 'a."b c"', 'l', 'l[0]', 'l[0].x']
    """
    for name, value in record.items():
        yield name, value
        yield from _child_paths(_step(name), value, depth)


def _child_paths(path: str, value: object, depth: int) -> Iterator[tuple[str, object]]:
    inner: list[tuple[str, object]] = []
    if isinstance(value, dict):
        inner = [(f"{path}.{_step(name)}", child) for name, child in value.items()]
    elif isinstance(value, list) and value and isinstance(value[0], dict | list):
        if conversation(value):
            yield f"{path}[:-1]", value[:-1]
            key = "content" if "content" in value[-1] else "value"
            yield f"{path}[-1].{key}", value[-1][key]
            return
        inner = [(f"{path}[{end}]", value[end]) for end in (0, -1)[: len(value)]]
    for child_path, child in inner if depth else ():
        yield child_path, child
        yield from _child_paths(child_path, child, depth - 1)


def _step(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name)
