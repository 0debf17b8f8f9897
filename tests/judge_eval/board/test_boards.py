"""Boards as people meet them: read in ten seconds, at a desk and on a phone, in light and dark."""

from functools import cache

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, violations

pytestmark = pytest.mark.browser

NARROW = PHONE["viewport"]
# Of a sheet of paper between its margins.
A4 = {"width": 718, "height": 1000}
FOLD = 800
# At its right end, which boxes of tables have lost sight of their names.
NAMELESS = """() => [...document.querySelectorAll(".scroll.table-box")].filter((box) => {
  box.scrollLeft = box.scrollWidth;
  const name = box.querySelector("tbody th");
  return name && name.getBoundingClientRect().left < box.getBoundingClientRect().left - 1;
}).map((box) => box.ariaLabel)"""
# Words that are printed over other words, by more than their leading; what is cut off is not.
OVERPRINTED = """() => {
  const cut = (box, element) => {
    if (!element) return box;
    if (getComputedStyle(element).overflow === "visible") return cut(box, element.parentElement);
    const frame = element.getBoundingClientRect();
    return cut({
      left: Math.max(box.left, frame.left), right: Math.min(box.right, frame.right),
      top: Math.max(box.top, frame.top), bottom: Math.min(box.bottom, frame.bottom),
    }, element.parentElement);
  };
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const words = [];
  while (walker.nextNode()) {
    const text = walker.currentNode, range = document.createRange(), parent = text.parentElement;
    if (!text.data.trim() || !parent.checkVisibility()) continue;
    if (parent.closest(".visually-hidden, .as-cards thead")) continue;
    range.selectNodeContents(text);
    for (const box of range.getClientRects()) {
      words.push([text, cut(box, parent)]);
    }
  }
  return words.flatMap(([text, box], place) => words.slice(place + 1)
    .filter(([again, other]) => again !== text
      && Math.min(box.right, other.right) - Math.max(box.left, other.left) > 2
      && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 3)
    .map(([other]) => `${text.data.trim()} / ${other.data.trim()}`));
}"""
# A board like that of twelve judges, with more rows for axe to read.
ONLY_LARGER = "many_judges"
BOARDS = {
    "nobody_has_voted": "No votes yet",
    "three_votes": "Too early: 3 votes.",
    "only_baselines": "No judge was asked yet.",
    "all_equal": "perhaps far more.",
    "clear_winner": "good-judge agrees with people on",
    "after_an_exclusion": "Changed: A voter was excluded",
    "twelve_judges": "Unanswered: vendor-0/preview",
    "many_judges": "Show all 68 judges",
    "long_names": "cannot be told apart yet",
    "ratings": "in people's order",
    "imported_ties": "votes are ties or both bad; judges had no tie or both bad to choose",
    "flagged_items": "careful-judge",
}


@pytest.fixture(scope="module")
def board_of(product):
    """Where a board is; it is made once for all who look at it."""
    return cache(lambda name: product.ask("new_board", name=name)["board"])


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def lowest(page, selector):
    """How far down the last of some parts ends."""
    boxes = [part.bounding_box() for part in page.locator(selector).all()]
    return max((box["y"] + box["height"] for box in boxes), default=0)


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_read_in_ten_seconds(board_of, window, name, pytestconfig):
    page = window()
    page.goto(board_of(name))
    expect(page.locator("#board")).to_contain_text(BOARDS[name])
    assert 0 < lowest(page, ".words, .points, #add-judges, .empty, #picture") <= FOLD
    assert page.locator("#ranking thead th").count() <= 7
    assert page.locator("#board details").count() > 0
    assert page.locator("#board details[open]").count() == 0
    assert page.locator("#board").inner_text().count("ledger entry") <= 1
    assert overflow(page) <= 0
    page.set_viewport_size(NARROW)
    assert overflow(page) <= 0
    for summary in page.locator("#board > details > summary").all():
        summary.click()
    assert overflow(page) <= 0
    if name != ONLY_LARGER or pytestconfig.getoption("--thorough"):
        assert violations(page) == []
    page.set_viewport_size(A4)
    page.emulate_media(media="print")
    assert overflow(page) <= 0
    assert page.evaluate(OVERPRINTED) == []
    expect(page.locator(".part-form")).to_be_hidden()


@pytest.mark.parametrize("name", ["twelve_judges", "many_judges", "flagged_items"])
def test_ranks_by_many_judges_do_not_run_out_of_a_narrow_page(board_of, window, name):
    page = window(**PHONE)
    page.goto(board_of(name) + "models/")
    expect(page.locator("#models h2, #models table").first).to_be_visible()
    assert overflow(page) <= 0
    # What is wider than the page scrolls in a box of its own; other tables fit.
    width = NARROW["width"]
    for table in page.locator("table:not(.scroll table)").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= width
    assert page.evaluate(NAMELESS) == []


def test_a_column_is_sorted_and_explained_and_what_was_opened_stays_open(board_of, window):
    page = window()
    page.goto(board_of("clear_winner"))
    first = page.locator("#ranking tbody tr").first
    expect(first).to_contain_text("good-judge")
    page.locator("#about-elo").focus()
    expect(page.locator("#tip-elo")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#tip-elo")).to_be_hidden()
    page.locator("#about-overall").hover()
    expect(page.locator("#tip-overall")).to_contain_text("No verdict counts as wrong")
    page.locator("#tip-overall").get_by_role("link", name="Method").click()
    expect(page.locator("#how-overall")).to_be_in_viewport()
    page.locator("#further-summary").click()
    page.locator("#sort-name").click()
    expect(first).to_contain_text("bad-judge")
    expect(page.locator("#further")).to_have_attribute("open", "")
    page.reload()
    expect(first).to_contain_text("bad-judge")
    expect(page.locator("#further")).to_have_attribute("open", "")
    page.go_back()
    expect(first).to_contain_text("good-judge")


def test_of_68_judges_the_best_stand_in_front_and_all_are_one_tap_away(board_of, window):
    page = window(**PHONE)
    page.goto(board_of("many_judges"))
    rows = page.locator("#ranking tbody tr:not(.people, .baseline)")
    expect(rows).to_have_count(12)
    page.locator("#all-judges").click()
    expect(rows).to_have_count(68)
    assert overflow(page) <= 0
    page.locator("#fewer-judges").click()
    expect(rows).to_have_count(12)
