"""Everybody can vote and read: axe on every page, no script, a finger, a screen reader, zoom."""

import itertools
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import expect

from tests.helpers.waiting import eventually
from tests.voting.ballot.test_voting_keys import first_pair, vote

pytestmark = pytest.mark.browser

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
# What it would load beforehand, style sheets once more and media, is for rules that are off here;
# to name each element that breaks none takes longer than the rules themselves.
RUN_AXE = """async rules => {
  const options = {preload: false, resultTypes: ["violations"], ...rules};
  return (await axe.run(document, options)).violations;
}"""
# What reaches beyond the right edge of a page that scrolls sideways.
BEYOND = """() => {
  const root = document.documentElement;
  const beyond = (each) => each.getBoundingClientRect().right > root.clientWidth + 1;
  const found = root.scrollWidth > root.clientWidth ? [...document.querySelectorAll("*")] : [];
  return found.filter(beyond).map((each) => each.outerHTML.slice(0, 120));
}"""
READERS = itertools.count(1)
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


def violations(page):
    """What axe has to say of a page in light and dark, one line for each rule that is broken."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate(RUN_AXE, {})
    # Without motion: a colour that fades into another is neither.
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    found += page.evaluate(RUN_AXE, {"runOnly": {"type": "rule", "values": ["color-contrast"]}})
    page.emulate_media(color_scheme="null", reduced_motion="null")
    return [
        f"{page.url} {rule['id']}: {node['html'][:200]}: {node['failureSummary']}"
        for rule in found
        for node in rule["nodes"][:3]
    ]


def faults(page):
    """What is wrong with a page in both themes, at a desk and as narrow as a phone."""
    found, desk = violations(page), page.viewport_size
    page.set_viewport_size(PHONE["viewport"])
    found += [f"{page.url} is wider than a phone: {each}" for each in page.evaluate(BEYOND)]
    page.set_viewport_size(desk)
    return found


def log_in(page, product, *, staff=True):
    """Become somebody who evaluates; how one logs in is a test of its own."""
    cookie = product.ask("log_in", name=f"reader-{next(READERS)}", staff=staff)
    page.context.add_cookies([{"url": product.url, **cookie}])
    page.goto("/runs/")
    page.get_by_role("heading", name="Runs").wait_for()


MOVING = """() => {
  const moves = (element) => {
    const style = getComputedStyle(element);
    const lasting = `${style.transitionDuration},${style.animationDuration}`.split(",");
    return lasting.map(parseFloat).some((s) => s > 0) || style.scrollBehavior === "smooth";
  };
  return [...document.querySelectorAll("*")].filter(moves).map((each) => each.id || each.tagName);
}"""


@pytest.mark.parametrize("motion, moving", [("reduce", []), ("no-preference", ["save"])])
def test_nothing_moves_for_whoever_wants_no_motion(product, join, motion, moving):
    run = product.new_run(pairs=2)
    page = join(run, reduced_motion=motion)
    assert page.evaluate(MOVING) == moving
    page.keyboard.press("?")
    page.locator("dialog#keys[open]").wait_for()
    assert page.evaluate(MOVING) == moving
    page.keyboard.press("Escape")
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for(state="attached")
    assert page.evaluate(MOVING) == moving
    page.goto(f"{run['vote']}mine")
    assert page.evaluate(MOVING) == []


@pytest.mark.parametrize(
    "options",
    [{"kind": "svg"}, {"long": True}, {"failed_drawing": True}],
    ids=["drawings", "long texts", "a failed drawing"],
)
def test_axe_finds_nothing_while_voting(product, join, options):
    run = product.new_run(pairs=2, **options)
    page = join(run)
    found = violations(page)
    for key, name in (
        ("?", "keys"),
        ("f", "flag"),
        *([("z", "zoom")] if "kind" in options else []),
    ):
        page.keyboard.press(key)
        page.locator(f"dialog#{name}[open]").wait_for()
        found += violations(page)
        page.keyboard.press("Escape")
        page.locator("dialog[open]").wait_for(state="detached")
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for(state="attached")
    found += violations(page)
    page.keyboard.press("Enter")
    vote(page)
    page.get_by_role("heading", name="Nothing left for you").wait_for()
    found += violations(page)
    page.goto(f"{run['vote']}mine")
    found += violations(page)
    page.get_by_role("link", name="What they said").first.click()
    page.get_by_role("heading", name="What the judges said").wait_for()
    found += violations(page)
    assert found == []


def test_axe_finds_nothing_before_a_login_and_in_states_of_pages(product, window):
    """Beside what `test_every_page` looks at: every page, as it first is, with a login."""
    voted = product.new_run(pairs=4, kind="svg", names=["always-first", "a-judge"])
    product.ask("colleague_votes", queue=voted["queue"], number=3)
    fresh = product.new_run(pairs=2, shared=True)
    page = window()
    found = []
    for path in ("/", "/login/", voted["join"], "/nothing-here/", voted["vote"], fresh["board"]):
        page.goto(path)
        found += violations(page)
    log_in(page, product)
    page.goto(f"{voted['board']}vote/")
    page.get_by_text("A link for several people").click()
    page.get_by_label("For whom").fill("Students")
    page.get_by_role("button", name="Make an invite").click()
    page.get_by_role("button", name="Withdraw the invite Students").wait_for()
    page.get_by_text("QR code of link 1").click()
    page.get_by_text("Personal links", exact=True).click()
    found += violations(page)
    product.ask("set_state", run=voted["run"], state="stopped")
    page.goto(f"{voted['board']}progress/")
    found += violations(page)
    page.goto("/login/")
    page.get_by_label("Username").fill("nobody")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("alert").wait_for()
    found += violations(page)
    assert found == []


def test_one_logs_in_and_the_admin_and_the_api_pages_obey_the_policy_too(product, window):
    page = window()
    product.ask("new_user", name="a curator", password="a quiet board", staff=True)
    page.goto("/login/")
    page.get_by_label("Username").fill("a curator")
    page.get_by_label("Password").fill("a quiet board")
    page.get_by_role("main").get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Waits for you").wait_for()
    for path in ("/admin/", "/admin/voting/invite/add/", "/admin/voting/queue/", "/api/docs"):
        page.goto(path)
        page.wait_for_load_state("networkidle")
        expect(page.locator("body")).not_to_be_empty()


@pytest.mark.parametrize("kind", ["svg", "text"])
def test_without_scripts_one_votes_skips_undoes_flags_and_sees_the_reveal(product, window, kind):
    run = product.new_run(pairs=3, kind=kind)
    page = window(java_script_enabled=False)
    page.goto(run["join"])
    page.get_by_role("button", name="Start voting").click()
    first = first_pair(page)
    expect(page.locator(".pair:visible")).to_have_count(1)
    pair = page.locator(".pair:first-child")
    pair.get_by_role("button", name="Left is better").click()
    expect(page.locator(".notice")).to_contain_text("Your vote was recorded")
    assert first_pair(page) != first
    page.get_by_role("link", name="See what the judges said").click()
    expect(
        page.get_by_role("heading", name="You chose Left · 1 of 2 baselines agree")
    ).to_be_visible()
    page.get_by_role("link", name="Next pair").click()
    pair.get_by_role("button", name="Undo last vote").click()
    assert first_pair(page) == first
    assert product.votes(run) == []
    pair.get_by_role("button", name="Skip").click()
    assert first_pair(page) != first
    # Playwright's own words for finding things do not look into <noscript>.
    pair.locator("details.flag summary").click()
    pair.locator("[name=category][value=format]").check()
    pair.locator("[name=comment]").fill("Cut off")
    pair.locator("details.flag button").click()
    assert product.ask("flags", queue=run["queue"]) == [
        {"category": "format", "comment": "Cut off"}
    ]
    # What was taken back after the reveal has its blind vote: skipped, it does not come again.
    for _ in range(2):
        pair.get_by_role("button", name="Right is better").click()
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert len(product.votes(run)) == 2
    expect(page.get_by_role("button", name="Auto-advance")).to_be_hidden()


class Finger:
    """One finger on a touch screen."""

    def __init__(self, page):
        self._page = page
        self._devtools = page.context.new_cdp_session(page)

    def drag(self, start, *stops):
        self._send("touchStart", start)
        x, y = start
        for to_x, to_y in stops:
            for step in range(1, 9):
                self._send("touchMove", (x + (to_x - x) * step / 8, y + (to_y - y) * step / 8))
            x, y = to_x, to_y

    def lift(self):
        self._devtools.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def _send(self, kind, at):
        points = [{"x": at[0], "y": at[1]}]
        self._devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.fixture
def phone(product, join):
    run = product.new_run(pairs=6, kind="svg")
    return run, join(run, **PHONE)


def middle_of(page, selector=".pair:first-child .sides"):
    box = page.locator(selector).first.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_on_a_phone_all_fits_and_every_button_is_large_enough(product, phone):
    _, page = phone
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    buttons = page.locator("button:visible, a.button:visible")
    for n in range(buttons.count()):
        box = buttons.nth(n).bounding_box()
        assert box["height"] >= 44, buttons.nth(n).inner_text()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
    assert violations(page) == []


def test_a_tap_votes(product, phone):
    run, page = phone
    page.get_by_role("button", name="Right is better").first.tap()
    page.locator("#reveal .reveal").wait_for(state="attached")
    [row] = product.votes(run)
    assert row["choice"] != row["left_side"]
    # It lies where choices were: a finger that comes down twice does not lead on.
    page.wait_for_timeout(350)
    page.get_by_role("button", name="Next pair").tap()
    expect(page.locator("#reveal")).to_be_empty()


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_long_swipe_says_what_it_will_do_and_votes_when_let_go(product, phone, side):
    run, page = phone
    x, y = middle_of(page)
    finger = Finger(page)
    far = -130 if side == "left" else 130
    finger.drag((x, y), (x + far, y + 4))
    expect(page.locator(".lean[data-armed]")).to_have_text(f"Let go: {side} is better")
    assert product.votes(run) == []
    finger.lift()
    page.locator("#reveal .reveal").wait_for(state="attached")
    [row] = product.votes(run)
    assert (row["choice"] == row["left_side"]) == (side == "left")


def test_a_swipe_taken_back_or_too_short_or_downwards_is_no_vote(product, phone):
    run, page = phone
    x, y = middle_of(page)
    finger = Finger(page)
    for stops in ([(x - 130, y), (x - 10, y)], [(x - 60, y)], [(x - 20, y - 150)]):
        finger.drag((x, y), *stops)
        finger.lift()
        expect(page.locator(".lean")).to_have_count(0)
    assert not page.locator("[data-state]").count()
    page.get_by_role("button", name="Left is better").first.tap()
    page.locator("#reveal .reveal").wait_for(state="attached")
    assert len(product.votes(run)) == 1


def test_a_screen_reader_hears_the_pair_the_vote_and_the_verdicts(product, join):
    run = product.new_run(pairs=2, kind="svg", says=[["A", None, "B"], ["B", None, "A"]])
    page = join(run)
    heard = page.locator("#say")
    expect(heard).to_contain_text("Pair 1: Question")
    for name in ("Left output", "Right output"):
        assert page.get_by_role("img", name=name).first.is_visible()
    page.keyboard.press("ArrowLeft")
    expect(heard).to_contain_text("You chose Left. 1 of 2 baselines agree.")
    expect(heard).to_contain_text("judge-1: no verdict")
    page.keyboard.press("Enter")
    expect(heard).to_contain_text("Pair 2: Question")


def test_focus_follows_the_pair_and_is_never_lost(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    page.locator(".pair").first.get_by_role("button", name="Left is better").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Next pair").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#pairs > .pair").first).to_be_focused()
    assert len(product.votes(run)) == 1


def test_the_first_tab_skips_to_the_content(product, window):
    page = window()
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_at_two_hundred_percent_nothing_is_cut_off(product, join):
    run = product.new_run(pairs=2, kind="svg")
    page = join(run, viewport={"width": 640, "height": 400})
    assert page.evaluate("document.documentElement.scrollWidth") == 640
    page.get_by_role("button", name="Left is better").first.click()
    page.locator("#reveal .reveal").wait_for(state="attached")
    page.get_by_role("button", name="Next pair").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 640


def test_long_texts_scroll_together_until_told_otherwise(product, join):
    page = join(product.new_run(pairs=2, long=True))
    left, right = (
        page.locator(f".pair:first-child [data-side={s}] .text") for s in ("left", "right")
    )
    left.evaluate("text => { text.scrollTop = 300; }")
    eventually(lambda: right.evaluate("text => text.scrollTop") == 300)
    page.get_by_role("button", name="Scroll together").click()
    left.evaluate("text => { text.scrollTop = 0; }")
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )
    assert right.evaluate("text => text.scrollTop") == 300
    left.focus()
    page.keyboard.press("ArrowDown")  # scrolls the text, which holds the focus, and does not vote
    assert not page.locator("[data-state]").count()
