"""A vote beside another project's backlog: from acknowledged to sealed, on both databases."""

from __future__ import annotations

import os
import time

from bench.lib.clients import play
from bench.lib.flood import insert_votes
from bench.lib.installation import installation
from bench.lib.report import figure, note, quantile
from bench.lib.votes import through_the_page

BACKLOG = int(os.environ.get("BENCH_BACKLOG", "100000"))
PAIRS, VOTES = 1000, 10
MOST_SECONDS = 120


def main() -> None:
    with installation() as here:
        from tests.helpers.scene import make_scene
        from voting.models import Entry

        large = make_scene(judges=4, pairs=PAIRS, voters=BACKLOG // PAIRS + 1)
        small = make_scene(judges=4, pairs=VOTES, voters=1)
        requests = through_the_page(small, here.site.port, 0, range(VOTES))
        insert_votes(large, 0, BACKLOG)
        here.site.web()
        here.site.workers()
        here.site.beat()
        waited = []
        for request in requests:
            play(here.site.port, [[request]])
            started = time.perf_counter()
            while Entry.objects.filter(project=small.project, seq__isnull=True).exists():
                time.sleep(0.02)
                if time.perf_counter() - started > MOST_SECONDS:
                    break
            waited.append(time.perf_counter() - started)
        left = Entry.objects.filter(project=large.project, seq__isnull=True).count()
        note(f"{left:,} of {BACKLOG:,} were still unsealed behind the last vote")
        figure("a vote beside a backlog, median", quantile(waited, 0.5), "s")
        figure("a vote beside a backlog, longest", max(waited), "s", "at most 2")


if __name__ == "__main__":
    main()
