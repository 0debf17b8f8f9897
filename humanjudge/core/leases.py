"""Leases on rows: a row is its holder's until `leased_until`, and anybody's after that.

Who holds a row is for its model to say, by a column of its own or by the number of attempts: a
holder renews and releases only rows that are still its own, and learns from their number whether
they were. Each function returns how many rows it changed.
"""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone


def free(now: datetime | None = None) -> Q:
    return Q(leased_until__isnull=True) | Q(leased_until__lt=now or timezone.now())


def active(now: datetime | None = None) -> Q:
    return Q(leased_until__gt=now or timezone.now())


def claim(rows: QuerySet[Any], lasts: timedelta, **fields: Any) -> int:
    now = timezone.now()
    return rows.filter(free(now)).update(leased_until=now + lasts, **fields)


def renew(rows: QuerySet[Any], lasts: timedelta, **fields: Any) -> int:
    """Lease rows for longer, whoever holds them."""
    return rows.update(leased_until=timezone.now() + lasts, **fields)


def release(rows: QuerySet[Any], **fields: Any) -> int:
    return rows.update(leased_until=None, **fields)
