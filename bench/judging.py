"""Verdict calls per second against a local provider, beside what it allows.

First as `make run` installs it, where each call takes a second; then of two workers on PostgreSQL,
where a call takes 20 ms. The provider is no part of the product: its processor time is told apart.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from bench.lib.cpu import cpu_seconds
from bench.lib.installation import (
    Installation,
    another_worker,
    as_make_run_installs_it,
    installation,
)
from bench.lib.report import figure, note
from tests.provider import ProviderProcess, provider_process

if TYPE_CHECKING:
    from judge_eval.models import Run

CALLS = int(os.environ.get("BENCH_JUDGING", "10000"))
CALLS_ONE_BY_ONE = max(CALLS // 25, 20)
JUDGES = 10
# For so long calls of a second each are made.
SECONDS = int(os.environ.get("BENCH_JUDGING_SECONDS", "100"))
# What a provider is asked at once by default.
AT_ONCE = 8
WORKERS = 2
LATENCY_MS = 20.0
FAULTS = {"429": 0.02, "500": 0.01}
# Seconds of processor time in one second.
IDLE_CPU = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    for part in (as_installed, with_postgresql):
        apart(part)


def apart(part: Callable[[], None]) -> None:
    """Run a part in a process of its own: Django knows one installation."""
    process = get_context("fork").Process(target=part)
    process.start()
    process.join()
    if process.exitcode:
        sys.exit(process.exitcode)


def as_installed() -> None:
    cores = os.cpu_count() or 1
    with provider_process(latency_ms=1000) as model, as_make_run_installs_it() as pids:
        measure_waiting(model, pids, 64, 1, "at least 0.90")
        measure_waiting(model, pids, 256, cores, "at least 0.85")


def measure_waiting(
    model: ProviderProcess, pids: Sequence[int], at_once: int, workers: int, aim: str
) -> None:
    """Make calls that take a second, which cost little and are many."""
    calls = at_once * SECONDS
    offer(model, at_once)
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(another_worker(f"more{n}")).pid for n in range(1, workers)]
        product = [*pids, *others]
        warm_up(product)
        run = make_run(calls, f"number ({at_once})")
        model.control(reset=True, rates={})
        before, models_before = spent(product), spent([model.pid])
        began = time.perf_counter()
        start(run)
        wait_for_voting(run)
        seconds = time.perf_counter() - began
        cost = (spent(product) - before) / calls * 1000
        models_cost = (spent([model.pid]) - models_before) / calls * 1000
    peak = model.log()["peak"]
    note(f"{calls} calls of 1 s; the provider saw at most {peak} at once")
    note(f"processor time of a call: {cost:.2f} ms here, {models_cost:.2f} ms at the provider")
    say_soundness(run, calls, peak, at_once)
    name = f"make run, 1 s, {at_once} at once, {workers} worker{'s' if workers > 1 else ''}"
    figure(name, calls / seconds, "calls/s")
    figure(f"{name}, against the bound", calls / seconds / at_once, "of the bound", aim)
    figure(f"{name}, processor time of a call", cost, "ms", "at most 5, all processes")


def with_postgresql() -> None:
    with provider_process(latency_ms=LATENCY_MS) as model, installation() as here:
        here.site.beat()
        measure_rate(here, model, AT_ONCE)
        measure_overhead(here, model)


def measure_rate(here: Installation, model: ProviderProcess, at_once: int) -> None:
    here.site.environment["JUDGING_THREADS"] = str(at_once // WORKERS)
    processes = [here.site.worker() for _ in range(WORKERS)]
    workers = [process.pid for process in processes]
    offer(model, at_once)
    warm_up(workers)
    parts = {
        "workers": workers,
        "PostgreSQL": [here.database.pid],
        "Valkey": [here.broker.pid],
        "provider": [model.pid],
    }
    run = make_run(CALLS, f"number ({at_once})")
    model.control(reset=True, rates=FAULTS)
    before = {part: spent(pids) for part, pids in parts.items()}
    began = time.perf_counter()
    start(run)
    wait_until(run, CALLS // 5)
    early = sum(map(resident_mb, workers))
    wait_until(run, CALLS)
    wait_for_voting(run)
    seconds = time.perf_counter() - began
    late = sum(map(resident_mb, workers))
    cost = {part: (spent(pids) - before[part]) / CALLS * 1e6 for part, pids in parts.items()}
    told = ", ".join(f"{part} {us:,.0f}" for part, us in cost.items())
    note(f"processor time of a call, in us: {told}")
    log = model.log()
    note(f"the provider saw {dict(log['modes'])}, at most {log['peak']} at once")
    say_soundness(run, CALLS, log["peak"], at_once)
    tries = 1 / (1 - sum(FAULTS.values()))
    bound = at_once / LATENCY_MS * 1000 / tries
    figure(f"bound: {at_once} at once, {LATENCY_MS:.0f} ms, {tries:.3f} tries", bound, "calls/s")
    figure(f"verdict calls, {at_once} at once, {WORKERS} workers", CALLS / seconds, "calls/s")
    figure(f"{at_once} at once against the bound", CALLS / seconds / bound, "of the bound", "0.8")
    figure(f"{at_once} at once, workers' memory at a fifth of the calls", early, "MB")
    figure(
        f"{at_once} at once, memory at the end against that", late / early, "times", "at most 1.1"
    )
    for process in processes:
        here.site.kill(process)


def measure_overhead(here: Installation, model: ProviderProcess) -> None:
    """One call at a time: what passes between a reply and the next request."""
    worker = here.site.worker()
    offer(model, 1)
    model.control(reset=True, rates={})
    warm_up([worker.pid])
    run = make_run(CALLS_ONE_BY_ONE, "item")
    start(run)
    wait_for_voting(run)
    moments = sorted(run.calls.filter(purpose="judge").values_list("done_at", "latency_ms"))
    first, last = moments[0][0], moments[-1][0]
    apart = (last - first).total_seconds() * 1000 / (len(moments) - 1)
    latency = sum(took for _, took in moments) / len(moments)
    note(f"one call at a time: one each {apart:.1f} ms, of which the reply took {latency:.1f}")
    figure("queue overhead of a call", apart - latency, "ms")


def offer(model: ProviderProcess, at_once: int) -> None:
    from judge_eval.models import Provider

    fields = {"base_url": model.base_url, "concurrency": at_once}
    Provider.objects.update_or_create(name="default", defaults=fields)


def make_run(calls: int, about: str) -> Run:
    """Draft a run whose outputs came already: two for each prompt, all still to be judged."""
    from judge_eval.judging.config.run_config import parse
    from judge_eval.models import Call, Run
    from judge_eval.runs import lifecycle
    from voting.models import Inference, Project

    prompts = [f"What is worth knowing about {about} {n}?" for n in range(calls // (2 * JUDGES))]
    config = parse(
        {
            "name": f"{calls} calls",
            "kind": "text",
            "models": ["model-a", "model-b"],
            "judges": [f"judge-{n}" for n in range(JUDGES)],
            "prompts": prompts,
        }
    )
    run = lifecycle.create(Project.objects.create(name="A study"), config)
    calls_made = []
    for place, prompt in enumerate(prompts):
        for model in ("model-a", "model-b"):
            output = Inference(
                project=run.queue.project,
                prompt=prompt,
                output=f"{model} on number {place}: " + "it is a number like many others. " * 15,
                kind="text",
                generator=model,
            )
            made = Call(
                run=run,
                purpose=Call.Purpose.GENERATE,
                provider="default",
                model=model,
                prompt=place,
                state=Call.State.DONE,
                inference=output,
            )
            calls_made.append(made)
    Inference.objects.bulk_create(made.inference for made in calls_made)
    Call.objects.bulk_create(calls_made)
    return Run.objects.get(pk=run.pk)


def start(run: Run) -> None:
    from humanjudge.celery import enqueue

    run.state = run.State.GENERATING
    run.save()
    enqueue("judge_eval.tasks.advance", str(run.pk))


def warm_up(workers: Sequence[int]) -> None:
    """Have all workers' modules and connections ready before anything is measured.

    A small run is over before the second worker has loaded what it needs, and its charts are
    drawn after it.
    """
    run = make_run(1000, f"case {time.monotonic_ns()}.")
    start(run)
    wait_for_voting(run)
    before, now = 0.0, spent(workers)
    while now - before > IDLE_CPU:
        time.sleep(1)
        before, now = now, spent(workers)


def wait_until(run: Run, done: int) -> None:
    judging = run.calls.filter(purpose="judge", state="done")
    while judging.count() < done:
        time.sleep(0.2)


def wait_for_voting(run: Run) -> None:
    while run.state != run.State.VOTING:
        time.sleep(0.05)
        run.refresh_from_db(fields=["state"])


def spent(pids: Iterable[int]) -> float:
    return sum(map(cpu_seconds, pids))


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def say_soundness(run: Run, calls: int, peak: int, at_once: int) -> None:
    """Speed at the price of a wrong result would be none."""
    from judge_eval.models import Verdict
    from voting.models import Entry

    verdicts = Verdict.objects.filter(judge__run=run)
    done = verdicts.filter(state=Verdict.State.DONE).count()
    entries = Entry.objects.filter(queue=run.queue, kind=Entry.Kind.VERDICTS).count()
    pairs = run.queue.items.count()
    if (done, entries) != (calls // 2, pairs) or peak > at_once:
        note(f"WRONG: {done} verdicts, {entries} entries for {pairs} pairs, {peak} calls at once")


if __name__ == "__main__":
    main()
