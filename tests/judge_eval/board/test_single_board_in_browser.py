"""The board of single items in a browser: its figures come, and everybody can use it."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, log_in, violations

pytestmark = pytest.mark.browser

NARROW = PHONE["viewport"]
SAYS = [["flag" if n % 4 == 0 else "pass", "pass"] for n in range(24)]


def test_the_board_of_single_items_and_its_pages_can_be_used_by_everybody(product, window):
    names = ["judge-careful", "judge-lazy"]
    run = product.ask("new_single_run", says=SAYS, names=names, votes_per_item=2)
    for number, choice in ((24, "pass"), (24, "flag")):
        product.ask("colleague_votes", queue=run["queue"], number=number, choice=choice)
    page = window()
    log_in(page, product)
    page.goto(run["board"])
    expect(page.locator(".as-of")).to_contain_text("As of 48 votes by 2 people")
    page.get_by_text("Further figures", exact=True).click()
    careful = page.locator("#further-table").get_by_role("row", name="judge-careful")
    expect(careful.locator("[data-figure=sensitivity]")).to_contain_text("25")
    expect(careful.locator("[data-figure=specificity]")).to_contain_text("75")
    expect(page.locator("[data-figure=first]")).to_have_count(0)
    said = "What judge-lazy said beside what people said"
    expect(page.get_by_role("heading", name=said)).to_be_visible()
    page.set_viewport_size(NARROW)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    for path in ("models/", "pairs/", f"pairs/{run['pairs'][0]}/"):
        page.goto(f"{run['board']}{path}")
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"], path
        assert violations(page) == []
