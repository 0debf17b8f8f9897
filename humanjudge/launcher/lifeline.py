"""Ends process groups when the process that started them is gone, however it went.

A process that is killed with -9 can stop nothing any more. So a small second process, in a session
of its own, reads a pipe whose other end only the first process holds, and keeps a list of process
groups. When the pipe closes, it ends the groups that are still listed, the youngest first.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

GRACE = 5.0
_PROC = Path("/proc")


def group_alive(group: int) -> bool:
    """Whether a process of this group still runs; a zombie nobody waits for does not count."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not _PROC.joinpath("self", "stat").exists():
        return True
    return any(_runs_in(group, entry) for entry in _PROC.iterdir() if entry.name.isdigit())


def process_alive(pid: int) -> bool:
    """Whether a process still runs; a zombie nobody waits for does not count."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    has_proc = _PROC.joinpath("self", "stat").exists()
    return not has_proc or _group_of(_PROC / str(pid)) is not None


def _runs_in(group: int, process: Path) -> bool:
    return _group_of(process) == group


def _group_of(process: Path) -> int | None:
    """Return the group of a process that runs, None for one that is gone or a zombie."""
    try:
        fields = process.joinpath("stat").read_text().rpartition(")")[2].split()
    except (OSError, UnicodeDecodeError):
        return None
    state, group = fields[0], int(fields[2])
    return None if state in {"Z", "X"} else group


def signal_group(group: int, number: int) -> None:
    """Send a signal to every process of a group that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def end_group(group: int, grace: float = GRACE) -> None:
    """Ask a group to end, wait at most `grace` seconds, then kill what is left of it."""
    signal_group(group, signal.SIGTERM)
    deadline = time.monotonic() + grace
    while group_alive(group):
        if time.monotonic() > deadline:
            signal_group(group, signal.SIGKILL)
            return
        time.sleep(0.05)


class Lifeline:
    """The list of process groups that must not outlive this process.

    `keep_open` are descriptors that the guarding process holds for as long as it has work to do.
    """

    def __init__(self, keep_open: Iterable[int] = ()) -> None:
        self._keep_open = tuple(keep_open)
        self._groups: list[int] = []
        self._process = self._guard()

    def add(self, group: int) -> None:
        self._groups.append(group)
        self._tell(f"add {group}")

    def remove(self, group: int) -> None:
        if group in self._groups:
            self._groups.remove(group)
            self._tell(f"remove {group}")

    def close(self) -> None:
        """Let go; returns when every group that was still listed has ended."""
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def descriptors(self) -> list[int]:
        """What a process that is forked from this one must close: only this one may hold it."""
        pipe = self._process.stdin
        return [pipe.fileno()] if pipe and not pipe.closed else []

    def renew(self) -> None:
        """Start the guarding process again if it is gone."""
        if self._process.poll() is not None:
            if self._process.stdin:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
            self._process = self._guard()
            for group in self._groups:
                self._tell(f"add {group}")

    def _guard(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._keep_open,
            cwd="/",
        )

    def _tell(self, line: str) -> None:
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(f"{line}\n".encode())
                self._process.stdin.flush()


def _watch() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: list[int] = []
    for line in sys.stdin:
        verb, _, group = line.partition(" ")
        if verb == "add":
            groups.append(int(group))
        elif int(group) in groups:
            groups.remove(int(group))
    for group in reversed(groups):
        end_group(group)


if __name__ == "__main__":
    _watch()
