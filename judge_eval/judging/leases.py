"""Which worker makes which call: leases on rows, within what providers and budgets allow.

A lease lasts 20 seconds and is renewed while its holder lives. One that ran out is anybody's, so
a call whose worker was killed is made again; one that was delivered twice is not. A provider allows
so many calls at once and a minute, and may pause models. What a call may cost is reserved in its
run's budget before it is made, and settled after it.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from humanjudge.core import leases
from humanjudge.server.metrics import count
from judge_eval.models import TRIALS, Call, Provider, Run
from voting.models import Item

LEASE = timedelta(seconds=20)
_NONE: Final = MappingProxyType[str, int]({})
_WAITING = Q(state=Call.State.WAITING)
# Workers look for calls about ten times a second: what a limit allows meanwhile may start at once.
BURST = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
# The longest pause that one reply can ask for: it may be wrong. A second one is obeyed in full.
LONGEST_AT_FIRST = 60.0
# One worker makes so many calls at once with ease; more are shared among all workers.
EASY = 64
# A worker that waits for its share is waited for so long.
TURN = timedelta(seconds=3)


def _at_work() -> QuerySet[Run]:
    tried = Call.objects.filter(_WAITING, purpose__in=TRIALS).values("run")
    # In these only such calls are made; a run that was stopped may have others that wait.
    states = (Run.State.DRAFT, Run.State.VOTING, Run.State.COMPLETE)
    trying = Run.objects.filter(pk__in=tried, state__in=states).values("pk")
    at_work = Run.objects.filter(state__in=Run.AT_WORK).values("pk")
    return Run.objects.filter(pk__in=at_work.union(trying))


def runs_at_work() -> list[UUID]:
    return list(_at_work().values_list("pk", flat=True))


def paused_models(now: datetime) -> set[tuple[str, str]]:
    """Return the models that are paused, each after its provider."""
    providers = Provider.objects.exclude(pauses={}).only("name", "pauses")
    return {(provider.name, model) for provider in providers for model in paused(provider, now)}


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
    at_work = _at_work().select_related("queue__project", "queue__rubric").defer("config")
    runs = at_work.exclude(pk__in=without).in_bulk()
    claimed: list[int] = []
    for provider in _providers(list(runs)) if runs else ():
        now, aside = _claim_of(provider, list(runs), slots, lease, ahead.get(provider, 0))
        slots -= len(now)
        claimed += now + aside
    if not claimed:
        return []
    calls = list(
        Call.objects.filter(pk__in=claimed)
        .select_related("verdict__judge__rating")
        .order_by("not_before", "pk")
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


def _free_calls(now: datetime) -> Q:
    return Q(not_before__lte=now) & leases.free(now)


def _providers(runs: Sequence[UUID]) -> list[str]:
    """Return the providers with free calls: fewest out first, then the longest wait."""
    now = timezone.now()
    free = (
        waiting_calls(runs)
        .filter(_free_calls(now), provider=OuterRef("name"))
        .order_by("not_before")
    )
    out = calls_out(now).filter(provider=OuterRef("name")).order_by().values("provider")
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
    with locked(name) as provider:
        if provider is None:
            return [], []
        now = timezone.now()
        places = calls_out(now).filter(provider=name).values_list("run", "lease")
        out = Counter(run for run, _ in places)
        workers = Counter(worker for _, worker in places)
        # The most calls that a worker may have out.
        most = max(-(-provider.concurrency // len({*workers, lease})), EASY)
        free = allowed(provider, now, out.total(), lease)
        is_kept_out = slots > 0 >= free and lease not in workers
        is_kept_out &= max(workers.values(), default=0) > most
        wait_for_share(provider, now, lease, is_waiting=is_kept_out)
        # Calls a minute are counted as they start, so that none of them can be started later. And
        # where too many are out, or somebody waits for a place, none is to follow.
        if provider.requests_per_minute or free < 0 or workers[lease] > most:
            ahead = 0
        starts = max(min(slots, free, most - workers[lease]), 0)
        rows = _next_calls(provider, runs, now, starts + ahead, out)
        pks = [pk for pk, _, _ in rows]
        write_off(rows)
        for claimed_calls, holder in ((pks[:starts], lease), (pks[starts:], None)):
            if claimed_calls:
                Call.objects.filter(pk__in=claimed_calls).update(
                    lease=holder, leased_until=now + LEASE, attempts=F("attempts") + 1
                )
        count_starts(provider, now, len(pks[:starts]))
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
            .filter(_free_calls(now), provider=provider.name)
            .exclude(model__in=paused(provider, now))
            # A call whose late answer is being written down at this moment is no longer free.
            .select_for_update(no_key=True, skip_locked=True)
            .order_by("not_before", "pk")
            .values_list("not_before", "pk", "run_id", "reserved_nano", "leased_until")[:number]
        )
        turns += [(out[run] + turn, *row) for turn, row in enumerate(free)]
    next_calls = sorted(turns)[:number]
    count("humanjudge_lease_expiries_total", sum(until is not None for *_, until in next_calls))
    return [(pk, run, reserved) for _, _, pk, run, reserved, _ in next_calls]


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
        settle((call.run.pk, call.reserved_nano, 0) for call in mine if call.run)


@contextmanager
def locked(name: str) -> Iterator[Provider | None]:
    """Lock a provider: its calls are counted and started by one worker at a time."""
    with transaction.atomic():
        yield Provider.objects.select_for_update(no_key=True).filter(name=name).first()


def note_refused(name: str, model: str, refused: Collection[str]) -> None:
    """Remember what a model refuses, so that nobody asks it so again."""
    with locked(name) as provider:
        if provider and not {*refused} <= {*(noted := provider.refused.get(model, ()))}:
            provider.refused[model] = sorted({*refused, *noted})
            provider.save(update_fields=["refused"])


def calls_out(now: datetime) -> QuerySet[Call]:
    return Call.objects.filter(leases.active(now), state=Call.State.WAITING, lease__isnull=False)


def allowed(provider: Provider, now: datetime, out: int, worker: UUID) -> int:
    """Return how many calls a worker may start now, while so many are out.

    Negative where too many are, or others wait for a place.
    """
    free = provider.concurrency - out - len(_guests(provider, now).keys() - {str(worker)})
    if not provider.requests_per_minute:
        return free
    behind = now - _next_start(provider, now)
    return min(free, behind // _start_interval(provider) + 1 if behind >= timedelta(0) else 0)


def wait_for_share(provider: Provider, now: datetime, worker: UUID, *, is_waiting: bool) -> None:
    """Let a worker wait for a place, so that those with more than their share make room, or not."""
    guests = {guest: end for guest, end in _guests(provider, now).items() if guest != str(worker)}
    if is_waiting:
        guests[str(worker)] = (now + TURN).timestamp()
    if guests != provider.guests:
        provider.guests = guests
        provider.save(update_fields=["guests"])


def count_starts(provider: Provider, now: datetime, number: int) -> None:
    if provider.requests_per_minute:
        provider.next_start_at = _next_start(provider, now) + number * _start_interval(provider)
        provider.save(update_fields=["next_start_at"])


def pause(name: str, model: str, seconds: float, reason: str) -> None:
    """Start no call to a model for so long, unless it is paused for longer already."""
    with locked(name) as provider:
        if provider is None:
            return
        now = timezone.now()
        until = now + timedelta(seconds=seconds)
        current = paused(provider, now)
        if until > current.get(model, now):
            current_pauses = {
                paused_model: provider.pauses[paused_model] for paused_model in current
            }
            provider.pauses = {**current_pauses, model: {"until": until.timestamp(), "why": reason}}
            provider.save(update_fields=["pauses"])


def paused(provider: Provider, now: datetime) -> dict[str, datetime]:
    ends = {model: pause["until"] for model, pause in provider.pauses.items()}
    return {m: datetime.fromtimestamp(end, UTC) for m, end in ends.items() if end > now.timestamp()}


def _guests(provider: Provider, now: datetime) -> dict[str, float]:
    return {guest: end for guest, end in dict(provider.guests).items() if end > now.timestamp()}


def _next_start(provider: Provider, now: datetime) -> datetime:
    # What was not used is lost: a quiet hour must not end in a flood.
    start = provider.next_start_at if provider.requests_per_minute else None
    return max(start or now, now - BURST)


def _start_interval(provider: Provider) -> timedelta:
    """Return the time between two starts: even with a burst, no minute holds more calls."""
    return max((MINUTE + BURST) / (provider.requests_per_minute or 1), timedelta.resolution)


def reserve(call: Call, nano: int) -> bool:
    """Reserve money for one attempt; False when that would pass the run's budget."""
    if not nano or call.run is None:
        return True
    fits = Q(budget_nano__isnull=True) | Q(
        budget_nano__gte=F("spent_nano") + F("reserved_nano") + nano
    )
    mine = Call.objects.filter(state=Call.State.WAITING, pk=call.pk, lease=call.lease)
    with transaction.atomic():
        # Whoever lost the lease meanwhile asks all the same, and brings an answer for nobody.
        column = "reserved_nano" if mine.select_for_update(no_key=True).exists() else "spent_nano"
        if not Run.objects.filter(fits, pk=call.run.pk).update(**{column: F(column) + nano}):
            return False
        mine.update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def settle(calls: Iterable[tuple[UUID, int, int]]) -> None:
    """Take off runs what was reserved for calls and add what was spent, each run once, in order."""
    sums: dict[UUID, list[int]] = defaultdict(lambda: [0, 0])
    for run, *amounts in calls:
        sums[run] = [total + more for total, more in zip(sums[run], amounts, strict=True)]
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
