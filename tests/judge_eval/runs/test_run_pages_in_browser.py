"""A run's life in a browser: drafted, tried, started, followed, stopped; also without scripts."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.helpers.waiting import eventually
from tests.product.test_access import PHONE, log_in, violations
from tests.provider import provider

pytestmark = pytest.mark.browser

# On three pairs, or on as many as other runs of the same project have.
ANSWERED = re.compile(r"(\d) of \1 pairs? answered|failed on all")

PRICE = {"input": "2.50", "output": "10"}
THINGS = ("harbour", "lighthouse", "storm")
MODELS = ("model-a", "model-b", "judge-hash", "judge-first")


@pytest.fixture(scope="module")
def at(product, chromium):
    """A model provider that the product's workers ask, set up on the page of providers."""
    with provider(latency_ms=20) as running:
        page = chromium.new_page(base_url=product.url)
        log_in(page, product)
        page.goto("/providers/new/")
        page.get_by_label("Name").fill("default")
        page.get_by_label("Address").fill(running.base_url)
        page.get_by_label("Prices").fill(json.dumps(dict.fromkeys(MODELS, PRICE)))
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text("default is saved").wait_for()
        page.close()
        yield running


@pytest.fixture(autouse=True)
def well(at):
    at.control(mode="ok", latency_ms=20, rates={}, models=[], times=None)


def field(page, name):
    return page.get_by_label(name, exact=True)


def unfold(page):
    folded = page.locator("#further:not([open]) > summary")
    if folded.count():
        folded.click()


def fill_in(page, name, **more):
    unfold(page)
    # Nothing is chosen by itself where other tests have made more projects.
    field(page, "Project").select_option(label="Demo")
    field(page, "Name").fill(name)
    page.get_by_label("texts").check()
    field(page, "Models that generate").fill("model-a\nmodel-b")
    field(page, "Judges").fill("judge-hash\njudge-first")
    # What was asked before, word for word, would be answered from storage.
    field(page, "Prompts").fill("\n".join(f"{name}: a {thing}" for thing in THINGS))
    for label, value in more.items():
        field(page, label.replace("_", " ")).fill(value)


def make_draft(page, name="Harbours", **more):
    page.goto("/runs/new/")
    fill_in(page, name, **more)
    page.get_by_role("button", name="Create draft").click()
    page.get_by_role("heading", name="What it will ask").wait_for()


def start(page):
    page.get_by_role("button", name="Start", exact=True).click()
    page.wait_for_url("**/progress/")


def test_from_a_form_to_pairs_that_can_be_voted_on_without_a_reload(at, product, window):
    page = window()
    log_in(page, product)
    page.get_by_role("link", name="New run").click()
    fill_in(page, "Harbours", Samples="2")
    page.get_by_role("button", name="Create draft").click()
    expect(page.get_by_text("Calls for verdicts").locator("..")).to_contain_text("24")
    expect(page.get_by_text("Cost", exact=True).locator("..")).to_contain_text("at most about $")
    start(page)
    page.evaluate("document.querySelector('main').dataset.mine = 'the same page'")
    expect(page.locator("#state")).to_contain_text("Voting.")
    expect(page.locator("main[data-mine]")).to_have_count(1)
    rows = page.get_by_role("region", name="How far it is")
    expect(rows.get_by_role("row", name="Calls for verdicts")).to_contain_text(
        re.compile(r"24\s+0\s+0\s+24")
    )
    # Baselines are asked too: 7 of them, and 2 models, about 3 pairs.
    expect(rows.get_by_role("row", name=re.compile("^Verdicts"))).to_contain_text(
        re.compile(r"27\s+0\s+0\s+27")
    )
    expect(page.get_by_role("button", name="Stop")).to_be_enabled()
    page.get_by_role("link", name="Pairs", exact=True).click()
    page.get_by_role("link", name="a harbour").click()
    asked = page.get_by_role("region", name="How they were asked")
    expect(asked.get_by_role("row", name="judge-first")).to_contain_text("no: scored as tie")


def test_it_stops_asking_once_nothing_more_comes(at, product, window):
    page = window()
    log_in(page, product)
    make_draft(page, "Quiet")
    start(page)
    expect(page.locator("#state")).to_contain_text("Voting.")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)
    assert [url for url in asked if "/progress/" in url] == []


