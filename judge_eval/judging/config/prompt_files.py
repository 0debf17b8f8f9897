"""Prompts as people have them: lines of text, JSON or JSON Lines, a CSV table.

What comes out still has to pass `run_config.parse`; here each prompt only learns where it stood,
so that what is wrong with it can be said of that place.
"""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Final, NamedTuple

from humanjudge.core import strict_json
from voting.items.conversations import conversation, messages_of

COLUMNS: Final = ("id", "text", "tags")


class PromptsUnreadable(ValueError):
    """The file is not what its name says; the text says why."""


class ListedPrompt(NamedTuple):
    """One prompt as the config of a run may have it, and where it stood, such as ``Line 3``."""

    place: str
    entry: object


def from_lines(text: str) -> list[ListedPrompt]:
    """Return one prompt for each line that is not blank; one conversation may have many lines.

    >>> from_lines("a cat\\n\\n  a dog ")
    [ListedPrompt(place='Line 1', entry='a cat'), ListedPrompt(place='Line 3', entry='a dog')]
    """
    if messages_of(text):
        return [ListedPrompt("Line 1", text.strip())]
    lines = enumerate(text.removeprefix("\ufeff").splitlines(), start=1)
    return [ListedPrompt(f"Line {n}", line.strip()) for n, line in lines if line.strip()]


def from_file(name: str, content: bytes) -> list[ListedPrompt]:
    """Return the prompts of a file in UTF-8, or raise PromptsUnreadable.

    By the end of its name, ``….json`` is an array of texts or of objects with `COLUMNS`,
    ``….jsonl`` has one of these a line, ``….csv`` is a table with some of those columns, anything
    else a text with one prompt a line. A text may be a list of messages, also called `messages`.

    >>> [listed.entry for listed in from_file("p.csv", b"id,text,tags\\n7,a cat,pets; small\\n")]
    [{'text': 'a cat', 'id': '7', 'tags': ['pets', 'small']}]
    >>> from_file("p.json", b'["a cat"]')
    [ListedPrompt(place='Item 1', entry='a cat')]
    >>> from_file("p.jsonl", b'{"messages": [{"role": "user", "content": "Hi"}]}')[0].entry
    {'text': [{'role': 'user', 'content': 'Hi'}]}
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PromptsUnreadable("it is not UTF-8: save it as UTF-8") from error
    if name.lower().endswith(".csv"):
        return list(_from_csv(text))
    if name.lower().endswith(".jsonl"):
        # Not by `splitlines`: what else ends a line may stand inside a text of JSON.
        lines = enumerate(text.split("\n"), start=1)
        named = [(f"Line {n}", line) for n, line in lines if line.strip()]
        return [ListedPrompt(place, _named(_json(line, f"{place}: "))) for place, line in named]
    if not name.lower().endswith(".json"):
        return from_lines(text)
    entries = _json(text)
    if not isinstance(entries, list):
        raise PromptsUnreadable("it must be a JSON array of prompts")
    # A file may be one conversation.
    prompts = [entries] if conversation(entries) else entries
    return [ListedPrompt(f"Item {n}", _named(entry)) for n, entry in enumerate(prompts, start=1)]


def _json(text: str, place: str = "") -> object:
    try:
        return strict_json.loads(text)
    except strict_json.NotJson as error:
        raise PromptsUnreadable(f"{place}{error}") from error


def _named(entry: object) -> object:
    """Call the messages of a prompt its text, as a config does."""
    if not isinstance(entry, dict) or "messages" not in entry or "text" in entry:
        return entry
    return {"text" if name == "messages" else name: value for name, value in entry.items()}


def _from_csv(text: str) -> Iterator[ListedPrompt]:
    head = text.partition("\n")[0]
    # What spreadsheets write where the comma is the decimal point.
    delimiter = ";" if ";" in head and "," not in head else ","
    rows = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = [cell.strip().lower() for cell in next(rows, [])]
        if "text" not in columns or {*columns} - {*COLUMNS} or len({*columns}) < len(columns):
            names = "text, and if you like id and tags"
            raise PromptsUnreadable(f"its first line must name the columns: {names}")
        for number, cells in enumerate(rows, start=2):
            if len(cells) > len(columns) and any(cell.strip() for cell in cells):
                raise PromptsUnreadable(f"row {number} has more cells than there are columns")
            # A short row leaves out what stands last.
            row = {key: cell for key, cell in zip(columns, cells, strict=False) if cell.strip()}
            if row:
                tags = [tag.strip() for tag in re.split("[;,]", row.pop("tags", ""))]
                entry = {"text": "", **row, "tags": [tag for tag in tags if tag]}
                yield ListedPrompt(f"Row {number}", entry)
    except csv.Error as error:
        raise PromptsUnreadable(f"it is not CSV: {error} (line {rows.line_num})") from error
