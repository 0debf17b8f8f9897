"""The keyboard flow in a real browser."""

import random

import pytest
from playwright.sync_api import expect

from tests.browser.product import Gate
from tests.helpers.waiting import eventually

pytestmark = [pytest.mark.browser, pytest.mark.intercepts]

KEYS = {
    "ArrowLeft": "left", "1": "left", "ArrowRight": "right", "2": "right",
    "ArrowDown": "both_bad", "3": "both_bad", "ArrowUp": "tie", "4": "tie",
}  # fmt: skip
OTHER_SIDE = {"A": "B", "B": "A"}


def first_pair(page):
    """The identifier of the pair on the screen."""
    return page.locator("#pairs > .pair").first.get_attribute("data-item")


def auto_advance(page):
    """Go on after each vote at once, as a run without judges does by itself."""
    button = page.get_by_role("button", name="Auto-advance")
    if button.count():
        button.click()


def vote(page, key="ArrowLeft"):
    """Vote with a key, see the reveal, and go to the next pair."""
    pair = first_pair(page)
    page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
    page.keyboard.press(key)
    page.locator("#reveal .reveal").wait_for()
    page.keyboard.press("Enter")
    expect(page.locator(f'.pair[data-item="{pair}"]')).to_have_count(0)


def meant(position, left_side):
    """What a vote for a position must be stored as."""
    if position == "left":
        return left_side
    return OTHER_SIDE[left_side] if position == "right" else position


def test_thirty_votes_with_keys_only_are_stored_as_they_were_meant(product, join):
    run = product.new_run(pairs=30, kind="svg")
    page = join(run)
    order = random.Random(7)
    pressed = {}
    for _ in range(30):
        key = order.choice(list(KEYS))
        pressed[first_pair(page)] = KEYS[key]
        vote(page, key)
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    rows = product.eventually_votes(run, 30)
    assert {row["item"] for row in rows} == set(run["pairs"]) == set(pressed)
    assert {row["left_side"] for row in rows} == {"A", "B"}
    for row in rows:
        assert row["choice"] == meant(pressed[row["item"]], row["left_side"])
        assert row["elapsed_ms"] > 0


def test_with_auto_advance_the_next_pair_is_there_before_the_server_has_answered(product, join):
    run = product.new_run(pairs=12)
    page = join(run)
    auto_advance(page)
    gate = Gate(page, "**/ballot")
    seen = []
    for key in ("ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp"):
        seen.append(first_pair(page))
        page.keyboard.press(key)
    assert len({*seen, first_pair(page)}) == 5
    expect(page.locator("#progress")).to_contain_text("0 of 12")
    gate.open()
    expect(page.locator("#progress")).to_contain_text("4 of 12")
    rows = product.eventually_votes(run, 4)
    # They arrive one after the other, in the order in which they were given.
    assert [row["item"] for row in rows] == seen
    assert [
        meant(KEYS[k], r["left_side"])
        for k, r in zip(("ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp"), rows, strict=True)
    ] == [row["choice"] for row in rows]


def test_auto_advance_is_remembered(product, join):
    page = join(product.new_run(pairs=5))
    auto_advance(page)
    page.reload()
    expect(page.get_by_role("button", name="Auto-advance")).to_have_attribute(
        "aria-pressed", "true"
    )


def test_a_tie_is_offered_only_where_the_ballot_has_it(product, join):
    run = product.new_run(pairs=3, ballot=["A", "B", "both_bad"])
    page = join(run)
    before = first_pair(page)
    for key in ("ArrowUp", "4"):
        page.keyboard.press(key)
    assert first_pair(page) == before
    expect(page.locator("#pairs > .pair").first).not_to_have_attribute("data-state", "sending")
    vote(page, "ArrowDown")
    assert [row["choice"] for row in product.eventually_votes(run, 1)] == ["both_bad"]


