"""Makes the pictures of the README from the running product: ``python -m docs.screenshots``.

A product is started on an empty folder, with its demo. The board is that of the finished run; on
the voting page somebody votes on drawings who knows what to look for. Whatever is drawn by lot
comes from one seed, and what changes all the same (times, hashes) is left blank: the same product
gives the same pictures.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product
from tests.chromium import MISSING, find_chromium
from tests.helpers.waiting import eventually

FOLDER = Path(__file__).with_name("img")
SIZE = {"width": 1280, "height": 800}
COLOURS = 256
VOTES = 20
CHANGING = "time, code { visibility: hidden !important }"


def take(page: Page, name: str) -> None:
    """A picture of the window in light and dark, with few enough colours to weigh little."""
    FOLDER.mkdir(exist_ok=True)
    for scheme, suffix in (("light", ""), ("dark", "-dark")):
        page.emulate_media(color_scheme=scheme)
        path = FOLDER / f"{name}{suffix}.png"
        page.screenshot(path=path, style=CHANGING, animations="disabled")
        with Image.open(path) as picture:
            small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
            small.save(path, optimize=True)
        sys.stdout.write(f"{path}: {path.stat().st_size // 1024} KiB\n")


def open_window(
    browser: Browser, product: Product, path: str, cookies: dict[str, str] | None = None
) -> Page:
    # Its policy would refuse the style that hides what changes.
    page = browser.new_page(
        viewport=SIZE, base_url=product.url, reduced_motion="reduce", bypass_csp=True
    )
    for name, value in (cookies or {}).items():
        page.context.add_cookies([{"name": name, "value": value, "url": product.url}])
    page.goto(path)
    return page


def take_voting(browser: Browser, product: Product) -> None:
    eventually(lambda: product.ask("open_demo", name="Drawings", votes=1) == 0, 60)
    run = product.ask("drawings_for_a_picture", votes=VOTES)
    page = open_window(browser, product, run["vote"], run["cookies"])
    pair = page.locator("#pairs > .pair:first-child:not([data-waiting])")
    pair.wait_for()
    page.get_by_role("button", name="Auto-advance").click()  # the next pair beside what was said
    page.locator("#main").focus()
    page.mouse.move(SIZE["width"] / 2, SIZE["height"] - 5)
    is_left = run["left_is_better"][pair.get_attribute("data-item")]
    page.keyboard.press("ArrowLeft" if is_left else "ArrowRight")
    page.locator("#reveal .agreed", has_text=f"of {VOTES + 1}").first.wait_for()
    pair.wait_for()
    take(page, "voting")


def take_board(browser: Browser, product: Product) -> None:
    finished = product.up.access()["board"][0]
    page = open_window(browser, product, finished["path"])
    page.locator("#picture").wait_for(timeout=60_000)
    take(page, "board")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        data.mkdir()
        # Sides and orders are drawn by it.
        data.joinpath("secret_key").write_text("the same pictures every time")
        show(chromium, data)


def show(chromium: str, data: Path) -> None:
    with (
        Product(data) as product,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        take_board(browser, product)
        take_voting(browser, product)
        browser.close()


if __name__ == "__main__":
    main()
