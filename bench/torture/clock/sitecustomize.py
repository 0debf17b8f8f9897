"""A clock that can be stepped while processes run, put before them by `make torture` alone.

Python imports this file as it starts, because its folder is on PYTHONPATH. The file that
TORTURE_CLOCK names holds the seconds by which the clock is wrong. Each process looks at it twice a
second in a thread of its own, which those that are forked begin anew.
"""

import os
import threading
import time
from pathlib import Path

import time_machine

_file = Path(os.environ["TORTURE_CLOCK"])
_sleep = time.sleep
_step = 0.0
_wrong: time_machine.travel | None = None


def _follow() -> None:
    global _step, _wrong  # noqa: PLW0603  one clock a process
    text = _file.read_text() if _file.exists() else ""
    wanted = float(text or 0)
    if wanted == _step:
        return
    if _wrong:
        _wrong.stop()
    _wrong = time_machine.travel(time.time() + wanted, tick=True) if wanted else None
    if _wrong:
        _wrong.start()
    _step = wanted


def _follow_for_ever() -> None:
    while True:
        _sleep(0.5)
        _follow()


def _begin() -> None:
    threading.Thread(target=_follow_for_ever, name="clock", daemon=True).start()


# The supervisor itself must stay with one thread: it only forks.
os.register_at_fork(after_in_child=_begin)
_follow()
