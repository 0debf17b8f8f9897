"""Ends process groups when the process that started them is gone, however it went.

A process that is killed with -9 can stop nothing any more. So a small second process, in a session
of its own, reads a pipe whose other end only the first process holds. Each line is the list of
process groups; when the pipe closes, those of the last line are ended, the youngest first.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

GRACE = 5.0
_PROC = Path("/proc")
_HAS_PROC = _PROC.joinpath("self", "stat").exists()


def _group_of(pid: int | str) -> int | None:
    """Return the group of a process, None for one that is gone or a zombie nobody waits for."""
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(errors="replace")
    except OSError:
        return None
    state, _, group, *_ = stat.rpartition(")")[2].split()
    return None if state in "ZX" else int(group)


def _takes_signals(kill: Callable[[int, int], None], number: int) -> bool:
    try:
        kill(number, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def process_alive(pid: int) -> bool:
    return _group_of(pid) is not None if _HAS_PROC else _takes_signals(os.kill, pid)


def group_alive(group: int) -> bool:
    return _takes_signals(os.killpg, group) and (
        not _HAS_PROC or any(_group_of(process.name) == group for process in _PROC.glob("[0-9]*"))
    )


def end_group(group: int, grace: float = GRACE) -> None:
    """Ask a group to end, wait at most `grace` seconds, then kill what is left of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGTERM)
        deadline = time.monotonic() + grace
        while group_alive(group):
            if time.monotonic() > deadline:
                os.killpg(group, signal.SIGKILL)
                return
            time.sleep(0.02)


class Lifeline:
    """The list of process groups that must not outlive this process.

    `keep_open` are descriptors that the guarding process holds for as long as it has work to do.
    """

    def __init__(self, keep_open: tuple[int, ...] = ()) -> None:
        self._keep_open = keep_open
        self._groups: list[int] = []
        self._guard()

    def _guard(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=self._keep_open,
            cwd="/",
        )
        assert self._process.stdin
        self._pipe = self._process.stdin

    @property
    def descriptor(self) -> int:
        """What a process that is forked from this one must close: only this one may hold it."""
        return self._pipe.fileno()

    def add(self, group: int) -> None:
        self._groups.append(group)
        self._send()

    def remove(self, group: int) -> None:
        if group in self._groups:
            self._groups.remove(group)
            self._send()

    def renew(self) -> None:
        if self._process.poll() is not None:
            self.close()
            self._guard()
            self._send()

    def close(self) -> None:
        """Let go; returns when every group that was still listed has ended."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        self._process.wait()

    def _send(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(f"{' '.join(map(str, self._groups))}\n".encode())
            self._pipe.flush()


def _watch() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups = ""
    for line in sys.stdin:
        groups = line
    for group in reversed(groups.split()):
        end_group(int(group))


if __name__ == "__main__":
    _watch()
