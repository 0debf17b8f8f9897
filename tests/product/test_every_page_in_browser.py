"""axe finds nothing on any page, light or dark, at a desk or on a phone; none scrolls sideways."""

import pytest

from tests.product.test_access import faults

pytestmark = pytest.mark.browser

# Pages that Django and the API's documentation bring, with styles and a contrast of their own.
NOT_OURS = ("admin", "api", "grandjury")


def test_axe_finds_nothing_on_any_page(product, window):
    world = product.ask("every_page")
    page = window()
    cookies = world["cookies"].items()
    page.context.add_cookies([{"url": product.url, "name": n, "value": v} for n, v in cookies])
    pages = {name: path for name, path in world["pages"] if not name.startswith(NOT_OURS)}
    assert len(pages) > 35
    found = []
    for path in pages.values():
        page.goto(path)
        found += faults(page)
    assert not found, "\n".join(found)
