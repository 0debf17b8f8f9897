"""Alt-Test: ``{annotator: {item: label}}``, one file of people and one of judges.

They hold labels of items, and no texts. The files are by custom called ``human_annotations.json``
and ``llm_annotations.json``, and belong into one import.

Source: Alt-Test, arXiv 2501.10970.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO

from humanjudge.lib.strict_json import Cursor, NotJson
from judge_eval.exchange import fields
from judge_eval.exchange.row_models import MAIN, Item, LeftOut, Row, RowError

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
    cursor, number = Cursor(stream), 0
    try:
        for annotator in cursor.members():
            for item in cursor.members():
                number += 1
                yield _row(name, number, annotator, item, cursor.value())
        cursor.end()
    except NotJson as error:
        yield RowError(name, number + 1, None, str(error), is_fatal=True)


def _row(name: str, number: int, annotator: str, item: str, raw: object) -> Item:
    try:
        who, what = fields.name(annotator), fields.name(item)
        label = None if raw is None else fields.label(raw)
    except ValueError as error:
        return RowError(name, number, f"{annotator}.{item}", str(error))
    if who is None or what is None:
        return RowError(name, number, None, "an annotator or an item has no name")
    if label is None:
        return LeftOut(name, number, f"{who} gave {what} no label")
    judge, voter = (who, None) if by_judges(name) else (None, who)
    labels = {MAIN: label}
    return Row(name, number, what, judge=judge, voter=voter, labels=labels, shape="item")
