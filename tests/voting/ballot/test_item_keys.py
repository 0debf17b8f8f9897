"""Voting on single items in a real browser: keys, fingers and focus of every kind of study."""

import pytest
from playwright.sync_api import expect

from tests.browser.product import Gate
from tests.product.test_access import PHONE, Finger, middle_of, violations
from tests.voting.ballot.test_voting_keys import auto_advance, first_pair

pytestmark = [pytest.mark.browser, pytest.mark.intercepts]

JOKES = [f"Joke {n}" for n in range(6)]
CRITERIA = {
    "criteria": [
        {"name": "safe", "gate": True, "weight": 0},
        {"name": "funny", "graded": True, "weight": 0.6},
        {"name": "short", "weight": 0.4},
    ]
}
ITEM = "#pairs > .pair:first-child"


@pytest.fixture
def study(product, join):
    """Open a study, see the next item after each vote at once, and return it with its page."""

    def open_study(options=None, **window):
        run = product.ask("new_study", outputs=JOKES, **(options or {}))
        page = join(run, **window)
        auto_advance(page)
        return run, page

    return open_study


def press(page, keys):
    for key in keys.split():
        page.keyboard.press(key)


@pytest.mark.parametrize(
    "options, presses",
    [
        (
            {},
            {
                "p": ("pass", 1_000_000, ""),
                "ArrowRight": ("pass", 1_000_000, ""),
                "f 2": ("flag", 0, "unsafe"),
                "ArrowLeft ArrowLeft": ("flag", 0, ""),
                "f Enter": ("flag", 0, ""),
                "f Escape p": ("pass", 1_000_000, ""),
            },
        ),
        (
            {"options": {"graded": True}},
            {
                "7 Enter": ("pass", 700_000, ""),
                "0 Enter": ("flag", 0, ""),
                "p Enter": ("pass", 1_000_000, ""),
                "p f 4 Enter": ("flag", 400_000, ""),
            },
        ),
        (
            {"options": CRITERIA},
            {
                "p 9 f Enter": ("pass", 540_000, ""),
                "f p p Enter": ("flag", 0, ""),
                # The first one again, by going up.
                "f 5 p ArrowUp ArrowUp p Enter": ("pass", 700_000, ""),
            },
        ),
        (
            {"kind": "category", "ballot": ["pun", "irony", "dark"]},
            {"1": ("pun", None, ""), "3": ("dark", None, "")},
        ),
        ({"kind": "rating", "ballot": list("12345")}, {"5": ("5", None, ""), "2": ("2", None, "")}),
        (
            {"kind": "labels", "ballot": ["rude", "long", "dull"]},
            {"3 1 Enter": ("dull;rude", None, ""), "2 2 Enter": ("none", None, "")},
        ),
    ],
    ids=["pass or flag", "graded", "criteria", "category", "rating", "labels"],
)
def test_keys_vote_as_they_are_meant(product, study, options, presses):
    run, page = study(options)
    for done, keys in enumerate(presses, start=1):
        press(page, keys)
        expect(page.locator("#progress")).to_contain_text(f"{done} of 6")
    votes = product.eventually_votes(run, len(presses))
    said = [(vote["choice"], vote["value"], vote["category"]) for vote in votes]
    assert said == list(presses.values())


def test_nothing_waits_for_the_server_and_each_answer_is_its_own(product, study):
    run, page = study({"kind": "labels", "ballot": ["rude", "long"]})
    gate = Gate(page, "**/ballot")
    for keys in ("1 Enter", "2 Enter", "1 2 Enter"):
        press(page, keys)
    expect(page.locator("#progress")).to_contain_text("0 of 6")
    gate.open()
    votes = product.eventually_votes(run, 3)
    assert [vote["choice"] for vote in votes] == ["rude", "long", "long;rude"]


@pytest.mark.parametrize(
    "options, first, words, said",
    [
        ({"options": {"graded": True}}, "", "Choose, then send", "3"),
        ({"options": CRITERIA}, "p 9", "Still to answer: short", "p"),
    ],
)
def test_what_is_not_answered_keeps_the_vote_and_says_so(
    product, study, options, first, words, said
):
    run, page = study(options)
    press(page, first)
    send = page.locator(f"{ITEM} [data-send]")
    expect(send).to_have_attribute("aria-disabled", "true")
    expect(page.locator(f"{ITEM} [data-lacks]")).to_have_text(words)
    press(page, "Enter")
    expect(page.locator("#say")).to_have_text(words)
    assert not page.locator("[data-state]").count()
    press(page, said)
    expect(send).to_have_attribute("aria-disabled", "false")
    expect(page.locator(f"{ITEM} [data-lacks]")).to_be_empty()
    press(page, "Enter")
    product.eventually_votes(run, 1)


