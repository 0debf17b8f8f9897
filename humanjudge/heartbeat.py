"""Workers and beat say every few seconds that they are alive, under keys of the broker that expire.

`/healthz` reads them. A worker says it for the queues it takes tasks from, so that it is known on
every machine whether votes are sealed and judges are asked, by however many workers.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from typing import Any

from celery import Celery, bootsteps
from celery.beat import Scheduler
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

SECONDS = 5
# Two may be late.
EXPIRES = 15
BEAT = "beat"
_KEY = "humanjudge:alive:"
# A full disk, or a broker that is still reading its log, is an answer too.
_BROKER_FAILED = (OperationalError, RedisError, OSError)


def say_alive(app: Celery, names: Iterable[str]) -> None:
    """Say it once; a broker that is away is said by `/healthz` itself."""
    with contextlib.suppress(*_BROKER_FAILED), _broker(app) as client:
        for name in names:
            client.set(_KEY + name, 1, ex=EXPIRES)


def who_is_alive(app: Celery, names: list[str]) -> dict[str, bool] | None:
    """Return which of these queues somebody works on; None where the broker does not answer."""
    try:
        with _broker(app) as client:
            found = client.mget([_KEY + name for name in names])
    except _BROKER_FAILED:
        return None
    return {name: bool(value) for name, value in zip(names, found, strict=True)}


@contextlib.contextmanager
def _broker(app: Celery) -> Any:
    with app.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=1)
        yield connection.default_channel.client  # type: ignore[attr-defined]


class Heartbeat(bootsteps.StartStopStep):
    """A part of a worker, started whenever it has a connection to the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, consumer: Any) -> None:
        # In the loop that takes tasks: where that hangs, nothing is said.
        beat = (consumer.app, list(consumer.app.amqp.queues.consume_from))
        consumer.timer.call_after(0, say_alive, beat)
        consumer.timer.call_repeatedly(SECONDS, say_alive, beat)


class Clock(Scheduler):
    """Beat's scheduler, which says that it ticks."""

    _said_at = 0.0

    def tick(self, *args: Any, **kwargs: Any) -> Any:
        if time.monotonic() - self._said_at > SECONDS:
            self._said_at = time.monotonic()
            say_alive(self.app, [BEAT])
        return super().tick(*args, **kwargs)
