"""Prompts as people have them: lines of text, a JSON array, a CSV table.

What comes out still has to pass `run_config.parse`; here each prompt only learns where it stood,
so that what is wrong with it can be said of that place.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import Final

from humanjudge.lib import strict_json

COLUMNS: Final = ("id", "text", "tags")


class PromptsUnreadable(ValueError):
    """The file is not what its name says; the text says why."""


@dataclass(frozen=True, slots=True)
class FoundPrompt:
    """One prompt as the config of a run may have it, and where it stood, such as ``Line 3``."""

    where: str
    entry: object


def from_lines(text: str) -> list[FoundPrompt]:
    """Return one prompt for each line that is not blank.

    Examples
    --------
    >>> from_lines("a cat\\n\\n  a dog ")
    [FoundPrompt(where='Line 1', entry='a cat'), FoundPrompt(where='Line 3', entry='a dog')]
    """
    lines = enumerate(text.removeprefix("\ufeff").splitlines(), start=1)
    return [FoundPrompt(f"Line {n}", line.strip()) for n, line in lines if line.strip()]


def from_file(name: str, content: bytes) -> list[FoundPrompt]:
    """Return the prompts of a file in UTF-8; how it is read depends on the end of its name.

    Parameters
    ----------
    name : str
        ``….json`` is an array of texts or of objects with `COLUMNS`, ``….csv`` a table with some
        of those columns, anything else a text with one prompt a line.
    content : bytes

    Raises
    ------
    PromptsUnreadable

    Examples
    --------
    >>> [found.entry for found in from_file("p.csv", b"id,text,tags\\n7,a cat,pets; small\\n")]
    [{'text': 'a cat', 'id': '7', 'tags': ['pets', 'small']}]
    >>> from_file("p.json", b'["a cat"]')
    [FoundPrompt(where='Item 1', entry='a cat')]
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptsUnreadable("it is not UTF-8: save it as UTF-8") from error
    if name.lower().endswith(".json"):
        return _from_json(text)
    if name.lower().endswith(".csv"):
        return list(_from_csv(text))
    return from_lines(text)


def _from_json(text: str) -> list[FoundPrompt]:
    try:
        found = strict_json.loads(text)
    except strict_json.NotJson as error:
        raise PromptsUnreadable(str(error)) from error
    if not isinstance(found, list):
        raise PromptsUnreadable("it must be a JSON array of prompts")
    return [FoundPrompt(f"Item {n}", entry) for n, entry in enumerate(found, start=1)]


def _from_csv(text: str) -> Iterator[FoundPrompt]:
    head = text.partition("\n")[0]
    # What spreadsheets write where the comma is the decimal point.
    delimiter = ";" if ";" in head and "," not in head else ","
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = _columns(next(rows, []))
        for number, cells in enumerate(rows, start=2):
            if any(cell.strip() for cell in cells):
                yield FoundPrompt(f"Row {number}", _entry(columns, cells, number))
    except csv.Error as error:
        raise PromptsUnreadable(f"it is not CSV: {error} (line {rows.line_num})") from error


def _columns(cells: list[str]) -> list[str]:
    columns = [cell.strip().lower() for cell in cells]
    wrong = [column for column in columns if column not in COLUMNS or columns.count(column) > 1]
    if wrong or "text" not in columns:
        raise PromptsUnreadable(
            "its first line must name the columns: text, and if you like id and tags"
        )
    return columns


def _entry(columns: list[str], cells: list[str], number: int) -> dict[str, object]:
    if len(cells) > len(columns):
        raise PromptsUnreadable(f"row {number} has more cells than there are columns")
    # A short row leaves out what stands last.
    row: dict[str, object] = dict(zip(columns, cells, strict=False))
    tags = [tag.strip() for tag in re.split("[;,]", str(row.pop("tags", "")))]
    row = {key: value for key, value in row.items() if key == "text" or str(value).strip()}
    return {"text": "", **row, "tags": [tag for tag in tags if tag]}