def test_a_judge_is_tried_and_the_page_follows(at, product, window):
    page = window()
    log_in(page, product)
    make_draft(page, "Tried")
    at.control(mode="winner as both", models=["judge-first"])
    page.get_by_label("Judge", exact=True).select_option("judge-first")
    page.get_by_role("button", name="Try it on three pairs").click()
    heading = page.get_by_role("heading", name=re.compile(f"judge-first: {ANSWERED.pattern}"))
    expect(heading).to_be_visible()
    expect(page.locator(".tried li").first).to_contain_text("the winner 'both' must be one of")
    raw = page.locator(".tried details").first
    expect(raw.locator("pre")).to_be_hidden()
    raw.locator("summary").click()
    expect(raw.locator("pre")).to_contain_text('"winner": "both"')
    expect(page.get_by_role("button", name="Try it on three pairs")).to_be_enabled()
    page.reload()
    expect(page.get_by_text("Spent on trying").locator("..")).to_contain_text("$0.")


def test_failed_calls_show_their_raw_reply_when_asked_and_are_retried(at, product, window):
    page = window()
    log_in(page, product)
    make_draft(page, "Refusing")
    at.control(mode="winner as both", models=["judge-hash"])
    start(page)
    expect(page.locator("#state")).to_contain_text("Voting.")
    page.get_by_role("link", name="6 failed calls: see why").click()
    expect(page.get_by_role("heading", name="6 failed calls")).to_be_visible()
    first = page.locator(".failures:not(.groups) li").first
    with page.expect_response(re.compile(r"/calls/\d+/$")):
        first.get_by_text("Raw reply").click()
    expect(first.get_by_role("region", name="Raw reply")).to_contain_text('"winner": "both"')
    at.control(mode="ok", models=[])
    page.get_by_role("link", name="← Progress").click()
    page.get_by_role("button", name="Retry what failed").click()
    expect(page.locator("#state")).to_contain_text("Voting.")
    expect(page.get_by_role("link", name="see why")).to_have_count(0)
    expect(page.get_by_role("button", name="Retry what failed")).to_be_disabled()


def test_while_it_changes_the_focus_stays_and_only_the_state_is_said(at, product, window):
    page = window()
    log_in(page, product)
    at.control(latency_ms=700)
    make_draft(page, "Slow")
    start(page)
    said = page.locator("#state[role=status]")
    expect(said).to_contain_text("Generating.")
    page.get_by_role("button", name="Stop").focus()
    outputs = page.get_by_role("region", name="How far it is").get_by_role("row", name="Outputs")
    expect(outputs).not_to_have_text(outputs.inner_text())
    expect(page.get_by_role("button", name="Stop")).to_be_focused()
    page.keyboard.press("Enter")
    expect(said).to_contain_text("Stopped. Stopped by hand.")
    at.control(latency_ms=0)
    page.get_by_role("button", name="Resume").click()
    expect(said).to_contain_text("Voting.")


def test_the_rubric_follows_the_kind_until_somebody_writes_one(at, product, window):
    page = window()
    log_in(page, product)
    page.goto("/runs/new/")
    unfold(page)
    rubric = field(page, "Rubric")
    expect(rubric).to_have_value(re.compile("^Which drawing"))
    page.get_by_label("code").check()
    expect(rubric).to_have_value(re.compile("^Which code"))
    rubric.fill("Mine.")
    page.get_by_label("texts").check()
    expect(rubric).to_have_value("Mine.")


def test_errors_are_said_with_their_lines_and_lead_to_their_fields(at, product, window):
    page = window()
    log_in(page, product)
    page.goto("/runs/new/")
    fill_in(page, "Kept")
    field(page, "Models that generate").fill("model-a\n\nmodel-a")
    page.get_by_role("button", name="Create draft").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Models that generate: Line 3: 'model-a' is given twice.")
    expect(field(page, "Prompts")).to_have_value(re.compile("Kept: a storm"))
    alert.get_by_role("link").click()
    page.keyboard.press("Tab")
    expect(field(page, "Models that generate")).to_have_accessible_description(
        re.compile("is given twice")
    )


def test_axe_finds_nothing(at, product, window):
    page = window()
    log_in(page, product)
    found = []
    for path in ("/runs/", "/runs/new/", "/runs/new/config/"):
        page.goto(path)
        found += violations(page)
    page.goto("/runs/new/")
    page.get_by_role("button", name="Create draft").click()
    page.get_by_role("alert").wait_for()
    found += violations(page)
    make_draft(page, "Seen by axe")
    page.get_by_role("button", name="Try it on three pairs").click()
    page.get_by_role("heading", name=ANSWERED).wait_for()
    open_all(page)
    found += violations(page)
    at.control(mode="refuse", models=["judge-hash"])
    start(page)
    found += violations(page)
    expect(page.locator("#state")).to_contain_text("Voting.")
    queue = product.ask("queue_of", run=page.url.split("/")[4])
    product.ask("colleague_votes", queue=queue, number=2)
    set_anchors_by_keyboard(page)
    found += violations(page)
    page.get_by_role("link", name="see why").click()
    page.locator(".failures summary").first.click()
    page.get_by_role("region", name="Raw reply").first.wait_for()
    found += violations(page)
    page.get_by_role("link", name="Pairs", exact=True).click()
    page.get_by_role("link", name="a harbour").click()
    open_all(page)
    found += violations(page)
    assert found == []


