"""How many databases and sealers many projects need: a simulation on paper, with measured times.

A project is the unit: its votes are stored and sealed by one database, one batch at a time. So
projects are dealt out over databases, and within a database over its sealers; a sealer takes the
projects whose window is over in turn, as workers take their tasks. Votes come at random times.

Nothing is started: what a vote and a seal take is measured elsewhere, and stated below.
"""

from __future__ import annotations

import heapq
import os
import random
from collections import deque
from dataclasses import dataclass
from math import ceil

from bench.lib.report import figure, note, quantile

PROJECTS = int(os.environ.get("BENCH_PROJECTS", "1000"))
RATE = float(os.environ.get("BENCH_RATE", "50"))  # votes a second of each project
SECONDS = 12.0
_VOTE, _DUE, _DONE = range(3)
# A database is not planned beyond this: queues grow without an end towards 1.
FULLEST = 0.7


@dataclass(frozen=True)
class Costs:
    """Seconds of one core. Put here what your machine measures: `bench votes`, `bench ledger`.

    Those below are of two cores that many others used at the time: a seal of a large batch took 180
    us there, where docs/operations.md has 38 us of a quiet machine, so all were divided by 4.7.
    """

    # PostgreSQL's part of a vote through the API, one commit each: `bench votes`, 1,208 us there.
    store: float = 260e-6
    # Of each vote of a batch, Python's part and PostgreSQL's: `bench ledger`, batches of 1,000.
    seal: float = 25e-6
    seal_database: float = 13e-6
    # Of a batch, however small it is: `bench ledger`, batches of 11, 2,916 + 1,077 us a vote there.
    batch: float = 6.8e-3
    batch_database: float = 2.5e-3
    # Of a database's machine.
    cores: int = 8
    # What the nudge waits in a crowd (voting.ledger.scheduler), with SEAL_WINDOW_MS at 40.
    window: float = 0.225

    def batch_of(self, votes: float) -> float:
        """Return how long a sealer is at work on a batch, waiting for the database included."""
        return self.batch + self.batch_database + votes * (self.seal + self.seal_database)


@dataclass(frozen=True)
class Found:
    """What a database with its sealers makes of its projects."""

    delays: list[float]
    queue_p99: int
    utilisation: float

    @property
    def p50(self) -> float:
        return quantile(self.delays, 0.5)

    @property
    def p99(self) -> float:
        return quantile(self.delays, 0.99)


def main() -> None:
    costs = Costs()
    note(f"{PROJECTS:,} projects at {RATE:g} votes/s: {PROJECTS * RATE:,.0f} votes/s in all")
    # A window is opened by a vote, and closed by a batch of these.
    batch = 1 + RATE * costs.window
    each = costs.store + costs.seal_database + costs.batch_database / batch
    most = int(FULLEST * costs.cores / (RATE * each))
    databases = ceil(PROJECTS / most)
    projects = ceil(PROJECTS / databases)
    sealers = ceil(projects * RATE * costs.batch_of(batch) / batch / FULLEST)
    note(f"a vote takes {each * 1e6:.0f} us of a database's {costs.cores} cores, in batches of")
    note(f"{batch:.0f} that are sealed in {1000 * costs.batch_of(batch):.1f} ms")
    figure("projects on one database, at most", most, "projects")
    figure("votes of one database", projects * RATE, "votes/s")
    figure("databases", databases, "databases")
    figure("sealers of each database", sealers, "processes")
    found = simulate(projects, RATE, sealers, costs, SECONDS)
    figure("utilisation of a sealer", 100 * found.utilisation, "%")
    figure("projects that wait for a sealer, p99", found.queue_p99, "projects")
    figure("a vote until it is sealed, p50", 1000 * found.p50, "ms")
    figure("a vote until it is sealed, p99", 1000 * found.p99, "ms")


def simulate(
    projects: int, rate: float, sealers: int, costs: Costs, seconds: float, seed: int = 1
) -> Found:
    """Let votes come and sealers work, and return how long votes waited until they were sealed.

    A project's first vote opens its window; when that is over, the project waits for a sealer, who
    takes all its votes of by then in one batch. First come, first served.
    """
    dice = random.Random(seed)
    first = ((dice.expovariate(rate), _VOTE, project) for project in range(projects))
    events = [event for event in first if event[0] < seconds]
    heapq.heapify(events)
    unsealed: list[list[float]] = [[] for _ in range(projects)]
    open_windows: set[int] = set()
    queue: deque[int] = deque()
    free, busy, now = sealers, 0.0, 0.0
    delays: list[float] = []
    lengths: list[int] = []
    while events:
        now, kind, project = heapq.heappop(events)
        if kind == _VOTE:
            unsealed[project].append(now)
            if (then := now + dice.expovariate(rate)) < seconds:
                heapq.heappush(events, (then, _VOTE, project))
        elif kind == _DUE:
            queue.append(project)
            lengths.append(len(queue))
        else:
            free += 1
            open_windows.discard(project)
        while free and queue:
            free -= 1
            sealed = queue.popleft()
            took = costs.batch_of(len(unsealed[sealed]))
            busy += took
            delays += (now + took - at for at in unsealed[sealed])
            unsealed[sealed].clear()
            heapq.heappush(events, (now + took, _DONE, sealed))
        if unsealed[project] and project not in open_windows:
            open_windows.add(project)
            heapq.heappush(events, (now + costs.window, _DUE, project))
    return Found(delays, quantile(lengths, 0.99), busy / (sealers * now))


def queue_delay(rate: float, service: float) -> float:
    """Return the mean seconds in an M/D/1 queue, service included: what one server must give.

    Examples
    --------
    >>> round(queue_delay(rate=50.0, service=0.01), 4)
    0.015
    """
    load = rate * service
    return service + load * service / (2 * (1 - load))


if __name__ == "__main__":
    main()
