"""Tasks of reports; each may be delivered twice or die at any line."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from reports import score_files


@shared_task
def make_score_files(report_id: str) -> None:
    score_files.make(UUID(report_id))


@shared_task
def sweep() -> None:
    """Ask again for score files whose tasks were lost."""
    score_files.ask_again_for_lost()
