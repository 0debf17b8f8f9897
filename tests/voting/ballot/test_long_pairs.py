"""Long texts of a pair on a phone: how they begin, all of them at a tap, a way between them."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, violations
from tests.voting.ballot.test_stands_still import PAIR, SHIFTED, SHIFTS, vote

pytestmark = pytest.mark.browser

PLACES = f"""() => [...document.querySelectorAll("{PAIR} .side")]
  .map((side) => side.getBoundingClientRect().y)"""


def long_pairs(product, **options):
    return product.new_run(long=True, says=[["A", "B"] * 2] * 2, **options)


def side(page, name):
    return page.locator(f"{PAIR} [data-side={name}]")


def test_a_phone_shows_how_long_texts_begin_and_all_of_them_at_a_tap(product, join):
    page = join(long_pairs(product), **PHONE)
    height = page.viewport_size["height"]
    left = side(page, "left")
    assert left.locator(".text").bounding_box()["height"] < height * 0.61
    left.get_by_role("button", name="All of it").tap()
    assert left.locator(".text").bounding_box()["height"] > height
    assert side(page, "right").locator(".text").bounding_box()["height"] < height * 0.61
    assert violations(page) == []
    # What was unfolded stays so, and where it was, when one votes.
    page.evaluate(f"document.querySelector('{PAIR}').scrollTop = 300")
    places = page.evaluate(PLACES)
    page.evaluate(SHIFTS)
    vote(page)
    assert page.evaluate(PLACES) == places
    assert page.evaluate(SHIFTED) <= 0.01
    page.locator(f"{PAIR} [data-next]").tap()
    expect(side(page, "left").get_by_role("button", name="All of it")).to_be_visible()
    assert page.locator("kbd").locator("visible=true").count() == 0


def test_chips_lead_from_one_long_text_to_the_other(product, join):
    page = join(long_pairs(product), **PHONE)
    prompt = page.locator(f"{PAIR} .prompt").bounding_box()
    for name in ("right", "left"):
        page.get_by_role("link", name=f"Show {name.capitalize()}").tap()
        expect(side(page, name).locator("h3")).to_be_in_viewport(ratio=1)
        assert side(page, name).bounding_box()["y"] >= prompt["y"] + prompt["height"] - 1
    assert page.evaluate("[scrollY, location.hash]") == [0, ""]
    # A short pair has both texts in view, and a wide page has them side by side.
    assert join(product.new_run(pairs=1), **PHONE).locator("[data-jump]").count() == 0
    page = join(long_pairs(product))
    expect(page.locator(f"{PAIR} [data-jump]").first).to_be_hidden()
    expect(side(page, "left").locator("[data-unfold]")).to_be_hidden()


def test_without_scripts_long_texts_are_shown_whole_and_chips_are_plain_links(product, window):
    run = long_pairs(product)
    page = window(**PHONE, java_script_enabled=False)
    page.goto(run["join"])
    page.get_by_role("button", name="Start voting").tap()
    for text in page.locator(f"{PAIR} .side .text").all():
        assert text.evaluate("it => it.scrollHeight <= it.clientHeight + 1")
    expect(page.get_by_role("button", name="All of it").locator("visible=true")).to_have_count(0)
    page.locator(f"{PAIR} [data-jump]").last.tap()
    expect(side(page, "right").locator("h3")).to_be_in_viewport()
    assert page.url.endswith(side(page, "right").get_attribute("id"))
