"""From a lead's link to a voter's phone: made, copied, shown as a QR code, opened, gone on with."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, log_in, violations

pytestmark = pytest.mark.browser

SMALL = PHONE | {"viewport": {"width": 360, "height": 640}}


def width_over(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def test_a_personal_link_is_copied_opened_and_gone_on_with(product, window):
    run = product.new_run(pairs=3)
    lead = window(permissions=["clipboard-read", "clipboard-write"])
    log_in(lead, product)
    lead.goto(f"{run['board']}vote/")
    lead.get_by_text("Personal links", exact=True).click()
    lead.get_by_label("Names, one per line").fill("Ada Lovelace")
    lead.get_by_role("button", name="Make personal links").click()
    copy = lead.get_by_role("button", name="Copy link 2 for Ada Lovelace")
    copy.focus()
    lead.keyboard.press("Enter")
    expect(lead.locator("#copied")).to_have_text("Copied: Link 2 for Ada Lovelace")
    link = lead.evaluate("navigator.clipboard.readText()")
    assert link == lead.get_by_label("Link 2 for Ada Lovelace").first.input_value()
    lead.get_by_text("QR code of link 2").click()
    code = lead.get_by_alt_text("QR code of link 2 for Ada Lovelace")
    expect(code).to_be_visible()
    lead.wait_for_function("image => image.naturalWidth > 100", arg=code.element_handle())
    # On a phone all of it is on the first screen: what, how long, what for, and the button.
    phone = window(**SMALL)
    phone.goto(link)
    start = phone.get_by_role("button", name="Start voting")
    for words in ("What you do", "How long", "What is done with it", "This link is for"):
        expect(phone.get_by_text(words)).to_be_in_viewport()
    expect(start).to_be_in_viewport(ratio=1)
    assert width_over(phone) == 0
    assert violations(phone) == []
    start.click()
    phone.locator("[data-ready] .pair").first.wait_for()
    phone.goto("/")
    expect(phone.get_by_role("link", name="Go on voting")).to_be_in_viewport()
    assert (width_over(phone), violations(phone)) == (0, [])
    lead.reload()
    expect(lead.get_by_text("joined · 0 votes").last).to_be_visible()


def test_without_scripts_the_link_stands_in_a_field(product, window):
    run = product.new_run(pairs=1)
    lead = window(java_script_enabled=False)
    log_in(lead, product)
    lead.goto(f"{run['board']}vote/")
    expect(lead.get_by_label("Link 1")).to_have_value(f"{product.url}{run['join']}")
    expect(lead.get_by_role("button", name="Copy link 1")).to_be_hidden()
