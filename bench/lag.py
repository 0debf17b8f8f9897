"""From acknowledged to visible on the board, at 50 votes per second; and what waiting costs."""

from __future__ import annotations

import os
import threading
import time

import psycopg

from bench.lib.clients import play
from bench.lib.cpu import cpu_seconds
from bench.lib.installation import Installation, installation
from bench.lib.report import figure, quantile
from bench.lib.votes import through_the_page

PER_SECOND = 50
SECONDS = int(os.environ.get("BENCH_LAG_SECONDS", "15"))
IDLE_SECONDS = int(os.environ.get("BENCH_IDLE_SECONDS", "20"))
POLL = 0.003
BOARD = "SELECT seq FROM judge_eval_board"
SEQ_OF = "SELECT id, seq FROM voting_entry WHERE kind = 'vote' ORDER BY id"


class BoardWatch(threading.Thread):
    """Notes when the board came to show which entry of the ledger."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.seen: list[tuple[float, int]] = []
        self._url = url
        self._over = threading.Event()

    def run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            while not self._over.wait(POLL):
                (seq,) = connection.execute(BOARD).fetchone() or (0,)
                if not self.seen or seq > self.seen[-1][1]:
                    self.seen.append((time.perf_counter(), seq))

    def end(self) -> None:
        self._over.set()
        self.join()

    def when(self, seq: int) -> float:
        return next(moment for moment, shown in self.seen if shown >= seq)


def main() -> None:
    with installation() as here:
        from tests.helpers.scene import make_scene

        scene = make_scene(judges=6, pairs=PER_SECOND * SECONDS + 1, voters=1)
        processes = [here.site.web(), *here.site.workers(), here.site.beat()]
        parts = [process.pid for process in processes] + [here.database.pid, here.broker.pid]
        requests = through_the_page(scene, here.site.port, 0, range(len(scene.pairs)))
        measure_lag(here, requests)
        measure_idle(parts)


def measure_lag(here: Installation, requests: list[bytes]) -> None:
    """Send votes at a steady pace; the first one waits for the workers to have started."""
    watch = BoardWatch(here.database.url)
    watch.start()
    port = here.site.port
    play(port, [requests[:1]])
    while len(watch.seen) < 2:
        time.sleep(0.02)
    acknowledged = []
    started = time.perf_counter()
    for number, request in enumerate(requests[1:]):
        time.sleep(max(0.0, started + number / PER_SECOND - time.perf_counter()))
        play(port, [[request]])
        acknowledged.append(time.perf_counter())
    time.sleep(2)
    watch.end()
    with psycopg.connect(here.database.url) as connection:
        seqs = [seq for _, seq in connection.execute(SEQ_OF).fetchall()][1:]
    lags = [
        max(0.0, watch.when(seq) - moment) * 1000
        for moment, seq in zip(acknowledged, seqs, strict=True)
    ]
    name = f"from acknowledged to on the board, at {PER_SECOND} votes/s"
    figure(f"{name}, p50", quantile(lags, 0.5), "ms")
    figure(f"{name}, p95", quantile(lags, 0.95), "ms", "under 150")


def measure_idle(parts: list[int]) -> None:
    """Wait until what was started has settled, then watch it do nothing."""
    time.sleep(3)
    before, started = sum(map(cpu_seconds, parts)), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    spent = sum(map(cpu_seconds, parts)) - before
    share = 100 * spent / (time.perf_counter() - started)
    figure("idle, all processes together", share, "% of one core", "under 2")


if __name__ == "__main__":
    main()
