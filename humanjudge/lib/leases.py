"""Leases on rows: a row is its holder's until `leased_until`, and anybody's after that.

So what a worker was at when it was killed is done again, and what is delivered twice is not. Who
holds a row is for its model to say, by a column of its own or by the number of attempts: a holder
renews and releases only the rows that are still its own, and learns from the number of rows
whether they were.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone


def free(now: datetime | None = None) -> Q:
    """Say of rows that nobody holds them."""
    return Q(leased_until__isnull=True) | Q(leased_until__lt=now or timezone.now())


def held(now: datetime | None = None) -> Q:
    """Say of rows that somebody holds them."""
    return Q(leased_until__gt=now or timezone.now())


def claim(rows: QuerySet[Any], lasts: timedelta, **fields: Any) -> int:
    """Lease those rows that are free; return how many these were."""
    now = timezone.now()
    return rows.filter(free(now)).update(leased_until=now + lasts, **fields)


def renew(rows: QuerySet[Any], lasts: timedelta, **fields: Any) -> int:
    """Lease rows for longer, whoever holds them; return how many there were."""
    return rows.update(leased_until=timezone.now() + lasts, **fields)


def release(rows: QuerySet[Any], **fields: Any) -> int:
    """Give rows back; return how many there were."""
    return rows.update(leased_until=None, **fields)
