"""Keeps a few child processes running as one tree: started in order, restarted, stopped in reverse.

Each child is the leader of a session of its own, so that a key pressed in the terminal reaches only
the supervisor, and whatever a dead child leaves behind can be found and ended by its group.
"""

import contextlib
import os
import re
import select
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from humanjudge.lifeline import Lifeline, group_alive, signal_group

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEATHS_ALLOWED = 5
DEATHS_SECONDS = 30.0
LAST_LINES = 15
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


class Child:
    """One running program with its log."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.deaths: deque[float] = deque(maxlen=DEATHS_ALLOWED)
        self.kills: deque[float] = deque(maxlen=DEATHS_ALLOWED)
        self.restart_at: float | None = None
        self._read = 0

    def spawn(self) -> int:
        self.restart_at = None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.program.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.program.env),
                cwd=self.program.cwd,
                start_new_session=True,
            )
        return self.process.pid

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

    def note_death(self, code: int, now: float) -> float | None:
        """Seconds to wait before the restart, or None where it has died too often.

        Being killed from outside (an operator, a machine short of memory) is not held against it.
        """
        (self.kills if code == -signal.SIGKILL else self.deaths).append(now)
        recent = [at for at in (*self.deaths, *self.kills) if now - at < DEATHS_SECONDS]
        own = [at for at in self.deaths if now - at < DEATHS_SECONDS]
        if len(own) >= DEATHS_ALLOWED:
            return None
        return float(min(0.1 * 2 ** (len(recent) - 1), 2.0))


class Supervisor:
    """Runs children until a stop signal comes or one of them dies too often.

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

    def wait_for(self, ready: Callable[[], bool], seconds: float) -> bool:
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
            self._echo(child)
        self._lifeline.renew()
        now = time.monotonic()
        for child in self.children:
            if child.restart_at is not None and child.restart_at <= now and not self.stopping:
                self._spawn(child)
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
        group, child.process = child.process.pid, None
        # Its own children may hold the port or go on sending tasks.
        self._end_group(group, 0.0)
        name = child.program.name
        delay = child.note_death(code, time.monotonic())
        if delay is None:
            self.say(f"{name} died {DEATHS_ALLOWED} times in {DEATHS_SECONDS:.0f} s: giving up.")
            self.say(f"The last lines of {child.log}:")
            for line in child.last_lines():
                self.say(f"  {line}")
            self.failed = self.stopping = True
            return
        self.say(f"{name} died ({_reason(code)}); restarting it in {delay:.1f} s")
        child.restart_at = time.monotonic() + delay

    def _echo(self, child: Child) -> None:
        lines = child.new_serious_lines()
        for line in lines[:_ECHO_LINES]:
            self.say(f"{child.program.name}: {line}")
        if len(lines) > _ECHO_LINES:
            self.say(f"{child.program.name}: {len(lines) - _ECHO_LINES} more in {child.log}")

    def _spawn(self, child: Child) -> None:
        self._lifeline.add(child.spawn())

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
        self._end_group(process.pid, 2.0)

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
