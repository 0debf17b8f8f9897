"""A configuration as a file, YAML or JSON, and the code that it may name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import yaml

from humanjudge.lib import strict_json
from humanjudge.lib.validation import ConfigError, ConfigInvalid

MOST_BYTES: Final = 1_000_000


class _StrictLoader(yaml.SafeLoader):
    """Reads plain values only, and refuses a key that stands twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = next((key for n, key in enumerate(keys) if key in keys[:n]), None)
        if twice is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the key {twice!r} stands twice", problem_mark=node.start_mark
            )
        return super().construct_mapping(node, deep)


def read_config(path: Path) -> object:
    """Read a file; its charts' own configuration, if it names one, is read too.

    Raises
    ------
    ConfigInvalid
    """
    data = _read(path, "")
    if isinstance(data, dict) and isinstance(style := data.get("vega_config"), str):
        return data | {"vega_config": _read(path.parent / style, "vega_config")}
    return data


def _read(path: Path, where: str) -> object:
    try:
        text = path.read_bytes()[: MOST_BYTES + 1]
        if len(text) > MOST_BYTES:
            raise _invalid(where, f"{path} has more than {MOST_BYTES:,} bytes")
        if path.suffix.lower() == ".json":
            return strict_json.loads(text.decode("utf-8-sig"))
        return yaml.load(text, _StrictLoader)  # noqa: S506  it is a SafeLoader
    except OSError as error:
        raise _invalid(where, f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, strict_json.NotJson, yaml.YAMLError, RecursionError) as error:
        raise _invalid(where, f"{path} cannot be read: {error}") from error


def import_modules(data: object, folder: Path) -> None:
    """Import the modules that a configuration names: they register their scorers.

    Parameters
    ----------
    data : object
        What was read.
    folder : Path
        Modules are looked for here too.

    Raises
    ------
    ConfigInvalid
    """
    modules = data.get("modules", []) if isinstance(data, Mapping) else []
    if not isinstance(modules, list):
        raise _invalid("modules", "must be a list")
    for number, name in enumerate(modules):
        try:
            with _found_in(folder):
                import_module(name)
        except Exception as error:
            raise _invalid(f"modules[{number}]", f"{name!r} cannot be imported: {error}") from error


def finder(folder: Path) -> Callable[[str], Callable[..., object]]:
    """Return a function that finds a scorer by its dotted path, also in modules of a folder."""

    def find(path: str) -> Callable[..., object]:
        module, _, name = path.rpartition(".")
        try:
            with _found_in(folder):
                found = getattr(import_module(module), name)
        except Exception as error:
            raise ValueError(f"{path!r} cannot be imported: {error}") from error
        if not callable(found):
            raise ValueError(f"{path!r} is no scorer")  # noqa: TRY004  as every other mistake
        return found  # type: ignore[no-any-return]

    return find


@contextmanager
def _found_in(folder: Path) -> Iterator[None]:
    place = str(folder.resolve())
    sys.path.append(place)
    try:
        yield
    finally:
        sys.path.remove(place)


def _invalid(path: str, message: str) -> ConfigInvalid:
    return ConfigInvalid([ConfigError(path, message)])
