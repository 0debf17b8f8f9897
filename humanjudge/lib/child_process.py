"""Work that a worker starts a process for, which gives its memory back and takes no thread."""

import os
import subprocess
import sys
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

from django.conf import settings

_LONGEST_LINE = 200


class Ended(NamedTuple):
    """How a process ended: 0 or another exit code, minus the signal that ended it, its last line."""

    code: int
    last_line: str


def manage(*words: str) -> Ended:
    """Run a management command in a process of its own, and return how it ended.

    What it says of faults is in the log of this process, as if it were said here.
    """
    command = [sys.executable, "-m", "humanjudge", "manage", *words]
    last = ""
    try:
        with subprocess.Popen(command, stdin=DEVNULL, stderr=PIPE, cwd=settings.BASE_DIR) as child:
            for line in child.stderr or ():
                os.write(2, line)
                last = line.decode(errors="replace").strip() or last
    except OSError as error:
        return Ended(1, f"no process can be started: {error}")
    last = last or f"its process ended with {child.returncode} and said nothing"
    return Ended(child.returncode, last[:_LONGEST_LINE])
