"""Whether a vote and a board cost more when the run has a hundred times as many votes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bench.lib.clients import play, request
from bench.lib.flood import insert_votes, seal
from bench.lib.installation import Installation, installation
from bench.lib.report import figure, note, quantile
from bench.lib.votes import through_the_page

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

FEW = 1000
MANY = int(os.environ.get("BENCH_GROWTH", "100000"))
REQUESTS = 300
AIM = "at most 1.2"


def main() -> None:
    with installation() as here:
        here.site.web()
        in_one_run(here)
        in_a_larger_run(here)


def in_one_run(here: Installation) -> None:
    """More votes on the same pairs: the same requests in the same run, before and after."""
    scene = make(pairs=FEW + 2 * REQUESTS, voters=MANY // FEW + 2)
    votes = ballots(here, scene, 2 * REQUESTS)
    few = timed(here, scene, votes[REQUESTS:], first=0, last=FEW)
    many = timed(here, scene, votes[:REQUESTS], first=FEW, last=MANY)
    compare("on the same pairs", few, many)


def in_a_larger_run(here: Installation) -> None:
    """One vote on each pair: a small run, and a run with a hundred times as many pairs."""
    small = make(pairs=FEW + REQUESTS, voters=2)
    few = timed(here, small, ballots(here, small, REQUESTS), first=0, last=FEW)
    large = make(pairs=MANY + REQUESTS, voters=2)
    many = timed(here, large, ballots(here, large, REQUESTS), first=0, last=MANY)
    compare("on as many pairs", few, many)


def make(*, pairs: int, voters: int) -> Scene:
    from tests.helpers.scene import make_scene

    scene = make_scene(judges=2, pairs=pairs, voters=voters)
    scene.run.is_shared = True
    scene.run.save()
    return scene


def ballots(here: Installation, scene: Scene, number: int) -> list[bytes]:
    """Votes of the last voter, whom no other votes are made for."""
    last = len(scene.pairs)
    return through_the_page(
        scene, here.site.port, len(scene.voters) - 1, range(last - number, last)
    )


def timed(
    here: Installation, scene: Scene, votes: list[bytes], *, first: int, last: int
) -> dict[str, float]:
    """Let the run have the votes numbered first to last - 1, then time a vote and a board."""
    insert_votes(scene, first, last)
    seal(scene)
    board = [request("GET", f"/runs/{scene.run.pk}/")] * REQUESTS
    play(here.site.port, [board[:20]])
    return {"vote": median_ms(here, votes), "board": median_ms(here, board)}


def compare(what: str, few: dict[str, float], many: dict[str, float]) -> None:
    for name, before in few.items():
        after = many[name]
        note(f"{name} after {FEW:,} votes {before:.2f} ms, after {MANY:,} votes {after:.2f} ms")
        figure(f"{name} after {MANY:,} votes against {FEW:,}, {what}", after / before, "times", AIM)


def median_ms(here: Installation, requests: list[bytes]) -> float:
    replies = play(here.site.port, [requests])
    if set(replies.statuses) != {200}:
        raise RuntimeError(f"answers other than 200: {replies.statuses}")
    return quantile(replies.milliseconds, 0.5)


if __name__ == "__main__":
    main()
