"""The people page of a run with many voters, on both databases, and what its changes cost."""

from __future__ import annotations

import os
import sys
import time
from datetime import timedelta
from itertools import count

from bench.lib.pages import analyze, on_both_databases, prepare, time_page
from bench.lib.report import figure

VOTERS = int(os.environ.get("BENCH_VOTERS", "1000"))
VOTES_EACH = int(os.environ.get("BENCH_VOTES_EACH", "20"))
PAIRS = int(os.environ.get("BENCH_PAIRS", "2000"))


def main(arguments: list[str]) -> None:
    if arguments:
        measure(arguments[0])
    else:
        on_both_databases("bench.people")


def measure(database: str) -> None:
    prepare()
    from tests.helpers.run_findings import compute
    from tests.makers import make_run, make_voter, seal_all, user_client
    from voting.curating.services import change_for_all, exclude_voter, reverse
    from voting.ledger.decisions import Rules

    run = make_run(pairs=PAIRS, votes_wanted=VOTERS, judges=3)
    make_votes(run)
    # As a worker has done it by the time that somebody looks.
    compute(run)
    size = f"{VOTERS:,} voters, {VOTERS * VOTES_EACH:,} votes, {database}"
    client, url = user_client(HTTP_HOST="localhost"), f"/runs/{run.pk}/people/"
    for name, query in {"people": "", "by agreement": "?sort=agreement"}.items():
        time_page(client, url + query, f"{name}, {size}")
    lead, odd = make_voter(run), run.queue.project.voters.order_by("pk")[0]

    def timed(name: str) -> None:
        started = time.perf_counter()
        seal_all(run.queue.project)
        figure(f"{name}, {size}", (time.perf_counter() - started) * 1000, "ms", "")

    decision = exclude_voter(odd.pk, run.queue, lead, after=None)
    timed("to seal an exclusion")
    reverse(decision.uid, lead)
    timed("to seal its reversal")
    rules = Rules(votes_per_item=5, overlap_share=0.2, overlap_votes=9)
    change_for_all(run.queue, rules, lead)
    timed(f"to seal other votes wanted on {PAIRS:,} pairs")


def make_votes(run) -> None:  # type: ignore[no-untyped-def]
    from django.utils import timezone

    from tests.makers import make_many_entries, pairs_of, seal_all
    from voting.models import Voter

    project, pairs, number = run.queue.project, pairs_of(run), count()
    voters = [Voter(project=project, name=f"Voter {n}") for n in range(VOTERS)]
    Voter.objects.bulk_create(voters)
    rows = []
    for voter in voters:
        for _ in range(VOTES_EACH):
            n = next(number)
            about = {"voter": voter, "item": pairs[n % PAIRS], "rubric": run.queue.rubric}
            said = {
                "choice": "AAB"[n * 7 % 3],
                "left_side": "AB"[n % 2],
                "elapsed_ms": n * 37 % 9000,
            }
            at = timezone.now() - timedelta(minutes=VOTERS * VOTES_EACH - n)
            rows.append(about | said | {"at": at})
    make_many_entries(run, "vote", rows)
    seal_all(project)
    analyze()


if __name__ == "__main__":
    main(sys.argv[1:])
