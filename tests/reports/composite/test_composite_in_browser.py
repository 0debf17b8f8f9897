"""The composite in a browser: made with the keyboard, mended, and read on a telephone."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, log_in, violations

pytestmark = pytest.mark.browser


def test_made_with_the_keyboard_mended_and_read(product, window):
    run = product.new_run(pairs=2)
    product.ask("colleague_votes", queue=run["queue"], number=2)
    page = window(**PHONE)
    log_in(page, product)
    page.goto(f"{run['board']}composite/")
    expect(page.get_by_role("heading", name="No composite yet")).to_be_visible()
    page.get_by_role("button", name="Add a component").press("Enter")
    expect(page.get_by_label("Name of component 3")).to_be_focused()
    page.keyboard.type("drawn too")
    page.get_by_label("What it is of component 3").select_option(
        "1 where it could be rendered, 0 where not"
    )
    expect(page.get_by_label("0 is of component 3")).to_be_hidden()
    page.get_by_label("Weight of component 3").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Weight of component 3: Is missing.")
    assert violations(page) == []
    page.get_by_label("Weight of component 3").fill("0.5")
    page.get_by_label("Why it counts so much of component 3").fill("It has to be seen.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("mean composite of 4 outputs")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    # The result is above the form, and every component stands with the composite.
    above = "document.querySelector('.headline').getBoundingClientRect().top"
    below = "document.querySelector('#composite-form').getBoundingClientRect().top"
    assert page.evaluate(f"{above} < {below}")
    table = page.get_by_role("table", name="Components and composite of each output")
    expect(table.get_by_role("row")).to_have_count(5)
    assert violations(page) == []


def test_without_scripts_rows_come_and_go(product, window):
    run = product.new_run(pairs=2)
    page = window(java_script_enabled=False)
    log_in(page, product)
    page.goto(f"{run['board']}composite/")
    page.get_by_label("Name of component 1").fill("liked")
    page.get_by_role("button", name="Add a component").click()
    expect(page.get_by_role("group", name="Component 3")).to_be_visible()
    page.get_by_role("button", name="Remove component 3").click()
    expect(page.get_by_role("group", name="Component 3")).to_have_count(0)
    expect(page.get_by_label("Name of component 1")).to_have_value("liked")


def test_the_result_follows_what_is_typed_and_the_field_keeps_the_focus(product, window):
    run = product.new_run(pairs=2)
    product.ask("colleague_votes", queue=run["queue"], number=2)
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}composite/")
    name = page.get_by_label("Name of component 1")
    name.fill("")
    name.press_sequentially("typed", delay=20)
    result = page.locator("#composite-result")
    expect(result).to_contain_text("not saved yet")
    expect(result).to_contain_text("typed")
    expect(name).to_be_focused()
    page.get_by_label("Weight of component 1").fill("much")
    expect(result).to_contain_text("No result yet")
    assert violations(page) == []
