"""Texts as they were written: formulas, directions, and their source, in a real browser."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, log_in, violations
from tests.voting.ballot.test_stands_still import WINDOWS

pytestmark = pytest.mark.browser

PAIR = "#pairs > .pair:first-child"
# The outputs that ../shared/cases/exchange/15-rtl-arabic and 16-latex-table-code tell of.
ARABIC = (
    "عاصمة فرنسا هي باريس (Paris)، وعدد سكانها 2,1 مليون نسمة.\n\n1. أولا: برج إيفل\n"
    "2. ثانيا: متحف اللوفر\n\n- نقطة مع `code` داخلها\n\nAnd a sentence in English.\n\n> اقتباس"
)
HEBREW = "הבירה של צרפת היא פריז."
PROMPT = "ما هي عاصمة فرنسا؟ أجب بجملة واحدة."
FORMULAS = (
    "By the quadratic formula\n\n\\[ x = \\frac{-1 \\pm \\sqrt{37}}{2} \\]\n\n"
    "so \\( a = 1 \\) and it costs $5 or $6.\r\n\n\n  two  spaces\t<b>&amp;</b> ![pic](https://a.example/x.png)\n"
)
LEADING = "\n\n$$\nx = \\frac{1}{2}\n$$\n" + "A line of it.\n\n" * 40
# Where the first and the last letter of an element stand, and how it goes.
LAID_OUT = """(element) => {
  const range = document.createRange();
  const texts = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) if (walker.currentNode.data.trim()) texts.push(walker.currentNode);
  const place = (node, at) => {
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect();
  };
  const last = texts.at(-1), end = last.data.trimEnd().length - 1;
  const box = element.getBoundingClientRect();
  return {
    direction: getComputedStyle(element).direction,
    first: place(texts[0], 0).right,
    last: place(last, end).left,
    left: box.left, right: box.right,
  };
}"""


@pytest.fixture
def texts(product):
    def make(*outputs, prompt=PROMPT, reason="الأول أوضح."):
        run = product.new_run(says=[["A", "B"]] * 3)
        product.ask("set_texts", queue=run["queue"], prompt=prompt, outputs=outputs, reason=reason)
        return run

    return make


def is_right_to_left(locator):
    laid = locator.evaluate(LAID_OUT)
    return (laid["direction"], laid["last"] < laid["first"]) == ("rtl", True)


def test_each_block_goes_the_way_of_its_own_letters(texts, join):
    page = join(texts(ARABIC, HEBREW))
    arabic = page.locator(f"{PAIR} .text", has=page.locator("ol"))
    for block in ("p >> nth=0", "ol", "ol li >> nth=0", "ul", "ul li", "blockquote"):
        assert is_right_to_left(arabic.locator(block)), block
    assert not is_right_to_left(arabic.locator("> p").last)
    assert not is_right_to_left(arabic.locator("code").first)
    # The text begins at the right edge, and the numbers have their place beyond its items.
    paragraph = arabic.locator("> p").first.evaluate(LAID_OUT)
    assert abs(paragraph["first"] - paragraph["right"]) < 2
    item, place = (arabic.locator(part).first.evaluate(LAID_OUT) for part in ("ol li", "ol"))
    assert place["right"] - item["right"] > 16
    assert abs(place["left"] - item["left"]) < 2
    hebrew = page.locator(f"{PAIR} .text").filter(has_text=HEBREW)
    assert is_right_to_left(hebrew.locator("> p"))
    assert is_right_to_left(page.locator(f"{PAIR} .prompt-text p"))


def test_what_judges_and_people_say_goes_its_own_way_too(texts, join, window, product):
    run = texts(ARABIC, HEBREW)
    page = join(run)
    page.keyboard.press("ArrowLeft")
    assert is_right_to_left(page.locator("#reveal .why").first)
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}pairs/{run['pairs'][0]}/")
    assert is_right_to_left(page.locator(".prompt p"))
    assert is_right_to_left(page.locator("[data-label=Why]").first)
    page.goto(f"{run['board']}pairs/")
    assert is_right_to_left(page.locator("[data-label=Prompt]").first)


@pytest.mark.parametrize("size", ["desk", "phone"])
def test_formulas_are_drawn_by_the_browser(texts, join, size):
    page = join(texts(FORMULAS, LEADING, prompt="Solve it"), **WINDOWS[size])
    fraction = page.locator(f"{PAIR} .text > p > math[display=block] mfrac").first
    above, below = (fraction.locator("> *").nth(n).bounding_box() for n in (0, 1))
    assert above["y"] + above["height"] <= below["y"] + 1
    expect(page.locator(f"{PAIR} .text").filter(has_text="quadratic")).to_contain_text("$5 or $6")
    assert page.locator(".text img").count() == 0
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []


def source_of(page):
    return sorted(
        page.locator(f"{PAIR} .text").evaluate_all(
            "texts => texts.map((text) => text.querySelector('.source').textContent)"
        )
    )


def test_v_shows_the_source_to_the_last_character_and_back(texts, join):
    prompt = "Two  spaces,\n a line and \\(x\\)"
    page = join(texts(FORMULAS, LEADING, prompt=prompt))
    button = page.get_by_role("button", name="Source")
    source = page.locator(f"{PAIR} .source")
    expect(button).to_have_attribute("aria-pressed", "false")
    expect(source.first).to_be_hidden()
    page.keyboard.press("v")
    expect(button).to_have_attribute("aria-pressed", "true")
    for part in source.all():
        expect(part).to_be_visible()
    expect(page.locator(f"{PAIR} math").first).to_be_hidden()
    assert source_of(page) == sorted([FORMULAS, LEADING])
    assert page.locator(f"{PAIR} .prompt .source").evaluate("it => it.textContent") == prompt
    assert violations(page) == []
    # The next pair shows it too, until it is switched off.
    page.keyboard.press("s")
    expect(source.first).to_be_visible()
    page.keyboard.press("v")
    expect(source.first).to_be_hidden()
    expect(page.locator(f"{PAIR} math").first).to_be_visible()


@pytest.mark.parametrize("size", WINDOWS)
def test_the_window_stands_still_while_the_source_is_shown(texts, join, size):
    page = join(texts(FORMULAS, LEADING), **WINDOWS[size])
    box = "id => document.querySelector(id).getBoundingClientRect().toJSON()"
    parts = (f"{PAIR} .prompt", f"{PAIR} .side", f"{PAIR} .choices", ".site")
    before = [page.evaluate(box, part)["y"] for part in parts]
    for pressed in ("true", "false"):
        page.keyboard.press("v")
        expect(page.get_by_role("button", name="Source")).to_have_attribute("aria-pressed", pressed)
        assert page.evaluate("scrollY") == 0
        assert [page.evaluate(box, part)["y"] for part in parts] == before


def test_the_source_is_there_for_a_finger(texts, join):
    page = join(texts(FORMULAS, LEADING), **PHONE)
    page.get_by_role("button", name="Source").tap()
    expect(page.locator(f"{PAIR} .source").first).to_be_visible()


def test_prompts_are_set_as_outputs_are(texts, join, window, product):
    hostile = "<img src=x onerror=alert(1)>"
    run = texts(ARABIC, HEBREW, prompt=f"What does `len` do?\n\n- in **Python**\n- {hostile}")
    reader = window()
    log_in(reader, product)
    pages = [join(run), reader, reader]
    for page, address in zip(
        pages,
        (None, f"{run['board']}pairs/{run['pairs'][0]}/", f"/review/{run['pairs'][0]}/"),
        strict=True,
    ):
        if address:
            page.goto(address)
        prompt = page.locator(".prompt-text").first
        expect(prompt.locator("p code")).to_have_text("len")
        expect(prompt.locator("li strong")).to_have_text("Python")
        expect(prompt.locator("li").last).to_have_text(hostile)
        assert page.locator("img").count() == 0
        assert violations(page) == []


def test_short_texts_of_a_pair_stand_large_and_in_the_middle(texts, join):
    page = join(texts("Yes.", "No."), **WINDOWS["desk"])
    for text in page.locator(f"{PAIR} .text").all():
        laid, line = text.bounding_box(), text.locator("p").bounding_box()
        assert line["height"] > 28
        for start, size in (("x", "width"), ("y", "height")):
            middle = line[start] + line[size] / 2
            assert abs(laid[start] + laid[size] / 2 - middle) < 12


def test_drawings_have_no_source_to_show(product, join):
    page = join(product.new_run(pairs=1, kind="svg"))
    expect(page.get_by_role("button", name="Source")).to_be_hidden()


def test_pages_of_a_pair_show_the_source_without_scripts(texts, window, product):
    run = texts(FORMULAS, LEADING)
    page = window(java_script_enabled=False)
    log_in(page, product)
    for address in (f"{run['board']}pairs/{run['pairs'][0]}/", f"/review/{run['pairs'][0]}/"):
        page.goto(address)
        expect(page.locator(".source").first).to_be_hidden()
        page.get_by_label("Source").check()
        expect(page.locator(".source").first).to_be_visible()
        expect(page.locator(".text math").first).to_be_hidden()
        expect(page.locator(".source").last).to_contain_text("\\frac{1}{2}")
