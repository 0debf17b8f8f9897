"""Votes per second over HTTP, with 8 keep-alive clients and the workers sealing meanwhile."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from itertools import islice
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
        from tests.helpers.scene import make_scene
        from tests.makers import make_key

        # One pair more than are voted on in all rounds: the first vote waits for the workers.
        scene = make_scene(judges=6, pairs=2 * ROUNDS * VOTES + 1, voters=CLIENTS)
        keys = [make_key("vote")[1] for _ in range(CLIENTS)]
        site = here.site
        parts = {
            "web": site.web().pid,
            "workers": site.worker().pid,
            "PostgreSQL": here.database.pid,
            "Valkey": here.broker.pid,
        }
        site.beat()
        pairs = iter(range(len(scene.pairs)))
        play(site.port, [through_the_page(scene, site.port, 0, [next(pairs)])])
        wait_until_sealed()
        for path in ("page", "API"):
            rounds = []
            spent: Counter[str] = Counter()
            for _ in range(ROUNDS):
                turn = list(islice(pairs, VOTES))
                if path == "page":
                    requests = [
                        through_the_page(scene, site.port, client, turn)
                        for client in range(CLIENTS)
                    ]
                else:
                    requests = [through_the_api(scene, key, turn) for key in keys]
                before = {part: cpu_seconds(pid) for part, pid in parts.items()}
                clients = time.process_time()
                rounds.append(play(site.port, requests))
                spent["clients"] += time.process_time() - clients
                wait_until_sealed()
                spent.update({p: cpu_seconds(pid) - before[p] for p, pid in parts.items()})
            say(path, rounds, peer)
            cost = ", ".join(
                f"{part} {seconds / (CLIENTS * VOTES * ROUNDS) * 1e6:,.0f}"
                for part, seconds in spent.items()
            )
            note(f"processor time of a vote through the {path}, in us: {cost}")


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
    from voting.ballot.queries import oldest_unsealed

    started = time.perf_counter()
    while oldest_unsealed() is not None:
        time.sleep(0.02)
    note(f"all sealed {time.perf_counter() - started:.2f} s after the last acknowledgement")


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
