"""Run every bench, or those that are named, and print all figures as one table.

python -m bench [votes ledger …]
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LINE = re.compile(r"^(?P<name>\S.*?): (?P<value>[\d.,]+ .*?)(?: \(aim (?P<aim>.+)\))?$")
NOT_MEASURED = {"screenshots"}


@dataclass(frozen=True)
class Figure:
    bench: str
    name: str
    value: str
    aim: str


def main(names: list[str]) -> int:
    scripts = sorted(path.stem for path in HERE.glob("[a-z]*.py"))
    unknown = set(names) - set(scripts)
    if unknown:
        print(f"no such bench: {', '.join(sorted(unknown))}; there are {', '.join(scripts)}")
        return 2
    figures: list[Figure] = []
    failed = []
    for bench in names or [script for script in scripts if script not in NOT_MEASURED]:
        print(f"\n== {bench} ==", flush=True)
        started = time.monotonic()
        if run(bench, figures):
            failed.append(bench)
        print(f"  ({time.monotonic() - started:.0f} s)", flush=True)
    show(figures)
    for bench in failed:
        print(f"FAILED: {bench}, see above")
    return 1 if failed else 0


def run(bench: str, figures: list[Figure]) -> int:
    """Run one bench, show what it prints as it prints it, and collect its figures."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", f"bench.{bench}"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        found = LINE.match(line.rstrip())
        if found:
            figures.append(Figure(bench, found["name"], found["value"], found["aim"] or ""))
    return process.wait()


def show(figures: list[Figure]) -> None:
    name, value = (max((len(row[n]) for row in rows(figures)), default=0) for n in (1, 2))
    bench = ""
    for row in rows(figures):
        if row[0] != bench:
            bench = row[0]
            print(f"\n{bench}")
        print(f"  {row[1]:<{name}}  {row[2]:>{value}}  {row[3]}".rstrip())


def rows(figures: list[Figure]) -> list[tuple[str, str, str, str]]:
    return [(f.bench, f.name, f.value, f"aim {f.aim}" if f.aim else "") for f in figures]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
