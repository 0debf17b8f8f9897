"""What goes in and comes out where runs are imported and exported."""

from __future__ import annotations

from typing import Any, Final, Literal
from uuid import UUID

from ninja import Schema

from judge_eval.rest.access import ERRORS, Detail

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


class Imported(Schema):
    """An import: how far it has come, and at last what came of it."""

    id: UUID
    state: Literal["waiting", "reading", "writing", "done", "refused", "failed"]
    run_id: UUID | None
    rows_read: int
    written: int
    to_write: int
    status: int | None
    detail: str
    report: Report | None


class Refused(Schema):
    """A field of the form is wrong: a list of `path` and `message`."""

    detail: Any


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
ACCEPTED: Final[dict[Any, Any]] = {
    202: Imported,
    422: Refused,
    frozenset({401, 403, 404, 409, 413, 429}): Detail,
}
SEEN: Final[dict[Any, Any]] = {200: Imported, **ERRORS}
