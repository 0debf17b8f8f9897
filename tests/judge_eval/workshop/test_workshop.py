"""A judge is made better by somebody who has read nothing: by clicking what the pages offer."""

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.waiting import eventually
from tests.product.test_access import faults, log_in
from tests.provider import provider

pytestmark = pytest.mark.browser

NEXT = "#workshop-now .next .primary"


@pytest.fixture(scope="module")
def at(product):
    with provider(latency_ms=20) as running:
        yield running


def test_a_noisy_judge_becomes_a_better_one_that_is_in_use(at, product, window):
    run, page, found = product.ask("new_workshop", address=at.base_url), window(), []
    log_in(page, product)
    page.goto(run["board"])
    point = page.get_by_role("listitem").filter(has_text="Changes its mind")
    # Once its judge was asked and its figures were computed.
    point.get_by_role("link", name="Try another wording").click(timeout=120_000)

    found += faults(page)
    page.get_by_role("button", name="Open for tuning").click()
    said, following = page.locator("#workshop-now .lead"), page.locator(NEXT)
    expect(said).to_contain_text("They disagree on")
    expect(page.get_by_role("heading", name="Make hasty-judge better")).to_be_visible()
    found += faults(page)
    following.click()

    cards = page.locator(".case:visible")
    expect(cards).to_have_count(1)
    expect(cards).to_contain_text("hasty-judge changes its mind when the sides are swapped")
    page.keyboard.press("1")
    expect(page.locator(".stages")).to_contain_text("1 of")
    page.keyboard.press("j")
    expect(cards.get_by_role("button", name="Judge is wrong")).to_have_attribute(
        "aria-pressed", "false"
    )
    cards.get_by_role("button", name="Rubric unclear").click()
    expect(said).to_contain_text("You sorted 2 of")

    following.click()
    wording = page.get_by_label("Instructions")
    wording.fill(f"{wording.input_value()}\nLook for steps that one can follow, on either side.")
    at.control(latency_ms=400)
    page.get_by_role("button", name="Try it on 20 pairs").click()
    expect(said).to_contain_text(re.compile(r"hasty-judge v2 has answered \d+ of 20 pairs"))
    page.evaluate("document.querySelector('main').dataset.mine = 'the same page'")
    found += faults(page)
    at.control(latency_ms=20)
    expect(said).to_contain_text("was tried on a few pairs and agrees with people on")
    expect(page.locator("main[data-mine]")).to_have_count(1)
    found += faults(page)

    for words in ("Ask it about 10 pairs more", "Ask hasty-judge v2 about the unseen half"):
        expect(following).to_have_text(words)
        following.click()
    expect(following).to_have_text("Check hasty-judge v2 against hasty-judge")
    expect(page.locator("#workshop-now")).to_contain_text("30 unseen pairs · look 1")
    found += faults(page)
    following.click()
    expect(said).to_contain_text(re.compile(r"points better than hasty-judge on 30 unseen pairs"))
    found += faults(page)
    expect(following).to_have_text("Keep hasty-judge v2")
    following.click()
    expect(page.get_by_role("heading", name="Make hasty-judge v2 better")).to_be_visible()

    page.locator("#end > summary").click()
    page.get_by_text("End the tuning …").click()
    page.get_by_role("button", name="Yes, show all votes").click()
    expect(said).to_contain_text("Tuning has ended")
    page.get_by_text("All wordings").first.click()
    found += faults(page)
    page.goto(run["board"])
    row = page.get_by_role("row", name="hasty-judge v2")
    eventually(lambda: row.filter(has_text="its figure is of the half held out").count(), 60)
    assert found == []
