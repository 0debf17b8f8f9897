"""Traces logged per second over HTTP, one model and several, with 8 keep-alive clients."""

from __future__ import annotations

import json
import os
import time
from itertools import count
from statistics import median

from bench.lib.clients import Replies, play, request
from bench.lib.cpu import cpu_seconds
from bench.lib.installation import installation
from bench.lib.report import figure, latencies, note

CLIENTS = 8
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
TRACES = int(os.environ.get("BENCH_TRACES", "500"))  # of each client, in each round
AIM = "500"
INPUT, OUTPUT = "What is a good name for a cat? " * 8, "Miso, because it is warm. " * 40


def main() -> None:
    with installation() as here:
        site, numbers = here.site, count()
        parts = {"web": site.web().pid, "workers": site.worker().pid}
        parts["PostgreSQL"] = here.database.pid
        for name, models in (("one model", 1), (f"{CLIENTS} models", CLIENTS)):
            keys = [_key(f"{name} {number}") for number in range(models)]
            # Every process of the web server has loaded what it needs, and knows its statements.
            play(site.port, [_requests(keys[n % models], numbers, 100) for n in range(CLIENTS)])
            before = {part: cpu_seconds(pid) for part, pid in parts.items()}
            clients = time.process_time()
            rounds = []
            for _ in range(ROUNDS):
                own = [_requests(keys[n % models], numbers, TRACES) for n in range(CLIENTS)]
                rounds.append(play(site.port, own))
            spent = {part: cpu_seconds(pid) - before[part] for part, pid in parts.items()}
            spent["clients"] = time.process_time() - clients
            _say(name, rounds, spent)


def _key(name: str) -> str:
    """Make a model in a project of its own, and return its key."""
    from django.contrib.auth.models import User

    from reports.grandjury.services import create_model
    from voting.models import Project

    owner, _ = User.objects.get_or_create(username="bench")
    return create_model(owner, Project.objects.create(name=name), name)[1]


def _requests(key: str, numbers: count[int], traces: int) -> list[bytes]:
    return [
        request(
            "POST",
            "/api/v1/traces/ingest",
            json.dumps(
                {
                    "gj_inference_id": f"gj_inf_{next(numbers)}",
                    "name": "chat",
                    "input": INPUT,
                    "output": OUTPUT,
                    "model": "a-model",
                    "latency_ms": 812,
                    "prompt_tokens": 64,
                    "completion_tokens": 240,
                    "metadata": {"user": "u-1"},
                }
            ).encode(),
            Content_Type="application/json",
            Authorization=f"Bearer {key}",
        )
        for _ in range(traces)
    ]


def _say(name: str, rounds: list[Replies], spent: dict[str, float]) -> None:
    refused = {code: n for one in rounds for code, n in one.statuses.items() if code != 201}
    if refused:
        note(f"not all traces were accepted, answers other than 201: {refused}")
    rates = [one.per_second for one in rounds]
    note(f"rounds of {len(rounds[0].milliseconds):,}: {', '.join(f'{r:,.0f}' for r in rates)}")
    figure(f"traces of {name}", median(rates), "traces/s", AIM)
    latencies(f"a trace of {name}", [ms for one in rounds for ms in one.milliseconds])
    each = sum(len(one.milliseconds) for one in rounds)
    cost = ", ".join(f"{part} {seconds / each * 1e6:,.0f}" for part, seconds in spent.items())
    note(f"processor time of a trace, in us: {cost}")


if __name__ == "__main__":
    main()
