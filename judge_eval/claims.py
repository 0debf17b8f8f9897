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
from django.db.models import F, Min, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from judge_eval.models import Call, Provider, Run

LEASE = timedelta(seconds=20)
# Crews look for calls about ten times a second: what a limit allows meanwhile may start at once.
BURST = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
_WAITING = Q(state=Call.State.WAITING)


def runs_at_work() -> list[UUID]:
    return list(Run.objects.filter(state__in=Run.AT_WORK).values_list("pk", flat=True))


def waiting_calls(runs: Collection[UUID]) -> QuerySet[Call]:
    """Return calls that are still to be made, now or later, by whomever."""
    return Call.objects.filter(_WAITING, run__in=runs)


def unleased(now: datetime) -> Q:
    return Q(leased_until__isnull=True) | Q(leased_until__lt=now)


def _free(now: datetime) -> Q:
    return Q(not_before__lte=now) & unleased(now)


def claim(slots: int, lease: UUID) -> list[Call]:
    """Lease up to so many calls, the ones that wait longest first, with all they are about."""
    runs = runs_at_work()
    if not runs or slots <= 0:
        return []
    free = waiting_calls(runs).filter(_free(timezone.now())).order_by().values("provider")
    claimed: list[int] = []
    for waiting in free.annotate(since=Min("not_before")).order_by("since", "provider"):
        claimed += _claim_of(waiting["provider"], runs, slots - len(claimed), lease)
    about = Call.objects.select_related(
        "run__queue__project",
        "run__queue__rubric",
        "verdict__judge",
        "verdict__comparison__a__picture",
        "verdict__comparison__b__picture",
    ).defer("run__config")  # it is large, and read once a run
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
            # A call whose late answer is being written down at this moment is no longer free.
            .select_for_update(no_key=True, skip_locked=True)
            .order_by("not_before", "pk")
            .values_list("pk", "run_id", "reserved_nano")[: max(allowed, 0)]
        )
        if rows:
            write_off(rows)
            Call.objects.filter(pk__in=[pk for pk, _, _ in rows]).update(
                lease=lease, leased_until=now + LEASE, attempts=F("attempts") + 1
            )
            _pace(provider, now, len(rows))
    return [pk for pk, _, _ in rows]


def _allowed(provider: Provider, now: datetime) -> int:
    if provider.paused_until is not None and provider.paused_until > now:
        return 0
    out = Call.objects.filter(_WAITING, provider=provider.name, leased_until__gt=now).count()
    free = provider.concurrency - out
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _gap(provider) + 1 if behind >= timedelta(0) else 0)


def _pace(provider: Provider, now: datetime, started: int) -> None:
    if not provider.requests_per_minute:
        return
    provider.next_start_at = _next_start(provider, now) + started * _gap(provider)
    provider.save(update_fields=["next_start_at"])


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    return max(provider.next_start_at or now, now - BURST)


def _gap(provider: Provider) -> timedelta:
    """Return the time between two starts: with a burst, too, a minute holds no more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)


def write_off(rows: Sequence[tuple[int, UUID, int]]) -> None:
    """Count what was reserved for an attempt that nobody finished as spent: it may have been."""
    lost: Counter[UUID] = Counter()
    for _, run, reserved in rows:
        lost[run] += reserved
    if not any(lost.values()):
        return
    calls = Call.objects.filter(pk__in=[pk for pk, _, reserved in rows if reserved])
    calls.update(
        cost_nano=Coalesce("cost_nano", 0) + F("reserved_nano"),
        reserved_nano=0,
    )
    for run, nano in sorted(lost.items()):
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
    mine = Call.objects.filter(_WAITING, pk=call.pk, lease=call.lease)
    with transaction.atomic():
        # Whoever lost the lease meanwhile asks all the same, and brings an answer for nobody.
        purse = "reserved_nano" if mine.select_for_update(no_key=True).exists() else "spent_nano"
        if not Run.objects.filter(fits, pk=call.run_id).update(**{purse: F(purse) + nano}):
            return False
        mine.update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def let_go(call: Call) -> None:
    """Give a call back as if it had never been claimed."""
    Call.objects.filter(_WAITING, pk=call.pk, lease=call.lease).update(
        lease=None, leased_until=None, attempts=F("attempts") - 1
    )
