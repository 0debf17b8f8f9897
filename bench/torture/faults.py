"""What is taken away from a running installation, beside its processes."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.torture.installation import Installation

STEP_BACK = 3600.0
# Less does not come back to who asks for it on a disk that is nearly full.
BLOCK = 65536

Fault = Callable[[Installation, float], None]


def clock_back(here: Installation, seconds: float) -> None:
    """An hour back, in all processes of the product at the same time; and, after a while, forth."""
    here.step_clock(-STEP_BACK)
    time.sleep(seconds)
    here.step_clock(0)


def broker_flushed(here: Installation, seconds: float) -> None:
    with contextlib.closing(here.broker()) as client:
        client.flushall()


def broker_stopped(here: Installation, seconds: float) -> None:
    """Alive and silent, as behind a network that swallows everything."""
    [pid] = here.up.processes("valkey-server")
    with _frozen([pid]):
        time.sleep(seconds)


def database_away(here: Installation, seconds: float) -> None:
    """PostgreSQL is stopped; SQLite's file is locked by somebody else."""
    if here.postgres:
        here.postgres.stop()
        time.sleep(seconds)
        here.postgres.start()
        return
    with contextlib.closing(sqlite3.connect(_file(here), timeout=60)) as other:
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        other.rollback()


def database_frozen(here: Installation, seconds: float) -> None:
    """Connections stay open and nothing answers."""
    if here.postgres:
        with _frozen([here.postgres.pid, *_children(here.postgres.pid)]):
            time.sleep(seconds)


def disk_of_data_full(here: Installation, seconds: float) -> None:
    """The disk of the data folder: the broker's append-only file, logs, pictures; SQLite's file."""
    with _filled(here.data):
        time.sleep(seconds)


def disk_of_postgresql_full(here: Installation, seconds: float) -> None:
    if not here.postgres:
        return
    with _filled(here.folder / "postgres"):
        time.sleep(seconds)
    # It ends where it cannot write; whoever runs it starts it again.
    time.sleep(1)
    if not here.postgres.answers():
        here.postgres.stop()
        here.postgres.start()


COMMON: Mapping[str, Fault] = {
    "clock an hour back": clock_back,
    "broker flushed": broker_flushed,
    "broker frozen": broker_stopped,
    "disk of the data folder full": disk_of_data_full,
}
FAULTS: Mapping[str, Mapping[str, Fault]] = {
    "SQLite": {**COMMON, "database locked": database_away},
    "PostgreSQL": {
        **COMMON,
        "database stopped": database_away,
        "database frozen": database_frozen,
        "disk of the database full": disk_of_postgresql_full,
    },
}


def _file(here: Installation) -> Path:
    return here.data / "humanjudge.sqlite3"


@contextlib.contextmanager
def _frozen(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def _filled(folder: Path) -> Iterator[None]:
    filler = folder / "filler"
    try:
        for block in (BLOCK, 1):
            with contextlib.suppress(OSError), filler.open("ab", buffering=0) as file:
                while file.write(b"\0" * block):
                    pass
        yield
    finally:
        filler.unlink()
