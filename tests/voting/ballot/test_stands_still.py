"""The voting page does not move under the voter, and what is needed next is always in view."""

import json

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, violations
from tests.voting.ballot.test_item_keys import CRITERIA
from tests.voting.ballot.test_voting_keys import auto_advance, first_pair

pytestmark = pytest.mark.browser

PAIR = "#pairs > .pair:first-child"
JUDGES = [f"judge-{n}" for n in range(6)]
PROMPT = "Write a letter to a neighbour whose dog barks at night. " * 9
CHAT = [
    {"role": "system", "content": "You are terse. " * 9},
    *[{"role": role, "content": "Well? " * 40} for role in ("user", "assistant") * 4],
    {"role": "user", "content": PROMPT},
]
CONTENTS = {
    "drawings": ("new_run", {"kind": "svg", "says": [["A", "B"] * 3] * 6}),
    "texts": ("new_run", {"long": True, "says": [["A", "B"] * 3] * 6}),
    "conversations": ("new_run", {"output": json.dumps(CHAT[1:]), "says": [["A", "B"] * 3] * 6}),
    "jokes": ("new_study", {"says": [["pass", "flag"] * 3] * 6, "names": JUDGES}),
    "criteria": (
        "new_study",
        {
            "outputs": ["A joke, told at length. " * 40] * 6,
            "options": CRITERIA,
            "says": [["pass", "flag"] * 3] * 6,
            "names": JUDGES,
        },
    ),
    "labels": (
        "new_study",
        {
            "kind": "labels",
            "ballot": ["rude", "long", "dull"],
            "says": [["rude", "none", "long;dull"] * 2] * 6,
            "names": JUDGES,
        },
    ),
}
WINDOWS = {
    "desk": {"viewport": {"width": 1280, "height": 800}},
    "low desk": {"viewport": {"width": 1280, "height": 640}},
    "large desk": {"viewport": {"width": 1680, "height": 1000}},
    "phone": PHONE | {"viewport": {"width": 360, "height": 740}},
    "zoomed to 200 %": {"viewport": {"width": 640, "height": 400}},
}
# What of the first three lines of the prompt, and of *Next*, a click would not meet.
COVERED = """() => {
  const pair = document.querySelector("#pairs > .pair:first-child");
  const meets = (element, y) => {
    const box = element.getBoundingClientRect();
    const there = document.elementFromPoint(box.x + Math.min(20, box.width / 2), y);
    return y >= 0 && y < innerHeight && element.contains(there);
  };
  const prompt = pair.querySelector(".prompt-text");
  const line = parseFloat(getComputedStyle(prompt).lineHeight);
  const { y, height } = prompt.getBoundingClientRect();
  const lines = [...Array(Math.min(3, Math.round(height / line))).keys()];
  const covered = lines.filter((n) => !meets(prompt, y + (n + 0.5) * line)).map((n) => `line ${n}`);
  const next = pair.querySelector("[data-next]");
  if (!next.checkVisibility()) return covered;
  const box = next.getBoundingClientRect();
  return meets(next, box.y + box.height / 2) ? covered : [...covered, "next"];
}"""
SHIFTS = """() => {
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shifts += entry.value;
  }).observe({ type: "layout-shift", buffered: false });
}"""
# The observer is told after a frame.
SHIFTED = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(shifts), 50)))"
UNSEEN_MS = 300
CLICK_AS_SOON_AS_NEXT_IS_THERE = """() => {
  const pair = document.querySelector("#pairs > .pair:first-child");
  new MutationObserver(() => {
    if (pair.dataset.state !== "voted" || window.hasClicked) return;
    window.hasClicked = true;
    const next = pair.querySelector("[data-next]");
    next.dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1 }));
  }).observe(pair, { attributes: true });
}"""
# By how much the frame of a picture is off the ratio of the picture.
FRAMES = """() => [...document.querySelectorAll("#pairs > .pair:first-child img")].map((image) => {
  const frame = image.getBoundingClientRect();
  return Math.abs(frame.width / frame.height / (image.naturalWidth / image.naturalHeight) - 1);
})"""


@pytest.fixture
def study(product, join):
    """Open the voting page of one of the studies; its prompts are longer than three lines."""

    def open_study(content, window):
        make, options = CONTENTS[content]
        run = product.ask(make, **options)
        prompt = json.dumps(CHAT) if content == "conversations" else PROMPT
        product.ask("set_prompts", queue=run["queue"], prompt=prompt)
        return join(run, **window)

    return open_study


