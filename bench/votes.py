"""Votes per second over HTTP, with 8 keep-alive clients and the workers sealing meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from statistics import median

from bench.lib.clients import Replies, play
from bench.lib.cpu import cpu_seconds
from bench.lib.installation import Installation, installation
from bench.lib.report import figure, latencies, note
from bench.lib.votes import through_the_api, through_the_page

CLIENTS = 8
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
VOTES = int(os.environ.get("BENCH_VOTES", "750"))  # of each client, in each round
PGBENCH_SECONDS = 5
AIM = "1,000 or more, 700 at least"

PGBENCH_TABLE = """
    CREATE TABLE bench_row (id bigserial PRIMARY KEY, uid uuid UNIQUE, at timestamptz, text text)
"""
PGBENCH_INSERT = """
    INSERT INTO bench_row (uid, at, text) VALUES (gen_random_uuid(), now(), 'one vote');
"""


def main() -> None:
    with installation() as here:
        peer = rows_per_second(here)
        from tests.concurrency.scene import make_scene
        from tests.makers import make_key

        scene = make_scene(judges=6, pairs=2 * ROUNDS * VOTES, voters=CLIENTS)
        keys = [make_key("vote")[1] for _ in range(CLIENTS)]
        parts = {
            "web": here.site.web().pid,
            "worker": here.site.worker().pid,
            "beat": here.site.beat().pid,
            "PostgreSQL": here.database.pid,
            "Valkey": here.broker.pid,
            "clients": os.getpid(),
        }
        port = here.site.port
        paths = {
            "page": lambda client, pairs: through_the_page(scene, port, client, pairs),
            "API": lambda client, pairs: through_the_api(scene, keys[client], pairs),
        }
        for name, requests_of in paths.items():
            rounds = []
            spent: Counter[str] = Counter()
            for first in range(0, ROUNDS * VOTES, VOTES):
                pairs = range(first, first + VOTES)
                requests = [requests_of(client, pairs) for client in range(CLIENTS)]
                before = {part: cpu_seconds(pid) for part, pid in parts.items()}
                rounds.append(play(port, requests))
                wait_until_sealed()
                spent.update({p: cpu_seconds(pid) - before[p] for p, pid in parts.items()})
            say(name, rounds, peer)
            votes = CLIENTS * VOTES * ROUNDS
            for part, seconds in spent.items():
                figure(
                    f"processor time of {part} for a vote through the {name}",
                    seconds / votes * 1e6,
                    "us",
                )


def say(name: str, rounds: list[Replies], peer: float | None) -> None:
    rates = [replies.per_second for replies in rounds]
    refused = {code: n for replies in rounds for code, n in replies.statuses.items() if code != 200}
    if refused:
        note(f"not all votes were accepted, answers other than 200: {refused}")
    note(
        f"rounds of {len(rounds[0].milliseconds):,} votes: {', '.join(f'{r:,.0f}' for r in rates)}"
    )
    figure(f"votes through the {name}", median(rates), "votes/s", AIM)
    latencies(f"vote through the {name}", [ms for one in rounds for ms in one.milliseconds])
    if peer:
        share = median(rates) / peer
        figure(f"votes through the {name}, against rows of pgbench", share, "of the bound")


def wait_until_sealed() -> None:
    from voting.selectors import oldest_unsealed

    started = time.perf_counter()
    while oldest_unsealed() is not None:
        time.sleep(0.02)
    note(f"all sealed {time.perf_counter() - started:.2f} s after the last vote")


def rows_per_second(here: Installation) -> float | None:
    """What PostgreSQL itself does here: one row per transaction from 8 clients of pgbench."""
    program = here.database.programs.folder / "pgbench"
    if not program.exists():
        note("no pgbench beside the server, so there is nothing to compare with")
        return None
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(PGBENCH_TABLE)
    script = here.site.folder / "insert.sql"
    script.write_text(PGBENCH_INSERT)
    options = ["-n", "-c", str(CLIENTS), "-j", "2", "-T", str(PGBENCH_SECONDS), "-f", str(script)]
    said = subprocess.run(
        [str(program), *options, here.database.url], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"tps = ([\d.]+)", said)
    if found is None:
        raise RuntimeError(f"pgbench said no rate: {said}")
    figure("pgbench, one row per transaction", float(found[1]), "rows/s")
    return float(found[1])


if __name__ == "__main__":
    main()
