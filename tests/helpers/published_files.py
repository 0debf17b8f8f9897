"""The published files, and what imports read in them."""

import io
from pathlib import Path

from judge_eval.imports.formats import read

SHARED = Path(__file__).resolve().parents[3] / "shared"
DATA = SHARED / "data"


def items_of(*paths):
    for path in paths:
        with (DATA / path).open("rb") as stream:
            yield from read(stream, Path(path).name)


def texts_of(files):
    """Of files that are given by their path and their text."""
    for path, text in files:
        yield from read(io.BytesIO(text.encode()), Path(path).name)
