"""A folder that is whole or as it was before: it is written beside its place and moved there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

MANIFEST: Final = "report.json"
MADE_BY: Final = "HumanJudge scores"


class FolderTaken(ValueError):
    """There is something in the folder that is no report of ours."""


@contextmanager
def replacing(place: Path, *, force: bool = False) -> Iterator[Path]:
    """Give out an empty folder, and put it in the place of another when all went well.

    Parameters
    ----------
    place : Path
        Made with its parents. A report that is there already is replaced.
    force : bool
        Where something else is there, move it aside: to the same name with ``.before-`` and a
        number behind it. Nothing of it is lost.

    Raises
    ------
    FolderTaken
    """
    place = place.resolve()
    is_foreign = place.exists() and not _may_go(place)
    if is_foreign and not force:
        raise FolderTaken(
            f"{place} holds something that is no report of ours: give another folder, or --force, "
            "which moves it aside"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    made = _beside(place, "new")
    made.mkdir()
    try:
        yield made
        _put(made, place, keep=is_foreign)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def manifest_of(folder: Path) -> dict[str, object] | None:
    """Return what a report says of itself, None where the folder is none of ours."""
    try:
        found = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("made_by") == MADE_BY else None


def _may_go(place: Path) -> bool:
    """Say whether nothing would be lost: it is empty, or holds what we wrote and nothing else."""
    if not place.is_dir():
        return False
    there = {path.name for path in place.iterdir()}
    manifest = manifest_of(place)
    ours = manifest.get("files") if manifest else None
    return not there or (isinstance(ours, list) and there <= set(map(str, ours)))


def _put(made: Path, place: Path, *, keep: bool) -> None:
    if not place.exists():
        made.rename(place)
        return
    aside = _beside(place, "before")
    place.rename(aside)
    try:
        made.rename(place)
    except OSError:
        aside.rename(place)
        raise
    if not keep:
        with suppress(OSError):
            shutil.rmtree(aside)


def _beside(place: Path, what: str) -> Path:
    return place.with_name(f"{place.name}.{what}-{token_hex(4)}")
