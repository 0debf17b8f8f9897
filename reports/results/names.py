"""What judges are called in reports and in file names, whatever they call themselves."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Final

_SAFE: Final = re.compile(r"[^\W_](?:[\w .+-]{0,118}[\w+-])?")
_UNSAFE: Final = re.compile(r"[^\w.+-]+")
# A file system takes 255 bytes; some are needed for what stands behind.
_MOST_BYTES: Final = 180


def is_safe(name: object) -> bool:
    """Say whether a name may be a folder just as it is.

    Examples
    --------
    >>> [is_safe(name) for name in ("more_as", "..", "a/b", "", None)]
    [True, False, False, False, False]
    """
    return isinstance(name, str) and _SAFE.fullmatch(name) is not None


def judge_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return what each judge is called where it is alone with that name.

    Parameters
    ----------
    names : mapping of id to name

    Examples
    --------
    >>> judge_names({"1f6a0c2e-77": "gpt", "9b00e1d2-31": "GPT", "c0ffee00-12": "mistral"})
    {'1f6a0c2e-77': 'gpt (1f6a0c2e)', '9b00e1d2-31': 'GPT (9b00e1d2)', 'c0ffee00-12': 'mistral'}
    """
    count, taken = Counter(_key(name) for name in names.values()), set[str]()
    return {
        judge: _unique(name if count[_key(name)] == 1 else f"{name} ({judge[:8]})", taken)
        for judge, name in names.items()
    }


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return the beginning of a file name for each name: none leaves its folder, no two are one.

    Examples
    --------
    >>> file_names(["gpt-4.1", "../../etc/passwd", "a/b", "a:b"])
    {'gpt-4.1': 'gpt-4.1', '../../etc/passwd': 'etc_passwd-3754d6cb', 'a/b': 'a_b-c14cddc0', \
'a:b': 'a_b-6783a31e'}
    """
    taken = set[str]()
    return {name: _unique(_file_name(name), taken) for name in names}


def _file_name(name: str) -> str:
    plain = _UNSAFE.sub("_", unicodedata.normalize("NFC", name)).strip("._-+")
    cut = plain.encode("utf-8", "ignore")[:_MOST_BYTES].decode("utf-8", "ignore")
    if cut and cut == name:
        return name
    # What was replaced could make two names one; what is left of each is told apart by its hash.
    digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cut or 'judge'}-{digits}"


def _unique(wanted: str, taken: set[str]) -> str:
    found, number = wanted, 2
    while _key(found) in taken:
        found, number = f"{wanted}-{number}", number + 1
    taken.add(_key(found))
    return found


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
