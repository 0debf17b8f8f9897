"""The voting page does not move under the voter, and nothing that is stuck covers what is next."""

import pytest
from playwright.sync_api import expect

from tests.browser.test_access import PHONE

PAIR = "#pairs > .pair:first-child"
JUDGES = [f"judge-{n}" for n in range(6)]
CONTENTS = {
    "drawings": ("new_run", {"kind": "svg", "says": [["A", "B"] * 3] * 4}),
    "texts": ("new_run", {"long": True, "says": [["A", "B"] * 3] * 4}),
    "jokes": ("new_study", {"says": [["pass", "flag"] * 3] * 4, "names": JUDGES}),
}
TALL_PHONE = PHONE | {"viewport": {"width": 360, "height": 740}}
# Whether a click in the middle of an element would meet it.
IS_ON_TOP = """element => {
  const box = element.getBoundingClientRect();
  return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}"""


@pytest.fixture(params=CONTENTS)
def study(request, product, join):
    """Open the voting page of one of the studies in a window of these measures."""
    make, options = CONTENTS[request.param]

    def open_study(**window):
        return join(product.ask(make, **options), **window)

    return open_study


def is_on_top(page, selector):
    return page.locator(selector).evaluate(IS_ON_TOP)


def vote(page):
    """Vote for a side, or pass, and see what the judges said, the sealed vote counted."""
    page.locator(f"{PAIR} .choices button").last.click()
    page.locator("#reveal .reveal:not([hx-get]) .judges li").last.wait_for()


def go_on(page):
    seen = page.locator(PAIR).get_attribute("data-item")
    page.locator(f"{PAIR} [data-next]").click()
    page.locator(f'{PAIR}:not([data-item="{seen}"], [data-waiting])').wait_for()


def place(page):
    """Where the window is scrolled to, and where prompt and outputs stand."""
    return page.evaluate(
        "() => [scrollY, ...[...document.querySelectorAll("
        "'#pairs > .pair:first-child :is(.prompt, .side)')]"
        ".map((part) => part.getBoundingClientRect().top)]"
    )


@pytest.mark.parametrize("scrolled", [0, 150])
def test_at_a_desk_the_window_stays_where_it_is_and_so_do_the_outputs(study, scrolled):
    page = study(viewport={"width": 1280, "height": 800})
    # A page that could scroll further than any vote needs.
    page.evaluate("() => { document.querySelector('main').style.paddingBottom = '40rem'; }")
    page.evaluate(f"scrollTo(0, {scrolled})")
    before = place(page)
    assert before[0] == scrolled
    for _ in range(3):
        vote(page)
        assert place(page) == before
        assert is_on_top(page, f"{PAIR} [data-next]")
        go_on(page)
        assert place(page) == before


def test_at_a_desk_what_the_judges_said_scrolls_by_itself(study):
    page = study(viewport={"width": 1280, "height": 500})
    height = page.evaluate("document.documentElement.scrollHeight")
    vote(page)
    assert page.evaluate("document.documentElement.scrollHeight") <= height
    last = page.locator(".last")
    assert last.evaluate("part => part.scrollHeight > part.clientHeight")
    last.focus()
    page.keyboard.press("End")
    expect(page.locator("#reveal .judges li").last).to_be_in_viewport()
    assert page.evaluate("scrollY") == 0


def test_at_a_desk_the_reasons_of_a_flag_are_in_view_without_scrolling(product, join):
    page = join(product.ask("new_study", outputs=["A joke"] * 2))
    page.set_viewport_size({"width": 1280, "height": 420})
    page.keyboard.press("f")
    assert page.evaluate("scrollY") == 0
    assert is_on_top(page, f"{PAIR} .reasons button >> nth=0")


@pytest.mark.parametrize("scrolled", [0, 130])
def test_on_a_phone_the_next_prompt_and_the_button_that_leads_there_are_never_covered(
    study, scrolled
):
    page = study(**TALL_PHONE)
    page.evaluate(f"scrollTo(0, {scrolled})")
    for _ in range(3):
        vote(page)
        assert is_on_top(page, f"{PAIR} [data-next]")
        # Having read all that the judges said.
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        assert is_on_top(page, f"{PAIR} [data-next]")
        assert is_on_top(page, "#reveal .judges li:last-child .name")
        go_on(page)
        assert is_on_top(page, f"{PAIR} .prompt")
        assert page.locator(f"{PAIR} .prompt").bounding_box()["y"] >= 0


@pytest.mark.parametrize("size", [(640, 400), (800, 900)], ids=["zoomed to 200 %", "tablet"])
def test_in_a_narrow_window_neither_is_covered(study, size):
    page = study(viewport=dict(zip(("width", "height"), size, strict=True)))
    for _ in range(2):
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        vote(page)
        assert is_on_top(page, f"{PAIR} [data-next]")
        go_on(page)
        assert is_on_top(page, f"{PAIR} .prompt")
