"""The ledger at a million votes and 6 judges: seal, replay, undo."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench.lib.cpu import cpu_seconds
from bench.lib.flood import insert_votes, seal
from bench.lib.installation import installation
from bench.lib.report import figure, note, quantile

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

VOTES = int(os.environ.get("BENCH_LEDGER", "1000000"))
PAIRS = 1000
STEPS = 10
UNDOS = 40
# As where 50 votes a second come to a project, and a crowd makes the window longer.
SMALL, SMALL_BATCHES = 11, 200
_ALL = VOTES + SMALL * SMALL_BATCHES


def main() -> None:
    with installation() as here:
        from tests.helpers.scene import make_scene

        scene = make_scene(judges=6, pairs=PAIRS, voters=-(-_ALL // PAIRS))
        cost = Cost(here.database.pid)
        measure_seal(scene, cost)
        measure_replay(scene, cost)
        measure_small_batches(scene, cost)
        measure_undo(scene)


class Cost:
    """Processor time of a vote, here and in PostgreSQL: what a busy machine does not distort."""

    def __init__(self, database: int) -> None:
        self.database = database

    def start(self) -> None:
        self.began = time.process_time(), cpu_seconds(self.database)

    def per_vote(self, votes: int) -> str:
        here, there = (
            time.process_time() - self.began[0],
            cpu_seconds(self.database) - self.began[1],
        )
        return f"{here / votes * 1e6:.0f} + {there / votes * 1e6:.0f}"


def measure_seal(scene: Scene, cost: Cost) -> None:
    rates, costs = [], []
    for step in range(STEPS):
        insert_votes(scene, step * VOTES // STEPS, (step + 1) * VOTES // STEPS)
        cost.start()
        sealed, seconds = seal(scene)
        costs.append(cost.per_vote(sealed))
        rates.append(sealed / seconds)
    note(f"by tenth of {VOTES:,} votes: {', '.join(f'{rate:,.0f}' for rate in rates)} votes/s")
    note(f"processor time of a vote in us, Python + PostgreSQL: {', '.join(costs)}")
    figure("seal, 6 judges, batches of 1,000", quantile(rates, 0.5), "votes/s", "10,000 or more")
    figure("seal, last tenth against the first", rates[-1] / rates[0], "of its rate")


def measure_replay(scene: Scene, cost: Cost) -> None:
    from voting.ledger import ledger

    cost.start()
    started = time.perf_counter()
    differences = ledger.replay(scene.project, write=False)
    seconds = time.perf_counter() - started
    if differences:
        note(f"REPLAY DIFFERS: {differences[:3]}")
    note(f"processor time of a vote in us, Python + PostgreSQL: {cost.per_vote(VOTES)}")
    figure(f"replay of {VOTES:,} votes", seconds, "s", "under 12")
    figure("replay", VOTES / seconds, "votes/s")


def measure_small_batches(scene: Scene, cost: Cost) -> None:
    """What a batch costs however few votes it holds: see bench.scale."""
    from django.conf import settings

    insert_votes(scene, VOTES, _ALL)
    usual, settings.SEAL_BATCH = settings.SEAL_BATCH, SMALL
    cost.start()
    sealed, seconds = seal(scene)
    settings.SEAL_BATCH = usual
    note(f"processor time of a vote in batches of {SMALL} in us: {cost.per_vote(sealed)}")
    figure(f"seal, 6 judges, batches of {SMALL}", sealed / seconds, "votes/s")


def measure_undo(scene: Scene) -> None:
    """Undo the latest vote, and the vote before it, and so on, each with its own seal."""
    from datetime import timedelta

    from django.utils import timezone

    from voting.ballot import services
    from voting.ledger import ledger

    milliseconds = []
    for _ in range(UNDOS):
        started = time.perf_counter()
        services.undo_last_vote(scene.voters[-1], scene.queue)
        sealed = ledger.seal(scene.project.pk, now=timezone.now() + timedelta(seconds=1))
        milliseconds.append((time.perf_counter() - started) * 1000)
        assert sealed == 1
    name = "undo of the latest vote, sealed"
    figure(f"{name}, p50", quantile(milliseconds, 0.5), "ms", "under 50")
    figure(f"{name}, p95", quantile(milliseconds, 0.95), "ms")


if __name__ == "__main__":
    main()
