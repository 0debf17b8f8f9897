"""Runs tests in workers that are forked from one process, which has imported and collected them.

What is collected once need not be collected by each worker, and what is imported once is shared.
A worker asks for the next tests when it has none left: those of one file, which share what they
make, or those of several files that share a running product. One that dies has failed the test
that it was at; another one goes on with the rest.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import pytest

CONTEXT = get_context("fork")
# Plugins that show what is reported: once, by the process that all workers report to.
SHOWING = ("terminalreporter", "progress")
# A worker that is told to end has its fixtures to take down.
END_SECONDS = 60


@dataclass
class Worker:
    """A forked process, as the one that forked it knows it."""

    number: int
    process: Any
    connection: Connection
    tests: deque[int] = field(default_factory=deque)
    current: int | None = None


class Distribution:
    """Replaces pytest's own loop over tests: gives groups of tests to workers, shows their reports.

    Parameters
    ----------
    count
        How many workers.
    group_of
        The name of the group of a test.
    adopt
        What a worker does first with its number: its data folder, its broker, its database.
    """

    def __init__(
        self, count: int, *, group_of: Callable[[pytest.Item], str], adopt: Callable[[int], None]
    ) -> None:
        self.count, self.group_of, self.adopt = count, group_of, adopt
        self.workers: dict[Connection, Worker] = {}
        self.started = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or self.count < 2:
            return None
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        self.session, self.hook = session, session.config.hook
        self.groups = _groups(session.items, self.group_of)
        # What has been collected stays, and nobody needs to look whether it is still needed.
        gc.collect()
        gc.freeze()
        try:
            for _ in range(min(self.count, len(self.groups))):
                self._start()
            while self.workers:
                self._hear()
        finally:
            self._end()
        return True

    def _start(self) -> None:
        ours, theirs = CONTEXT.Pipe()
        number = self.started
        self.started += 1
        close = [ours, *self.workers]
        process = CONTEXT.Process(target=_work, args=(self, number, theirs, close))
        process.start()
        theirs.close()
        self.workers[ours] = Worker(number, process, ours)

    def _hear(self) -> None:
        for connection in wait(list(self.workers)):
            worker = self.workers[connection]
            try:
                word, *details = connection.recv()
            except (EOFError, OSError):
                self._lost(worker)
            else:
                getattr(self, f"_{word}")(worker, *details)
            if self.session.shouldfail:
                raise self.session.Failed(self.session.shouldfail)

    def _next(self, worker: Worker) -> None:
        worker.current, worker.tests = None, self.groups.popleft() if self.groups else deque()
        worker.connection.send(list(worker.tests))

    def _begin(self, worker: Worker, index: int) -> None:
        worker.current = index
        worker.tests.popleft()
        item = self.session.items[index]
        self.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)

    def _report(self, worker: Worker, data: dict[str, Any]) -> None:
        report = self.hook.pytest_report_from_serializable(config=self.session.config, data=data)
        report.worker = worker.number
        self.hook.pytest_runtest_logreport(report=report)

    def _done(self, worker: Worker, index: int) -> None:
        worker.current = None
        item = self.session.items[index]
        self.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _bye(self, worker: Worker, error: str) -> None:
        if error:
            self._failed(f"end of worker {worker.number}", error)
        self.workers.pop(worker.connection).process.join()

    def _lost(self, worker: Worker) -> None:
        """A worker died: the test that it was at has failed, and another worker does the rest."""
        del self.workers[worker.connection]
        worker.process.join()
        name = f"worker {worker.number}"
        if worker.current is not None:
            name = self.session.items[worker.current].nodeid
        self._failed(name, f"the process of the test ended with {worker.process.exitcode}")
        if worker.tests:
            self.groups.appendleft(worker.tests)
        if self.groups:
            self._start()

    def _failed(self, nodeid: str, error: str) -> None:
        location = (nodeid.partition("::")[0], None, nodeid)
        report = pytest.TestReport(nodeid, location, {}, "failed", error, "teardown")
        self.hook.pytest_runtest_logreport(report=report)

    def _end(self) -> None:
        """Let all workers end, those too that are in the middle of a test."""
        for worker in self.workers.values():
            os.kill(worker.process.pid, signal.SIGINT)
        until = time.monotonic() + END_SECONDS
        for worker in self.workers.values():
            worker.process.join(max(0, until - time.monotonic()))
            worker.process.kill()
        self.workers.clear()


def _groups(items: list[pytest.Item], group_of: Callable[[pytest.Item], str]) -> deque[deque[int]]:
    """Places of tests by group, in the order in which the first of each comes."""
    found: dict[str, deque[int]] = {}
    for index, item in enumerate(items):
        found.setdefault(group_of(item), deque()).append(index)
    return deque(found.values())


class Sender:
    """Sends what is reported in a worker to the process that shows it."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self.config, self.connection = config, connection

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self.config.hook
        data = hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", data))


def _work(
    distribution: Distribution, number: int, connection: Connection, close: list[Connection]
) -> None:
    """What a worker does, until it is given no more tests."""
    for other in close:
        other.close()
    session, config = distribution.session, distribution.session.config
    plugins = config.pluginmanager
    capture = plugins.getplugin("capturemanager")
    # Its own: the one it has inherited writes into the file of the process that forked it.
    capture.stop_global_capturing()
    capture.start_global_capturing()
    for name in SHOWING:
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    plugins.register(Sender(config, connection))
    error = ""
    try:
        distribution.adopt(number)
        _run_groups(session, connection)
        session._setupstate.teardown_exact(None)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        session._setupstate.teardown_exact(None)
    except BaseException:  # noqa: BLE001  whatever it is, it is shown
        error = traceback.format_exc()
    capture.stop_global_capturing()
    sys.stdout.flush()
    connection.send(("bye", error))


def _run_groups(session: pytest.Session, connection: Connection) -> None:
    while True:
        connection.send(("next",))
        tests = connection.recv()
        if not tests:
            return
        for index, following in zip(tests, [*tests[1:], None], strict=True):
            connection.send(("begin", index))
            item = session.items[index]
            # After the last one all is taken down but what belongs to the session.
            after = session if following is None else session.items[following]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            connection.send(("done", index))
