"""A running product and a browser, once for these tests; a fresh window for each."""

from contextlib import ExitStack
from functools import partial

import pytest

from tests.chromium import chromium_or_skip
from tests.needs import need_of
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
# Closed after the last test of a browser: beside the event loop of Playwright Django refuses its
# database, and files of other needs may follow in the same process.
RUNNING = ExitStack()


def needs_browser(item):
    return need_of(item.path) == "browser"


def pytest_collection_modifyitems(items):
    for item in filter(needs_browser, items):
        # The first one starts the product.
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    following = isinstance(nextitem, pytest.Item) and needs_browser(nextitem)
    if needs_browser(item) and not following:
        RUNNING.close()


@pytest.fixture(scope="session")
def chromium():
    # Here: tests without a browser need not load them.
    from playwright.sync_api import expect, sync_playwright

    from tests.browser.product import CHROMIUM_ARGUMENTS

    program = chromium_or_skip()
    expect.set_options(timeout=PATIENCE_MS)
    playwright = RUNNING.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=program, args=CHROMIUM_ARGUMENTS)
    RUNNING.callback(browser.close)
    yield browser
    # Where no test follows, as it is when somebody stops the run.
    RUNNING.close()


@pytest.fixture(scope="session")
def product(tmp_path_factory, chromium):
    from tests.browser.product import Product

    data = first_start().copied(tmp_path_factory.mktemp("e2e") / "data")
    return RUNNING.enter_context(Product(data))


@pytest.fixture(scope="session")
def windows(chromium, product):
    from tests.browser.product import Windows

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
