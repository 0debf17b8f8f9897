"""Makes pictures of boards as people meet them: ``python -m docs.boards FOLDER [NAME …]``.

Each of `tests.helpers.boards` in light, dark, on a phone and on paper, to be looked at.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product
from tests.chromium import MISSING, find_chromium

DESK = {"viewport": {"width": 1280, "height": 800}}
FORMS = {
    "light": DESK,
    "dark": DESK | {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True},
    "print": {"viewport": {"width": 718, "height": 1000}},
}


def main() -> None:
    chromium = find_chromium()
    if chromium is None or len(sys.argv) < 2:
        sys.exit(MISSING if chromium is None else __doc__)
    pictures = Path(sys.argv[1])
    pictures.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Product(Path(folder, "data")) as product,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        for name in sys.argv[2:] or product.ask("board_names"):
            board = product.ask("new_board", name=name)["board"]
            for form, options in FORMS.items():
                page = browser.new_page(base_url=product.url, **options)
                page.goto(board)
                if form == "print":
                    page.emulate_media(media="print")
                page.screenshot(path=pictures / f"{name}-{form}.png", full_page=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
