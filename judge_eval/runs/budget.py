"""A run's budget: what cannot be paid for is not asked, and stops the run."""

from __future__ import annotations

import logging
import time
from uuid import UUID

from django.db import transaction
from django.db.models import F

from judge_eval.models import Run
from judge_eval.runs import leases, providers
from judge_eval.runs.lifecycle import LifecycleRefused, stop
from judge_eval.runs.requests import Question

logger = logging.getLogger(__name__)

HELD_SECONDS = 1.0


class Held:
    """Runs whose money is out with other calls: nothing of theirs is claimed for a moment."""

    def __init__(self) -> None:
        self._until: dict[UUID, float] = {}

    def runs(self) -> set[UUID]:
        now = time.monotonic()
        self._until = {run: until for run, until in self._until.items() if until > now}
        return set(self._until)

    def hold(self, run: UUID) -> None:
        self._until[run] = time.monotonic() + HELD_SECONDS

    def release(self, run: UUID) -> None:
        """Say that one of its calls is paid, so that there may be room again."""
        self._until.pop(run, None)


def lacks_price(question: Question) -> bool:
    """Say whether nobody knows what a call costs that has to be paid from a budget."""
    return question.call.run.budget_nano is not None and question.price is None


def reserve(question: Question) -> bool:
    """Set aside what a call can cost; False when that is not known or would pass the budget."""
    if question.call.run.budget_nano is None:
        return True
    return not lacks_price(question) and leases.reserve(question.call, question.reservation_nano)


def stop_if_over(question: Question) -> bool:
    """Stop a run whose next call has no price, or no room though no other call holds money.

    False where others do: once they are paid it may fit.
    """
    run_id = question.call.run_id
    if lacks_price(question):
        _stop(run_id, providers.unpriced(question.call.model))
        return True
    with transaction.atomic():
        # Nobody sets money aside while this is held.
        runs = Run.objects.select_for_update(no_key=True).defer("config")
        run = runs.get(pk=run_id)
        budget = run.budget_nano
        if run.reserved_nano or leases.calls_out(run_id).exists():
            return False
        if budget is None or run.spent_nano + question.reservation_nano <= budget:
            return False
        _stop(run_id, f"The next call could pass the budget of {providers.dollars(budget)}.")
    return True


def _stop(run_id: UUID, note: str) -> None:
    try:
        stop(run_id, note)
    except LifecycleRefused:
        logger.info("run %s was stopped already", run_id)


def spend(run_id: UUID, nano: int) -> bool:
    """Count the most that a call can cost as spent; False when that would pass the budget.

    A worker that dies in mid-call leaves it so: the call may have been made and billed.
    """
    runs = Run.objects.filter(leases.fits(nano), pk=run_id)
    return bool(runs.update(spent_nano=F("spent_nano") + nano))


def settle(run_id: UUID, counted: int, cost: int) -> None:
    """Turn what was counted as spent into what it cost."""
    Run.objects.filter(pk=run_id).update(spent_nano=F("spent_nano") + cost - counted)
