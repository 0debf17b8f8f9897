"""A vote beside another project's backlog: from acknowledged to sealed, on both databases."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from bench.lib.clients import play
from bench.lib.installation import installation
from bench.lib.report import figure, note, quantile
from bench.lib.votes import through_the_page
from tests.helpers.waiting import eventually

if TYPE_CHECKING:
    from voting.models import Project

BACKLOG = int(os.environ.get("BENCH_BACKLOG", "100000"))
PAIRS, VOTES = 1000, 10
MOST_SECONDS = 120
DATABASES = ("PostgreSQL", "SQLite")


def main() -> None:
    for database in DATABASES:
        child = [sys.executable, "-u", "-m", "bench.fair_seals", database]
        subprocess.run(child, check=True)


def measure(database: str) -> None:
    with installation(is_sqlite=database == "SQLite") as here:
        from tests.helpers.scene import make_scene
        from tests.makers import make_many_votes

        large = make_scene(judges=4, pairs=PAIRS, voters=BACKLOG // PAIRS)
        small = make_scene(judges=4, pairs=VOTES, voters=1)
        here.site.web()
        requests = through_the_page(small, here.site.port, 0, range(VOTES))
        votes = [(voter, pair, "A") for voter in large.voters for pair in large.pairs]
        make_many_votes(large.run, votes)
        here.site.workers()
        here.site.beat()
        wait_until(lambda: unsealed(large.project) < BACKLOG)
        waited = []
        for request in requests:
            play(here.site.port, [[request]])
            waited.append(wait_until(lambda: not unsealed(small.project)))
        note(f"{unsealed(large.project):,} of {BACKLOG:,} were unsealed behind the last vote")
        name = f"a vote beside a backlog, {database}"
        figure(f"{name}, median", quantile(waited, 0.5), "s")
        figure(f"{name}, longest", max(waited), "s", "at most 2")


def unsealed(project: Project) -> int:
    from voting.models import Entry

    return Entry.objects.filter(project=project, seq__isnull=True).count()


def wait_until(is_so: Callable[[], bool]) -> float:
    began = time.perf_counter()
    eventually(is_so, MOST_SECONDS)
    return time.perf_counter() - began


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1])
    else:
        main()
