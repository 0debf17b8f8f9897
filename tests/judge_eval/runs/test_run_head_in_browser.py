"""The head of a run stays where it is: from page to page neither it nor a tab moves."""

import pytest

from tests.product.test_access import PHONE, log_in

pytestmark = pytest.mark.browser

DESK = {"viewport": {"width": 1280, "height": 800}}
PAGES = ("", "pairs/", "pairs/{pair}/", "people/", "models/", "progress/", "data/")
# Parts of a tab with an address of their own.
PARTS = ("alt-test/", "composite/", "calls/", "scores/", "share/", "import/", "delete/")
BOXES = """() => [...document.querySelectorAll(".run-head nav a")].map((tab) => {
  const { x, y, width, height } = tab.getBoundingClientRect();
  return [tab.textContent.trim(), x, y, width, height].join(" ");
})"""


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_tabs_stand_at_the_same_place_on_every_page(product, window, size):
    run = product.new_run(pairs=40, judges=3, votes_wanted=3)
    product.ask("dispute", queue=run["queue"])
    page = window(**size)
    log_in(page, product)
    found = {}
    for part in (*PAGES, *PARTS):
        answer = page.goto(run["board"] + part.format(pair=run["pairs"][0]))
        assert answer.status == 200, part
        found[part] = page.evaluate(BOXES)
    assert len(found[""]) == 6
    assert {part: boxes for part, boxes in found.items() if boxes != found[""]} == {}
