"""How long a voter waits: between a key and the next pair, and for the pairs behind it.

The first in a real Chromium: fifty votes on the demo's drawings with auto-advance, with the whole
product running beside the browser on this machine. The second over HTTP: votes and fetches as the
page makes them, in queues of 100 to 50,000 pairs, and by fifty voters of one queue.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from playwright.sync_api import Page, sync_playwright

from bench.lib.cpu import cpu_seconds
from bench.lib.installation import installation
from bench.lib.page_voter import PageVoter
from bench.lib.report import figure, quantile
from tests.browser.product import CHROMIUM_ARGUMENTS, Product
from tests.chromium import MISSING, find_chromium
from tests.helpers.waiting import eventually

if TYPE_CHECKING:
    from judge_eval.models import Run

VOTERS = 2
VOTES_EACH = 25
PAUSE_MS = 200
# Of 95 in 100 votes, and of every one, on a machine that does nothing else: milliseconds.
AIMS = {"first": ("33.4", "50"), "second": ("60", "100")}

SIZES = [int(size) for size in os.environ.get("BENCH_SIZES", "100 1000 10000 50000").split()]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LOOPS = 60
CROWD = 50
CROWD_VOTES = 12
CROWD_PAUSE_S = 1.0  # a quick hand looks at a pair for so long

# From the moment the browser got the key to the first frame after the page has dealt with it, which
# shows the next pair, and to the second: by then the first one has been painted.
CLOCK = """
window.waits = [];
addEventListener("keydown", (event) => {
  const shown = document.querySelector("#pairs > .pair");
  requestAnimationFrame(() => {
    const first = performance.now() - event.timeStamp;
    requestAnimationFrame(() => {
      const next = document.querySelector("#pairs > .pair");
      if (next !== shown) window.waits.push([first, performance.now() - event.timeStamp]);
    });
  });
}, true);
"""


def waits_of_one_voter(page: Page, link: str) -> list[tuple[float, float]]:
    page.goto(link)
    page.get_by_role("button", name="Start voting").click()
    page.locator("[data-ready] .pair").first.wait_for()
    page.get_by_role("button", name="Auto-advance").click()
    page.evaluate(CLOCK)
    for number in range(VOTES_EACH):
        page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
        page.keyboard.press(("ArrowLeft", "ArrowRight", "ArrowDown")[number % 3])
        page.wait_for_function("n => window.waits.length > n", arg=number)
        page.wait_for_timeout(PAUSE_MS)
    return page.evaluate("window.waits")


def keys() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    waits: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, Product(Path(folder, "data")) as product:
        eventually(lambda: product.ask("open_demo", name="Drawings", votes=VOTERS) == 0, 60)
        link = product.url + product.up.access()["invites"][0]["path"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            for _ in range(VOTERS):
                waits += waits_of_one_voter(browser.new_page(), link)
            browser.close()
    for number, (name, aims) in enumerate(AIMS.items()):
        each, what = [wait[number] for wait in waits], f"key to the next pair's {name} frame"
        figure(f"{what}, {len(each)} votes, median", median(each), "ms")
        figure(f"{what}, p95", quantile(each, 0.95), "ms", aims[0])
        figure(f"{what}, max", max(each), "ms", aims[1])


def fetching() -> None:
    with installation() as here:
        parts = {"web": here.site.web().pid, "PostgreSQL": here.database.pid}
        here.site.worker()
        here.site.beat()
        runs = {size: make_open_run(size) for size in SIZES}
        rates: dict[int, list[float]] = defaultdict(list)
        spent: dict[int, list[float]] = defaultdict(list)
        fetches: dict[int, list[float]] = defaultdict(list)
        for _ in range(ROUNDS):
            for size, run in runs.items():
                with PageVoter(here.site.port, run) as voter:
                    before = [cpu_seconds(pid) for pid in parts.values()]
                    started = time.perf_counter()
                    for number in range(LOOPS):
                        voter.vote(number)
                    rates[size].append(LOOPS / (time.perf_counter() - started))
                after = [cpu_seconds(pid) for pid in parts.values()]
                spent[size].append((sum(after) - sum(before)) / LOOPS * 1000)
                fetches[size] += voter.fetches
        for size in SIZES:
            name = f"of {size:,} pairs"
            figure(f"vote + next pair {name}", median(rates[size]), "loops/s")
            figure(f"processor time of a loop {name}", median(spent[size]), "ms")
            figure(f"fetching {name}, p50", median(fetches[size]), "ms", "10")
        least, most = SIZES[0], SIZES[-1]
        ratio = median(rates[least]) / median(rates[most])
        figure(f"loops/s of {least:,} pairs against {most:,}", ratio, "times", "1.2")
        ratio = median(spent[most]) / median(spent[least])
        figure(f"processor time of {most:,} pairs against {least:,}", ratio, "times")
        crowd(here.site.port, runs[SIZES[len(SIZES) // 2]])


def crowd(port: int, run: Run) -> None:
    """Let fifty people vote on one queue, each about once a second."""

    def vote(voter: PageVoter, wait: float) -> None:
        time.sleep(wait)
        for each in range(CROWD_VOTES):
            voter.vote(each)
            time.sleep(CROWD_PAUSE_S)

    with ExitStack() as stack, ThreadPoolExecutor(CROWD) as pool:
        voters = [stack.enter_context(PageVoter(port, run)) for _ in range(CROWD)]
        list(pool.map(vote, voters, [CROWD_PAUSE_S * n / CROWD for n in range(CROWD)]))
    fetches = [one for voter in voters for one in voter.fetches]
    figure(f"fetching, {CROWD} voters on one queue, p95", quantile(fetches, 0.95), "ms", "100")


def make_open_run(pairs: int) -> Run:
    """Return a run without judges, all of whose pairs are open for votes."""
    from judge_eval.models import Board, Run
    from tests.makers import make_items, make_queue

    queue = make_queue()
    run = Run.objects.create(queue=queue, name=f"{pairs} pairs", state=Run.State.VOTING)
    Board.objects.create(run=run)
    make_items(queue, pairs, votes_wanted=ROUNDS)
    return run


def main() -> None:
    fetching()
    keys()


if __name__ == "__main__":
    main()
