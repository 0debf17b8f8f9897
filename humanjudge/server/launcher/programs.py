"""The programs of an installation, which `up` and `serve` run: web server, workers, clock."""

import sys
from collections.abc import Callable
from functools import partial

# Votes are sealed by a worker of their own: what takes long (judges that are tried out, drawings,
# findings, score files) may take every thread of another one.
QUEUES_OF_VOTES = "votes,celery"
QUEUES_OF_WORK = "judging,rendering"
# A worker process that dies is replaced at once, and one that hangs cannot hold up a stop.
_WEB = (
    "--interface rsgi --http 1 --no-ws --log-level warning "
    "--respawn-failed-workers --respawn-interval 0.2 --workers-kill-timeout 5"
)
# Their heartbeat is our own: see humanjudge.celery.
_WORKER = "--pool threads --loglevel WARNING --without-gossip --without-mingle --without-heartbeat"


def web(host: str, port: int, processes: int = 2) -> list[str]:
    options = f"--workers {processes} --host {host} --port {port}"
    return _module(f"granian {_WEB} {options} humanjudge.server.rsgi:application")


def worker(
    name: str = "worker", queues: str = f"{QUEUES_OF_VOTES},{QUEUES_OF_WORK}", threads: int = 4
) -> list[str]:
    options = f"--hostname {name}@%h --concurrency {threads} --queues {queues}"
    return _module(f"celery -A humanjudge --quiet worker {_WORKER} {options}")


def beat() -> list[str]:
    # Not a worker's own --beat: nobody would notice the death of that process.
    return _module("celery -A humanjudge --quiet beat --loglevel WARNING")


# By their names: a worker for each queue, or one for all that may take long.
WORKERS: dict[str, Callable[[], list[str]]] = {
    "sealer": partial(worker, "sealer", QUEUES_OF_VOTES, threads=2),
    "worker": partial(worker, "worker", QUEUES_OF_WORK),
    "judging": partial(worker, "judging", "judging"),
    "rendering": partial(worker, "rendering", "rendering"),
}


def _module(words: str) -> list[str]:
    return [sys.executable, "-m", *words.split()]
