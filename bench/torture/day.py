"""A day of votes in as little time as the machine takes, and what memory every process has by then.

Scripts vote through the API: each hour as many votes as 20 a second make, by keys of its own.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bench.lib.clients import play
from bench.lib.votes import through_the_api
from bench.torture.check import Verdict, ledgers
from bench.torture.installation import Installation, make_pairs, wait
from bench.torture.table import MOST_GROWTH, growth

if TYPE_CHECKING:
    from tests.helpers.scene import Scene

VOTES_PER_HOUR = 20 * 3600
PAIRS = 3000


def day(here: Installation, hours: int) -> tuple[Verdict, dict[str, float], float]:
    """Return what came of it, growth of memory in MB an hour by process, and votes a second."""
    scene = make_pairs(PAIRS)
    verdict = Verdict()
    memory: dict[str, list[float]] = defaultdict(list)
    seconds = 0.0
    for hour in range(hours):
        seconds += _hour(here, scene, verdict)
        for name, megabytes in _memory(here).items():
            memory[name].append(megabytes)
        print(f"hour {hour + 1}: {verdict.acknowledged:,} votes in {seconds:.0f} s", flush=True)
    _votes(scene, hours, verdict)
    growths = {name: growth(values) for name, values in memory.items() if len(values) == hours}
    for name, each in growths.items():
        if each > MOST_GROWTH:
            verdict.wrong.append(f"{name} grows by {each:.2f} MB an hour: {memory[name]}")
    verdict.wrong += ledgers(here)
    return verdict, growths, verdict.acknowledged / seconds


def _hour(here: Installation, scene: Scene, verdict: Verdict) -> float:
    from tests.makers import make_key
    from voting.ballot.queries import oldest_unsealed

    keys = [make_key("vote")[1] for _ in range(VOTES_PER_HOUR // PAIRS)]
    replies = play(here.port, [through_the_api(scene, key, range(PAIRS)) for key in keys])
    verdict.acknowledged += replies.statuses.pop(200, 0)
    if replies.statuses:
        verdict.wrong.append(f"answers other than 200: {replies.statuses}")
    sealing = time.perf_counter()
    wait(lambda: oldest_unsealed() is None, "the last seal of an hour")
    return replies.seconds + time.perf_counter() - sealing


def _votes(scene: Scene, hours: int, verdict: Verdict) -> None:
    """Every voter has voted once on every pair, as told."""
    from django.db.models import Count

    from voting.models import Entry

    votes = Entry.objects.filter(queue=scene.queue, kind="vote")
    expected = {pair.pk: "A" if n % 3 else "B" for n, pair in enumerate(scene.pairs)}
    voters = hours * (VOTES_PER_HOUR // PAIRS)
    kept = 0
    for item, choice, number, people in votes.values_list("item", "choice").annotate(
        Count("pk"), Count("voter", distinct=True)
    ):
        verdict.doubled += number - people
        kept += people if expected.get(item) == choice else 0
    verdict.lost = voters * PAIRS - kept
    if verdict.lost or verdict.doubled:
        verdict.wrong.append(f"{verdict.lost} votes lost, {verdict.doubled} doubled")


def _memory(here: Installation) -> Mapping[str, float]:
    """Resident megabytes by process; one that was started again meanwhile has another number."""
    found = {}
    for pid, words in here.up.tree().items():
        status = Path(f"/proc/{pid}/status")
        if not status.exists() or "lifeline" in words or "child.py" in words:
            continue
        rss = [line.split()[1] for line in status.read_text().splitlines() if "VmRSS" in line]
        if rss:
            found[f"{_short(words)} {pid}"] = int(rss[0]) / 1024
    return found


def _short(words: str) -> str:
    names = {"worker-": "web", "rsgi": "web master", "sealer@": "sealer", "worker@": "worker"}
    names |= {"beat": "beat", "valkey": "broker", "manage.py": "supervisor"}
    return next((name for mark, name in names.items() if mark in words), words[:20])
