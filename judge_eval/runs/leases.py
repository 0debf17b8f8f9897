"""Who makes which call: leases on rows, within what each provider allows.

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
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from humanjudge.lib import leases
from judge_eval.models import Call, Provider, Run
from judge_eval.runs import limits
from voting.models import Item

LEASE = timedelta(seconds=20)
_NONE: Final = MappingProxyType[str, int]({})
_WAITING = Q(state=Call.State.WAITING)


def runs_at_work() -> list[UUID]:
    return list(Run.objects.filter(state__in=Run.AT_WORK).values_list("pk", flat=True))


def paused(now: datetime) -> list[tuple[str, str]]:
    """Name the models that are left alone at this moment, each after its provider."""
    some = Provider.objects.exclude(pauses={}).only("name", "pauses")
    return [(provider.name, model) for provider in some for model in limits.paused(provider, now)]


def waiting_calls(runs: Collection[UUID]) -> QuerySet[Call]:
    """Return calls that are still to be made, now or later, by whomever."""
    return Call.objects.filter(_WAITING, run__in=runs)


def _free(now: datetime) -> Q:
    return Q(not_before__lte=now) & leases.free(now)


def claim(
    slots: int, lease: UUID, ahead: Mapping[str, int] = _NONE, without: Collection[UUID] = ()
) -> list[Call]:
    """Lease calls to be made now, with all they are about, of all runs at work but some.

    As many more as `ahead` says of each provider are set aside, without a lease: where a call of
    the same crew is answered, one of them may follow at once and the provider is never idle.
    Whoever has the fewest calls out comes first: a large run does not hold up a small one.
    """
    runs = {run.pk: run for run in _runs_with_all_about() if run.pk not in without}
    claimed: list[int] = []
    if runs:
        for provider in _providers(list(runs), timezone.now()):
            now, aside = _claim_of(provider, list(runs), slots, lease, ahead.get(provider, 0))
            slots -= len(now)
            claimed += now + aside
    calls = _calls_with_all_about(claimed) if claimed else []
    for call in calls:
        call.run = runs[call.run_id]
    return calls


def _runs_with_all_about() -> QuerySet[Run]:
    at_work = Run.objects.filter(state__in=Run.AT_WORK)
    about = at_work.select_related("queue__project", "queue__rubric")
    return about.defer("config")  # it is large, and read once a run


def _calls_with_all_about(claimed: Sequence[int]) -> list[Call]:
    found = Call.objects.select_related("verdict").filter(pk__in=claimed)
    calls = list(found.order_by("not_before", "pk"))
    # Every judge is shown the same pair, and twice.
    pairs = _pairs({call.verdict.item_id for call in calls if call.verdict})
    for call in calls:
        if call.verdict:
            call.verdict.item = pairs[call.verdict.item_id]
    return calls


def _pairs(pks: Collection[UUID]) -> dict[UUID, Item]:
    about = Item.objects.select_related("a__picture", "b__picture")
    return about.defer(
        *(f"{side}__{name}" for side in "ab" for name in ("metadata", "tags"))
    ).in_bulk(pks)


def _providers(runs: Sequence[UUID], now: datetime) -> list[str]:
    """Return who has free calls: whoever has fewest out first, then whoever has waited longest."""
    free = waiting_calls(runs).filter(_free(now))
    waits = Exists(free.filter(provider=OuterRef("name")))
    names = list(Provider.objects.filter(waits).values_list("name", flat=True))
    if len(names) < 2:
        return names
    out = Counter(limits.calls_out(now).values_list("provider", flat=True))
    since = {name: free.filter(provider=name).order_by("not_before").first() for name in names}
    return sorted(
        names, key=lambda name: (out[name], call.not_before if (call := since[name]) else now)
    )


def calls_out(run: UUID) -> QuerySet[Call]:
    """Return a run's calls that somebody makes at this moment."""
    return limits.calls_out(timezone.now()).filter(run=run)


