"""Keeps a few child processes running as one tree: started in order, restarted, stopped in reverse.

Each child is the leader of a session of its own, so that a key pressed in the terminal reaches only
the supervisor, and whatever a dead child leaves behind can be found and ended by its group.

A child that runs a Python module is forked where that is safe: it begins with all that this process
has imported, so that five processes need little more time and memory than one. For that, this
process must never have a second thread, or a connection to anything.
"""

import contextlib
import math
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Self

from humanjudge.launcher.lifeline import Lifeline, end_group

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


@dataclass(frozen=True)
class Program:
    """What one child is: its command, and how it is stopped."""

    name: str
    command: list[str]
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path | None = None
    stop_seconds: float = 10.0
    # Whether its log lines that say WARNING or worse are shown on the terminal too.
    echo: bool = True

    def can_be_forked(self) -> bool:
        return CAN_FORK and self.command[:2] == [sys.executable, "-m"]

    def run_in_fork(self, log: int, close: Iterable[int]) -> None:
        """Become this program, in a copy of the supervisor whose descriptors are closed."""
        os.setsid()
        for descriptor in close:
            os.close(descriptor)
        os.dup2(sys.stdin.fileno(), 0)  # which is /dev/null by now
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        # What stays the same is not set again: what shows in `ps` is found through its place.
        os.environ.update(dict(self.env.items() - os.environ.items()))
        os.chdir(self.cwd or ".")
        _, _, module, *_ = self.command
        sys.argv = self.command[2:]
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class Child:
    """One running program with its log."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | ForkProcess | None = None
        self.pid = 0
        self.started_at = 0.0
        self.deaths = self.kills = 0
        self.restart_at = math.inf
        self._read = 0

    def spawn(self, close: Iterable[int]) -> int:
        """Start it; `close` are descriptors of this process that are none of its business."""
        self.restart_at = math.inf
        self.started_at = time.monotonic()
        program = self.program
        with self.log.open("ab") as log:
            if program.can_be_forked():
                # A signal that comes before the handlers are its own waits until then.
                signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
                try:
                    self.process = ForkProcess(
                        target=program.run_in_fork, args=(log.fileno(), close), name=program.name
                    )
                    self.process.start()
                finally:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
            else:
                self.process = subprocess.Popen(
                    program.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=dict(program.env),
                    cwd=program.cwd,
                    start_new_session=True,
                )
        self.pid = self.process.pid or 0
        return self.pid

    def exit_code(self) -> int | None:
        """Return how it ended, None while it runs."""
        if isinstance(self.process, ForkProcess):
            return self.process.exitcode
        return self.process.poll() if self.process else None

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
        if not self.program.echo or self.log.stat().st_size == self._read:
            return []
        with self.log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        lines = whole.decode(errors="replace").splitlines()
        return [line for line in lines if _SERIOUS.search(line)]


class Supervisor:
    """Runs children until a stop signal comes.

    A child that dies is started again, after pauses that grow to `LONGEST_PAUSE`, for as long as it
    takes: what was missing (space on the disk, memory) may come back. Only before `is_settled` is
    set, by the caller who has seen that everything runs, a child that keeps dying ends the start.

    Use as a context manager, from the main thread: leaving it stops every child, the youngest
    first. `say` gets each line for the terminal; `keep_open` are descriptors (a lock) that are
    held until the children have ended even if the supervisor itself is killed.
    """

    def __init__(
        self, logs: Path, say: Callable[[str], None], *, keep_open: Iterable[int] = ()
    ) -> None:
        self.logs = logs
        self.say = say
        self.children: list[Child] = []
        self.is_settled = False
        self.stopping = False
        self.exit_code = 0
        self._impatient = False
        self._keep_open = tuple(keep_open)

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._lifeline = Lifeline(self._keep_open)
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping = True
        for child in reversed(self.children):
            self._stop(child)
        self._lifeline.close()

    def _on_signal(self, *_: object) -> None:
        self._impatient = self.stopping
        self.stopping = True

    def start(self, program: Program) -> None:
        """Start a program, with a fresh log beside the one of the run before."""
        log = self.logs / f"{program.name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        child = Child(program, log)
        self._spawn(child)
        self.children.append(child)

    def wait_for(self, ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Look after the children until `ready()`; False on a stop or when the time is over."""
        deadline = time.monotonic() + seconds
        while not self.stopping and time.monotonic() < deadline:
            if ready():
                return True
            self._look_after()
            time.sleep(TICK)
        return False

    def watch(self) -> int:
        """Look after the children until a stop; the exit code."""
        self.wait_for(lambda: False)
        return self.exit_code

    def _look_after(self) -> None:
        for child in self.children:
            code = child.exit_code()
            if code is not None:
                self._bury(child, code)
            # Neither a full disk nor a log that somebody deleted is a reason to end.
            with contextlib.suppress(OSError):
                self._echo(child)
                child.rotate()
            if child.restart_at <= time.monotonic() and not self.stopping:
                self._restart(child)
        self._lifeline.renew()

    def _spawn(self, child: Child) -> None:
        self._lifeline.add(child.spawn((*self._keep_open, self._lifeline.descriptor)))

    def _bury(self, child: Child, code: int) -> None:
        child.process = None
        # Its own children may hold the port or go on sending tasks.
        self._end_group(child.pid, 0.0)
        name = child.program.name
        delay = child.note_death(code, time.monotonic())
        if child.deaths < DEATHS_ALLOWED or self.is_settled:
            self.say(f"{name} died ({_reason(code)}); restarting it in {delay:.1f} s")
            return
        self.say(f"{name} died {DEATHS_ALLOWED} times before everything ran: giving up.")
        self.say(f"The last lines of {child.log}:")
        for line in child.log.read_text(errors="replace").splitlines()[-LAST_LINES:]:
            self.say(f"  {line}")
        self.stopping, self.exit_code = True, 1

    def _restart(self, child: Child) -> None:
        try:
            self._spawn(child)
        except OSError as error:
            delay = child.note_death(1, time.monotonic())
            name = child.program.name
            self.say(f"{name} cannot be started ({error.strerror}); next try in {delay:.1f} s")

    def _echo(self, child: Child) -> None:
        lines = child.new_serious_lines()
        for line in lines[:ECHO_LINES]:
            self.say(f"{child.program.name}: {line}")
        if len(lines) > ECHO_LINES:
            self.say(f"{child.program.name}: {len(lines) - ECHO_LINES} more in {child.log}")

    def _stop(self, child: Child) -> None:
        process = child.process
        if process is None:
            return
        # Only the leader: it knows best in which order to end what it started.
        process.terminate()
        deadline = time.monotonic() + child.program.stop_seconds
        while child.exit_code() is None and time.monotonic() < deadline and not self._impatient:
            time.sleep(TICK / 5)
        if child.exit_code() is None:
            self.say(f"{child.program.name} did not stop in time and is killed")
            process.kill()
        self._end_group(child.pid, 2.0)
        child.process = None

    def _end_group(self, group: int, grace: float) -> None:
        end_group(group, 0.0 if self._impatient else grace)
        self._lifeline.remove(group)


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
