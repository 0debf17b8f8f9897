"""kill -9 for every kind of process, one at a time, and what it takes to be well again."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping

from bench.torture.installation import Installation, ask, is_well, wait
from bench.torture.people import People
from tests.helpers.waiting import gone

# By what stands in the command line. The last ones come and go by themselves.
KINDS: Mapping[str, str] = {
    "supervisor": "",
    "guard of the supervisor": "lifeline.py",
    "broker": "valkey-server",
    "web server": "humanjudge.server.rsgi:application",
    "process of the web server": "humanjudge.server.rsgi:application worker-",
    "sealing worker": "sealer@",
    "worker": "worker@",
    "beat": "[celery beat]",
    "renderer": "pictures/child.py",
    "import": "import_waiting",
}
PASSING = ("renderer", "import")
ON_POSTGRESQL = ("PostgreSQL", "a connection's process of PostgreSQL")
# Until one of those comes by.
PATIENCE = 90


def kind_of(here: Installation, number: int, seed: int) -> str:
    """Return whose turn it is: every kind as often as any other, in an order of its own each time.

    So a part that is done again kills the same kinds.
    """
    kinds = [*KINDS, *(ON_POSTGRESQL if here.postgres else ())]
    turn, place = divmod(number - 1, len(kinds))
    return random.Random(f"{seed} {turn}").sample(kinds, len(kinds))[place]


def kill_one(here: Installation, people: People, kind: str, dice: random.Random) -> float:
    """Kill a process of this kind; return the seconds until votes were taken and sealed again."""
    pid = wait(lambda: _one_of(here, kind, dice), f"a process of the kind {kind}", PATIENCE)
    # Not always at the same point of what it does.
    time.sleep(dice.uniform(0, 0.3))
    before = time.monotonic()
    if kind == "PostgreSQL" and here.postgres:
        here.postgres.kill()
        here.postgres.start()
    else:
        _kill(pid)
    wait(lambda: gone(pid), f"the end of {kind} {pid}")
    if kind == "supervisor":
        here.up.process.wait()
        # Whoever runs it starts it again; it waits for what is left of the one before.
        here.start()
    if kind not in PASSING:
        wait(lambda: _one_of(here, kind, dice), f"another {kind}")
    return recovered(here, people, before)


def recovered(here: Installation, people: People, since: float) -> float:
    """Wait until all is well and a vote was cast since then and sealed."""
    wait(lambda: is_well(here), f"health, after {here.up.shown()[-500:]}")
    vote = wait(lambda: people.voted_since(since), "a vote")
    wait(lambda: here.sealed(vote), f"the seal of vote {vote}")
    return time.monotonic() - since


def _one_of(here: Installation, kind: str, dice: random.Random) -> int:
    pids = list(_processes(here, kind))
    return dice.choice(pids) if pids else 0


def _processes(here: Installation, kind: str) -> Iterator[int]:
    if kind == "PostgreSQL" and here.postgres:
        yield here.postgres.pid
    elif kind in ON_POSTGRESQL:
        yield from _backends()
    elif kind == "supervisor":
        yield here.up.process.pid
    else:
        for pid, words in here.up.tree().items():
            is_other = kind == "web server" and "worker-" in words
            if KINDS[kind] in words and not is_other:
                yield pid


def _backends() -> list[int]:
    from django.db import connection

    def query() -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pid FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            return [pid for (pid,) in cursor.fetchall()]

    return ask(query) or []


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # it had ended by itself
