"""Tasks of reports; each may be delivered twice or die at any line."""

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from reports.quality.projection import fold_left_behind
from reports.scores import jobs
from reports.shares import heads
from reports.shares.services import forget_deleted_runs
from reports.webhooks import sending, services


@shared_task
def make_score_files(report_id: str) -> None:
    jobs.make(UUID(report_id))


@shared_task
def tell_heads() -> None:
    heads.tell_heads(timezone.now())
    services.forget_old()


@shared_task
def deliver(webhook_id: str) -> None:
    sending.deliver(UUID(webhook_id))


@shared_task
def sweep() -> None:
    jobs.ask_again_for_lost()
    jobs.remove_left_behind()
    fold_left_behind()
    sending.ask_again_for_due()
    forget_deleted_runs()