def vote(page):
    """Answer what is asked with the keyboard, and wait for what the judges said."""
    if page.locator(f"{PAIR} .question").count():
        for key in ("p", "1", "p", "Enter"):
            page.keyboard.press(key)
    elif page.locator(f"{PAIR} [data-send]").count():
        page.keyboard.press("2")
        page.keyboard.press("Enter")
    else:
        page.keyboard.press("ArrowRight")
    page.locator("#reveal .reveal:not([hx-get])").wait_for(state="attached")


def scroll(page):
    """Scroll the window, and the pair within it, as somebody who reads on."""
    page.evaluate(f"document.querySelector('{PAIR}').scrollTop = 120")
    page.evaluate("scrollTo(0, 60)")


@pytest.mark.parametrize(
    "content, size, advances",
    [
        # Every content in every window, and each of them both with and without auto-advance: all
        # for the first content and the last, at least two windows for those between them.
        pytest.param(
            *(content, size, (n + m) % 2 == 0),
            marks=[pytest.mark.thorough] if n % 5 and (n + m) % 3 == 0 else [],
        )
        for n, content in enumerate(CONTENTS)
        for m, size in enumerate(WINDOWS)
    ],
)
def test_a_vote_moves_nothing_and_covers_nothing(study, content, size, advances):
    page = study(content, WINDOWS[size])
    if advances:
        auto_advance(page)
    page.evaluate(SHIFTS)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        scrolled = page.evaluate("scrollY")
        assert page.evaluate(COVERED) == []
        assert all(off < 0.02 for off in page.evaluate(FRAMES))
        page.evaluate("shifts = 0")
        vote(page)
        assert page.evaluate("scrollY") == scrolled
        assert page.evaluate(COVERED) == []
        assert page.evaluate(SHIFTED) <= 0.01
        if not advances:
            page.keyboard.press("Enter")
            page.locator(f"{PAIR}:not([data-state], [data-waiting])").wait_for()
        scroll(page)


def test_at_a_desk_what_the_judges_said_scrolls_by_itself(study):
    page = study("texts", {"viewport": {"width": 1280, "height": 500}})
    height = page.evaluate("document.documentElement.scrollHeight")
    vote(page)
    assert page.evaluate("document.documentElement.scrollHeight") <= height
    last = page.locator(".last")
    assert last.evaluate("part => part.scrollHeight > part.clientHeight")
    last.focus()
    page.keyboard.press("End")
    expect(page.locator("#reveal .judges li").last).to_be_in_viewport()


@pytest.mark.parametrize("size", ["phone", "zoomed to 200 %"])
def test_in_a_narrow_window_what_the_judges_said_is_a_sheet_over_the_pair(study, size):
    page = study("texts", WINDOWS[size])
    vote(page)
    said = page.locator("#reveal .reveal")
    expect(said).to_be_hidden()
    expect(page.locator(f"{PAIR} [data-yours]")).to_have_text(
        "You chose Right · 3 of 6 baselines agree"
    )
    page.locator(PAIR).get_by_role("button", name="Why").click()
    expect(said.locator(".judges li").first).to_be_in_viewport()
    assert page.evaluate(COVERED)[-1:] != ["next"]
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(said).to_be_hidden()
    page.keyboard.press("w")
    expect(said).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator(".last")).to_be_hidden()


