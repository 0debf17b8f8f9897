"""Which worker makes which call: leases on rows, within what each provider allows.

A lease lasts 20 seconds and is renewed while its holder lives. One that ran out is anybody's, so
a call whose worker was killed is made again; one that was delivered twice is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from humanjudge.lib import leases
from judge_eval.models import Call, Provider, Run
from judge_eval.runs import limits
from voting.models import Item

LEASE = timedelta(seconds=20)
_NONE: Final = MappingProxyType[str, int]({})
_WAITING = Q(state=Call.State.WAITING)


def _at_work() -> QuerySet[Run]:
    tried = Call.objects.filter(run=OuterRef("pk"), purpose=Call.Purpose.TRYOUT)
    return Run.objects.filter(Q(state__in=Run.AT_WORK) | Q(Exists(tried), state=Run.State.DRAFT))


def runs_at_work() -> list[UUID]:
    return list(_at_work().values_list("pk", flat=True))


def paused(now: datetime) -> set[tuple[str, str]]:
    """Return the models that are paused, each after its provider."""
    some = Provider.objects.exclude(pauses={}).only("name", "pauses")
    return {(provider.name, model) for provider in some for model in limits.paused(provider, now)}


def waiting_calls(runs: Collection[UUID]) -> QuerySet[Call]:
    return Call.objects.filter(_WAITING, run__in=runs)


def claim(
    slots: int, lease: UUID, ahead: Mapping[str, int] = _NONE, without: Collection[UUID] = ()
) -> list[Call]:
    """Lease calls to be made now, with all they are about, of all runs at work but some.

    As many more as `ahead` says of each provider are set aside, without a lease: where a call of
    the same worker is answered, one of them may follow at once and the provider is never idle.
    Runs and providers with the fewest calls out come first: none holds up a smaller one.
    """
    about = _at_work().select_related("queue__project", "queue__rubric").defer("config")
    runs = about.exclude(pk__in=without).in_bulk()
    claimed: list[int] = []
    for provider in _providers(list(runs)) if runs else ():
        now, aside = _claim_of(provider, list(runs), slots, lease, ahead.get(provider, 0))
        slots -= len(now)
        claimed += now + aside
    if not claimed:
        return []
    calls = list(
        Call.objects.filter(pk__in=claimed).select_related("verdict").order_by("not_before", "pk")
    )
    # Every judge is shown the same pair, and twice.
    unused = [f"{side}__{name}" for side in "ab" for name in ("metadata", "tags")]
    items = Item.objects.select_related("a__picture", "b__picture").defer(*unused)
    judging = [about for call in calls if (about := call.verdict or call).item_id]
    pairs = items.in_bulk({about.item_id for about in judging})
    for about in judging:
        about.item = pairs[about.item_id]
    for call in calls:
        call.run = runs[call.run_id]
    return calls


def _free(now: datetime) -> Q:
    return Q(not_before__lte=now) & leases.free(now)


def _providers(runs: Sequence[UUID]) -> list[str]:
    """Return the providers with free calls: fewest out first, then the longest wait."""
    now = timezone.now()
    free = waiting_calls(runs).filter(_free(now), provider=OuterRef("name")).order_by("not_before")
    out = limits.calls_out(now).filter(provider=OuterRef("name")).order_by().values("provider")
    return list(
        Provider.objects.annotate(since=Subquery(free.values("not_before")[:1]))
        .filter(since__isnull=False)
        .annotate(out=Coalesce(Subquery(out.annotate(n=Count("pk")).values("n")), 0))
        .order_by("out", "since")
        .values_list("name", flat=True)
    )


def _claim_of(
    name: str, runs: Sequence[UUID], slots: int, lease: UUID, ahead: int
) -> tuple[list[int], list[int]]:
    if slots <= 0 and not ahead:
        return [], []
    with limits.locked(name) as provider:
        if provider is None:
            return [], []
        now = timezone.now()
        calls_out = limits.calls_out(now).filter(provider=name).values_list("run", "lease")
        out = Counter(run for run, _ in calls_out)
        workers = Counter(worker for _, worker in calls_out)
        share = limits.share(provider, workers, lease)
        free = limits.allowed(provider, now, out.total(), lease)
        is_kept_out = slots > 0 >= free and lease not in workers
        is_kept_out &= max(workers.values(), default=0) > share
        limits.wait_for_share(provider, now, lease, is_waiting=is_kept_out)
        # Calls a minute are counted as they start, so that none of them can be started later. And
        # where too many are out, or somebody waits for a place, none is to follow.
        if provider.requests_per_minute or free < 0 or workers[lease] > share:
            ahead = 0
        starts = max(min(slots, free, share - workers[lease]), 0)
        rows = _next_calls(provider, runs, now, starts + ahead, out)
        pks = [pk for pk, _, _ in rows]
        limits.write_off(rows)
        for some, holder in ((pks[:starts], lease), (pks[starts:], None)):
            if some:
                Call.objects.filter(pk__in=some).update(
                    lease=holder, leased_until=now + LEASE, attempts=F("attempts") + 1
                )
        limits.count_starts(provider, now, len(pks[:starts]))
    return pks[:starts], pks[starts:]


def _next_calls(
    provider: Provider, runs: Sequence[UUID], now: datetime, number: int, out: Mapping[UUID, int]
) -> list[tuple[int, UUID, int]]:
    """Return free calls: the runs in turn, in each run the ones that wait longest."""
    if not number:
        return []
    turns = []
    for run in runs:
        free = (
            waiting_calls([run])
            .filter(_free(now), provider=provider.name)
            .exclude(model__in=limits.paused(provider, now))
            # A call whose late answer is being written down at this moment is no longer free.
            .select_for_update(no_key=True, skip_locked=True)
            .order_by("not_before", "pk")
            .values_list("not_before", "pk", "run_id", "reserved_nano")[:number]
        )
        turns += [(out[run] + turn, *row) for turn, row in enumerate(free)]
    return [(pk, run, reserved) for _, _, pk, run, reserved in sorted(turns)[:number]]


def renew(lease: UUID, calls: Collection[int]) -> None:
    leases.renew(Call.objects.filter(_WAITING, pk__in=calls, lease=lease), LEASE)


def take(calls: Sequence[Call], lease: UUID) -> None:
    """Lease calls that were set aside: each follows in the place of one that was answered."""
    if not calls:
        return
    now = timezone.now()
    aside = Call.objects.filter(
        _WAITING,
        pk__in=[call.pk for call in calls],
        lease__isnull=True,
        leased_until__in={call.leased_until for call in calls},
        leased_until__gt=now,
    )
    aside.update(lease=lease, leased_until=now + LEASE)
    for call in calls:
        call.lease = lease


def still_held(calls: Sequence[Call]) -> list[Call]:
    """Lock calls, and return those of them that are their holder's still."""
    waiting = Call.objects.filter(_WAITING, pk__in=[call.pk for call in calls])
    locked = waiting.select_for_update(no_key=True).order_by("pk")
    # What tells one holder from another: of a call that was set aside, until when it is.
    rows = locked.values_list("pk", "lease", "leased_until")
    holders = {pk: lease or until for pk, lease, until in rows}
    return [call for call in calls if holders.get(call.pk) == (call.lease or call.leased_until)]


def let_go(*calls: Call) -> None:
    """Give calls back as if they had never been claimed, but those that are another's meanwhile."""
    if not calls:
        return
    with transaction.atomic():
        mine = still_held(calls)
        Call.objects.filter(pk__in=[call.pk for call in mine]).update(
            attempts=F("attempts") - 1, lease=None, leased_until=None, reserved_nano=0
        )
        limits.settle((call.run_id, call.reserved_nano, 0) for call in mine)
