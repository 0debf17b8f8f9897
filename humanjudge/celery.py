"""The Celery application (its settings stand in settings.py under CELERY_), and tasks for it.

Workers and beat say every few seconds that they are alive, under keys of the broker that expire;
`/healthz` reads them. A worker says it for the queues it takes tasks from, so that it is known on
every machine whether votes are sealed and judges are asked, by however many workers; and for
itself, for the engine of its container.
"""

import contextlib
import logging
import os
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from celery import Celery, bootsteps
from celery.beat import Scheduler
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from humanjudge.server.alive import ALIVE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "humanjudge.settings")

ALIVE_SECONDS = 5
# Two may be late.
EXPIRES = 15
BEAT = "beat"
# A full disk, or a broker that is still reading its log, is an answer too.
BROKER_FAILED = (OperationalError, RedisError, OSError)

logger = logging.getLogger(__name__)

app = Celery("humanjudge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


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


def say_alive(names: Iterable[str]) -> None:
    """Say it once; a broker that is away is said by `/healthz` itself."""
    with contextlib.suppress(*BROKER_FAILED), broker() as client:
        for name in names:
            client.set(ALIVE + name, 1, ex=EXPIRES)


def who_is_alive(names: Iterable[str]) -> list[bool] | None:
    """Return which of these queues somebody works on; None where the broker does not answer."""
    try:
        with broker() as client:
            return [bool(sign) for sign in client.mget([ALIVE + name for name in names])]
    except BROKER_FAILED:
        return None


@contextlib.contextmanager
def broker() -> Any:
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=1)
        yield connection.default_channel.client  # type: ignore[attr-defined]


class Heartbeat(bootsteps.StartStopStep):
    """A part of a worker, started whenever it has a connection to the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        # In the loop that takes tasks: where that hangs, nothing is said.
        names = ([*app.amqp.queues.consume_from, consumer.hostname],)
        consumer.timer.call_after(0, say_alive, names)
        consumer.timer.call_repeatedly(ALIVE_SECONDS, say_alive, names)


class Clock(Scheduler):
    """Beat's scheduler, which says that it ticks, and goes on where the machine's clock goes back.

    Celery's would wait until the clock shows again what it showed when each task was last sent.
    """

    _reported_at = 0.0
    _ahead = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() - self._reported_at > ALIVE_SECONDS:
            self._reported_at = time.monotonic()
            say_alive([BEAT])
        before, self._ahead = self._ahead, time.time() - time.monotonic()
        if self._ahead < before - 1:
            for entry in self.schedule.values():
                entry.last_run_at = entry.default_now()
            self.populate_heap()
        return min(super().tick(*args, **kwargs), ALIVE_SECONDS)


app.steps["consumer"].add(Heartbeat)
