"""The composite in a browser: defined with a mistake, mended, and read on a telephone."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.test_access import PHONE, log_in, violations

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CONFIG = {
    "label": "what people like",
    "weights": {"liked": {"weight": 1, "reason": "What people choose is what it is for."}},
    "gates": ["drawn"],
    "sources": {"liked": "win_rate", "drawn": "rendered"},
}


def test_defined_mended_and_read(product, window):
    run = product.new_run(pairs=2)
    product.ask("colleague_votes", queue=run["queue"], number=2)
    page = window(**PHONE)
    log_in(page, product)
    page.goto(run["board"])
    page.get_by_role("link", name="Composite").click()
    expect(page.get_by_role("heading", name="No composite yet")).to_be_visible()
    config = page.get_by_label("Config")
    config.fill(json.dumps(CONFIG | {"gates": ["drown"]}))
    page.get_by_role("button", name="Use this composite").click()
    expect(page.get_by_role("alert")).to_contain_text("sources.drown: is missing")
    assert violations(page) == []
    config.fill(json.dumps(CONFIG))
    page.get_by_role("button", name="Use this composite").click()
    table = page.get_by_role("region", name="Components and composite of each output")
    expect(table.get_by_role("row")).to_have_count(5)
    expect(table.get_by_role("columnheader")).to_have_text(
        ["Output", "liked", "drawn", "Composite", "Note"]
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    assert violations(page) == []
