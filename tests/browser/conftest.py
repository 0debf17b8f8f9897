"""A running product and a browser, once for these tests; a fresh window for each."""

from contextlib import ExitStack

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.product import CHROMIUM_ARGUMENTS, Product
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


class Complaints(list):
    """What the browser complained of: script errors, and anything the policy refused."""

    def watch(self, page):
        page.on("pageerror", lambda error: self.append(f"error: {error}"))
        page.on("console", self._heard)

    def _heard(self, message):
        if message.type == "error" and not any(word in message.text for word in EXPECTED):
            self.append(f"console: {message.text}")


@pytest.fixture
def window(chromium, product):
    """Open a browser window of somebody new; at the end nothing may have gone wrong in it."""
    complaints = Complaints()
    with ExitStack() as stack:

        def open_window(**options):
            options = {
                "viewport": {"width": 1280, "height": 800},
                "base_url": product.url,
            } | options
            context = stack.enter_context(chromium.new_context(**options))
            context.set_default_timeout(60_000)
            context.on("page", complaints.watch)
            # Every request can be held up: turned on later, that would miss the first.
            context.route("**/nothing", lambda route: route.abort())
            return context.new_page()

        yield open_window
    assert not complaints


@pytest.fixture
def join(window):
    """Become a new voter of a run, on the first pair."""

    def join_run(run, **options):
        page = window(**options)
        page.goto(run["join"])
        page.get_by_role("button", name="Start voting").click()
        page.locator("[data-ready] .pair").first.wait_for()
        return page

    return join_run
