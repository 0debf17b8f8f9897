"""The page of models and keys in a browser: by keyboard, in any light and on a phone."""

import re

import pytest
from playwright.sync_api import expect

from tests.product.test_access import faults, log_in

pytestmark = pytest.mark.browser


def test_a_model_is_made_by_keyboard_and_its_key_is_shown_once(product, window):
    page = window()
    log_in(page, product)
    page.goto("/models/")
    page.locator("#id_model-name").fill("A model with a rather long name that says what it does")
    page.keyboard.press("Enter")
    expect(page.locator("code.secret")).to_have_text(re.compile("^gj_sk_"))
    secret = page.locator("code.secret").inner_text()
    assert faults(page) == []
    page.get_by_role("link", name="To your models and keys").click()
    expect(page.get_by_text("last used: never").first).to_be_visible()
    assert secret not in page.content()
    assert faults(page) == []
