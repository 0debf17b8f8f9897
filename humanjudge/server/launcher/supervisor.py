"""Keeps a few child processes running as one tree: started in order, restarted, stopped in reverse.

Each child is the leader of a session of its own, so that a key pressed in the terminal reaches only
the supervisor, and whatever a dead child leaves behind can be found and ended by its group.

A child that runs a Python module is forked and no more where that is safe: it begins with all that
this process has imported, so that five processes need little more time and memory than one. For
that, this process must never have a second thread, or a connection to anything.
"""

import contextlib
import math
import os
import re
import runpy
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Self

from humanjudge.server.launcher.lifeline import Lifeline, end_group

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICK = 0.1
# Until everything runs: a child that cannot be started is no reason to wait for.
DEATHS_ALLOWED = 5
LONGEST_PAUSE = 10.0
# A child that lived that long begins with the shortest pause again.
LIVED_WELL = 60.0
LAST_LINES = 15
LOG_BYTES = 10_000_000
ECHO_LINES = 5
# Elsewhere system libraries have threads of their own.
CAN_FORK = sys.platform == "linux"
_SERIOUS = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b")
_SIGNALS = {number.value: number.name for number in signal.Signals}


@dataclass
class Child:
    """A program that is kept running, with its log; started where this process stands."""

    name: str
    command: list[str]
    stop_seconds: float = 10.0
    # Whether its log lines that say WARNING or worse are shown on the terminal too.
    echo: bool = True
    log: Path = Path()
    process: ForkProcess | None = None
    pid: int = 0
    started_at: float = 0.0
    deaths: int = 0
    kills: int = 0
    restart_at: float = math.inf
    _read: int = 0

    def spawn(self, close: Iterable[int]) -> int:
        """Start it; `close` are descriptors of this process that are none of its business."""
        self.restart_at = math.inf
        self.started_at = time.monotonic()
        # A signal that comes before the handlers are its own waits until then.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            with self.log.open("ab") as log:
                process = ForkProcess(target=self._become, args=(log.fileno(), close))
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        self.process, self.pid = process, process.pid or 0
        return self.pid

    def _become(self, log: int, close: Iterable[int]) -> None:
        """Be this program, in a copy of the supervisor whose descriptors are closed."""
        os.setsid()
        for descriptor in close:
            os.close(descriptor)
        # Standard input is /dev/null by now.
        for source, target in ((sys.stdin.fileno(), 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.close(log)
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        if not CAN_FORK or self.command[:2] != [sys.executable, "-m"]:
            try:
                os.execvp(self.command[0], self.command)  # noqa: S606  of our own words
            except OSError as error:
                sys.exit(f"{self.command[0]}: {error.strerror}")
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        sys.argv = self.command[2:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

    def note_death(self, code: int, now: float) -> float:
        """Return the seconds to wait before the restart: longer with each early death."""
        if now - self.started_at > LIVED_WELL:
            self.deaths = self.kills = 0
        # Being killed from outside (an operator, a machine short of memory) is no fault of its own.
        if code == -signal.SIGKILL:
            self.kills += 1
        else:
            self.deaths += 1
        delay = float(min(0.1 * 2 ** (self.deaths + self.kills - 1), LONGEST_PAUSE))
        self.restart_at = now + delay
        return delay

    def rotate(self) -> None:
        """Keep the log and the one before at `LOG_BYTES` each.

        It is emptied and not renamed: who writes to it goes on with the same file, at its end.
        """
        if self.log.stat().st_size > LOG_BYTES:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)
            self._read = 0

    def new_serious_lines(self) -> list[str]:
        """Log lines since the last call that say WARNING or worse."""
        if not self.echo or self.log.stat().st_size == self._read:
            return []
        with self.log.open("rb") as log:
            log.seek(self._read)
            full_lines, newline, _ = log.read().rpartition(b"\n")
        self._read += len(full_lines + newline)
        lines = full_lines.decode(errors="replace").splitlines()
        return [line for line in lines if _SERIOUS.search(line)]


@dataclass
class Supervisor:
    """Runs children until a stop signal comes.

    A child that dies is started again, after pauses that grow to `LONGEST_PAUSE`, for as long as it
    takes: what was missing (space on the disk, memory) may come back. Only before `is_settled` is
    set, by the caller who has seen that everything runs, a child that keeps dying ends the start.
    Leaving its context stops every child, the youngest first. `say` gets each line for the
    terminal; `keep_open` are descriptors (a lock) that are held until the children have ended even
    if the supervisor itself is killed.
    """

    logs: Path
    say: Callable[[str], None]
    keep_open: tuple[int, ...] = ()
    is_settled: bool = False
    stopping: bool = False
    exit_code: int = 0
    _impatient: bool = False
    _children: list[Child] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._lifeline = Lifeline(self.keep_open)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping = True
        for child in reversed(self._children):
            self._stop(child)
        self._lifeline.close()

    def _on_signal(self, *_: object) -> None:
        self._impatient = self.stopping
        self.stopping = True

    def start(self, child: Child) -> None:
        """Start a program, with a fresh log beside the one of the run before."""
        child.log = self.logs / f"{child.name}.log"
        if child.log.exists():
            child.log.replace(child.log.with_suffix(".log.1"))
        self._spawn(child)
        self._children.append(child)

    def wait_for(self, ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Look after the children until `ready()`; False on a stop or when the time is over."""
        deadline = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < deadline:
            if ready():
                return True
            self._look_after()
            time.sleep(TICK)
        return False

    def _look_after(self) -> None:
        for child in self._children:
            if child.process and child.process.exitcode is not None:
                self._bury(child, child.process.exitcode)
            # Neither a full disk nor a log that somebody deleted is a reason to end.
            with contextlib.suppress(OSError):
                self._echo(child)
                child.rotate()
            if child.restart_at <= time.monotonic() and not self.stopping:
                self._restart(child)
        self._lifeline.renew()

    def _spawn(self, child: Child) -> None:
        self._lifeline.add(child.spawn((*self.keep_open, self._lifeline.descriptor)))

    def _bury(self, child: Child, code: int) -> None:
        # Its own children may hold the port or go on sending tasks.
        self._end_group(child, 0.0)
        delay = child.note_death(code, time.monotonic())
        if child.deaths < DEATHS_ALLOWED or self.is_settled:
            reason = _SIGNALS.get(-code, f"exit code {code}")
            self.say(f"{child.name} died ({reason}); restarting it in {delay:.1f} s")
            return
        self.say(f"{child.name} died {DEATHS_ALLOWED} times before everything ran: giving up.")
        self.say(f"The last lines of {child.log}:")
        for line in child.log.read_text(errors="replace").splitlines()[-LAST_LINES:]:
            self.say(f"  {line}")
        self.stopping, self.exit_code = True, 1

    def _restart(self, child: Child) -> None:
        try:
            self._spawn(child)
        except OSError as error:
            delay = child.note_death(1, time.monotonic())
            reason = f"cannot be started ({error.strerror})"
            self.say(f"{child.name} {reason}; next try in {delay:.1f} s")

    def _echo(self, child: Child) -> None:
        lines = child.new_serious_lines()
        for line in lines[:ECHO_LINES]:
            self.say(f"{child.name}: {line}")
        if len(lines) > ECHO_LINES:
            self.say(f"{child.name}: {len(lines) - ECHO_LINES} more in {child.log}")

    def _stop(self, child: Child) -> None:
        process = child.process
        if process is None:
            return
        # Only the leader: it knows best in which order to end what it started.
        process.terminate()
        deadline = time.monotonic() + child.stop_seconds
        while process.exitcode is None and time.monotonic() < deadline and not self._impatient:
            time.sleep(TICK / 5)
        if process.exitcode is None:
            self.say(f"{child.name} did not stop in time and is killed")
            process.kill()
        self._end_group(child, 2.0)

    def _end_group(self, child: Child, grace: float) -> None:
        child.process = None
        end_group(child.pid, 0.0 if self._impatient else grace)
        self._lifeline.remove(child.pid)
