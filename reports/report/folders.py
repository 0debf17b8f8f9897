"""Names of score files, and a folder that is either new as a whole or as it was before."""

import json
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Final

MANIFEST: Final = "report.json"
MADE_BY: Final = "HumanJudge scores"
_SAFE: Final = re.compile(r"[^\W_](?:[\w .+-]{0,118}[\w+-])?")


class FolderTaken(ValueError):
    """There is something in the folder that is not ours."""


@contextmanager
def replacing(place: Path, *, force: bool = False) -> Iterator[Path]:
    """Give out an empty folder, and put it in the place of another report when all went well.

    Where something else is there, raise FolderTaken; with `force` it is moved aside, to the same
    name with ``.before-`` and a number behind it, so that nothing of it is lost.
    """
    place = place.resolve()
    is_foreign = place.exists() and not _is_ours(place)
    if is_foreign and not force:
        raise FolderTaken(
            f"{place} holds something that is no report of ours: give another folder, or --force, "
            "which moves it aside"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    number = token_hex(4)
    made, aside = (place.with_name(f"{place.name}.{what}-{number}") for what in ("new", "before"))
    made.mkdir()
    try:
        yield made
        if place.exists():
            place.rename(aside)
        try:
            made.rename(place)
        except OSError:
            if aside.exists():
                aside.rename(place)
            raise
        if not is_foreign:
            shutil.rmtree(aside, ignore_errors=True)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_ours(place: Path) -> bool:
    """Say whether nothing would be lost: it is empty, or holds what we wrote and nothing else."""
    try:
        names = {path.name for path in place.iterdir()}
        if not names:
            return True
        manifest = json.loads((place / MANIFEST).read_text("utf-8"))
        return manifest["made_by"] == MADE_BY and names <= set(map(str, manifest["files"]))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def is_safe(name: object) -> bool:
    return isinstance(name, str) and _SAFE.fullmatch(name) is not None


def judge_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return what each judge, by its id, is called where it is alone with that name."""
    count, taken = Counter(_key(name) for name in names.values()), set[str]()
    return {
        judge: _unique(name if count[_key(name)] == 1 else f"{name} ({judge[:8]})", taken)
        for judge, name in names.items()
    }


def file_name(name: str, taken: set[str]) -> str:
    """Return the beginning of a file name that leaves no folder and is not `taken`, and take it.

    Examples
    --------
    >>> [file_name(name, set()) for name in ("gpt-4.1", "../../etc/passwd", "a/b")]
    ['gpt-4.1', 'etc_passwd-3754d6cb', 'a_b-c14cddc0']
    """
    plain = re.sub(r"[^\w.+-]+", "_", unicodedata.normalize("NFC", name)).strip("._-+")
    # A file system takes 255 bytes; some are needed for what stands behind.
    cut = plain.encode("utf-8", "ignore")[:180].decode("utf-8", "ignore")
    if not cut or cut != name:
        # What was replaced could make two names one; a hash tells them apart.
        digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        cut = f"{cut or 'judge'}-{digits}"
    return _unique(cut, taken)


def _unique(base: str, taken: set[str]) -> str:
    name, number = base, 2
    while _key(name) in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(_key(name))
    return name


def _key(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()
