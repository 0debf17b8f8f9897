"""The pairs page of a large run, on both databases: ends, middle, sorted and narrowed down."""

from __future__ import annotations

import os
import sys
from random import Random

from bench.lib.pages import AIM, analyze, on_both_databases, prepare, time_page

PAIRS = int(os.environ.get("BENCH_PAIRS", "50000"))


def main(arguments: list[str]) -> None:
    if arguments:
        measure(arguments[0])
    else:
        on_both_databases("bench.pairs")


def measure(database: str) -> None:
    prepare()
    from tests.makers import user_client

    run = make_large_run()
    client, url = user_client(HTTP_HOST="localhost"), f"/runs/{run}/pairs/"
    last = -(-PAIRS // 30)
    queries = {
        "first page": "",
        "last page": f"?page={last}",
        "most disputed first": "?sort=disagreement",
        "most disputed first, in the middle": f"?sort=disagreement&page={last // 2}",
        "most disputed first, last page": f"?sort=disagreement&page={last}",
        "a tag, sorted, last page": "?sort=disagreement&part=tag:odd&page=9999",
        "a generator, sorted, last page": "?sort=disagreement&part=generator:model-1&page=9999",
        "one pair, most disputed first": f"{middle_pair(run)}/?sort=disagreement",
    }
    for name, query in queries.items():
        aim = "" if "part=" in query else AIM
        time_page(client, url + query, f"{name}, {PAIRS:,} pairs, {database}", aim)


def make_large_run() -> str:
    """Make a run with counts of votes and answers as the ledger's projections leave them."""
    from django.utils import timezone

    from judge_eval.models import Board, Run
    from tests.makers import make_queue
    from voting.models import Inference, Item

    queue, dice = make_queue(), Random(2026)
    run = Run.objects.create(queue=queue, name="A large run", state="voting")
    Board.objects.create(run=run)
    outputs = [
        Inference(
            project=queue.project,
            prompt=f"Question {n // 2}",
            output=f"Answer {n}",
            kind="text",
            generator=f"model-{n % 2 + n // 2 % 4}",
            tags=["odd"] if n // 2 % 2 else [],
        )
        for n in range(2 * PAIRS)
    ]
    Inference.objects.bulk_create(outputs, batch_size=2000)
    counts = [dice.choices(range(5), k=4) for _ in range(PAIRS)]
    Item.objects.bulk_create(
        (
            Item(
                queue=queue,
                position=n,
                prompt_key=str(n),
                turn=n,
                a=outputs[2 * n],
                b=outputs[2 * n + 1],
                opened_at=timezone.now(),
                votes=a + b,
                votes_a=a,
                votes_b=b,
                answers_a=says_a,
                answers_b=says_b,
            )
            for n, (a, b, says_a, says_b) in enumerate(counts)
        ),
        batch_size=2000,
    )
    analyze()
    return str(run.pk)


def middle_pair(run: str) -> str:
    from voting.models import Item

    pairs = Item.objects.filter(queue__run=run).order_by("disagreement", "position")
    return str(pairs[PAIRS // 2].pk)


if __name__ == "__main__":
    main(sys.argv[1:])
