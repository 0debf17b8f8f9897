"""Runs the whole suite: what needs only SQLite, beside what needs more, and says how far both are.

python -m tests.suite [--thorough] [--costs FILE] [what pytest takes …]

Tests of processes wait for much of their time: the other half runs meanwhile. A test that fails is
named at once; what its half printed stands at the end, where nothing comes after it.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.progress import PROGRESS

ROOT = Path(__file__).resolve().parents[1]
# How often a log that is no terminal is told how far the suite is.
SECONDS_BETWEEN_LINES = 20
DEAREST_FILES = 10


@dataclass(frozen=True)
class Half:
    """Tests that run on one database, in so many workers: those that `pytest` is asked for."""

    name: str
    database: str
    workers: int
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()


# PostgreSQL is asked only what needs it: a file marked `both` runs on either database, and has SQL
# of its own, locks, writers at the same moment, query plans or constraints. What uses the ORM as
# everybody does runs on SQLite, whole data sets too. There each product that tests start migrates;
# the tests' own database is made of the models, in no time.
HALVES = (
    Half(
        "SQLite",
        "sqlite",
        2,
        ("--needs=pure,db,both,real_data",),
        ("-p", "no:schemathesis", "--nomigrations"),
    ),
    Half("PostgreSQL, processes, browser", "postgresql", 3, ("--needs=process,browser,both",)),
)


@dataclass
class Run:
    """A half that runs: its process, what it prints, and what it has said of its tests."""

    half: Half
    process: subprocess.Popen[bytes]
    pipe: int
    log: IO[str]
    unread: bytes = b""
    collected: int = 0
    done: int = 0
    failed: list[str] = field(default_factory=list)
    # Processor seconds by file, and by what was done: collect, set up, call, tear down.
    by_file: Counter[str] = field(default_factory=Counter)
    by_phase: Counter[str] = field(default_factory=Counter)
    total: float = 0.0
    code: int = 0

    @property
    def progress(self) -> str:
        return f"{self.half.name}: {self.done:,} of {self.collected or '…'}"

    def read(self) -> bool:
        """Take what the half has said since; whether it may say more."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self.take(json.loads(line))
        return bool(data)

    def take(self, event: dict[str, Any]) -> None:
        """Take one thing that the half says: see `tests.progress`."""
        self.by_phase[event["phase"]] += event["processor_seconds"]
        if event["phase"] == "collect":
            self.collected = event["tests"]
            return
        self.by_file[event["test"].partition("::")[0]] += event["processor_seconds"]
        self.done += event["phase"] == "teardown"
        if event["outcome"] == "failed":
            self.failed.append(event["test"])

    def end(self) -> None:
        """Wait for the half; what it and all that it has waited for took is known then."""
        os.close(self.pipe)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.process.returncode = self.code
        self.total = usage.ru_utime + usage.ru_stime


def start(half: Half, arguments: list[str]) -> Run:
    """Start a half with a pipe through which it says how far it is."""
    reading, writing = os.pipe()
    log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  closed with its run
    command = [sys.executable, "-m", "pytest", "-q", "--workers", str(half.workers)]
    process = subprocess.Popen(
        [*command, *half.options, *half.tests, *arguments],
        cwd=ROOT,
        env={**os.environ, "TEST_DATABASE": half.database, PROGRESS: str(writing)},
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        pass_fds=[writing],
    )
    os.close(writing)
    return Run(half, process, reading, log)


class Screen:
    """One line that is written over on a terminal, and a line now and then elsewhere."""

    def __init__(self) -> None:
        self.started = self.written = time.monotonic()
        self.is_terminal = sys.stdout.isatty()

    def show(self, runs: list[Run], *, now: bool = False) -> None:
        pause = 0.2 if self.is_terminal else SECONDS_BETWEEN_LINES
        if time.monotonic() - self.written < pause and not now:
            return
        self.written = time.monotonic()
        minutes, seconds = divmod(int(self.written - self.started), 60)
        failed = sum(len(run.failed) for run in runs)
        line = f"{minutes}:{seconds:02}  {' | '.join(run.progress for run in runs)}"
        line += f" | {failed} failed" if failed else ""
        if self.is_terminal:
            print(f"\r\033[K{line}", end="", flush=True)
        else:
            print(line, flush=True)

    def say(self, line: str) -> None:
        print(f"\r\033[K{line}" if self.is_terminal else line, flush=True)


def follow(runs: list[Run]) -> None:
    """Show how far all are until each has ended."""
    screen, selector = Screen(), selectors.DefaultSelector()
    for run in runs:
        selector.register(run.pipe, selectors.EVENT_READ, run)
    while selector.get_map():
        for key, _ in selector.select(timeout=1):
            run, known = key.data, len(key.data.failed)
            if not run.read():
                selector.unregister(run.pipe)
                run.end()
            for test in run.failed[known:]:
                screen.say(f"FAILED {test} ({run.half.name})")
        screen.show(runs)
    screen.show(runs, now=True)


def costs(runs: list[Run]) -> dict[str, Any]:
    """Processor seconds of a whole run of the suite: by half and phase, and by file."""
    by_phase = {}
    for run in runs:
        # The rest: servers, programs that no test has waited for, and pytest itself.
        rest = run.total - sum(run.by_phase.values())
        more = {"total": run.total, "servers and the rest": rest}
        by_phase[run.half.name] = {**run.by_phase, **more}
    by_file = sum((run.by_file for run in runs), Counter[str]())
    return {"halves": by_phase, "files": dict(by_file.most_common())}


def show_costs(found: dict[str, Any]) -> None:
    print("\nProcessor seconds")
    for name, phases in found["halves"].items():
        parts = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in phases.items())
        print(f"  {name}: {parts}")
    dearest = list(found["files"].items())[:DEAREST_FILES]
    print(
        "  dearest:",
        ", ".join(f"{file.removeprefix('tests/')} {seconds:.0f}" for file, seconds in dearest),
    )


def show_logs(runs: list[Run]) -> None:
    """Show what the halves printed: what failed comes last."""
    for run in sorted(runs, key=lambda run: run.code != 0):
        print(f"\n== {run.half.name} ==")
        run.log.seek(0)
        print(run.log.read().strip())
        run.log.close()
    failed = [(test, run.half.name) for run in runs for test in run.failed]
    for test, half in failed:
        print(f"FAILED {test} ({half})")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suite", description=__doc__)
    parser.add_argument("--costs", type=Path, help="a file for the costs, as JSON")
    options, for_pytest = parser.parse_known_args(arguments)
    runs = [start(half, for_pytest) for half in HALVES]
    try:
        follow(runs)
    except KeyboardInterrupt:
        # The terminal has told them too: they take their servers down.
        for run in runs:
            run.process.send_signal(signal.SIGINT)
            run.process.wait()
    found = costs(runs)
    if options.costs:
        options.costs.write_text(json.dumps(found, indent=1))
    show_costs(found)
    show_logs(runs)
    bad = [run.half.name for run in runs if run.code]
    print(f"\nFailed: {', '.join(bad)}." if bad else "\nPassed: every test.")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
