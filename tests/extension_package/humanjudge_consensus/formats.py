"""Votes that a tool writes as records of `left`, `right` and `chosen`."""

from collections.abc import Iterator

from judge_eval.extensions import ImportFormat
from judge_eval.imports.row_models import Values


class LeftRight(ImportFormat):
    id = "left-right"
    title = "Left and right"
    version = "1.0"
    description = "Records with left, right, chosen and by."

    def fits(self, record: Values) -> bool:
        return record.keys() >= {"left", "right", "chosen", "by"}

    def read(self, record: Values, name: str) -> Iterator[Values | str]:
        yield {
            "output_a": record["left"],
            "output_b": record["right"],
            "voter": record["by"],
            "vote": {"left": "A", "right": "B"}.get(str(record["chosen"]), "tie"),
        }
