"""Previews of files whose process is forked from the one of the test, which has imported it all.

A preview starts a Python of its own, and half a second of imports comes before each look. Forked,
it is still a process of its own with its own limits and exit code. The tests of sizes of imports
and those of processes start it as the product does.
"""

import os
import subprocess
import sys
import warnings
from tempfile import TemporaryFile
from types import SimpleNamespace

from judge_eval.imports import preview


def run_forked(command, *, input, **options):  # noqa: A002  as `subprocess.run` calls it
    """Stand in for `subprocess.run` where it starts a preview."""
    assert command[1:] == ["-m", "judge_eval.imports.preview"]
    with TemporaryFile() as given, TemporaryFile() as answer:
        given.write(input)
        given.seek(0)
        with warnings.catch_warnings():
            # The child runs no code of other threads.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            _look(given.fileno(), answer.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answer.seek(0)
        done = subprocess.CompletedProcess(command, code, answer.read())
    done.check_returncode()
    return done


def _look(given, answer):
    code = 1
    try:
        sys.stdin = os.fdopen(given, closefd=False)
        sys.stdout = os.fdopen(answer, "w", closefd=False)
        preview.main()
        sys.stdout.flush()
        code = 0
    finally:
        # Fixtures and databases are the parent's to take down.
        os._exit(code)


def fork_previews(monkeypatch):
    """Let each preview of a test be a fork."""
    names = {name: getattr(subprocess, name) for name in ("CalledProcessError", "TimeoutExpired")}
    monkeypatch.setattr(preview, "subprocess", SimpleNamespace(run=run_forked, **names))
