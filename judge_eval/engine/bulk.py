"""Many rows of one model, each with values of its own, written in one round trip."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import Field, JSONField, Model

from voting.rows import update_many

Changes = Sequence[tuple[Model, Mapping[str, Any]]]


def update_rows(names: Collection[str], changes: Changes) -> None:
    """Set the named fields of rows of one model, each to its new value or else to its old one.

    The rows are locked, and there: one that is not raises LedgerConflict.
    """
    if not changes:
        return
    model = type(changes[0][0])
    fields = [field for field in model._meta.concrete_fields if field.name in names]
    rows = [
        [*(_prepared(f, new.get(f.name, getattr(old, f.attname))) for f in fields), old.pk]
        for old, new in changes
    ]
    update_many(model, [str(field.column) for field in fields], rows)


def _prepared(field: Field[Any, Any], value: Any) -> Any:
    if isinstance(field, JSONField):
        return None if value is None else json.dumps(value)
    return field.get_db_prep_save(value.pk if isinstance(value, Model) else value, connection)
