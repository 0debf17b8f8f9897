"""What Vega configs of others may say: where the renderer fails, it takes the process with it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final

_MOST_LETTERS: Final = 50_000
_LARGEST: Final = 2_000
# Dashes shorter than this fill the memory.
_LEAST: Final = 0.01
# Expressions could count to any number, whatever is refused here.
_COMPUTING: Final = frozenset("expr signal signals params labelExpr test init update".split())


class ChartRefused(ValueError):
    """A chart that cannot be drawn, mostly for its Vega config; the message says why."""


def checked(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config that says nothing but how things look.

    Raises
    ------
    ChartRefused

    Examples
    --------
    >>> checked({"bar": {"color": "teal"}})
    {'bar': {'color': 'teal'}}
    >>> checked({"title": {"fontSize": 1e9}})
    Traceback (most recent call last):
    ...
    humanjudge.charts.restyling.ChartRefused: title.fontSize: 1e+09 is not between -2000 and 2000
    """
    try:
        letters = len(json.dumps(config))
    except (TypeError, ValueError, RecursionError) as error:
        raise ChartRefused(f"this is no Vega config: {error}") from error
    if letters > _MOST_LETTERS:
        raise ChartRefused(f"a Vega config has at most {_MOST_LETTERS:,} characters")
    for path, value in _leaves(config, ()):
        wrong = _wrong(value)
        if wrong:
            raise ChartRefused(f"{'.'.join(path)}: {wrong}")
    return config


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key in _COMPUTING:
                raise ChartRefused(f"{'.'.join((*path, key))}: a config must not compute anything")
            yield (*path, "key"), key
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value


def _wrong(value: object) -> str | None:
    if isinstance(value, str):
        bad = any(unicodedata.category(letter) in ("Cc", "Cs", "Cn") for letter in value)
        return "a character that cannot be shown" if bad else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not isfinite(value) or abs(value) > _LARGEST:
        return f"{value:g} is not between -{_LARGEST} and {_LARGEST}"
    return f"{value:g} is too near to zero" if 0 < abs(value) < _LEAST else None