def _claim_of(
    name: str, runs: Sequence[UUID], slots: int, lease: UUID, ahead: int
) -> tuple[list[int], list[int]]:
    """Return which calls of a provider were leased, and which were set aside."""
    if slots <= 0 and not ahead:
        return [], []
    with transaction.atomic():
        # Under this lock a provider's calls are counted and started by one worker at a time.
        provider = Provider.objects.select_for_update(no_key=True).filter(name=name).first()
        if provider is None:
            return [], []
        now = timezone.now()
        limits.welcome(provider, lease)
        calls_out = limits.calls_out(now).filter(provider=name).values_list("run", "lease")
        out = Counter(run for run, _ in calls_out)
        crews = Counter(crew for _, crew in calls_out)
        part = limits.part(provider, crews, lease)
        free = limits.allowed(provider, now, out.total())
        allowed = max(min(slots, free, part - crews[lease]), 0)
        if slots and free <= 0 and lease not in crews and max(crews.values(), default=0) > part:
            limits.ask_for_part(provider, now, lease)
        # Calls a minute are counted as they start, so that none of them can be begun later. And
        # where too many are out, or somebody waits for a place, none is to follow.
        follows = (
            not provider.requests_per_minute
            and limits.free_places(provider, now, out.total()) >= 0
            and crews[lease] <= part
        )
        more = ahead if follows else 0
        rows = _next_calls(provider, runs, now, allowed + more, out)
        claimed = [pk for pk, _, _ in rows]
        if rows:
            write_off(rows)
            until, attempts = now + LEASE, F("attempts") + 1
            calls = Call.objects.filter(pk__in=claimed[:allowed])
            calls.update(lease=lease, leased_until=until, attempts=attempts)
            calls = Call.objects.filter(pk__in=claimed[allowed:])
            calls.update(lease=None, leased_until=until, attempts=attempts)
            limits.started(provider, now, len(claimed[:allowed]))
    return claimed[:allowed], claimed[allowed:]


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
    leases.renew(mine, LEASE)


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


def fits(nano: int) -> Q:
    """Say of runs that so much more does not pass their budget."""
    so_far = F("spent_nano") + F("reserved_nano")
    return Q(budget_nano__isnull=True) | Q(budget_nano__gte=so_far + nano)


def reserve(call: Call, nano: int) -> bool:
    """Set money aside for one attempt; False when that would pass the run's budget."""
    if not nano:
        return True
    mine = Call.objects.filter(_WAITING, pk=call.pk, lease=call.lease)
    with transaction.atomic():
        # Whoever lost the lease meanwhile asks all the same, and brings an answer for nobody.
        purse = "reserved_nano" if mine.select_for_update(no_key=True).exists() else "spent_nano"
        if not Run.objects.filter(fits(nano), pk=call.run_id).update(**{purse: F(purse) + nano}):
            return False
        mine.update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def let_go(*calls: Call) -> None:
    """Give calls back as if they had never been claimed, but those that are another's meanwhile."""
    marks = {call.pk: (call.lease, call.leased_until) for call in calls}
    with transaction.atomic():
        waiting = Call.objects.filter(_WAITING, pk__in=marks).select_for_update(no_key=True)
        found = waiting.order_by("pk").values_list("pk", "lease", "leased_until")
        mine = {pk for pk, *mark in found if tuple(mark) == marks[pk]}
        Call.objects.filter(pk__in=mine).update(
            attempts=F("attempts") - 1, lease=None, leased_until=None, reserved_nano=0
        )
        _free_money([call for call in calls if call.pk in mine])


def _free_money(calls: Collection[Call]) -> None:
    """Give back what was set aside for calls."""
    reserved: Counter[UUID] = Counter()
    for call in calls:
        reserved[call.run_id] += call.reserved_nano
    for run, nano in sorted(reserved.items()):
        if nano:
            Run.objects.filter(pk=run).update(reserved_nano=F("reserved_nano") - nano)
