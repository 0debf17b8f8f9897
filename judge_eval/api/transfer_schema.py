"""What goes in and comes out where runs are imported and exported."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args
from uuid import UUID

from django.conf import settings
from ninja import Schema

from humanjudge.lib.validation import LONGEST_NAME
from judge_eval.api.access import Problem, located
from judge_eval.exchange.sources import Format

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


_JSON: Final = {"type": "string", "contentMediaType": "application/json"}
_MORE: Final[dict[str, Any]] = {
    "file": {
        "type": "array",
        "minItems": 1,
        "maxItems": settings.IMPORT_MAX_FILES,
        "items": {"type": "string", "format": "binary"},
    },
    "format": {"type": "string", "enum": [*get_args(Format)]},
    "mapping": _JSON,
    "options": _JSON,
}
_NEW: Final = {
    # Needed but for a bundle, which brings its own.
    "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    "project": {"type": "string", "maxLength": LONGEST_NAME},
}


def _form(fields: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "required": ["file"], "properties": fields}
    body = {"required": True, "content": {"multipart/form-data": {"schema": schema}}}
    return {"requestBody": body, **located("import_state", import_id="id")}


FORM_NEW: Final = _form(_NEW | _MORE)
FORM_MORE: Final = _form(_MORE)
EXPORTED: Final[dict[str, Any]] = {
    "responses": {
        200: {
            "description": "A file",
            "content": {
                kind: {"schema": {"type": "string"}} for kind in ("application/jsonl", "text/csv")
            },
        }
    }
}
ACCEPTED: Final[dict[Any, Any]] = {202: Imported, 429: Problem}
