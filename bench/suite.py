"""What the tests cost: processor seconds by half and phase, by file, and by kind of process.

python -m bench.suite [what pytest takes …]

A process is found by a variable that all inherit. It is looked at four times a second, so one that
lives more shortly is not counted by kind; the halves count it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

# What every process of this run of the suite has in its environment.
MARK = f"HUMANJUDGE_TEST_COSTS={os.getpid()}"
# What a command line holds, and what it is called; the first that fits.
KINDS = {
    "--type=": "browser: pages and pictures",
    "chrom": "browser",
    "playwright": "browser: what drives it",
    "postgres": "PostgreSQL",
    "valkey": "Valkey",
    "redis-server": "Valkey",
    "granian": "web servers",
    "celery": "workers and beat",
    "pictures/child": "renderers of pictures",
    "pytest": "pytest and its workers",
    "manage.py": "commands",
}
TICKS = os.sysconf("SC_CLK_TCK")
DEAREST_FILES = 40


class Watch(threading.Thread):
    """Reads what every process of the test run has used so far."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.kinds: dict[tuple[str, str], str] = {}
        self.seconds: dict[tuple[str, str], float] = {}

    def run(self) -> None:
        while not self.ended.wait(0.25):
            for folder in Path("/proc").glob("[0-9]*"):
                # It may have ended meanwhile, or be somebody else's.
                try:
                    self._look(folder)
                except OSError:
                    continue

    def _look(self, folder: Path) -> None:
        fields = folder.joinpath("stat").read_text().rpartition(")")[2].split()
        process = folder.name, fields[19]
        if process not in self.kinds:
            if MARK.encode() not in folder.joinpath("environ").read_bytes().split(b"\0"):
                return
            words = folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()
            kind = next((kind for part, kind in KINDS.items() if part in words), "others")
            self.kinds[process] = kind
        self.seconds[process] = (int(fields[11]) + int(fields[12])) / TICKS

    def by_kind(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for process, seconds in self.seconds.items():
            found[self.kinds[process]] += seconds
        return found


def main(arguments: list[str]) -> int:
    watch = Watch()
    watch.start()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "costs.json")
        command = [sys.executable, "-m", "tests.suite", "--costs", str(file), *arguments]
        name, _, value = MARK.partition("=")
        code = subprocess.run(command, env={**os.environ, name: value}, check=False).returncode
        costs = json.loads(file.read_text())
    watch.ended.set()
    watch.join()
    for half, phases in costs["halves"].items():
        for phase, seconds in phases.items():
            print(f"{half}, {phase}: {seconds:,.0f} s")
    for kind, seconds in watch.by_kind().most_common():
        print(f"{kind}: {seconds:,.0f} s")
    for file_name, seconds in list(costs["files"].items())[:DEAREST_FILES]:
        print(f"{file_name}: {seconds:,.1f} s")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
