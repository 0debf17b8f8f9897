"""Makes what the README shows from the running product: ``python -m docs.screenshots``.

Its pictures, and the report of the finished study as one file.

``python -m docs.screenshots --every FOLDER`` takes each kind of page instead: light, dark, on a
phone and on paper, with folds closed and open. It names the pages that are too wide.

A product is started on an empty folder, with its demo. Random draws have one seed, and what changes
all the same (times, hashes) is hidden: the same product gives the same pictures.
"""

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product
from tests.chromium import MISSING, find_chromium
from tests.helpers.waiting import eventually
from tests.provider import provider

FOLDER = Path(__file__).with_name("img")
DESK = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
PAPER = {"width": 718, "height": 1000}
COLOURS = 256
REPORT = Path(__file__).with_name("xstest.html")
VOTES = 20
CHANGING = "code { visibility: hidden !important }"
STILL = "() => document.querySelectorAll('main time').forEach(one => { one.textContent = '2 s'; })"
# A moving picture: its size, and how long one looks at a pair, at a key, and at the verdicts.
MOVING = {"viewport": {"width": 1120, "height": 780}}
PAIR_MS, KEY_MS, VERDICTS_MS = 1300, 500, 1900
SHOW_KEY = """key => {
  const cap = document.createElement("kbd");
  cap.id = "pressed";
  cap.textContent = key;
  cap.style = "position: fixed; inset: auto auto 1.5rem 1.5rem; z-index: 9;" +
    "padding: 0 1.4rem; font-size: 3rem; background: var(--accent); color: var(--on-accent)";
  document.body.append(cap);
}"""
TOO_WIDE = "() => document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
UNFOLD = "() => document.querySelectorAll('main details').forEach(one => { one.open = true; })"
IS_FOLDED = "() => Boolean(document.querySelector('main details:not([open])'))"
LINKS = "() => [...document.querySelectorAll('a[href]')].map(link => link.href)"
# What differs between pages of one kind; all of the admin's but its first are Django's.
IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|(?<=/)\d+(?=/)|(?<=/r/)[^/]+|(?<=/admin/).+")


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        data.mkdir()
        # It seeds sides and orders.
        data.joinpath("secret_key").write_text("the same pictures every time")
        with Product(data) as product, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
            eventually(lambda: product.ask("open_demo", name="Drawings", votes=1) == 0, 60)
            drawings = product.ask("drawings_for_a_picture", votes=VOTES)
            if "--every" in sys.argv:
                take_every_page(browser, product, drawings, Path(sys.argv[-1]))
            else:
                take_board(browser, product)
                take_report(browser, product)
                take_voting(browser, product, drawings)
                take_phone(browser, product, drawings)
                take_workshop(browser, product)
            browser.close()


def open_window(browser: Browser, product: Product, cookies=None, **options: object) -> Page:
    # Its policy would refuse the styles that are added here.
    page = browser.new_page(
        **DESK | {"base_url": product.url, "reduced_motion": "reduce", "bypass_csp": True} | options
    )
    for name, value in (cookies or {}).items():
        page.context.add_cookies([{"name": name, "value": value, "url": product.url}])
    return page


# --- the README ---------------------------------------------------------------------------------


def take_board(browser: Browser, product: Product) -> None:
    page = open_window(browser, product)
    page.goto(product.up.access()["board"][0]["path"])
    page.locator("#picture").wait_for(timeout=60_000)
    take(page, "board")


def take_report(browser: Browser, product: Product) -> None:
    user = product.ask("log_in", name="ada", staff=True)
    page = open_window(browser, product, {user["name"]: user["value"]})
    page.goto(f"{product.up.access()['board'][0]['path']}share/")
    page.get_by_label("Frozen as of now").check()
    page.get_by_role("button", name="Make the link").click()
    link = page.locator("#link-new").input_value()
    answer = page.request.get(f"{urlsplit(link).path}report.html")
    REPORT.write_bytes(answer.body())
    tell(REPORT)


def take_phone(browser: Browser, product: Product, drawings: dict) -> None:
    page = open_window(browser, product, drawings["cookies"], **PHONE, device_scale_factor=2)
    page.goto(drawings["vote"])
    page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
    path = FOLDER / "phone.png"
    image = Image.open(io.BytesIO(page.screenshot(style=CHANGING, animations="disabled")))
    few_colours(image.convert("RGB")).save(path, optimize=True)
    tell(path)


