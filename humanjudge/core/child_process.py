"""Work that a worker starts a process for, which gives its memory back and takes no thread."""

import os
import select
import subprocess
import sys
from collections.abc import Callable
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

from django.conf import settings

_LONGEST_LINE = 200
_TOLD_EVERY_SECONDS = 20


class ProcessEnd(NamedTuple):
    """How a process ended: its exit code, or minus the signal that ended it; what it said last."""

    code: int
    last_line: str


def manage(*words: str, still_running: Callable[[], object] = lambda: None) -> ProcessEnd:
    """Run a management command in a process of its own, and return how it ended.

    What it says of faults is in the log of this process, as if it were said here. Meanwhile
    `still_running` is called now and then.
    """
    command = [sys.executable, "-m", "humanjudge", "manage", *words]
    last_output = b""
    try:
        with subprocess.Popen(command, stdin=DEVNULL, stderr=PIPE, cwd=settings.BASE_DIR) as child:
            assert child.stderr is not None  # it is a pipe
            pipe = child.stderr.fileno()
            while True:
                if not select.select([pipe], [], [], _TOLD_EVERY_SECONDS)[0]:
                    still_running()
                elif piece := os.read(pipe, 1 << 16):
                    os.write(2, piece)
                    last_output = (last_output + piece)[-1 << 12 :]
                else:
                    break
    except OSError as error:
        return ProcessEnd(1, f"no process can be started: {error}")
    lines = last_output.decode(errors="replace").strip().splitlines()
    last = lines[-1] if lines else f"it ended with {child.returncode} and said nothing"
    return ProcessEnd(child.returncode, last[:_LONGEST_LINE])
