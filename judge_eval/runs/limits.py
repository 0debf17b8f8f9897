"""What a provider allows: calls at once, calls a minute, and times at which it is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from judge_eval.models import Call, Provider

# Crews look for calls about ten times a second: what a limit allows meanwhile may start at once.
BURST = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
# A call ends when its provider's time is over, but for the look-up of a name.
GRACE = timedelta(seconds=10)
# So often somebody who waits for a place looks whether it is free.
LOOK = timedelta(seconds=0.2)
# For so many seconds a model is left alone that asks for more: one reply may be wrong. What it asks
# for again is kept to in full.
LONGEST_AT_FIRST = 60.0
# One worker process makes so many calls at once with ease; more are shared out among all.
EASY = 64
# A crew that waits for its part is waited for so long.
TURN = timedelta(seconds=3)


def calls_out(now: datetime) -> QuerySet[Call]:
    """Return the calls that somebody makes at this moment."""
    leased = Call.objects.filter(state=Call.State.WAITING, lease__isnull=False)
    return leased.filter(leased_until__gt=now)


def free_places(provider: Provider, now: datetime, out: int) -> int:
    """Return how many more calls may be out, while so many are; negative where one is awaited."""
    return provider.concurrency - out - len(_guests(provider, now))


def allowed(provider: Provider, now: datetime, out: int) -> int:
    """Return how many calls may start now, while so many are out; may be negative."""
    free = free_places(provider, now, out)
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _gap(provider) + 1 if behind >= timedelta(0) else 0)


def part(provider: Provider, out: Mapping[UUID | None, int], crew: UUID) -> int:
    """Return the most calls that a crew may have out, where crews have so many out by now."""
    return max(-(-provider.concurrency // len({*out, crew})), EASY)


def ask_for_part(provider: Provider, now: datetime, crew: UUID) -> None:
    """Wait for a place as a guest, so that crews with more than their part make room."""
    provider.guests = [*_guests(provider, now), [str(crew), (now + TURN).timestamp()]]
    provider.save(update_fields=["guests"])


def welcome(provider: Provider, crew: UUID) -> None:
    """Let a crew that waited for a place find its own free."""
    others = [each for each in provider.guests if each[0] != str(crew)]
    if len(others) < len(provider.guests):
        provider.guests = others
        provider.save(update_fields=["guests"])


def started(provider: Provider, now: datetime, number: int) -> None:
    """Count calls that start now; the provider's row is locked by who counts."""
    if not provider.requests_per_minute:
        return
    provider.next_start_at = _next_start(provider, now) + number * _gap(provider)
    provider.save(update_fields=["next_start_at"])


def begin(name: str, model: str, guest: str) -> timedelta | None:
    """Let a call begin that is no row, or return for how long it must wait; None: it has begun.

    It has a place among the calls that are out at once until it says `end`, or cannot be out any
    more. Where all are taken it is kept the next that is free: crews, who go from one call to the
    next, see that one is awaited.
    """
    with transaction.atomic():
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is None:
            return None
        now = timezone.now()
        starts = [now, paused(provider, now).get(model, now)]
        if provider.requests_per_minute:
            starts.append(_next_start(provider, now))
        wait = max(starts) - now
        if wait:
            return wait
        until = (now + timedelta(seconds=provider.timeout_s) + GRACE).timestamp()
        guests = dict(_guests(provider, now)) | {guest: until}  # who was there keeps its turn
        provider.guests = [list(each) for each in guests.items()]
        provider.save(update_fields=["guests"])
        out = calls_out(now).filter(provider=name).count()
        if out + list(guests).index(guest) >= provider.concurrency:
            return LOOK
        started(provider, now, 1)
    return None


def end(name: str, guest: str) -> None:
    """Give back the place of a call that is no row, or that it waits for."""
    with transaction.atomic():
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is not None:
            provider.guests = [each for each in provider.guests if each[0] != guest]
            provider.save(update_fields=["guests"])


def _guests(provider: Provider, now: datetime) -> list[list[Any]]:
    """Return the calls that are no rows, or wait to begin, in the order in which they came."""
    return [each for each in provider.guests if each[1] > now.timestamp()]


def pause(name: str, model: str, seconds: float, why: str) -> None:
    """Start no call to a model for so long, unless it is to be left alone for longer yet."""
    with transaction.atomic():
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is None:
            return
        now = timezone.now()
        until = now + timedelta(seconds=seconds)
        known = paused(provider, now)
        if until > known.get(model, now):
            kept = {each: provider.pauses[each] for each in known}
            provider.pauses = {**kept, model: {"until": until.timestamp(), "why": why}}
            provider.save(update_fields=["pauses"])


def paused(provider: Provider, now: datetime) -> dict[str, datetime]:
    """Return the models of a provider that are left alone, and until when."""
    ends = {model: pause["until"] for model, pause in provider.pauses.items()}
    return {
        model: datetime.fromtimestamp(end, UTC)
        for model, end in ends.items()
        if end > now.timestamp()
    }


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    return max(provider.next_start_at or now, now - BURST)


def _gap(provider: Provider) -> timedelta:
    """Return the time between two starts: with a burst, too, a minute holds no more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)
