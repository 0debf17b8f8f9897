"""Real web servers and workers of the product, to be killed and brought back."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import httpx
from django.db import connection

from humanjudge.server.launcher import programs
from tests.helpers.waiting import eventually, gone
from tests.process.nursery import ROOT, Nursery
from tests.servers import lifeline

HOST = "127.0.0.1"
START_SECONDS = 180


def test_database_url() -> str:
    """The URL of the database that pytest-django made for this test."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))


test_database_url.__test__ = False  # type: ignore[attr-defined]  # pytest goes by the name


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


class Forked:
    """A process that another one has forked, asked like a `Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def poll(self) -> int | None:
        return 0 if gone(self.pid) else None

    def wait(self) -> None:
        eventually(lambda: gone(self.pid))


class Site:
    """The processes of one installation, each in a process group of its own.

    They are forked, as those of `manage.py up` are; `afresh` starts each by itself, in the
    environment as it is by then.
    """

    def __init__(
        self, folder: Path, database: str, broker: str, *, afresh: bool = False, **environment: str
    ) -> None:
        self.folder = folder
        self._afresh = afresh
        self._nursery: Nursery | None = None
        self.port = free_port()
        self.environment = {
            **os.environ,
            "DATABASE_URL": database,
            "REDIS_URL": broker,
            "HUMANJUDGE_DATA": str(folder / "data"),
            **environment,
        }
        self._running: list[subprocess.Popen[bytes] | Forked] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in list(self._running):
            self.kill(process)
        if self._nursery:
            self._nursery.close()

    def manage(self, *arguments: str) -> str:
        """Run a management command to its end and return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def serve_static(self, collected: Path) -> None:
        """Serve static files that were collected for another installation."""
        data = self.folder / "data"
        data.mkdir(mode=0o700, exist_ok=True)
        (data / "static").symlink_to(collected)

    def web(self) -> subprocess.Popen[bytes] | Forked:
        """Start the web server; it answers when this returns."""
        process = self._start("web", programs.web(HOST, self.port))
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            assert process.poll() is None, self.log("web")
            assert time.monotonic() < deadline, self.log("web")
            time.sleep(0.02)
        return process

    def worker(self) -> subprocess.Popen[bytes] | Forked:
        return self._start("worker", programs.worker())

    def workers(self) -> list[subprocess.Popen[bytes] | Forked]:
        """Start those that `make run` starts."""
        return [self._start(name, programs.WORKERS[name]()) for name in ("sealer", "worker")]

    def beat(self) -> subprocess.Popen[bytes] | Forked:
        return self._start("beat", programs.beat())

    def kill(self, process: subprocess.Popen[bytes] | Forked) -> None:
        """End a process and what it started with kill -9."""
        # One that has ended by itself may be forgotten by now.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lifeline().remove(process.pid)
        self._running.remove(process)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _start(self, name: str, command: list[str]) -> subprocess.Popen[bytes] | Forked:
        process = self._begun(name, command) if self._afresh else self._forked(name, command)
        lifeline().add(process.pid)
        self._running.append(process)
        return process

    def _begun(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with self.folder.joinpath(f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _forked(self, name: str, command: list[str]) -> Forked:
        if self._nursery is None:
            self._nursery = Nursery(self.folder, self.environment)
        return Forked(self._nursery.start(name, command))

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def health(self) -> tuple[int, dict[str, Any]]:
        reply = httpx.get(f"{self.url}/healthz", timeout=30)
        return reply.status_code, reply.json()
