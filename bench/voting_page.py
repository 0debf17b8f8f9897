"""How long a voter waits between a key and the next pair on the screen, in a real Chromium.

Fifty votes on the demo's drawings, going on by itself, with the whole product running beside the
browser on this machine.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from bench.lib.report import latencies
from tests.browser import MISSING, find_chromium
from tests.e2e.product import CHROMIUM_ARGUMENTS, Product
from tests.flows.waiting import eventually

VOTERS = 2
VOTES_EACH = 25
PAUSE_MS = 200

# From the moment the browser got the key to the second frame after the page has dealt with it: by
# then the first one, which shows the next pair, has been painted.
CLOCK = """
window.waits = [];
addEventListener("keydown", (event) => {
  const shown = document.querySelector("#pairs > .pair");
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const next = document.querySelector("#pairs > .pair");
    if (next !== shown) window.waits.push(performance.now() - event.timeStamp);
  }));
}, true);
"""


def waits_of_one_voter(page: Page, link: str) -> list[float]:
    page.goto(link)
    page.get_by_role("button", name="Start voting").click()
    page.locator("[data-ready] .pair").first.wait_for()
    page.get_by_role("button", name="Go on by itself").click()
    page.evaluate(CLOCK)
    for number in range(VOTES_EACH):
        page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
        page.keyboard.press(("ArrowLeft", "ArrowRight", "ArrowDown")[number % 3])
        page.wait_for_function("n => window.waits.length > n", arg=number)
        page.wait_for_timeout(PAUSE_MS)
    return page.evaluate("window.waits")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    waits: list[float] = []
    with tempfile.TemporaryDirectory() as folder, Product(Path(folder, "data")) as product:
        eventually(lambda: product.ask("open_demo", name="Drawings", votes=VOTERS) == 0, 60)
        link = product.url + product.up.access()["invites"][0]["path"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            for _ in range(VOTERS):
                waits += waits_of_one_voter(browser.new_page(), link)
            browser.close()
    latencies("key to next pair painted", waits, aim_p95="60")


if __name__ == "__main__":
    main()
