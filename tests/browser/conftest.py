"""A running product and a browser, once for these tests; a fresh window for each."""

from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product, Windows
from tests.chromium import chromium_or_skip
from tests.process.up import first_start

# Answers that a test asks for on purpose, and what the browser says of them.
EXPECTED = (
    "Failed to load resource",
    "Response Status Error Code",
    "htmx:afterRequest",
    "htmx:sendError",
    "htmx:timeout",
)
# On a machine that is busy with other tests. Playwright itself would wait for 5 seconds.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            # The first one starts the product.
            for mark in (pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)):
                item.add_marker(mark)


# For this package alone: beside the event loop of Playwright Django refuses its database.
@pytest.fixture(scope="package")
def chromium():
    program = chromium_or_skip()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def product(tmp_path_factory, chromium):
    data = first_start().copied(tmp_path_factory.mktemp("e2e") / "data")
    with Product(data) as running:
        yield running


@pytest.fixture(scope="package")
def windows(chromium, product):
    return Windows(chromium, product.url, PATIENCE_MS)


@pytest.fixture
def window(windows, request):
    """Open a browser window of somebody new; at the end nothing may have gone wrong in it."""
    intercepts = request.node.get_closest_marker("intercepts") is not None
    yield partial(windows.open, intercepts=intercepts)
    windows.close()
    said, windows.complaints = windows.complaints, []
    assert [line for line in said if not any(word in line for word in EXPECTED)] == []


@pytest.fixture
def join(window):
    """Become a new voter of a run, on the first pair, its pictures loaded."""

    def join_run(run, **options):
        page = window(**options)
        page.goto(run["join"])
        page.get_by_role("button", name="Start voting").click()
        page.locator("[data-ready] .pair:first-child:not([data-waiting])").wait_for()
        return page

    return join_run
