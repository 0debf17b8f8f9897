"""The Celery application (its settings stand in settings.py under CELERY_), and tasks for it."""

from __future__ import annotations

import logging
import os
from functools import partial

from celery import Celery
from django.db import transaction

from humanjudge.heartbeat import Heartbeat

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

logger = logging.getLogger(__name__)

app = Celery("humanjudge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["consumer"].add(Heartbeat)


def enqueue(task: str, *arguments: str | int) -> None:
    """Publish a task by its name when the transaction commits.

    The rows say what is left to do and a sweep publishes again what was lost, so a broker that
    cannot be reached delays work and breaks nothing.
    """
    transaction.on_commit(partial(_publish, task, arguments))


def _publish(task: str, arguments: tuple[str | int, ...]) -> None:
    try:
        app.send_task(task, arguments, retry=False)
    except Exception as error:  # noqa: BLE001  whatever the broker's client raises
        logger.warning("%s not published, the sweep will: %s", task, error)
