"""Work that a worker starts a process for, which gives its memory back and takes no thread."""

import subprocess
import sys

from django.conf import settings


def manage(*words: str) -> int:
    """Run a management command in a process of its own, and return its exit code."""
    command = [sys.executable, "-m", "humanjudge", "manage", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False, cwd=settings.BASE_DIR)
    return done.returncode
