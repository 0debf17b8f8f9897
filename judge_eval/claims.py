"""Who makes which call: leases on rows, within what each provider allows.

A lease lasts 20 seconds and is renewed while its holder lives. One that ran out is anybody's, so
a call whose worker was killed is made again; one that was delivered twice is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from judge_eval.models import Call, Provider, Run

LEASE = timedelta(seconds=20)
_WAITING = Q(state=Call.State.WAITING)


def runs_at_work() -> list[UUID]:
    return list(Run.objects.filter(state__in=Run.AT_WORK).values_list("pk", flat=True))


def waiting_calls(runs: Collection[UUID]) -> QuerySet[Call]:
    """Return calls that are still to be made, now or later, by whomever."""
    return Call.objects.filter(_WAITING, run__in=runs)


def _free(now: datetime) -> Q:
    return Q(not_before__lte=now) & (Q(leased_until__isnull=True) | Q(leased_until__lt=now))


def claim(slots: int, lease: UUID) -> list[Call]:
    """Lease up to so many calls, the ones that wait longest first, with all they are about."""
    runs = runs_at_work()
    if not runs or slots <= 0:
        return []
    free = waiting_calls(runs).filter(_free(timezone.now()))
    claimed: list[int] = []
    for name in sorted(set(free.order_by().values_list("provider", flat=True).distinct())):
        claimed += _claim_of(name, runs, slots - len(claimed), lease)
    about = Call.objects.select_related(
        "run__queue__project",
        "run__queue__rubric",
        "verdict__judge",
        "verdict__comparison__a__picture",
        "verdict__comparison__b__picture",
    )
    return list(about.filter(pk__in=claimed)) if claimed else []


def _claim_of(name: str, runs: Sequence[UUID], slots: int, lease: UUID) -> list[int]:
    if slots <= 0:
        return []
    with transaction.atomic():
        # Under this lock a provider's calls are counted and started by one worker at a time.
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is None:
            return []
        now = timezone.now()
        allowed = min(slots, _allowed(provider, now))
        rows = list(
            waiting_calls(runs)
            .filter(_free(now), provider=name)
            .order_by("not_before", "pk")
            .values_list("pk", "run_id", "reserved_nano")[: max(allowed, 0)]
        )
        if rows:
            claimed = [pk for pk, _, _ in rows]
            Call.objects.filter(pk__in=claimed).update(
                lease=lease,
                leased_until=now + LEASE,
                attempts=F("attempts") + 1,
                reserved_nano=0,
            )
            _write_off(rows)
            _pace(provider, now, len(rows))
    return [pk for pk, _, _ in rows]


def _allowed(provider: Provider, now: datetime) -> int:
    if provider.paused_until is not None and provider.paused_until > now:
        return 0
    out = Call.objects.filter(_WAITING, provider=provider.name, leased_until__gt=now).count()
    free = provider.concurrency - out
    if not provider.requests_per_minute:
        return free
    behind = (now - (provider.next_start_at or now)).total_seconds()
    return min(free, int(behind * provider.requests_per_minute / 60) + 1 if behind >= 0 else 0)


def _pace(provider: Provider, now: datetime, started: int) -> None:
    if not provider.requests_per_minute:
        return
    gap = timedelta(seconds=60 / provider.requests_per_minute)
    # What was not used is lost: a quiet hour must not end in a flood.
    begin = max(provider.next_start_at or now, now - gap)
    provider.next_start_at = begin + started * gap
    provider.save(update_fields=["next_start_at"])


def _write_off(rows: Sequence[tuple[int, UUID, int]]) -> None:
    """Count what was reserved for an attempt that nobody finished as spent: it may have been."""
    lost: Counter[UUID] = Counter()
    for _, run, reserved in rows:
        lost[run] += reserved
    for run, nano in lost.items():
        if nano:
            Run.objects.filter(pk=run).update(
                reserved_nano=F("reserved_nano") - nano, spent_nano=F("spent_nano") + nano
            )


def renew(lease: UUID, calls: Collection[int]) -> None:
    mine = Call.objects.filter(_WAITING, pk__in=calls, lease=lease)
    mine.update(leased_until=timezone.now() + LEASE)


def pause(provider: str, until: datetime) -> None:
    """Start no call of a provider before a time that it asked for."""
    later = Q(paused_until__isnull=True) | Q(paused_until__lt=until)
    Provider.objects.filter(later, name=provider).update(paused_until=until)


def reserve(call: Call, nano: int) -> bool:
    """Set money aside for one attempt; False when that would pass the run's budget."""
    if not nano:
        return True
    fits = Q(budget_nano__isnull=True) | Q(
        budget_nano__gte=F("spent_nano") + F("reserved_nano") + nano
    )
    with transaction.atomic():
        runs = Run.objects.filter(fits, pk=call.run_id)
        if not runs.update(reserved_nano=F("reserved_nano") + nano):
            return False
        Call.objects.filter(pk=call.pk).update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def let_go(call: Call) -> None:
    """Give a call back as if it had never been claimed."""
    Call.objects.filter(_WAITING, pk=call.pk, lease=call.lease).update(
        lease=None, leased_until=None, attempts=F("attempts") - 1
    )
