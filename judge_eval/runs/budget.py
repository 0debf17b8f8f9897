"""A run's money: what a call may cost is reserved before it is made, and settled after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Coalesce

from judge_eval.models import Call, Run


def fits(nano: int) -> Q:
    """Say of runs that so much more does not pass their budget."""
    so_far = F("spent_nano") + F("reserved_nano")
    return Q(budget_nano__isnull=True) | Q(budget_nano__gte=so_far + nano)


def reserve(call: Call, nano: int) -> bool:
    """Reserve money for one attempt; False when that would pass the run's budget."""
    if not nano:
        return True
    mine = Call.objects.filter(state=Call.State.WAITING, pk=call.pk, lease=call.lease)
    with transaction.atomic():
        # Whoever lost the lease meanwhile asks all the same, and brings an answer for nobody.
        column = "reserved_nano" if mine.select_for_update(no_key=True).exists() else "spent_nano"
        if not Run.objects.filter(fits(nano), pk=call.run_id).update(**{column: F(column) + nano}):
            return False
        mine.update(reserved_nano=F("reserved_nano") + nano)
    call.reserved_nano += nano
    return True


def settle(reserved: Mapping[UUID, int], spent: Mapping[UUID, int]) -> None:
    """Take off what was reserved by runs and add what was spent, each row once and in order."""
    for run in sorted(reserved.keys() | spent.keys()):
        free, cost = reserved.get(run, 0), spent.get(run, 0)
        if free or cost:
            Run.objects.filter(pk=run).update(
                reserved_nano=F("reserved_nano") - free, spent_nano=F("spent_nano") + cost
            )


def write_off(calls: Iterable[tuple[int, UUID, int]]) -> None:
    """Count what was reserved for attempts that nobody finished as spent: it may have been.

    Each is the call, its run, and what was reserved.
    """
    lost: Counter[UUID] = Counter()
    pks = []
    for pk, run, nano in calls:
        if nano:
            lost[run] += nano
            pks.append(pk)
    if pks:
        Call.objects.filter(pk__in=pks).update(
            cost_nano=Coalesce("cost_nano", 0) + F("reserved_nano"), reserved_nano=0
        )
        settle(lost, lost)
