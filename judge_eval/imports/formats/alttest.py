"""Alt-Test: ``{annotator: {item: label}}``, one file of people and one of judges.

They hold labels of items, and no texts. The files are by custom called ``human_annotations.json``
and ``llm_annotations.json``, and belong into one import.

Source: Alt-Test, arXiv 2501.10970.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO

from humanjudge.core.strict_json import Cursor, NotJson
from judge_eval.imports.mapping import own_rows
from judge_eval.imports.row_models import Item, LeftOut, MadeUp, RowError

_NAME = re.compile(r"(human|llm)[-_]annotations?\b.*\.json", re.IGNORECASE)


def by_judges(name: str) -> bool | None:
    """Tell from a file's name whether judges gave its labels; None where it does not say."""
    match = _NAME.fullmatch(PurePath(name).name)
    return match[1].lower() == "llm" if match else None


def fits_name(name: str) -> bool:
    return by_judges(name) is not None


def rows(stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
    """Read the labels of a file, numbered in its order; an item without a label is left out.

    It is JSON whatever `file_format` says.

    Examples
    --------
    >>> from io import BytesIO
    >>> [row] = rows(BytesIO(b'{"ann": {"7": "yes"}}'), "human_annotations.json")
    >>> row.voter, row.item, row.labels
    ('ann', '7', {'': 'yes'})
    """
    author_field, answer_field = ("judge", "verdict") if by_judges(name) else ("voter", "vote")
    cursor, number = Cursor(stream), 0
    try:
        for annotator in cursor.members():
            for item in cursor.members():
                number += 1
                if (label := cursor.value()) is None:
                    yield LeftOut(name, number, f"{annotator} gave {item} no label")
                else:
                    # Numbers of annotators are those of this file.
                    named = MadeUp(annotator) if annotator.isdigit() else annotator
                    yield from own_rows(
                        name, number, {"item": item, author_field: named, answer_field: label}
                    )
        cursor.end()
    except NotJson as error:
        yield RowError(name, number + 1, None, str(error), is_fatal=True)
