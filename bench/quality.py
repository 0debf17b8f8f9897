"""The quality score over a million votes: folded one by one, at once, and from the ledger."""

from __future__ import annotations

import os
import time
from random import Random
from typing import TYPE_CHECKING

from bench.lib.flood import insert_votes
from bench.lib.installation import installation
from bench.lib.report import figure, note

if TYPE_CHECKING:
    from reports.quality.score import WeightedVote
    from tests.helpers.scene import Scene

VOTES = int(os.environ.get("BENCH_QUALITY", "1000000"))
PAIRS = 1000


def main() -> None:
    measure_folds()
    with installation():
        from tests.helpers.scene import make_scene

        scene = make_scene(judges=1, pairs=PAIRS, voters=-(-VOTES // PAIRS))
        insert_votes(scene, 0, VOTES)
        number_votes(scene)
        measure_replay(scene)


def make_votes() -> list[WeightedVote]:
    from reports.quality.score import WeightedVote

    dice, at, votes = Random(7), 0, []
    for seq in range(1, VOTES + 1):
        # Of four votes one has the time of the vote before.
        at += dice.choice((0, 1, 2, 3)) * dice.randrange(1, 60_000_000)
        votes.append(
            WeightedVote(at, seq, float(dice.random() < 0.8), dice.choice((0.5, 1.0, 2.0)))
        )
    return votes


def measure_folds() -> None:
    """Replay votes that are in a list, on one core."""
    import numpy as np

    from reports.quality.closed_form import course
    from reports.quality.score import FoldState, Rule, folding

    votes, rule = make_votes(), Rule(initial=0.5, rate=0.1, unit="day")
    started = time.process_time()
    standing, count = FoldState(rule.initial), folding(rule)
    for vote in votes:
        count(standing, vote)
    figure(f"replay of {VOTES:,} votes one by one", time.process_time() - started, "s", "under 3")
    started = time.process_time()
    columns = [("at", "i8"), ("seq", "i8"), ("worth", "f8"), ("reputation", "f8")]
    rows = np.fromiter(votes, dtype=columns)
    found = course(*(np.ascontiguousarray(rows[name]) for name, _ in columns), rule)
    seconds = time.process_time() - started
    figure(f"replay of {VOTES:,} votes by the closed form", seconds, "s", "under 3")
    if abs(found.score[-1] - standing.score) > 1e-9:
        note(f"THEY DIFFER: {found.score[-1]} and {standing.score}")


def number_votes(scene: Scene) -> None:
    """Seal all votes in one statement: what is measured is the score, not the chain."""
    from django.db import connection

    sql = (
        "UPDATE voting_entry SET hash = '\\x00', reputation = 1000000, seq = voting_entry.id - %s "
        "WHERE seq IS NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(id) FROM voting_entry WHERE seq IS NULL")
        cursor.execute(sql, [cursor.fetchone()[0] - 1 - scene.project.head_seq])
        cursor.execute("VACUUM ANALYZE")


def measure_replay(scene: Scene) -> None:
    from reports.quality.projection import QualityScore

    projection = QualityScore(scene.project)
    list(projection.rebuild(write=True))
    started = time.perf_counter()
    differences = list(projection.rebuild(write=False))
    if differences:
        note(f"REPLAY DIFFERS: {differences[:3]}")
    seconds = time.perf_counter() - started
    figure(f"replay of {VOTES:,} votes from the ledger, with all points", seconds, "s")


if __name__ == "__main__":
    main()
