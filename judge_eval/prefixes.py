"""Rows by the first characters of their identifier, as people type them."""

from __future__ import annotations

import re
from typing import TypeVar
from uuid import UUID

from django.db.models import Model, QuerySet

Row = TypeVar("Row", bound=Model)

SHORTEST = 8


class Ambiguous(ValueError):
    """More than one row begins like this."""


def whole(text: str) -> UUID | None:
    """Return the UUID that a text spells out in full, None when it may be a prefix."""
    try:
        return UUID(text)
    except ValueError:
        return None


def by_prefix(rows: QuerySet[Row], text: str) -> Row | None:
    """Return the row whose UUID is, or begins with, the text (8 hexadecimal digits or more)."""
    digits = text.replace("-", "").lower()
    if not re.fullmatch(rf"[0-9a-f]{{{SHORTEST},32}}", digits):
        return None
    first, last = UUID(hex=digits.ljust(32, "0")), UUID(hex=digits.ljust(32, "f"))
    found = list(rows.filter(pk__gte=first, pk__lte=last)[:2])
    if len(found) > 1:
        raise Ambiguous(f"more than one begins with {text!r}; give more characters")
    return found[0] if found else None
