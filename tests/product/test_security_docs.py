"""Every row of docs/security.md names a test that there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| `([\w/]+\.py)::(\w+)` \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("file, test", [row[2:] for row in ROWS], ids=[row[3] for row in ROWS])
def test_a_row_names_a_test_that_there_is(file, test):
    assert re.search(rf"^ *def {test}\(", (ROOT / "tests" / file).read_text("utf-8"), re.MULTILINE)


def test_every_row_of_the_table_was_read():
    [_, table] = PAGE.split("## What was tried")
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    headings = [line for line in rows if line.startswith(("| **", "| input"))]
    assert len(ROWS) == len(rows) - len(headings)
    assert len(ROWS) > 60
