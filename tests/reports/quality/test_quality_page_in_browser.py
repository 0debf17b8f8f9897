"""The page of a project's quality in a browser: live, by keyboard, in any light and on a phone."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import faults, log_in

pytestmark = pytest.mark.browser


def opened(page, product, run):
    log_in(page, product)
    page.goto(f"{run['board']}quality/")
    expect(page.get_by_role("heading", name="Project", exact=True)).to_be_visible()


def test_nothing_is_wrong_with_the_page_when_all_of_it_is_open(product, window):
    run = product.new_run(pairs=4, votes_wanted=9)
    product.ask("colleague_votes", queue=run["queue"], number=3)
    product.ask("colleague_votes", queue=run["queue"], number=2, choice="both_bad")
    page = window()
    opened(page, product, run)
    expect(page.locator("svg.course")).to_be_visible()
    for summary in ("The same as a table", "Exact values", "How it is made", "Change the settings"):
        page.get_by_text(summary, exact=True).click()
    assert faults(page) == []


def test_the_score_moves_by_itself_while_people_vote_and_what_is_open_stays_open(product, window):
    run = product.new_run(pairs=4, votes_wanted=9)
    page = window()
    opened(page, product, run)
    expect(page.get_by_role("heading", name="No votes yet")).to_be_visible()
    product.ask("colleague_votes", queue=run["queue"], number=1)
    expect(page.locator("svg.course")).to_be_visible()
    page.get_by_text("The same as a table").click()
    product.ask("colleague_votes", queue=run["queue"], number=2, choice="both_bad")
    counts = page.locator("dl.counts")
    expect(counts.get_by_text("3", exact=True)).to_be_visible()
    expect(page.get_by_role("columnheader", name="Votes so far")).to_be_visible()


def test_settings_are_changed_with_the_keyboard_and_hold_within_seconds(product, window):
    run = product.new_run(pairs=2)
    page = window()
    opened(page, product, run)
    page.get_by_text("Change the settings").focus()
    page.keyboard.press("Enter")
    page.get_by_label("0.01 per second").focus()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.get_by_role("button", name="Use these settings").focus()
    page.keyboard.press("Enter")
    page.get_by_text("How it is made").click()
    expect(page.get_by_text("Lambda is 0.01 per day: the half-life is 69 days")).to_be_visible()
    expect(page.get_by_role("cell", name="reader-")).to_be_visible()


def test_without_scripts_a_project_is_made(product, window):
    page = window(java_script_enabled=False)
    log_in(page, product)
    page.get_by_role("link", name="Projects").click()
    page.get_by_role("link", name="New project").click()
    page.get_by_label("Name").fill("Answers of the help desk")
    page.get_by_role("button", name="Create").click()
    heading = page.get_by_role("heading", name="Answers of the help desk", exact=True)
    expect(heading).to_be_visible()
