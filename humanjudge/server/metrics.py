"""Counters and times of the whole installation, kept by the broker, for `/metrics`.

A process counts in memory and hands over what it has counted every few seconds, so that all
processes of all machines add up, and counting costs a request nothing. While the broker is away it
goes on counting. What is counted here is declared in `METRICS`.
"""

import contextlib
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Final, TypeAlias

from django.http import HttpRequest, HttpResponse

from humanjudge.celery import BROKER_FAILED, broker

KEY: Final = "humanjudge:metrics"
FLUSH_SECONDS: Final = 2.0
METHODS: Final = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
# What each is and says, in the order in which they are written.
METRICS: Final = {
    "humanjudge_requests_total": ("counter", "Requests answered, by address, method and status."),
    "humanjudge_request_seconds": ("histogram", "Until a request was answered, by address."),
    "humanjudge_votes_total": ("counter", "Votes accepted."),
    "humanjudge_entries_sealed_total": ("counter", "Entries of ledgers sealed."),
    "humanjudge_seal_seconds": ("histogram", "Until a batch of entries was sealed."),
    "humanjudge_calls_total": ("counter", "Calls of models written down, by purpose and outcome."),
    "humanjudge_lease_expiries_total": ("counter", "Calls whose worker was lost, made again."),
    "humanjudge_entries_unsealed": ("gauge", "Entries of ledgers that wait to be sealed."),
    "humanjudge_oldest_unsealed_seconds": ("gauge", "How long the oldest of them has waited."),
    "humanjudge_queue_length": ("gauge", "Tasks that wait for a worker, by queue."),
    "humanjudge_alive": ("gauge", "Whether a worker of the queue, or beat, said so lately."),
}

Sample: TypeAlias = tuple[str, float]
Place: TypeAlias = tuple[str, tuple[tuple[str, object], ...]]

# How often, and, of times, how often below each bound and how long in all.
_counts: defaultdict[Place, int] = defaultdict(int)
_times: defaultdict[Place, list[float]] = defaultdict(lambda: [0.0] * (len(BOUNDS) + 2))
_lock = threading.Lock()
_flushing = 0


def count(name: str, amount: int = 1, **labels: object) -> None:
    if amount:
        with _lock:
            _counts[name, tuple(labels.items())] += amount
        _start_flushing()


def observe(name: str, seconds: float, **labels: object) -> None:
    with _lock:
        times = _times[name, tuple(labels.items())]
        times[bisect_left(BOUNDS, seconds)] += 1
        times[-1] += seconds
    _start_flushing()


@contextlib.contextmanager
def timed(name: str, **labels: object) -> Iterator[None]:
    started = time.perf_counter()
    yield
    observe(name, time.perf_counter() - started, **labels)


def sample(name: str, **labels: object) -> str:
    """Return the name of one number as the text format has it.

    Examples
    --------
    >>> sample("humanjudge_queue_length", queue="votes")
    'humanjudge_queue_length{queue="votes"}'
    """
    pairs = ",".join(f'{label}="{_escaped(str(value))}"' for label, value in labels.items())
    return f"{name}{{{pairs}}}" if pairs else name


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def prometheus_text(samples: Iterable[Sample]) -> str:
    """Return numbers in Prometheus's text format, each metric with what it is."""
    lines: dict[str, list[str]] = {name: [] for name in METRICS}
    for name, value in sorted(samples, key=lambda named: _place(named[0])):
        family = name.partition("{")[0]
        if family not in lines:
            family = family.rpartition("_")[0]
        # What an earlier version counted is of no interest to this one.
        if family in lines:
            lines[family].append(f"{name} {value:.17g}\n")
    return "".join(
        f"# HELP {name} {METRICS[name][1]}\n# TYPE {name} {METRICS[name][0]}\n{''.join(numbers)}"
        for name, numbers in lines.items()
    )


def _place(name: str) -> tuple[str, float]:
    """Return where a number stands: buckets by their bounds."""
    before, _, bound = name.partition('le="')
    return before, float(bound.rstrip('"}')) if bound else 0.0


def flush() -> None:
    """Hand over what this process has counted; where the broker is away, it is kept."""
    with _lock:
        counts, times = dict(_counts), dict(_times)
        _counts.clear()
        _times.clear()
    if not counts and not times:
        return
    try:
        with broker() as client, client.pipeline() as pipeline:
            for name, value in _samples(counts, times):
                pipeline.hincrbyfloat(KEY, name, value)
            pipeline.execute()
    except BROKER_FAILED:
        with _lock:
            for place, number in counts.items():
                _counts[place] += number
            for place, those in times.items():
                _times[place] = [a + b for a, b in zip(_times[place], those, strict=True)]


def _samples(counts: Mapping[Place, int], times: Mapping[Place, list[float]]) -> Iterator[Sample]:
    for (name, labels), total in counts.items():
        yield sample(name, **dict(labels)), total
    for (name, labels), (*below, seconds) in times.items():
        for bound, number in zip((*BOUNDS, "+Inf"), accumulate(below), strict=True):
            yield sample(f"{name}_bucket", **dict(labels), le=bound), number
        yield sample(f"{name}_sum", **dict(labels)), seconds
        yield sample(f"{name}_count", **dict(labels)), sum(below)


def stored_samples() -> list[Sample]:
    """Return what all processes have counted; raise what the broker's client raises."""
    with broker() as client:
        return [(name.decode(), float(value)) for name, value in client.hgetall(KEY).items()]


def _start_flushing() -> None:
    global _flushing  # noqa: PLW0603  one thread a process, and none in one that only forks
    if _flushing != os.getpid():
        _flushing = os.getpid()
        threading.Thread(target=_flush_forever, name="metrics", daemon=True).start()


def _flush_forever() -> None:
    while True:
        time.sleep(FLUSH_SECONDS)
        flush()


class RequestMetrics:
    """Counts requests and their time, by the pattern of their address, not by what is in it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = self._get_response(request)
        route = request.resolver_match.route if request.resolver_match else "none"
        method = request.method if request.method in METHODS else "other"
        observe("humanjudge_request_seconds", time.perf_counter() - started, route=route)
        status = response.status_code
        count("humanjudge_requests_total", route=route, method=method, status=status)
        return response
