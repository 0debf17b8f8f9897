"""Votes that a tool writes as records of `left`, `right` and `chosen`."""

from collections.abc import Iterator
from typing import BinaryIO

from judge_eval.exchange.mapping import own_row
from judge_eval.exchange.row_models import Item, RowError, Values
from judge_eval.exchange.sources import records
from judge_eval.extensions import ImportFormat


class LeftRight(ImportFormat):
    id = "left-right"
    title = "Left and right"
    version = "1.0"
    description = "Records with left, right, chosen and by."

    def fits(self, record: Values) -> bool:
        return record.keys() >= {"left", "right", "chosen", "by"}

    def rows(self, stream: BinaryIO, name: str, file_format: str | None = None) -> Iterator[Item]:
        for record in records(stream, name, file_format):
            if isinstance(record, RowError):
                yield record
                continue
            said = record.values
            values = {
                "pair": str(record.line),
                "output_a": said["left"],
                "output_b": said["right"],
                "voter": said["by"],
                "vote": {"left": "A", "right": "B"}.get(str(said["chosen"]), "tie"),
            }
            yield own_row(name, record.line, values)