def take_voting(browser: Browser, product: Product, drawings: dict) -> None:
    """Three votes as a moving picture; a fourth beside the next pair as one that stands still."""
    page = open_window(browser, product, drawings["cookies"], **MOVING)
    page.goto(drawings["vote"])
    frames = []
    for number in range(1, 4):
        page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
        frames.append((PAIR_MS, frame(page)))
        vote(page, drawings, number, lambda key: frames.append((KEY_MS, frame(page, key))))
        frames.append((VERDICTS_MS, frame(page)))
        page.keyboard.press("Enter")
    save_moving(frames)
    page.set_viewport_size(DESK["viewport"])
    page.get_by_role("button", name="Auto-advance").click()
    vote(page, drawings, 4)
    page.locator("#pairs > .pair:first-child:not([data-waiting], [data-state])").wait_for()
    take(page, "voting")


def take_workshop(browser: Browser, product: Product) -> None:
    """A second wording of a judge, once it was checked against the first."""
    user = product.ask("log_in", name="grace", staff=True)
    page = open_window(browser, product, {user["name"]: user["value"]})
    with provider() as running:
        run = product.ask("new_workshop", address=running.base_url)
        page.goto(f"{run['board']}workshop/")
        page.get_by_role("button", name="Open for tuning").click()
        page.locator("#workshop-now", has_text="They disagree on").wait_for(timeout=120_000)
        wording = page.get_by_label("Instructions")
        wording.fill(f"{wording.input_value()}\nLook for steps that one can follow.")
        page.get_by_role("button", name="Try it on 20 pairs").click()
        for words in ("Ask it about", "Ask hasty-judge v2", "Check hasty-judge v2"):
            page.locator("#workshop-now").get_by_role("button", name=words).click()
        page.get_by_role("button", name="Keep hasty-judge v2").wait_for()
        is_counted = "!document.body.textContent.includes('are being counted')"
        eventually(lambda: page.reload() and page.evaluate(is_counted), 60)
        page.set_viewport_size(DESK["viewport"] | {"height": 672})  # it ends below the four steps
        take(page, "workshop")


def vote(page: Page, drawings: dict, number: int, before=lambda key: None) -> None:
    """Choose the drawing that more care went into, and wait until all judges were compared."""
    page.locator("#main").focus()
    page.mouse.move(560, 770)
    item = page.locator("#pairs > .pair:first-child").get_attribute("data-item")
    is_left = drawings["left_is_better"][item]
    before("←" if is_left else "→")
    page.keyboard.press("ArrowLeft" if is_left else "ArrowRight")
    page.locator("#reveal .agreed", has_text=f"of {VOTES + number}").first.wait_for(
        state="attached"
    )


def frame(page: Page, key: str = "") -> Image.Image:
    if key:
        page.evaluate(SHOW_KEY, key)
    image = Image.open(io.BytesIO(page.screenshot(style=CHANGING, animations="disabled")))
    if key:
        page.evaluate("() => document.querySelector('#pressed').remove()")
    return image.convert("RGB")


def save_moving(frames: list[tuple[int, Image.Image]]) -> None:
    times, images = zip(*frames, strict=True)
    first, *others = (few_colours(image) for image in images)
    path = FOLDER / "voting.gif"
    first.save(path, save_all=True, append_images=others, duration=times, loop=0, optimize=True)
    tell(path)


def take(page: Page, name: str) -> None:
    """Take the window in light and dark, with few enough colours to weigh little."""
    FOLDER.mkdir(exist_ok=True)
    for scheme, suffix in (("light", ""), ("dark", "-dark")):
        page.emulate_media(color_scheme=scheme)
        page.evaluate(STILL)
        path = FOLDER / f"{name}{suffix}.png"
        page.screenshot(path=path, style=CHANGING, animations="disabled")
        with Image.open(path) as picture:
            few_colours(picture.convert("RGB")).save(path, optimize=True)
        tell(path)


def few_colours(image: Image.Image) -> Image.Image:
    return image.quantize(COLOURS, dither=Image.Dither.NONE)


def tell(path: Path) -> None:
    sys.stdout.write(f"{path}: {path.stat().st_size // 1024} KiB\n")


# --- every page ---------------------------------------------------------------------------------


