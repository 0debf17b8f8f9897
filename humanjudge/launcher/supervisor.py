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
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from humanjudge.launcher.lifeline import Lifeline, group_alive, signal_group

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Until everything runs: a child that cannot be started is no reason to wait for.
DEATHS_ALLOWED = 5
LONGEST_PAUSE = 10.0
# Who lived that long begins with the shortest pause again.
LIVED_WELL = 60.0
LAST_LINES = 15
LOG_BYTES = 10_000_000
# Elsewhere system libraries have threads of their own.
CAN_FORK = sys.platform == "linux"
_TAIL_BYTES = 8192
_SERIOUS = re.compile(r"\b(WARNING|ERROR|CRITICAL)\b")
_ECHO_LINES = 5


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

    @property
    def module(self) -> str | None:
        """The Python module that it runs, if it does."""
        python, *rest = self.command
        return rest[1] if python == sys.executable and rest[:1] == ["-m"] else None


class Forked(ForkProcess):
    """A program that runs in a copy of this process; it is asked like a `Popen`."""

    def __init__(self, program: Program, log: int, close: Iterable[int]) -> None:
        super().__init__(name=program.name)
        self._program, self._log, self._close = program, log, tuple(close)

    def start(self) -> None:
        # A signal that comes before the handlers are its own waits until then.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        try:
            super().start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def run(self) -> None:
        os.setsid()
        for descriptor in self._close:
            os.close(descriptor)
        os.dup2(sys.stdin.fileno(), 0)  # which is /dev/null by now
        os.dup2(self._log, 1)
        os.dup2(self._log, 2)
        os.close(self._log)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        # What stays the same is not set again: what shows in `ps` is found through its place.
        os.environ.update(dict(self._program.env.items() - os.environ.items()))
        os.chdir(self._program.cwd or ".")
        module = self._program.module
        assert module
        sys.argv = self._program.command[2:]
        runpy.run_module(module, run_name="__main__", alter_sys=True)

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> None:
        self.join()


