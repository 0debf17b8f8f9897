"""A second start of `make run`: until it is healthy, its processor time, and its memory when idle.

Memory is the proportional set size: what several processes share counts once.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

from bench.lib.cpu import cpu_seconds
from bench.lib.report import figure, note
from tests.process.up import Up
from tests.servers import short_folder

IDLE_SECONDS = int(os.environ.get("BENCH_IDLE_SECONDS", "60"))
WATCHED_SECONDS = 20


def main() -> None:
    folder = short_folder("hj-start-")
    try:
        with Up(folder / "data") as first:
            first.ready()
            first.stop(signal.SIGTERM)
        started = time.monotonic()
        with Up(folder / "data") as again:
            again.ready()
            seconds = time.monotonic() - started
            figure("second start until healthy", seconds, "s", "<= 5 on two idle cores")
            figure("processor time of it", cpu_seconds(again.process.pid), "s")
            time.sleep(IDLE_SECONDS)
            show_memory(again)
            before = cpu_seconds(again.process.pid)
            time.sleep(WATCHED_SECONDS)
            share = (cpu_seconds(again.process.pid) - before) / WATCHED_SECONDS
            figure("processor time when idle", 100 * share, "% of a core")
            again.stop(signal.SIGTERM)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def show_memory(up: Up) -> None:
    sizes = {pid: proportional_set_size(pid) for pid in up.tree()}
    for pid, words in up.tree().items():
        note(f"{sizes.get(pid, 0):6.1f} MB  {words[:90]}")
    figure("memory of all idle processes", sum(sizes.values()), "MB", "<= 450")


def proportional_set_size(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


if __name__ == "__main__":
    main()
