"""Tasks of the `rendering` and `judging` queues; each may be delivered twice or die at any line."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from judge_eval import judging
from judge_eval.selectors import runs_to_advance
from voting.pictures import render_picture


@shared_task(acks_late=True)
def render(picture_id: int, run_id: str) -> None:
    render_picture(picture_id)
    judging.advance(UUID(run_id))


@shared_task(acks_late=True)
def judge(verdict_id: int) -> None:
    judging.decide(verdict_id)


@shared_task
def advance(run_id: str) -> None:
    judging.advance(UUID(run_id))


@shared_task
def sweep() -> None:
    """Go on with every run whose tasks were lost: leases that ran out are asked for again."""
    for run_id in runs_to_advance():
        judging.advance(run_id)
