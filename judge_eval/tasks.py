"""Tasks of the `rendering` and `judging` queues; each may be delivered twice or die at any line."""

import logging
from uuid import UUID

from celery import shared_task
from celery.worker import state as celery
from django.db import DatabaseError
from django.utils import timezone

from judge_eval.board import cache
from judge_eval.gate import drift
from judge_eval.imports import import_jobs
from judge_eval.judging import leases, trial, verdicts, worker
from judge_eval.runs import deletion, state
from voting.pictures.store import render_picture

logger = logging.getLogger(__name__)


@shared_task(acks_late=True)
def render(picture_id: int, run_id: str) -> None:
    render_picture(picture_id)
    state.advance(UUID(run_id))


@shared_task
def advance(run_id: str) -> None:
    state.advance(UUID(run_id))


def is_stopping() -> bool:
    # Celery sets them to an exit code, which may be 0 (and 0 == False), or to True.
    words: tuple[object, object] = (celery.should_stop, celery.should_terminate)
    return any(word is not None and word is not False for word in words)


@shared_task
def work() -> None:
    """Make the calls that wait, as many at once as this process has threads for them."""
    worker.work(should_stop=is_stopping)


@shared_task
def try_provider(call: int) -> None:
    trial.make_call(call)


@shared_task
def sweep() -> None:
    """Go on with every run whose tasks were lost: leases that ran out are asked for again."""
    for run_id in leases.runs_at_work():
        try:
            verdicts.settle_left(run_id)
            state.advance(run_id)
        except DatabaseError:
            raise
        except Exception:
            # One run that cannot go on must not hold up the others.
            logger.exception("run %s cannot go on", run_id)
    state.want_verdicts_on_new_items()
    import_jobs.submit_lost()


@shared_task
def refresh_findings() -> None:
    """See to what follows from entries that were sealed: complete runs, and newer findings."""
    if boards := state.boards_to_handle():
        state.complete_voted_runs([board.run_id for board in boards])
        state.record_progress(boards)
        cache.note_behind(boards)
        state.note_handled(boards)
    cache.refresh()


@shared_task
def compute_findings(run_id: str, part: str) -> None:
    cache.compute_apart_if_large(UUID(run_id), part)


@shared_task
def remove_old_replies() -> None:
    deletion.remove_old_replies(timezone.now())


@shared_task
def ask_anchors() -> None:
    if drift.ask_anchors(timezone.now()):
        ask_anchors.delay()  # behind what others wait for


@shared_task
def import_next() -> None:
    import_jobs.do_in_a_process()