class Child:
    """One running program with its log."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self.pid = 0
        self.started_at = 0.0
        self.deaths = 0
        self.kills = 0
        self.restart_at: float | None = None
        self._read = 0

    def spawn(self, close: Iterable[int]) -> int:
        """Start it; `close` are descriptors of this process that are none of its business."""
        self.restart_at = None
        self.started_at = time.monotonic()
        with self.log.open("ab") as log:
            self.process = self._process(log.fileno(), close)
        self.pid = self.process.pid or 0
        return self.pid

    def _process(self, log: int, close: Iterable[int]) -> subprocess.Popen[bytes] | Forked:
        if CAN_FORK and self.program.module:
            forked = Forked(self.program, log, close)
            forked.start()
            return forked
        return subprocess.Popen(
            self.program.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(self.program.env),
            cwd=self.program.cwd,
            start_new_session=True,
        )

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
        return [
            line for line in whole.decode(errors="replace").splitlines() if _SERIOUS.search(line)
        ]

    def last_lines(self) -> list[str]:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()[-LAST_LINES:]

    def note_death(self, code: int, now: float) -> float:
        """Return the seconds to wait before the restart: longer with each early death."""
        if now - self.started_at > LIVED_WELL:
            self.deaths = self.kills = 0
        # Being killed from outside (an operator, a machine short of memory) is no fault of its own.
        if code == -signal.SIGKILL:
            self.kills += 1
        else:
            self.deaths += 1
        return float(min(0.1 * 2 ** (self.deaths + self.kills - 1), LONGEST_PAUSE))


class Supervisor:
    """Runs children until a stop signal comes.

    A child that dies is started again, after pauses that grow to `LONGEST_PAUSE`, for as long as it
    takes: what was missing (space on the disk, memory) may come back. Only before `is_settled` is
    set, by whoever has seen that everything runs, a child that keeps dying ends the start.

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
        self.failed = False
        self._impatient = False
        self._keep_open = tuple(keep_open)

    def __enter__(self) -> Self:
        self.logs.mkdir(parents=True, exist_ok=True)
        self._lifeline = Lifeline(self._keep_open)
        self._wake, wake = self._wake_ends = os.pipe()
        for end in self._wake_ends:
            os.set_blocking(end, False)
        self._old_wakeup = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._old_handlers = {
            number: signal.signal(number, self._on_signal)
            for number in (*STOP_SIGNALS, signal.SIGCHLD)
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stopping = True
        for child in reversed(self.children):
            self._stop(child)
        self._lifeline.close()
        signal.set_wakeup_fd(self._old_wakeup)
        for number, handler in self._old_handlers.items():
            signal.signal(number, handler)
        for end in self._wake_ends:
            os.close(end)

    def start(self, program: Program) -> Child:
        """Start a program, with a fresh log beside the one of the run before."""
        log = self.logs / f"{program.name}.log"
        if log.exists():
            log.replace(log.with_suffix(".log.1"))
        child = Child(program, log)
        self._spawn(child)
        self.children.append(child)
        return child

    def wait_for(self, ready: Callable[[], bool], seconds: float = math.inf) -> bool:
        """Look after the children until `ready()`; False on a stop or when the time is over."""
        deadline = time.monotonic() + seconds
        while not self.stopping:
            if ready():
                return True
            if time.monotonic() > deadline:
                return False
            self._look_after(0.05)
        return False

    def watch(self) -> int:
        """Look after the children until a stop; the exit code."""
        while not self.stopping:
            self._look_after(1.0)
        return self.exit_code

    @property
    def exit_code(self) -> int:
        return 1 if self.failed else 0

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if number in STOP_SIGNALS:
            self._impatient = self.stopping
            self.stopping = True

    def _look_after(self, seconds: float) -> None:
        for child in self.children:
            self._notice_death(child)
            # Neither a full disk nor a log that somebody deleted is a reason to end.
            with contextlib.suppress(OSError):
                self._echo(child)
                child.rotate()
        self._lifeline.renew()
        now = time.monotonic()
        for child in self.children:
            if child.restart_at is not None and child.restart_at <= now and not self.stopping:
                self._restart(child)
        if not self.stopping:
            self._sleep(self._until_next_restart(seconds))

    def _until_next_restart(self, seconds: float) -> float:
        now = time.monotonic()
        due = [child.restart_at - now for child in self.children if child.restart_at is not None]
        return max(0.0, min([seconds, *due]))

    def _notice_death(self, child: Child) -> None:
        if child.process is None:
            return
        code = child.process.poll()
        if code is None:
            return
        child.process = None
        # Its own children may hold the port or go on sending tasks.
        self._end_group(child.pid, 0.0)
        name = child.program.name
        delay = child.note_death(code, time.monotonic())
        if child.deaths >= DEATHS_ALLOWED and not self.is_settled:
            self.say(f"{name} died {DEATHS_ALLOWED} times before everything ran: giving up.")
            self.say(f"The last lines of {child.log}:")
            for line in child.last_lines():
                self.say(f"  {line}")
            self.failed = self.stopping = True
            return
        self.say(f"{name} died ({_reason(code)}); restarting it in {delay:.1f} s")
        child.restart_at = time.monotonic() + delay

    def _restart(self, child: Child) -> None:
        try:
            self._spawn(child)
        except OSError as error:
            delay = child.note_death(1, time.monotonic())
            name = child.program.name
            self.say(f"{name} cannot be started ({error.strerror}); next try in {delay:.1f} s")
            child.restart_at = time.monotonic() + delay

    def _echo(self, child: Child) -> None:
        lines = child.new_serious_lines()
        for line in lines[:_ECHO_LINES]:
            self.say(f"{child.program.name}: {line}")
        if len(lines) > _ECHO_LINES:
            self.say(f"{child.program.name}: {len(lines) - _ECHO_LINES} more in {child.log}")

    def _spawn(self, child: Child) -> None:
        own = (*self._keep_open, *self._wake_ends, *self._lifeline.descriptors)
        self._lifeline.add(child.spawn(close=own))

    def _stop(self, child: Child) -> None:
        process, child.process, child.restart_at = child.process, None, None
        if process is None:
            return
        # Only the leader: it knows best in which order to end what it started.
        process.terminate()
        deadline = time.monotonic() + child.program.stop_seconds
        while process.poll() is None and time.monotonic() < deadline and not self._impatient:
            self._sleep(0.2)
        if process.poll() is None:
            self.say(f"{child.program.name} did not stop in time and is killed")
            process.kill()
            process.wait()
        self._end_group(child.pid, 2.0)

    def _end_group(self, group: int, grace: float) -> None:
        deadline = time.monotonic() + grace
        while group_alive(group):
            if time.monotonic() >= deadline or self._impatient:
                signal_group(group, signal.SIGKILL)
                break
            time.sleep(0.02)
        self._lifeline.remove(group)

    def _sleep(self, seconds: float) -> None:
        """Sleep until a signal comes, a child's end among them."""
        select.select([self._wake], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 1024)


def _reason(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
