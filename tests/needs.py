"""What a file of tests needs, read from its markers without importing it.

A half of the suite, and `make test-fast`, take the files whose need they have: `--needs pure,db`.
"""

import re
from functools import cache
from pathlib import Path

# A database: SQLite stands for both. Nothing at all: pure.
DATABASE, PURE = "db", "pure"
# Declared by a file's `pytestmark`: both databases, started processes, a browser, published data.
DECLARED = ("browser", "process", "both", "real_data")
NEEDS = (PURE, DATABASE, *DECLARED)

_PYTESTMARK = re.compile(r"^pytestmark = (\[.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)


@cache
def need_of(path: Path) -> str:
    """Return what the tests of a file need: one of `NEEDS`."""
    for need in DECLARED:
        if is_marked(path, need):
            return need
    text = path.read_text("utf-8")
    return DATABASE if "django_db" in text or "module_db" in text else PURE


def is_marked(path: Path, marker: str) -> bool:
    """Whether all tests of a file have a marker."""
    marks = "".join(_PYTESTMARK.findall(path.read_text("utf-8")))
    return re.search(rf"\bpytest\.mark\.{marker}\b", marks) is not None