def test_a_text_is_written_sent_and_letters_in_it_are_letters(product, study):
    run, page = study({"kind": "text", "ballot": []})
    press(page, "Enter")
    page.keyboard.type("sup f?1 ")
    press(page, "Backspace Enter")
    page.keyboard.type("two")
    press(page, "Control+Enter")
    expect(page.locator(f"{ITEM} textarea")).to_be_focused()
    page.keyboard.type("next")
    press(page, "Control+Enter")
    expect(page.locator("#progress")).to_contain_text("2 of 6")
    press(page, "Escape s")
    votes = product.eventually_votes(run, 2)
    assert [list(vote["labels"].values()) for vote in votes] == [["sup f?1\ntwo"], ["next"]]


def test_a_comment_is_written_beside_any_vote_and_comes_back_with_an_undo(product, study):
    run, page = study()
    item = first_pair(page)
    press(page, "c")
    page.keyboard.type("Made me smile, 1 p")
    press(page, "Escape f 3")
    expect(page.locator("#progress")).to_contain_text("1 of 6")
    press(page, "u")
    back = page.locator(f'{ITEM}[data-item="{item}"]')
    expect(back).to_contain_text("You chose Flag (off-topic) before.")
    expect(back.get_by_label("Comment")).to_have_value("Made me smile, 1 p")
    page.wait_for_timeout(400)
    press(page, "p")
    [vote] = product.eventually_votes(run, 1)
    assert (vote["choice"], vote["comment"]) == ("pass", "Made me smile, 1 p")


def test_a_vote_that_is_refused_comes_back_with_all_that_was_said(product, study):
    run, page = study({"options": CRITERIA})
    item = first_pair(page)
    page.route("**/ballot", lambda route: route.fulfill(status=500, body="Out of order"))
    press(page, "p 9 f Enter")
    expect(page.locator("#notice")).to_contain_text("Not counted")
    assert first_pair(page) == item
    expect(page.locator(f"{ITEM} :checked")).to_have_count(3)
    page.unroute("**/ballot")
    page.wait_for_timeout(800)
    press(page, "Enter")
    [vote] = product.eventually_votes(run, 1)
    assert vote["labels"] == {"safe": 1.0, "funny": 0.9, "short": 0.0}


def test_undo_skip_keys_and_zoom_are_as_with_pairs(product, study):
    run, page = study()
    first = first_pair(page)
    press(page, "s")
    expect(page.locator(ITEM)).not_to_have_attribute("data-item", first)
    press(page, "?")
    keys = page.get_by_role("dialog", name="Keys")
    for words in ("Pass", "Flag without a reason", "Next item", "the item comes back once"):
        expect(keys).to_contain_text(words)
    expect(keys).not_to_contain_text("pair")
    press(page, "Escape p")
    expect(page.locator("[data-mine-shown]")).to_have_text("1")
    press(page, "u")
    expect(page.locator("[data-mine-shown]")).to_have_text("0")
    assert product.votes(run) == []


def test_on_a_phone_a_tap_and_a_swipe_vote(product, study):
    run, page = study({}, **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_role("button", name="Flag").first.tap()
    page.get_by_role("button", name="Unsafe").first.tap()
    expect(page.locator("#progress")).to_contain_text("1 of 6")
    x, y = middle_of(page)
    finger = Finger(page)
    finger.drag((x, y), (x + 130, y))
    expect(page.locator(".lean[data-armed]")).to_have_text("Let go: pass")
    finger.lift()
    votes = product.eventually_votes(run, 2)
    said = [(vote["choice"], vote["category"]) for vote in votes]
    assert said == [("flag", "unsafe"), ("pass", "")]


def test_a_screen_reader_hears_the_item_the_vote_and_where_to_go_on(product, study):
    _, page = study()
    heard = page.locator("#say")
    expect(heard).to_contain_text("Item 1: Question")
    page.locator(f"{ITEM} [data-why]").focus()
    press(page, "Enter")
    expect(page.get_by_role("group", name="Why do you flag it?")).to_be_focused()
    press(page, "Tab Enter")
    expect(heard).to_contain_text("You chose Flag, incorrect. Item 2: Question")
    expect(page.locator(ITEM)).to_be_focused()


@pytest.mark.parametrize(
    "options, keys",
    [
        ({}, "f"),
        ({"options": {"graded": True}}, "7"),
        ({"options": CRITERIA}, "p"),
        ({"kind": "labels", "ballot": ["rude", "long"], "options": {"task": "faults"}}, "1"),
        ({"kind": "rating", "ballot": list("12345")}, "c"),
        ({"kind": "text", "ballot": []}, "Enter"),
    ],
)
def test_axe_finds_nothing_and_every_target_is_large_enough(study, options, keys):
    _, page = study(options, **PHONE)
    found = violations(page)
    press(page, keys)
    found += violations(page)
    assert found == []
    targets = page.locator(f"{ITEM} :is(button, .pick, summary):visible")
    for n in range(targets.count()):
        box = targets.nth(n).bounding_box()
        assert box["height"] >= 44, targets.nth(n).inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
