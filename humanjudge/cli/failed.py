"""What can go wrong, as exit codes that a script can tell apart."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Why the command line ended; 0 is success."""

    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_ALLOWED = 4
    NOT_FOUND = 5
    CONFLICT = 6
    INVALID = 7
    TIMED_OUT = 8
    INTERRUPTED = 130
    PIPE_CLOSED = 141


class Failed(Exception):
    """The command ends here, with one line that says why."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
