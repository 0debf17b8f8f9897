"""Tasks of reports; each may be delivered twice or die at any line."""

from uuid import UUID

from celery import shared_task
from django.utils import timezone

from reports.quality.projection import fold_left_behind
from reports.report.views.shares import forget_deleted_runs
from reports.scores import views
from reports.webhooks import heads, sending, services


@shared_task
def make_score_files(report_id: str) -> None:
    views.make(UUID(report_id))


@shared_task
def publish_heads() -> None:
    heads.publish_heads(timezone.now())
    services.forget_old()
    views.remove_left_behind()


@shared_task
def deliver(webhook_id: str) -> None:
    sending.deliver(UUID(webhook_id))


@shared_task
def sweep() -> None:
    views.requeue_lost()
    fold_left_behind()
    sending.ask_again_for_due()
    forget_deleted_runs()
