"""What a provider allows: calls at once, calls a minute, and times at which it is left alone."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from judge_eval.models import Provider

# Crews look for calls about ten times a second: what a limit allows meanwhile may start at once.
BURST = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def allowed(provider: Provider, now: datetime, out: int) -> int:
    """Return how many calls may start now, while so many are out; may be negative."""
    if provider.paused_until is not None and provider.paused_until > now:
        return 0
    free = provider.concurrency - out
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _gap(provider) + 1 if behind >= timedelta(0) else 0)


def started(provider: Provider, now: datetime, number: int) -> None:
    """Count calls that start now; the provider's row is locked by who counts."""
    if not provider.requests_per_minute:
        return
    provider.next_start_at = _next_start(provider, now) + number * _gap(provider)
    provider.save(update_fields=["next_start_at"])


def begin(name: str) -> float:
    """Count a call that is no row and starts now, and return 0; else for how long it must wait.

    Among the calls that are out at once it is not counted: those are rows.
    """
    with transaction.atomic():
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is None:
            return 0.0
        now = timezone.now()
        starts = [now, provider.paused_until or now]
        if provider.requests_per_minute:
            starts.append(_next_start(provider, now))
        wait = max(starts) - now
        if not wait:
            started(provider, now, 1)
    return wait.total_seconds()


def pause(name: str, until: datetime) -> None:
    """Start no call of a provider before a time, unless it is to be left alone for longer yet."""
    later = Q(paused_until__isnull=True) | Q(paused_until__lt=until)
    Provider.objects.filter(later, name=name).update(paused_until=until)


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    return max(provider.next_start_at or now, now - BURST)


def _gap(provider: Provider) -> timedelta:
    """Return the time between two starts: with a burst, too, a minute holds no more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)
