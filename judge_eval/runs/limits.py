"""What a provider allows: calls at once, calls a minute, and models that are paused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from humanjudge.lib.leases import held
from judge_eval.models import Call, Provider

# Workers look for calls about ten times a second: what a limit allows meanwhile may start at once.
BURST = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
# The longest pause that one reply can ask for: it may be wrong. A second one is obeyed in full.
LONGEST_AT_FIRST = 60.0
# One worker makes so many calls at once with ease; more are shared among all workers.
EASY = 64
# A worker that waits for its share is waited for so long.
TURN = timedelta(seconds=3)


@contextmanager
def locked(name: str) -> Iterator[Provider | None]:
    """Lock a provider: its calls are counted and started by one worker at a time."""
    with transaction.atomic():
        yield Provider.objects.select_for_update(no_key=True).filter(name=name).first()


def calls_out(now: datetime) -> QuerySet[Call]:
    """Return the calls that are being made at this moment."""
    return Call.objects.filter(held(now), state=Call.State.WAITING, lease__isnull=False)


def free_places(provider: Provider, now: datetime, out: int) -> int:
    """Return how many more calls may be out; negative where somebody waits for a place."""
    return provider.concurrency - out - len(_guests(provider, now))


def allowed(provider: Provider, now: datetime, out: int) -> int:
    """Return how many calls may start now, while so many are out; may be negative."""
    free = free_places(provider, now, out)
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _gap(provider) + 1 if behind >= timedelta(0) else 0)


def share(provider: Provider, out: Mapping[UUID | None, int], worker: UUID) -> int:
    """Return the most calls that a worker may have out, given how many each worker has."""
    return max(-(-provider.concurrency // len({*out, worker})), EASY)


def ask_for_share(provider: Provider, now: datetime, worker: UUID) -> None:
    """Wait for a place as a guest, so that workers with more than their share make room."""
    _save_guests(provider, _guests(provider, now) | {str(worker): (now + TURN).timestamp()})


def end_waiting(provider: Provider, guest: str) -> None:
    """Take a guest off the list: it is there now, or gone."""
    if guest in dict(provider.guests):
        _save_guests(provider, {g: until for g, until in provider.guests if g != guest})


def count_starts(provider: Provider, now: datetime, number: int) -> None:
    if provider.requests_per_minute:
        provider.next_start_at = _next_start(provider, now) + number * _gap(provider)
        provider.save(update_fields=["next_start_at"])


def pause(name: str, model: str, seconds: float, why: str) -> None:
    """Start no call to a model for so long, unless it is paused for longer already."""
    with locked(name) as provider:
        if provider is None:
            return
        now = timezone.now()
        until = now + timedelta(seconds=seconds)
        current = paused(provider, now)
        if until > current.get(model, now):
            kept = {each: provider.pauses[each] for each in current}
            provider.pauses = {**kept, model: {"until": until.timestamp(), "why": why}}
            provider.save(update_fields=["pauses"])


def paused(provider: Provider, now: datetime) -> dict[str, datetime]:
    """Return the models of a provider that are paused, and until when."""
    ends = {model: pause["until"] for model, pause in provider.pauses.items()}
    return {m: datetime.fromtimestamp(end, UTC) for m, end in ends.items() if end > now.timestamp()}


def _guests(provider: Provider, now: datetime) -> dict[str, float]:
    """Return workers that wait, in the order in which they came."""
    return {guest: until for guest, until in provider.guests if until > now.timestamp()}


def _save_guests(provider: Provider, guests: Mapping[str, float]) -> None:
    provider.guests = [list(each) for each in guests.items()]
    provider.save(update_fields=["guests"])


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    start = provider.next_start_at if provider.requests_per_minute else None
    return max(start or now, now - BURST)


def _gap(provider: Provider) -> timedelta:
    """Return the time between two starts: even with a burst, no minute holds more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)
