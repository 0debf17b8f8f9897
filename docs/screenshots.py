"""Makes the pictures of the README from the running product: ``python -m docs.screenshots``.

It votes on the demo as somebody would who knows what to look for: the careful generator is better
than the plain one, the plain one better than the hasty one.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product
from tests.chromium import MISSING, find_chromium
from tests.helpers.waiting import eventually

FOLDER = Path(__file__).with_name("img")
SIZE = {"width": 1280, "height": 800}
VOTES = 25
COLOURS = 256


def take(page: Page, name: str) -> None:
    """A picture of the window, with few enough colours to weigh little."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        small.save(path, optimize=True)
    sys.stdout.write(f"{path}: {path.stat().st_size // 1024} KiB\n")


def vote(page: Page, better: dict[str, str]) -> None:
    pair = page.locator("#pairs > .pair:first-child:not([data-waiting])")
    pair.wait_for()
    side = better[pair.get_attribute("data-item")]
    left = pair.locator("[data-side=left] .picture").get_attribute("data-sha256")
    page.keyboard.press("ArrowLeft" if side == left else "ArrowRight")
    page.locator("#reveal .agreed").first.wait_for()


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as folder, Product(Path(folder, "data")) as product:
        eventually(lambda: product.ask("open_demo", name="Drawings", votes=1) == 0, 60)
        better = product.ask("better_drawings", name="Drawings")
        access = product.up.access()
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            voter = browser.new_page(viewport=SIZE, base_url=product.url)
            voter.goto(access["invites"][0]["path"])
            voter.get_by_role("button", name="Start voting").click()
            voter.locator("[data-ready] .pair").first.wait_for()
            for number in range(VOTES):
                if number:
                    voter.keyboard.press("Enter")
                if number == VOTES - 1:  # so that the buttons are to be seen, and a reveal
                    voter.get_by_role("button", name="Auto-advance").click()
                    voter.locator("#main").focus()
                    voter.mouse.move(SIZE["width"] / 2, SIZE["height"] - 5)
                vote(voter, better)
            take(voter, "voting")
            board = browser.new_page(viewport=SIZE, base_url=product.url)
            board.goto("/login/")
            board.get_by_label("Username").fill(access["admin"]["username"])
            board.get_by_label("Password").fill(access["admin"]["password"])
            board.get_by_role("main").get_by_role("button", name="Log in").click()
            board.goto(access["board"][0]["path"])
            board.get_by_text(f"{VOTES} of 30").wait_for()
            board.locator("p.words", has_text=f"After {VOTES} votes").wait_for(timeout=60_000)
            take(board, "board")
            browser.close()


if __name__ == "__main__":
    main()
