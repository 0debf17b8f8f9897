"""Extensions: classes by which a product grows, each in the registry of its kind.

What comes with the product and what a package brings stand in the same registries. A package names
its classes as entry points; a setting can name more. One that is broken is left out and reported,
and takes nothing down with it.
"""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, ClassVar, Final, Generic, TypeVar

GROUP: Final = "humanjudge.extensions"
OWN_PACKAGE: Final = "humanjudge"
_ID: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_WORDS: Final = ("id", "title", "version", "description")

logger = logging.getLogger(__name__)


class Extension:
    """What every extension says of itself; subclass the class of its kind, not this one."""

    kind: ClassVar[str] = ""
    # Some are called with what they judge, which a template must not do.
    do_not_call_in_templates: ClassVar[bool] = True

    # How a config names it: small letters, digits, `-` and `_`; no two extensions share one.
    id: str
    title: str
    # Another version of a judge type is another judge.
    version: str
    # One sentence.
    description: str

    # What brought it: a distribution with its version.
    package: str = OWN_PACKAGE

    @property
    def place(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__} of {self.package}"


E = TypeVar("E", bound=Extension)


class ExtensionInvalid(ValueError):
    """A class that is no extension, or one that cannot stand beside the others."""


class HookFailed(Exception):
    """The code of an extension broke; the text names it, its hook and what happened."""


class Registry(dict[str, E], Generic[E]):
    """The extensions of one kind by their ids, in the order in which they came."""

    def __init__(self, kind: type[E], *built_in: E) -> None:
        super().__init__()
        self.kind = kind
        _registries.append(self)
        for extension in built_in:
            self.add(extension)

    def add(self, extension: E) -> None:
        """Take an extension in; ExtensionInvalid names both where two have one id."""
        for word in _WORDS:
            text = getattr(extension, word, None)
            if not isinstance(text, str) or not text.strip():
                raise ExtensionInvalid(f"{extension.place} must say its {word}")
        if not _ID.fullmatch(extension.id):
            rule = "at most 50 small letters, digits, - and _"
            raise ExtensionInvalid(f"{extension.place}: the id {extension.id!r} must be {rule}")
        if namesake := find(extension.id):
            both = f"{namesake.place} and {extension.place}"
            raise ExtensionInvalid(f"two extensions are called {extension.id!r}: {both}")
        self[extension.id] = extension


@dataclass(frozen=True, slots=True)
class BrokenExtension:
    """An extension that could not be loaded: what named it, what brought it, and why."""

    name: str
    package: str
    error: str


_registries: Final[list["Registry[Any]"]] = []
_loaded: Final[list[tuple["Registry[Any]", str]]] = []
broken: Final[list[BrokenExtension]] = []


def find(extension_id: str) -> Extension | None:
    return next((kind[extension_id] for kind in _registries if extension_id in kind), None)


def everything() -> Iterator[Extension]:
    for registry in _registries:
        yield from registry.values()


def load(names: Iterable[str] = ()) -> None:
    """Take in what installed packages and dotted names bring, in place of what was loaded before.

    Nothing is raised: what is broken stands in `broken`.
    """
    broken.clear()
    for registry, extension_id in _loaded:
        registry.pop(extension_id, None)
    _loaded.clear()
    values = {name: name if ":" in name else ":".join(name.rpartition(".")[::2]) for name in names}
    named = (EntryPoint(name=name, value=value, group=GROUP) for name, value in values.items())
    installed = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    for entry in dict.fromkeys([*installed, *named]):
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "the settings"
        try:
            _take(entry.load(), package)
        # An import may do anything, even end the process.
        except (Exception, SystemExit) as error:
            is_ours = isinstance(error, ExtensionInvalid)
            reason = str(error) if is_ours else f"{type(error).__name__}: {error}"
            logger.warning("%s is left out: %s", entry.value, reason, exc_info=not is_ours)
            broken.append(BrokenExtension(entry.value, package, reason))


def _take(loaded: object, package: str) -> None:
    kinds = ", ".join(registry.kind.__name__ for registry in _registries)
    if not isinstance(loaded, type) or not issubclass(loaded, Extension):
        raise ExtensionInvalid(f"{loaded!r} must be one of {kinds}")
    extension = loaded()
    extension.package = package
    for registry in _registries:
        if isinstance(extension, registry.kind):
            registry.add(extension)
            _loaded.append((registry, extension.id))
            return
    raise ExtensionInvalid(f"{extension.place} must be one of {kinds}")


@contextmanager
def calling(extension: Extension, hook: str, *expected: type[Exception]) -> Iterator[None]:
    """Name the extension whose hook breaks; what its hooks are expected to raise passes."""
    try:
        yield
    except expected:
        raise
    except Exception as error:
        logger.exception("%s broke in %s", extension.place, hook)
        failure = f"{type(error).__name__}: {error}"
        message = storable(f"The extension {extension.id} broke in {hook}: {failure}", 1000)
        raise HookFailed(message) from error


def storable(text: object, most: int) -> str:
    """Return a text of an extension as every database can store it.

    >>> storable("a" + chr(0) + "b" + chr(0xD800) + "c", 3)
    'ab?'
    """
    return str(text).replace("\0", "").encode("utf-8", "replace").decode()[:most]


def imported(name: str) -> object:
    """Return what `module:attribute` names, imported now: what is heavy costs no start.

    >>> imported("math:pi")
    3.141592653589793
    """
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
