"""A curator's work in a browser: with keys alone, without scripts, on a phone, for everybody."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, faults, log_in

pytestmark = pytest.mark.browser

COMMENT = "What_is_wrong_with_it/stands/at/a/path/without/any/space/in/it and is told at length. "


def test_a_flag_with_a_long_comment_does_not_run_out_of_a_narrow_page(product, window):
    run = product.new_run(pairs=1, judges=2, names=["judge/of/a-vendor-with-a-long-name-" * 3, "j"])
    product.ask("flag", item=run["pairs"][0], comment=COMMENT * 4)
    page = window(**PHONE)
    log_in(page, product)
    # Other tests' items may fill the first page of the list of all projects.
    of_its_project, item = f"/review/?project={run['project']}", f"/review/{run['pairs'][0]}/"
    for address, words in ((of_its_project, "1 flag"), (item, "What_is_wrong_with_it")):
        page.goto(address)
        expect(page.get_by_text(words).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["viewport"]["width"]
    # What a voter said comes first, above what it is about.
    tables, prompt = page.locator("main table"), page.locator(".prompt")
    assert tables.first.bounding_box()["y"] < prompt.bounding_box()["y"]


@pytest.fixture
def disputed(product):
    run = product.new_run(pairs=4, votes_wanted=3)
    product.ask("dispute", queue=run["queue"])
    return run


def open_first(page, run):
    page.goto(f"/review/{run['pairs'][0]}/?kind=comparison")


def test_four_items_are_decided_with_keys_alone(product, window, disputed):
    page = window()
    log_in(page, product)
    open_first(page, disputed)
    page.keyboard.press("n")
    expect(page.get_by_label("Why, or a note")).to_be_focused()
    page.keyboard.type("x and k are text here")
    page.get_by_role("heading", level=1).click()
    for key, said in (("k", "kept"), ("x", "excluded"), ("r", "sent into another round")):
        page.keyboard.press(key)
        expect(page.get_by_role("status")).to_contain_text(said)
        page.wait_for_load_state()  # keys are heard once the scripts are there
    made = product.ask("decisions", queue=disputed["queue"])
    assert made == [
        [disputed["pairs"][0], "keep", "x and k are text here"],
        [disputed["pairs"][1], "exclude", ""],
        [disputed["pairs"][2], "another_round", ""],
    ]
    page.goto(f"/review/{disputed['pairs'][0]}/?state=all")
    page.keyboard.press("j")
    page.wait_for_url(f"**/review/{disputed['pairs'][1]}/?state=all")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(f"**/review/{disputed['pairs'][0]}/?state=all")
    page.get_by_role("button", name="Reverse").click()
    expect(page.get_by_role("status")).to_contain_text("reversed")


def test_it_works_without_scripts(product, window, disputed):
    page = window(java_script_enabled=False)
    log_in(page, product)
    page.get_by_role("link", name="Review").click()
    boxes = page.get_by_role("checkbox")
    for n in range(2):
        boxes.nth(n).check()
    page.get_by_role("button", name="Exclude").click()
    expect(page.get_by_role("status")).to_contain_text("2 items excluded.")


def test_everybody_can_read_and_use_the_pages(product, window, disputed):
    page = window()
    log_in(page, product)
    page.goto("/review/")
    assert faults(page) == []
    open_first(page, disputed)
    page.get_by_label("Why, or a note").fill("Read twice.")
    page.get_by_role("button", name="Save a note").click()
    expect(page.get_by_text("Read twice.")).to_be_visible()
    assert faults(page) == []
