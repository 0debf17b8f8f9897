"""Hand a task to the workers by name, after the transaction, and never fail for it."""

from __future__ import annotations

import logging
from functools import partial

from django.db import transaction

from humanjudge.celery import app

logger = logging.getLogger(__name__)


def enqueue(task: str, *arguments: str | int) -> None:
    """Publish a task when the transaction commits.

    The rows say what is left to do and a sweep publishes again what was lost, so a broker that
    cannot be reached delays work and breaks nothing.
    """
    transaction.on_commit(partial(_publish, task, arguments))


def _publish(task: str, arguments: tuple[str | int, ...]) -> None:
    try:
        app.send_task(task, arguments, retry=False)
    except Exception as error:  # noqa: BLE001  whatever the broker's client raises
        logger.warning("%s not published, the sweep will: %s", task, error)
