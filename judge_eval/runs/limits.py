"""What a provider allows: calls at once, calls a minute, and models that are paused.

And what a budget allows: what a call may cost is reserved before it is made, and settled after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from humanjudge.lib.leases import held
from judge_eval.models import Call, Provider, Run

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
    return Call.objects.filter(held(now), state=Call.State.WAITING, lease__isnull=False)


def allowed(provider: Provider, now: datetime, out: int, worker: UUID) -> int:
    """Return how many calls a worker may start now, while so many are out.

    Negative where too many are, or others wait for a place.
    """
    free = provider.concurrency - out - len(_guests(provider, now).keys() - {str(worker)})
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _gap(provider) + 1 if behind >= timedelta(0) else 0)


def share(provider: Provider, out: Mapping[UUID | None, int], worker: UUID) -> int:
    """Return the most calls that a worker may have out, given how many each worker has."""
    return max(-(-provider.concurrency // len({*out, worker})), EASY)


def wait_for_share(provider: Provider, now: datetime, worker: UUID, *, is_waiting: bool) -> None:
    """Let a worker wait for a place, so that those with more than their share make room, or not."""
    guests = {each: end for each, end in _guests(provider, now).items() if each != str(worker)}
    if is_waiting:
        guests[str(worker)] = (now + TURN).timestamp()
    if guests != provider.guests:
        provider.guests = guests
        provider.save(update_fields=["guests"])


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
    return {each: end for each, end in dict(provider.guests).items() if end > now.timestamp()}


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    start = provider.next_start_at if provider.requests_per_minute else None
    return max(start or now, now - BURST)


def _gap(provider: Provider) -> timedelta:
    """Return the time between two starts: even with a burst, no minute holds more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)


def reserve(call: Call, nano: int) -> bool:
    """Reserve money for one attempt; False when that would pass the run's budget."""
    if not nano:
        return True
    fits = Q(budget_nano__isnull=True) | Q(
        budget_nano__gte=F("spent_nano") + F("reserved_nano") + nano
    )
    mine = Call.objects.filter(state=Call.State.WAITING, pk=call.pk, lease=call.lease)
    with transaction.atomic():
        # Whoever lost the lease meanwhile asks all the same, and brings an answer for nobody.
        column = "reserved_nano" if mine.select_for_update(no_key=True).exists() else "spent_nano"
        if not Run.objects.filter(fits, pk=call.run_id).update(**{column: F(column) + nano}):
            return False
        mine.update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def settle(calls: Iterable[tuple[UUID, int, int]]) -> None:
    """Take off runs what was reserved for calls and add what was spent, each run once, in order."""
    sums: dict[UUID, list[int]] = defaultdict(lambda: [0, 0])
    for run, *amounts in calls:
        sums[run] = [so_far + more for so_far, more in zip(sums[run], amounts, strict=True)]
    for run, (reserved, spent) in sorted(sums.items()):
        if reserved or spent:
            Run.objects.filter(pk=run).update(
                reserved_nano=F("reserved_nano") - reserved, spent_nano=F("spent_nano") + spent
            )


def write_off(calls: Iterable[tuple[int, UUID, int]]) -> None:
    """Count what was reserved for attempts that nobody finished as spent: it may have been.

    Each is the call, its run, and what was reserved.
    """
    lost = [(pk, run, nano) for pk, run, nano in calls if nano]
    if lost:
        Call.objects.filter(pk__in=[pk for pk, _, _ in lost]).update(
            cost_nano=Coalesce("cost_nano", 0) + F("reserved_nano"), reserved_nano=0
        )
        settle((run, nano, nano) for _, run, nano in lost)
