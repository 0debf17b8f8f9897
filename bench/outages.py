"""Seconds until votes are taken and sealed again after each outage: broker, database, full disk.

The full disk is a small file system in memory, which only root may mount; without that right it is
left out, and said.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import httpx

from bench.lib.report import figure, note
from tests.process.up import Up
from tests.servers import postgres_server, short_folder, valkey_server

OUTAGE_SECONDS = int(os.environ.get("BENCH_OUTAGE_SECONDS", "60"))
DISK_MEGABYTES = 120
AIM = "<= 5"
T = TypeVar("T")


def main() -> None:
    broker_and_database()
    full_disk()


def broker_and_database() -> None:
    folder = short_folder("hj-outage-")
    try:
        with (
            postgres_server() as database,
            valkey_server() as broker,
            Up(folder / "data", DATABASE_URL=database.url, REDIS_URL=broker.url) as up,
        ):
            votes = Votes(up.ready())
            for name, server in (("broker", broker), ("database", database)):
                votes.cast_and_seal()
                server.stop()
                kept_trying(votes, OUTAGE_SECONDS)
                server.start()
                votes.show_return(f"after {OUTAGE_SECONDS} s without the {name}")
            up.stop(signal.SIGTERM)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def full_disk() -> None:
    folder = short_folder("hj-disk-")
    try:
        with small_disk(folder) as is_small:
            if not is_small:
                note("the full disk is not measured: a file system may be mounted by root only")
                return
            with Up(folder / "data") as up:
                votes = Votes(up.ready())
                votes.cast_and_seal()
                filler = folder / "filler"
                fill(filler)
                kept_trying(votes, OUTAGE_SECONDS)
                deaths = up.shown().count(" died ")
                filler.unlink()
                votes.show_return(f"after {OUTAGE_SECONDS} s with a full disk")
                note(f"{deaths} processes died meanwhile and were started again")
                up.stop(signal.SIGTERM)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Votes:
    """Votes through the API of a running installation."""

    def __init__(self, up: Up) -> None:
        self.api = up.run_api()
        self.up = up
        self.tasks = [task["id"] for task in until(self._tasks)]

    def _tasks(self) -> list[dict[str, str]]:
        # On a first start the drawings are still being drawn.
        tasks: list[dict[str, str]] = self.api.get("pending", params={"limit": 20}).json()["tasks"]
        return tasks if len(tasks) > 8 else []

    def cast(self) -> bool:
        """Try to vote on the next pair; say whether it was acknowledged."""
        with contextlib.suppress(httpx.TransportError):
            vote = {"task_id": self.tasks[0], "winner": "A"}
            if self.api.post("vote", json=vote).status_code == 200:
                del self.tasks[0]
                return True
        return False

    def sealed(self) -> int:
        with contextlib.suppress(httpx.TransportError):
            return int(self.up.results().get("votes", -1))
        return -1

    def cast_and_seal(self) -> None:
        before = until(lambda: self.sealed() + 1) - 1
        until(self.cast)
        until(lambda: self.sealed() > before)

    def show_return(self, when: str) -> None:
        back = time.monotonic()
        before = until(lambda: self.sealed() + 1) - 1
        until(self.cast)
        figure(f"votes taken again {when}", time.monotonic() - back, "s", AIM)
        until(lambda: self.sealed() > before)
        figure(f"votes sealed again {when}", time.monotonic() - back, "s", AIM)
        until(lambda: httpx.get(f"{self.up.url}/healthz", timeout=30).status_code == 200)
        figure(f"all processes well again {when}", time.monotonic() - back, "s")


def until(found: Callable[[], T], seconds: float = 300) -> T:
    deadline = time.monotonic() + seconds
    while not (value := found()):
        if time.monotonic() > deadline:
            raise TimeoutError("it did not come back")
        time.sleep(0.05)
    return value


def kept_trying(votes: Votes, seconds: float) -> None:
    """Let the outage last, with somebody who looks at the board all the while."""
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        votes.sealed()
        time.sleep(0.5)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    size = f"size={DISK_MEGABYTES}m,mode=0700"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=False, capture_output=True
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"\0" * 65536):
            pass
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while file.write(b"\0"):
            pass


if __name__ == "__main__":
    main()
