"""axe finds nothing on any page, light or dark, at a desk or on a phone; none scrolls sideways."""

from tests.browser.product import DESK
from tests.browser.test_access import PHONE, violations

# Pages that Django and the API's documentation bring, with styles and a contrast of their own.
NOT_OURS = ("admin", "api", "grandjury")
# What reaches beyond the right edge of a page that scrolls sideways.
BEYOND = """() => {
  const root = document.documentElement;
  const beyond = (each) => each.getBoundingClientRect().right > root.clientWidth + 1;
  const found = root.scrollWidth > root.clientWidth ? [...document.querySelectorAll("*")] : [];
  return found.filter(beyond).map((each) => each.outerHTML.slice(0, 120));
}"""


def test_axe_finds_nothing_on_any_page(product, window):
    world = product.ask("every_page")
    page = window()
    cookies = world["cookies"].items()
    page.context.add_cookies([{"url": product.url, "name": n, "value": v} for n, v in cookies])
    pages = {name: path for name, path in world["pages"] if not name.startswith(NOT_OURS)}
    assert len(pages) > 35
    found = []
    for name, path in pages.items():
        page.goto(path)
        found += violations(page)
        page.set_viewport_size(PHONE["viewport"])
        found += violations(page)
        found += [f"{name} is wider than a phone: {each}" for each in page.evaluate(BEYOND)]
        page.set_viewport_size(DESK["viewport"])
    assert not found, "\n".join(found)
