"""Votes by the hundred thousand, put into the database in one statement and then sealed as any."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

# Voter by voter, every pair: one vote each 50 ms of a time that is past.
_INSERT = """
    INSERT INTO voting_entry (uid, project_id, kind, at, queue_id, item_id, voter_id,
                              choice, left_side, rubric_id, elapsed_ms)
    SELECT gen_random_uuid(), %(project)s, 'vote',
           now() - interval '2 days' + n * interval '50 milliseconds', %(queue)s,
           (%(pairs)s::uuid[])[n %% cardinality(%(pairs)s::uuid[]) + 1],
           (%(voters)s::uuid[])[n / cardinality(%(pairs)s::uuid[]) + 1],
           (ARRAY['A', 'B', 'A', 'both_bad'])[1 + abs(hashint4(n)) %% 4], 'A', %(rubric)s, 1500
    FROM generate_series(%(first)s::int, %(last)s::int) AS n
"""


def insert_votes(scene: Scene, first: int, last: int) -> None:
    """Insert the votes numbered first to last - 1, unsealed."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            {
                "project": scene.project.pk,
                "queue": scene.queue.pk,
                "pairs": [pair.pk for pair in scene.pairs],
                "voters": [voter.pk for voter in scene.voters],
                "rubric": scene.queue.rubric_id,
                "first": first,
                "last": last - 1,
            },
        )
        cursor.execute("VACUUM ANALYZE")


def seal(scene: Scene) -> tuple[int, float]:
    """Seal all there is; return how many and in how many seconds."""
    from voting.ledger import ledger

    sealed, started = 0, time.perf_counter()
    while batch := ledger.seal(scene.project.pk):
        sealed += batch
    return sealed, time.perf_counter() - started
