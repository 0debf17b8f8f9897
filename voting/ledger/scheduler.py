"""Asks the workers to seal, without making a vote wait for the broker.

A vote only notes its project here. One thread per process collects the notes of a window and
publishes one task per project behind it, so a burst of votes costs one task, and a broker that
hangs or is down costs the voter nothing: the sweep seals what no task was published for.

Most of what a seal costs it costs once, however many votes it seals. So where very many come, the
window is longer: a few more tenths of a second until the board shows them, and more votes a second.
"""

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from uuid import UUID

from django.conf import settings

from humanjudge.celery import app

logger = logging.getLogger(__name__)

# Votes per second of one process, and how many windows it then waits.
CROWD = 150
CROWD_WINDOWS = 5


class Nudger:
    def __init__(
        self,
        publish: Callable[[UUID], object],
        window: float,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._publish, self._window, self._sleep = publish, window, sleep
        self._noted: SimpleQueue[UUID] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._broker_failed = False

    def __call__(self, project: UUID) -> None:
        self._noted.put(project)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="nudger", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        window = self._window
        while True:
            projects = [self._noted.get()]
            projects += [self._noted.get() for _ in range(self._noted.qsize())]
            is_crowd = len(projects) > CROWD * window
            window = self._window * (CROWD_WINDOWS if is_crowd else 1)
            # What is taken is older than the window when it is published, so its seal finds it.
            self._sleep(window)
            for project in dict.fromkeys(projects):
                self._try(project)

    def _try(self, project: UUID) -> None:
        try:
            self._publish(project)
        except Exception as error:  # noqa: BLE001  votes go on whatever the broker does
            if not self._broker_failed:
                logger.warning("broker unreachable, the sweep will seal: %s", error)
            self._broker_failed = True
        else:
            self._broker_failed = False


def _publish(project: UUID) -> None:
    app.send_task("voting.tasks.seal", [str(project)], retry=False)


nudge = Nudger(_publish, (settings.SEAL_WINDOW_MS + 5) / 1000)