def test_a_finger_pulls_the_sheet_out(study):
    page = study("drawings", WINDOWS["phone"])
    vote(page)
    foot = page.locator(f"{PAIR} [data-yours]").bounding_box()
    touch = page.context.new_cdp_session(page)
    for kind, y in (("touchStart", foot["y"]), ("touchMove", foot["y"] - 80)):
        points = [{"x": foot["x"] + 5, "y": y}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(page.locator("#reveal .judges li").first).to_be_in_viewport()


def test_with_auto_advance_the_last_vote_is_one_key_away(study):
    page = study("texts", WINDOWS["phone"])
    auto_advance(page)
    vote(page)
    expect(page.locator("#reveal .reveal")).to_be_hidden()
    page.locator(PAIR).get_by_role("button", name="Last vote", exact=True).click()
    expect(page.locator("#reveal .reveal")).to_be_visible()


def test_the_rest_of_a_prompt_is_unfolded(study):
    page = study("texts", WINDOWS["phone"])
    text = page.locator(f"{PAIR} .prompt-text")
    lines = text.bounding_box()["height"]
    button = page.locator(f"{PAIR} .prompt [data-unfold]")
    button.click()
    assert text.bounding_box()["height"] > lines
    button.click()
    assert text.bounding_box()["height"] == lines


@pytest.mark.parametrize("size", ["desk", "low desk", "large desk"])
def test_at_a_desk_each_reason_stands_under_the_side_its_judge_chose(study, size):
    page = study("drawings", WINDOWS[size])
    sides = {side: page.locator(f"{PAIR} [data-side={side}]") for side in ("left", "right")}
    stages = {side: part.locator(".picture").bounding_box() for side, part in sides.items()}
    # Half of the page each, less the gap.
    assert all(box["width"] > page.viewport_size["width"] * 0.47 for box in stages.values())
    page.keyboard.press("ArrowRight")
    page.locator("#reveal .reveal:not([hx-get])").wait_for()
    for side, stage in stages.items():
        said = page.locator(f"#reveal [data-under={side}] li")
        expect(said).to_have_count(3)
        expect(said.first).to_be_in_viewport()
        box = said.first.bounding_box()
        assert abs(box["x"] - stage["x"]) < 10
        assert box["y"] > stage["y"] + stage["height"]
        assert sides[side].locator(".picture").bounding_box() == stage
        expect(sides[side].locator("h3 .tag")).to_contain_text("generator-")
    # What was chosen is said once, beside the way on.
    said = page.locator(".desk").get_by_text("You chose Right")
    expect(said.locator("visible=true")).to_have_count(1)
    assert violations(page) == []


def test_many_judges_with_long_names_scroll_within_their_row(product, join):
    names = [f"judge-with-a-name-that-goes-on-and-on-{n}" for n in range(68)]
    says = [["A", "B", "tie", None] * 17] * 2
    page = join(product.ask("new_run", kind="svg", says=says, names=names), **WINDOWS["desk"])
    stage = page.locator(f"{PAIR} .picture").first.bounding_box()
    page.evaluate(SHIFTS)
    vote(page)
    assert page.evaluate("[scrollY, document.documentElement.scrollWidth]") == [0, 1280]
    assert page.locator(f"{PAIR} .picture").first.bounding_box() == stage
    assert page.evaluate(SHIFTED) <= 0.01
    row = page.locator(".last")
    assert row.evaluate("row => row.scrollHeight > row.clientHeight")
    assert row.evaluate("row => row.scrollWidth <= row.clientWidth")
    row.focus()
    page.keyboard.press("End")
    expect(page.locator("#reveal .judges li").last).to_be_in_viewport()


def test_at_a_desk_the_last_vote_is_shown_in_its_row_when_it_is_asked_for(study):
    page = study("texts", WINDOWS["desk"])
    auto_advance(page)
    vote(page)
    said = page.locator("#reveal .reveal")
    # The reasons are of another pair than the one above them.
    expect(said).to_be_hidden()
    page.keyboard.press("w")
    expect(said.locator("h2")).to_contain_text("You chose Right")
    expect(said.locator(".of")).to_contain_text(PROMPT[:40])


@pytest.mark.parametrize("content", ["drawings", "texts"])
def test_with_auto_advance_the_buttons_of_the_head_keep_apart(study, content):
    page = study(content, WINDOWS["desk"])
    auto_advance(page)
    vote(page)
    keys = page.locator(".tools [data-open=keys]")
    last = page.locator(f"{PAIR} .others [data-why-so]")
    expect(last).to_be_visible()
    for width in (1280, 1100):
        page.set_viewport_size({"width": width, "height": 800})
        box = keys.bounding_box()
        assert box["x"] + box["width"] + 8 <= last.bounding_box()["x"]


def test_a_second_click_where_next_has_appeared_does_not_go_on(study):
    page = study("texts", WINDOWS["desk"])
    pair = first_pair(page)
    # As a mouse clicks, in the moment in which *Next* takes the place of the buttons.
    page.evaluate(CLICK_AS_SOON_AS_NEXT_IS_THERE)
    page.locator(f"{PAIR} .choices").get_by_role("button", name="Tie").click()
    page.wait_for_function("window.hasClicked")
    assert first_pair(page) == pair
    page.wait_for_timeout(UNSEEN_MS)
    page.locator(f"{PAIR} [data-next]").click()
    expect(page.locator(f'.pair[data-item="{pair}"]')).to_have_count(0)


def test_what_to_look_for_stays_open_from_pair_to_pair(study):
    page = study("texts", WINDOWS["desk"])
    fold = page.locator(f"{PAIR} .rubric")
    closed = fold.bounding_box()["height"]
    assert closed < 24
    fold.locator("summary").click()
    page.keyboard.press("s")
    assert fold.bounding_box()["height"] > closed


def test_at_a_desk_the_reasons_of_a_flag_are_in_view_without_scrolling(product, join):
    page = join(product.ask("new_study", outputs=["A joke"] * 2))
    page.set_viewport_size({"width": 1280, "height": 420})
    page.keyboard.press("f")
    assert page.evaluate("scrollY") == 0
    expect(page.locator(f"{PAIR} .reasons button").first).to_be_in_viewport()
