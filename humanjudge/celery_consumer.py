"""The part of a worker that takes tasks, named in the settings (`CELERY_WORKER_CONSUMER`)."""

from functools import partial

from celery.worker import consumer
from kombu import Connection

# Celery's own pauses grow to half a minute, for which votes would wait after the broker is back.
PAUSE = 2


class Consumer(consumer.Consumer):
    """Looks for a broker that is away every two seconds, however long it has been away."""

    def ensure_connected(self, conn: Connection) -> Connection:
        conn.ensure_connection = partial(conn.ensure_connection, interval_max=PAUSE)  # type: ignore[method-assign]
        return super().ensure_connected(conn)
