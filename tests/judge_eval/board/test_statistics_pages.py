"""The Alt-Test and the boards of models in a browser: read, choose, ask, by keyboard and finger."""

import pytest
from playwright.sync_api import expect

from tests.judge_eval.runs.test_run_pages_in_browser import reload_until
from tests.product.test_access import faults, log_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def study(product):
    """Three people have voted alike on 36 pairs; of two judges one agrees with them."""
    run = product.new_run(pairs=36, votes_wanted=3, names=["judge-alike", "judge-other"])
    for _ in range(3):
        product.ask("colleague_votes", queue=run["queue"], number=36)
    return run


def opened(page, study, tab):
    page.goto(f"{study['board']}{tab}/")
    reload_until(page, page.get_by_text("As of 108 votes by 3 people"))


def test_nothing_is_wrong_with_the_pages(product, window, study):
    page = window()
    log_in(page, product)
    found = []
    for tab in ("alt-test", "models"):
        opened(page, study, tab)
        found += faults(page)
    page.goto(f"{study['board']}alt-test/")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#items-needed")).to_contain_text("tests were simulated")
    found += faults(page)
    assert found == []


def test_corrected_rates_fit_a_phone_and_are_chosen_by_judge(product, window):
    """Their table is wider than a phone, and scrolls in a region of its own."""
    says = [["AB"[n % 4 == 0], "AB"[n % 2]] for n in range(120)]
    names = ["A judge whose name is rather long", "gpt-4o"]
    run = product.new_run(pairs=120, says=says, names=names, baselines=[])
    product.ask("colleague_votes", queue=run["queue"], number=60)
    product.ask("colleague_votes", queue=run["queue"], number=20, choice="B")
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}models/")
    reload_until(page, page.get_by_text("As of 80 votes by 2 people"))
    heading = page.get_by_role("heading", name="Corrected by the votes")
    expect(heading).to_be_visible()
    expect(page.get_by_text("is rather long saves ")).to_be_visible()
    assert faults(page) == []
    chosen = page.get_by_role("navigation", name="Judge to correct")
    chosen.get_by_role("link", name="gpt-4o").click()
    expect(chosen.locator("[aria-current]")).to_have_text("gpt-4o")
    expect(page.get_by_role("region", name="by gpt-4o and corrected")).to_be_visible()
    assert faults(page) == []


def test_figures_appear_by_themselves_once_they_are_computed(product, window):
    run = product.new_run(pairs=2, names=["judge-alike"], judges=1)
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}models/")
    # Whether it was still being computed or not: nobody reloads the page.
    expect(page.get_by_role("heading", name="Ranks side by side")).to_be_visible()
    product.ask("colleague_votes", queue=run["queue"], number=2)
    expect(page.get_by_text("As of 2 votes by 1 person")).to_be_visible()
    expect(page.get_by_text("People put generator-0 first")).to_be_visible()


def test_another_epsilon_is_chosen_with_the_keyboard(product, window, study):
    page = window()
    log_in(page, product)
    opened(page, study, "alt-test")
    page.get_by_text("All epsilons").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="0.10 crowd").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("At epsilon 0.10: the baseline")).to_be_visible()
    chosen = page.get_by_role("navigation", name="Epsilon").locator("[aria-current]")
    expect(chosen).to_have_text("0.10 crowd")


def test_how_many_items_is_answered_in_place_and_errors_stand_at_their_field(
    product, window, study
):
    page = window()
    log_in(page, product)
    opened(page, study, "alt-test")
    address = page.url
    page.get_by_label("The judge is right on").fill("90")
    page.keyboard.press("Enter")
    expect(page.locator("#items-needed")).to_contain_text("items a judge that is right on 90 %")
    page.get_by_label("People", exact=True).evaluate("field => { field.removeAttribute('max'); }")
    page.get_by_label("People", exact=True).fill("5000")
    page.get_by_role("button", name="Simulate").click()
    expect(page.locator("#items-needed .errorlist")).to_contain_text("less than or equal to 20")
    assert page.url == address


def test_without_scripts_everything_is_read_and_asked(product, window, study):
    page = window(java_script_enabled=False)
    log_in(page, product)
    opened(page, study, "alt-test")
    page.get_by_text("All epsilons").click()
    page.get_by_role("link", name="0.15 skilled people").click()
    expect(page.get_by_text("At epsilon 0.15: the baseline")).to_be_visible()
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_text("tests were simulated")).to_be_visible()
    run_pages = page.get_by_role("navigation", name="This run")
    run_pages.get_by_role("link", name="Models").click()
    expect(page.get_by_text("People put generator-0 first")).to_be_visible()
    page.get_by_role("link", name="judge-other").click()
    expect(page.get_by_role("heading", name="As judge-other sees it")).to_be_visible()
