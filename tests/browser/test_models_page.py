"""The page of models and keys in a browser: by keyboard, in any light and on a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_access import PHONE, log_in, violations


def wide(page):
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_a_model_is_made_by_keyboard_and_its_key_is_shown_once(product, window, options):
    page = window(**options)
    log_in(page, product)
    page.goto("/models/")
    assert violations(page) == []
    page.locator("#id_model-name").fill("A model with a rather long name that says what it does")
    page.keyboard.press("Enter")
    expect(page.locator("code.secret")).to_have_text(re.compile("^gj_sk_"))
    secret = page.locator("code.secret").inner_text()
    assert violations(page) == []
    assert wide(page) <= 0
    page.get_by_role("link", name="To your models and keys").click()
    expect(page.get_by_text("last used: never").first).to_be_visible()
    assert secret not in page.content()
    assert violations(page) == []
    assert wide(page) <= 0
