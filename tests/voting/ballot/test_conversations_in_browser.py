"""A conversation on the voting page: its turns, its folds, by keyboard and by screen reader."""

import json

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, faults

pytestmark = pytest.mark.browser

PAIR = "#pairs > .pair:first-child"
TURNS = [
    {"role": role, "content": f"{role} {n}. **Bold**. " + "Some words. " * 40}
    for n in range(4)
    for role in ("user", "assistant")
]
PROMPT = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "# Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "Why is the sky blue?"},
]


@pytest.fixture
def chat(product, join):
    def open_chat(**window):
        run = product.ask("new_run", output=json.dumps(TURNS), says=[["A", "B"]] * 2)
        product.ask("set_prompts", queue=run["queue"], prompt=json.dumps(PROMPT))
        return join(run, **window)

    return open_chat


def test_turns_are_read_and_folds_open_by_keyboard_on_both_sides(chat):
    page = chat()
    earlier = page.locator(f"{PAIR} .earlier")
    expect(earlier).to_match_aria_snapshot("""
      - region "The conversation so far":
        - list:
          - listitem:
            - group: "System: You are terse."
          - listitem:
            - paragraph: User
            - heading "Hi" [level=1]
          - listitem:
            - paragraph: Assistant
            - paragraph: Hello.
    """)
    expect(page.locator(f"{PAIR} .prompt-text")).to_have_text("Why is the sky blue?")
    expect(page.locator("#say")).to_have_text("Pair 1: Why is the sky blue?")
    left, right = page.locator(f"{PAIR} .side .text").all()
    expect(left.locator(".turn:visible")).to_have_count(2)
    expect(left.locator(".turn:visible strong").first).to_have_text("Bold")
    left.locator("summary").focus()
    page.keyboard.press("Enter")
    for side in (left, right):
        expect(side.locator(".turn:visible")).to_have_count(8)
    assert not page.locator(f"{PAIR}[data-state]").count()
    left.focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "text => text.scrollTop > 50 && text.scrollTop + text.clientHeight > text.scrollHeight - 2",
        arg=right.element_handle(),
    )
    assert faults(page) == []
    page.keyboard.press("ArrowRight")
    expect(page.locator("#reveal .reveal .judges").first).to_be_visible()


def test_without_scrolling_together_each_side_folds_by_itself(chat):
    page = chat()
    page.get_by_role("button", name="Scroll together").click()
    left, right = page.locator(f"{PAIR} .side .text").all()
    left.locator("summary").click()
    expect(left.locator(".turn:visible")).to_have_count(8)
    expect(right.locator(".turn:visible")).to_have_count(2)


def test_on_a_phone_a_finger_opens_a_fold_and_votes_nothing(chat):
    page = chat(**PHONE)
    page.locator(f"{PAIR} .side summary").first.tap()
    expect(page.locator(f"{PAIR} .side .turn:visible")).to_have_count(16)
    assert not page.locator(f"{PAIR}[data-state]").count()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
