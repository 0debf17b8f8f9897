"""Processor time of whole process trees, which a busy machine does not distort as it does rates."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """Processor time of a process and all that descends from it, the ended ones included."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended while the others were read
            continue
        pid = int(entry.name)
        children[int(fields[1])].append(pid)
        # User and system time, of itself and of the children it has waited for.
        ticks[pid] = sum(int(field) for field in fields[11:15])
    total, todo = 0, [root]
    while todo:
        pid = todo.pop()
        total += ticks.get(pid, 0)
        todo += children[pid]
    return total / _TICK