def test_keys_with_a_modifier_are_somebody_elses(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    for modifier in ("ctrlKey", "altKey", "metaKey", "shiftKey"):
        for key in ("1", "2", "3", "s", "u", "f"):
            page.evaluate(
                "([key, modifier]) => document.body.dispatchEvent(new KeyboardEvent('keydown', "
                "{key, bubbles: true, cancelable: true, [modifier]: true}))",
                [key, modifier],
            )
        expect(page.locator("dialog[open]")).to_have_count(0)
        assert not page.locator("[data-state]").count(), modifier
    vote(page)
    assert len(product.eventually_votes(run, 1)) == 1


def test_on_a_keyboard_without_latin_letters_the_place_of_the_key_counts(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    before = first_pair(page)
    for key, code in (("\u044b", "KeyS"), ("&", "Digit1")):
        page.evaluate(
            "([key, code]) => document.body.dispatchEvent(new KeyboardEvent('keydown', "
            "{key, code, bubbles: true, cancelable: true}))",
            [key, code],
        )
    page.locator("#reveal .reveal").wait_for()
    [row] = product.votes(run)
    assert row["item"] != before
    assert row["choice"] == row["left_side"]


def test_a_key_held_down_votes_once(product, join):
    run = product.new_run(pairs=6)
    page = join(run)
    auto_advance(page)
    for _ in range(8):
        page.keyboard.down("ArrowLeft")  # from the second on these are repeats
    page.keyboard.up("ArrowLeft")
    expect(page.locator("#progress")).to_contain_text("1 of 6")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#progress")).to_contain_text("2 of 6")
    assert len(product.votes(run)) == 2


def test_letters_typed_into_a_flag_are_letters(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Flag this pair")
    dialog.get_by_label("Unsafe").check()
    dialog.get_by_label("Comment").fill("")
    page.keyboard.type("1234 susu f?z ")
    page.keyboard.press("Backspace")
    for key in ("ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    expect(dialog.get_by_label("Comment")).to_have_value("1234 susu f?z")
    dialog.get_by_role("button", name="Send the flag").click()
    expect(dialog).to_be_hidden()
    expect(page.locator("#notice")).to_contain_text("Flagged")
    assert product.ask("flags", queue=run["queue"]) == [
        {"category": "unsafe", "comment": "1234 susu f?z"}
    ]
    assert product.votes(run) == []


def test_escape_closes_the_flag_and_nothing_was_flagged(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    page.keyboard.press("f")
    page.get_by_role("dialog", name="Flag this pair").get_by_label("Other").check()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    vote(page)
    assert product.ask("flags", queue=run["queue"]) == []


def test_a_second_press_on_the_same_pair_is_not_a_second_vote(product, join):
    run = product.new_run(pairs=4)
    page = join(run)
    pair = first_pair(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    rows = product.eventually_votes(run, 1)
    assert rows[0]["item"] == pair
    assert rows[0]["choice"] == rows[0]["left_side"]


def test_undo_takes_the_last_vote_back_and_it_can_be_given_again(product, join):
    run = product.new_run(pairs=4)
    page = join(run)
    vote(page)
    pair = first_pair(page)
    vote(page, "ArrowLeft")
    page.keyboard.press("u")
    expect(page.locator("#pairs > .pair").first).to_have_attribute("data-item", pair)
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    expect(page.locator("#notice")).to_contain_text("is not blind")
    page.locator("#say", has_text="taken back").wait_for(state="attached")
    eventually(lambda: page.keyboard.press("ArrowRight") or page.locator("[data-state]").count())
    page.locator("#reveal .reveal").wait_for()
    rows = product.votes(run, standing=False)
    assert [row["retracted"] for row in rows if row["item"] == pair] == [True, False]
    again = rows[-1]
    assert again["choice"] == OTHER_SIDE[again["left_side"]]


def test_undo_waits_for_the_vote_that_is_on_its_way(product, join):
    run = product.new_run(pairs=6)
    page = join(run)
    auto_advance(page)
    gate = Gate(page, "**/ballot")
    pair = first_pair(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    gate.open()
    expect(page.locator("#pairs > .pair").first).to_have_attribute("data-item", pair)
    expect(page.locator("#progress")).to_contain_text("0 of 6")
    rows = product.votes(run, standing=False)
    assert [(row["item"], row["retracted"]) for row in rows] == [(pair, True)]


def test_undo_is_off_while_there_is_nothing_to_undo(product, join):
    page = join(product.new_run(pairs=3))
    undo = page.locator("#pairs > .pair").first.get_by_role("button", name="Undo last vote")
    expect(undo).to_be_disabled()
    page.keyboard.press("u")
    vote(page)
    expect(undo).to_be_enabled()
    page.keyboard.press("u")
    expect(page.locator("#progress")).to_contain_text("0 of 3")
    expect(undo).to_be_disabled()


def test_a_skipped_pair_comes_back_once_at_the_end(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    skipped = first_pair(page)
    page.keyboard.press("s")
    expect(page.locator("#pairs > .pair").first).not_to_have_attribute("data-item", skipped)
    vote(page)
    vote(page)
    expect(page.locator("#pairs > .pair").first).to_have_attribute("data-item", skipped)
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert len(product.votes(run)) == 2


def test_a_reload_in_the_middle_goes_on_where_one_was(product, join):
    run = product.new_run(pairs=6)
    page = join(run)
    vote(page)
    vote(page)
    here = first_pair(page)
    page.reload()
    page.locator("[data-ready]").wait_for()
    assert first_pair(page) == here
    expect(page.locator("#progress")).to_contain_text("2 of 6")
    for _ in range(4):
        vote(page, "ArrowRight")
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert len({row["item"] for row in product.eventually_votes(run, 6)}) == 6


def test_more_pairs_come_before_the_first_ones_run_out(product, join):
    run = product.new_run(pairs=24)
    page = join(run)
    auto_advance(page)
    seen = set()
    for _ in range(24):
        pair = first_pair(page)
        assert pair not in seen
        seen.add(pair)
        page.keyboard.press("1")
        expect(page.locator("#pairs > .pair").or_(page.locator("#end h2")).first).to_be_attached()
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert seen == set(run["pairs"])
    product.eventually_votes(run, 24)


def test_keys_can_be_turned_off(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    page.keyboard.press("?")
    page.get_by_role("button", name="Use keys").click()
    page.keyboard.press("Escape")
    before = first_pair(page)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("s")
    assert first_pair(page) == before
    assert not page.locator("[data-state]").count()
    page.locator(".pair").first.get_by_role("button", name="Left is better").click()
    page.locator("#reveal .reveal").wait_for()
    assert len(product.votes(run)) == 1


def test_zoom_shows_both_pictures_their_hashes_and_one_at_a_time(product, join):
    page = join(product.new_run(pairs=3, kind="svg"))
    before = first_pair(page)
    address = page.locator(".pair .picture").first.get_attribute("data-sha256")
    page.keyboard.press("z")
    zoom = page.get_by_role("dialog", name="Zoom")
    expect(zoom.locator("figure:visible")).to_have_count(2)
    expect(zoom.locator("figcaption").first).to_contain_text(address)
    page.keyboard.press("ArrowRight")
    expect(zoom.locator("figure:visible")).to_have_count(1)
    expect(zoom.get_by_role("img", name="Right output")).to_be_visible()
    page.keyboard.press("z")
    expect(zoom).to_be_hidden()
    page.locator(".pair").first.get_by_role("link", name="Left output").click()
    expect(zoom.get_by_role("img", name="Left output")).to_be_visible()
    page.keyboard.press("Escape")
    assert first_pair(page) == before


AT_ONCE = """() => {
  document.getElementById("zoom").close();
  const key = new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true, cancelable: true});
  document.querySelector("#zoom button").dispatchEvent(key);
}"""


def test_a_key_right_after_zoom_has_closed_votes(product, join):
    run = product.new_run(pairs=3, kind="svg")
    page = join(run)
    page.keyboard.press("z")
    page.locator("dialog#zoom[open]").wait_for()
    page.evaluate(AT_ONCE)  # before the browser has moved the focus out of it
    page.locator("#reveal .reveal").wait_for()
    assert len(product.votes(run)) == 1


def test_undo_once_voting_has_closed_is_refused_and_turned_off(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    product.ask("set_queue", queue=run["queue"], is_open=False)
    page.keyboard.press("u")
    expect(page.locator("#notice")).to_have_text("Voting has closed; your vote stands.")
    for undo in page.locator("[form=undo]").all():
        expect(undo).to_be_disabled()
    page.keyboard.press("u")
    assert len(product.votes(run)) == 1


def test_a_vote_that_comes_too_late_turns_undo_off_before_anybody_presses_it(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    vote(page)
    product.ask("set_queue", queue=run["queue"], is_open=False)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#notice")).to_contain_text("Not counted. Voting has closed.")
    for undo in page.locator("[form=undo]").all():
        expect(undo).to_be_disabled()
    assert len(product.votes(run)) == 1
