"""Waiting for what real processes do, generously and without guessing how long it takes."""

import os
import time
from pathlib import Path

# What takes a second or two here, a machine that is busy or ten times slower has time for. Whoever
# waits for a condition waits no longer than it takes.
PATIENCE = 300


def eventually(condition, seconds=PATIENCE):
    """The first true value of `condition()`, or a failure when the time is over."""
    deadline, pause = time.monotonic() + seconds, 0.02
    while not (value := condition()):
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(pause)
        # Who waits long need not look often: what is waited for needs the processor.
        pause = min(1.2 * pause, 0.1)
    return value


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has waited for it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return Path("/proc/self").exists()
