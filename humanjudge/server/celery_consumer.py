"""The part of a worker that takes tasks, named in the settings (`CELERY_WORKER_CONSUMER`)."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from logging import Logger
from typing import Any

from celery.worker import consumer
from kombu import Connection

# Celery's own pauses grow to half a minute, for which votes would wait after the broker is back.
PAUSE = 2


class Consumer(consumer.Consumer):
    """Looks for a broker that is away every two seconds, however long it has been away.

    A task that could not be acknowledged ends the connection, and so is given back to the broker.
    Celery would only log it and count the task among those that it holds: with as many of them as
    the worker has threads, it would take no more tasks, alive as it is.

    Kombu may fail to close a connection that is lost, which would end the worker: it wants to give
    back what was not acknowledged, by a way that is closed already. The broker gives those tasks
    back by itself later, and the sweep asks for what is left to do.
    """

    def ensure_connected(self, conn: Connection) -> Connection:
        conn.ensure_connection = partial(conn.ensure_connection, interval_max=PAUSE)  # type: ignore[method-assign]
        return super().ensure_connected(conn)

    def on_connection_error_after_connected(self, exc: Exception) -> None:
        with suppress(AttributeError):
            super().on_connection_error_after_connected(exc)

    def call_soon_ack(
        self, p: Callable[..., None], logger: Logger, errors: Any, *args: Any, **kwargs: Any
    ) -> Any:
        # None of the errors are its own to catch: the loop that takes tasks does.
        return super().call_soon_ack(p, logger, (), *args, **kwargs)  # type: ignore[misc]
