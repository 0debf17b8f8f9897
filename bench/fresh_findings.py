"""How long the board's words lack the newest vote, with twelve judges and workers at rest."""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING

from bench.lib.flood import insert_votes, seal
from bench.lib.installation import installation
from bench.lib.report import figure, note

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

JUDGES = 12
FEW, MANY = 1000, int(os.environ.get("BENCH_VOTES", "100000"))
PAIRS, BOARDS, VOTES = 500, 20, 5
MOST_SECONDS = 200


def main() -> None:
    with installation() as here:
        few, many = scene_of(FEW), scene_of(MANY)
        boards = [scene_of(FEW) for _ in range(BOARDS)]
        here.site.workers()
        here.site.beat()
        until_fresh([few, many, *boards])
        for scene, aim in ((few, "at most 5"), (many, "at most 10")):
            waited = [one_vote([scene])[0] for _ in range(VOTES)]
            name = f"newest vote in the board's words, {seconds_of(scene)[0]:,} votes"
            figure(f"{name}, median", statistics.median(waited), "s")
            figure(f"{name}, longest", max(waited), "s", aim)
            note(f"of it {seconds_of(scene)[1]:.1f} s to compute")
        figure("twenty boards with a vote each, median", statistics.median(one_vote(boards)), "s")
        here.site.worker()
        time.sleep(5)
        waited = one_vote(boards)
        name = "twenty boards with a vote each, two workers"
        figure(f"{name}, median", statistics.median(waited), "s", "at most 10")
        figure(f"{name}, longest", max(waited), "s")


def scene_of(votes: int) -> Scene:
    """A run with sealed votes, and some pairs that nobody voted on."""
    from tests.helpers.scene import make_scene

    scene = make_scene(judges=JUDGES, pairs=PAIRS, voters=votes // PAIRS + 1)
    scene.run.judges.filter(position__gt=0).update(provider="imported")
    insert_votes(scene, 0, votes)
    seal(scene)
    return scene


def one_vote(scenes: list[Scene]) -> list[float]:
    """Cast a vote in each, and return how long each is not in the findings."""
    from tests.makers import make_vote
    from voting.models import Entry

    for scene in scenes:
        voted = Entry.objects.filter(voter=scene.voters[-1]).count()
        make_vote(scene.voters[-1], scene.pairs[voted])
    return until_fresh(scenes)


def until_fresh(scenes: list[Scene]) -> list[float]:
    from django.db.models import F
    from django.utils import timezone

    from judge_eval.models import Findings
    from voting.models import Entry

    began, fresh_after = time.perf_counter(), dict[object, float]()
    runs = {scene.run.pk: scene for scene in scenes}
    while runs.keys() - fresh_after.keys() and time.perf_counter() - began < MOST_SECONDS:
        # Somebody looks at each of them.
        looked_at = Findings.objects.filter(run__in=runs)
        looked_at.update(requested_at=timezone.now())
        unsealed = Entry.objects.filter(seq__isnull=True).values("queue__run")
        fresh = looked_at.filter(seq__gte=F("run__board__seq")).exclude(run__in=unsealed)
        for run in fresh.values_list("run", flat=True):
            fresh_after.setdefault(run, time.perf_counter() - began)
        time.sleep(0.1)
    return [fresh_after.get(run, MOST_SECONDS) for run in runs]


def seconds_of(scene: Scene) -> tuple[int, float]:
    from judge_eval.models import Findings

    row = Findings.objects.select_related("run__board").get(run=scene.run)
    return row.run.board.votes, row.seconds


if __name__ == "__main__":
    main()