def set_anchors_by_keyboard(page):
    anchors = page.get_by_label("Items to ask each judge about again, a day")
    # Not before a vote is sealed.
    eventually(lambda: (page.reload(), anchors.count())[1])
    page.locator("#watch > summary").press("Enter")
    page.keyboard.press("Tab")
    expect(anchors).to_be_focused()
    page.keyboard.type("7")
    page.keyboard.press("Enter")
    # What it takes is shown first.
    expect(page.get_by_text("these answers last for a year")).to_be_visible()
    page.get_by_role("button", name="Ask them now").press("Enter")
    expect(page.get_by_text("its yardstick is being asked").first).to_be_visible()
    expect(anchors).to_have_value("7")
    expect(anchors).not_to_be_focused()
    anchors.fill("0")
    page.locator("#act-watch").press("Enter")
    expect(anchors).to_have_value("0")


def open_all(page):
    # An open menu would lie on what is pressed next.
    closed = "document.querySelectorAll('details:not(.menu)')"
    page.evaluate(f"for (const each of {closed}) each.open = true")


def test_on_a_phone_everything_fits_and_can_be_touched(at, product, window):
    page = window(**PHONE)
    log_in(page, product)
    wide = []

    def look():
        page.wait_for_load_state()
        open_all(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        small = page.evaluate(
            "[...document.querySelectorAll('main :is(button, .button, summary, select)')]"
            ".filter(each => each.checkVisibility() && each.offsetHeight < 44)"
            ".map(each => each.outerHTML)"
        )
        wide.extend([(page.url, width, small)] if width > 360 or small else [])
        # Menus lie over the page while they are open.
        page.evaluate("for (const each of document.querySelectorAll('.menu')) each.open = false")

    for path in ("/runs/", "/runs/new/config/", "/runs/new/"):
        page.goto(path)
        look()
    make_draft(page, "On a phone")
    page.get_by_role("button", name="Try it on three pairs").click()
    page.get_by_role("heading", name=ANSWERED).wait_for()
    look()
    at.control(mode="refuse", models=["judge-hash"])
    start(page)
    expect(page.locator("#state")).to_contain_text("Voting.")
    look()
    page.get_by_role("link", name="see why").click()
    look()
    page.get_by_role("link", name="Pairs", exact=True).click()
    page.get_by_role("link", name="a harbour").click()
    look()
    assert wide == []


def test_without_scripts_the_whole_way_works(at, product, window):
    page = window(java_script_enabled=False)
    log_in(page, product)
    make_draft(page, "Without scripts")
    at.control(mode="refuse", models=["judge-hash"])
    page.get_by_role("button", name="Try it on three pairs").click()
    reload_until(page, page.get_by_role("heading", name=ANSWERED))
    start(page)
    reload_until(page, page.locator("#state", has_text="Voting."))
    page.get_by_role("link", name="see why").click()
    page.get_by_text("Raw reply").first.click()
    page.get_by_role("link", name="Open it").first.click()
    expect(page.locator("main")).to_contain_text("refused: I cannot help with that.")
    page.go_back()
    page.get_by_role("link", name="← Progress").click()
    page.get_by_role("button", name="Duplicate", exact=True).click()
    expect(page.get_by_role("heading", name="Without scripts (copy)")).to_be_visible()
    page.get_by_text("Delete draft").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    expect(page.get_by_text("Without scripts (copy)")).to_have_count(0)


def reload_until(page, locator):
    for _ in range(60):
        if locator.count():
            return
        page.wait_for_timeout(500)
        page.reload()
    expect(locator).to_be_visible()


def test_a_file_that_is_much_too_large_is_refused_in_words(at, product, window, tmp_path):
    page = window()
    log_in(page, product)
    page.goto("/runs/new/")
    large = tmp_path / "large.txt"
    large.write_bytes(b"a line\n" * 3_000_000)
    fill_in(page, "Large")
    field(page, "Prompts").fill("")
    unfold(page)
    page.get_by_label("or a file of prompts").set_input_files(large)
    page.get_by_role("button", name="Create draft").click()
    expect(page.get_by_role("alert")).to_contain_text("A file may have 5 MB.")


def test_on_the_page_of_a_pair_long_texts_scroll_together(product, window):
    run = product.new_run(long=True)
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}pairs/{run['pairs'][0]}/")
    left, right = (page.get_by_role("region", name=f"Output {side}") for side in "AB")
    left.evaluate("text => { text.scrollTop = 300; }")
    eventually(lambda: right.evaluate("text => text.scrollTop") == 300)
