"""What goes in and comes out where runs are imported and exported."""

from __future__ import annotations

from typing import Any, Final, Literal
from uuid import UUID

from ninja import Schema

from judge_eval.rest.access import Detail

Shape = Literal["jsonl", "csv", "votes", "ledger"]


class RowProblem(Schema):
    file: str
    row: int
    field: str | None
    why: str


class NotTaken(Schema):
    file: str
    row: int
    why: str


class Report(Schema):
    run_id: UUID | None
    runs: list[UUID]
    new: dict[str, int]
    already: dict[str, int]
    filled: int
    errors: list[RowProblem]
    more_errors: int
    left_out: list[NotTaken]
    more_left_out: int
    notes: list[str]


class Refused(Schema):
    """Nothing was written. `detail` is a text, or a list of `path` and `message`."""

    detail: Any
    errors: list[RowProblem] = []
    more_errors: int = 0
    notes: list[str] = []


FORM: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "name": {"type": "string"},
                        "project": {"type": "string"},
                        "format": {"type": "string", "enum": ["csv", "json", "jsonl", "parquet"]},
                        "mapping": {"type": "string", "contentMediaType": "application/json"},
                        "options": {"type": "string", "contentMediaType": "application/json"},
                    },
                }
            }
        },
    }
}
EXPORTED: Final = {
    "responses": {
        200: {
            "description": "A file",
            "content": {"application/jsonl": {}, "text/csv": {}},
        }
    }
}
IMPORTED: Final = {
    frozenset({200, 201}): Report,
    422: Refused,
    frozenset({401, 403, 404, 409, 413}): Detail,
}