def take_every_page(browser: Browser, product: Product, drawings: dict, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    user = product.ask("log_in", name="ada", staff=True)
    cookies = {user["name"]: user["value"]}
    desk = open_window(browser, product, cookies)
    phone = open_window(browser, product, cookies, **PHONE)
    rows = product.ask("rows_for_pictures", run=drawings["run"])
    boards = {name: product.ask("new_board", name=name) for name in product.ask("board_names")}
    rows += fill_forms(desk, drawings["board"])
    names = {
        product.up.access()["board"][0]["path"].split("/")[2]: "xstest",
        drawings["run"]: "drawings",
        boards["clear_winner"]["run"]: "texts",
    }
    starts = {"home": "/"} | {f"board_{name}": board["board"] for name, board in boards.items()}
    starts |= {name_of(path, names): path for path in (*rows, *(f"/runs/{run}/" for run in names))}
    for name, path in crawl(desk, starts, names):
        take_forms(desk, phone, folder, name, path)
    guests = open_window(browser, product), open_window(browser, product, **PHONE)
    take_forms(*guests, folder, "anonymous_home", "/")
    take_forms(*guests, folder, "anonymous_login", "/login/")
    invites = {invite["name"]: invite["path"] for invite in product.up.access()["invites"]}
    for kind, options in STUDIES.items():
        invites[kind] = product.ask("new_study", **options)["join"]
    for name, path in invites.items():
        take_forms(*guests, folder, f"join_{name}", path)
        for page in guests:
            page.goto(path)
            page.locator("main form button.primary").click()
            page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
        take_forms(*guests, folder, f"vote_{name}")
        for page in guests:
            page.locator(".pair:first-child .ballot button").first.click()
            page.wait_for_timeout(1500)
        take_forms(*guests, folder, f"voted_{name}")


STUDIES = {
    "labels": {
        "kind": "labels",
        "ballot": ["polite", "correct", "complete", "too long"],
        "outputs": ["Open “My orders”, choose one, and press “What is wrong?”."] * 4,
    },
    "rating": {"kind": "rating", "ballot": ["1", "2", "3", "4", "5"], "outputs": ["Fine."] * 4},
}


def fill_forms(page: Page, board: str) -> list[str]:
    """Make what a run has of its own by the forms of its pages; return the link of its report."""
    page.goto(f"{board}composite/")
    page.get_by_role("button", name="Use this composite").last.click()
    page.goto(f"{board}scores/")
    page.get_by_role("button", name="Make score files", exact=True).click()
    page.goto(f"{board}share/")
    page.get_by_role("button", name="Make the link").click()
    link = page.get_by_role("link", name="Open the report").get_attribute("href")
    return [urlsplit(link).path, f"{board}share/", f"{board}composite/", f"{board}scores/"]


def name_of(path: str, names: dict[str, str]) -> str:
    """Name a kind of page, as all of a kind are but those of the runs that have a name."""
    return IDS.sub(lambda of: names.get(of[0], "-"), path).strip("/").replace("/", "_")


def crawl(page: Page, starts: dict[str, str], names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Follow links, and take the first page of each kind."""
    seen, waiting = {""}, list(starts.items())
    for name, path in waiting:
        if name not in seen:
            seen.add(name)
            answer = page.request.get(path, max_redirects=3)
            is_page = "text/html" in answer.headers["content-type"]
            if answer.ok and is_page and "content-disposition" not in answer.headers:
                yield name, path
                parts = [urlsplit(urljoin(page.url, link)) for link in page.evaluate(LINKS)]
                here = urlsplit(page.url).netloc
                links = [part.path for part in parts if part.netloc == here]
                waiting += [(name_of(link, names), link) for link in links]


def take_forms(desk: Page, phone: Page, folder: Path, name: str, path: str = "") -> None:
    for page in (phone, desk):
        if path:
            page.goto(path)
        is_folded = path and page.evaluate(IS_FOLDED)
        for fold in ("", "-open") if is_folded else ("",):
            if fold:
                page.evaluate(UNFOLD)
                page.wait_for_timeout(700)  # some fetch what they hold
            if page is phone:
                shoot(page, folder, f"{name}{fold}-phone")
                continue
            for form in ("light", "dark", "print")[: 1 if fold else 3]:
                media = "print" if form == "print" else "screen"
                page.emulate_media(media=media, color_scheme="dark" if form == "dark" else "light")
                page.set_viewport_size(PAPER if form == "print" else DESK["viewport"])
                shoot(page, folder, f"{name}{fold}-{form}")
            page.emulate_media(media="screen", color_scheme="light")
            page.set_viewport_size(DESK["viewport"])
        # Which folds are open is remembered.
        page.evaluate("() => localStorage.clear()")


def shoot(page: Page, folder: Path, name: str) -> None:
    page.screenshot(path=folder / f"{name}.png", full_page=True, animations="disabled")
    if pixels := page.evaluate(TOO_WIDE):
        sys.stdout.write(f"{name}: {pixels} px too wide\n")


if __name__ == "__main__":
    main()
