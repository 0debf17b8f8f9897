"""The board while people vote, the reveal after a vote, the ends of a queue, and blindness."""

import re

import pytest
from playwright.sync_api import expect

from tests.helpers.waiting import eventually
from tests.product.test_access import log_in
from tests.voting.ballot.test_voting_keys import first_pair, vote

pytestmark = [pytest.mark.browser, pytest.mark.intercepts]

STUDY = {
    "says": [["A", "B", "A"] if n % 4 else ["B", "A", "A"] for n in range(12)],
    "names": ["judge-often", "judge-seldom", "judge-a"],
    "baselines": [],
}


def figure(page, judge, name):
    """A cell of the board's table."""
    row = page.locator(".ranking").get_by_role("row", name=judge)
    return row.locator(f"[data-figure={name}]")


def left_at(locator):
    return locator.evaluate("box => box.scrollLeft")


def test_the_board_starts_empty_says_so_and_follows_the_votes(product, join, window):
    run = product.new_run(pairs=4, kind="svg", names=["always-a", "always-b"])
    board = window()
    log_in(board, product)
    board.goto(run["board"])
    expect(board.get_by_role("heading", name="No votes yet")).to_be_visible()
    link = board.get_by_role("link", name="Vote on pairs, or invite people")
    expect(link).to_be_visible()
    page = join(run)
    # The judges say A and B in turn, so the one who is right depends on the side.
    vote(page, "ArrowLeft")
    [row] = product.votes(run)
    right, wrong = ("always-a", "always-b") if row["choice"] == "A" else ("always-b", "always-a")
    expect(figure(board, right, "elo")).to_contain_text("1,016")
    expect(figure(board, wrong, "elo")).to_contain_text("984")
    expect(figure(board, right, "overall")).to_contain_text("100")
    board.locator("#further-summary").click()
    expect(board.get_by_role("img", name="Rating after each vote")).to_be_visible()
    expect(board.get_by_role("heading", name="No votes yet")).to_be_hidden()


def test_the_live_board_keeps_focus_and_what_was_opened(product, window):
    run = product.new_run(pairs=6)
    product.ask("colleague_votes", queue=run["queue"], number=2)
    board = window()
    log_in(board, product)
    board.goto(run["board"])
    board.locator("#further-summary").click()
    table = board.get_by_text("The same as a table", exact=True)
    table.click()
    table.focus()
    expect(board.locator("#board")).to_contain_text("4 of 6 pairs still need votes")
    product.ask("colleague_votes", queue=run["queue"], number=4)
    expect(board.locator("#graph-table tbody tr")).to_have_count(7)
    expect(board.locator("#graph-table-summary")).to_be_focused()


def test_figures_come_to_an_open_board_by_themselves(product, window):
    run = product.new_run(votes_wanted=2, **STUDY)
    board = window()
    log_in(board, product)
    board.goto(run["board"])
    expect(board.get_by_role("heading", name="No votes yet")).to_be_visible()
    product.ask("colleague_votes", queue=run["queue"], number=12)
    words = board.locator("p.words")
    expect(board.locator(".as-of")).to_contain_text("12 votes by 1 person")
    expect(words).to_contain_text("Too early: 12 votes.")
    expect(figure(board, "judge-often", "overall")).to_contain_text("75")
    board.locator("#further-summary").click()
    expect(figure(board, "judge-often", "rating")).to_contain_text(re.compile(r"\d{3,4}.\d{4}"))
    expect(board.get_by_label("Show", exact=True)).to_be_visible()
    product.ask("colleague_votes", queue=run["queue"], number=12)
    expect(board.locator("#board")).to_contain_text("24 votes by 2 people")
    expect(board.locator("#ranking .people")).to_contain_text("100")


def test_a_reader_of_the_live_board_stays_where_they_are(product, window):
    run = product.new_run(votes_wanted=2, **STUDY)
    product.ask("colleague_votes", queue=run["queue"], number=12)
    board = window(viewport={"width": 420, "height": 700})
    log_in(board, product)
    board.goto(run["board"])
    expect(board.locator("#board")).to_contain_text("As of 12 votes")
    board.locator("#further-summary").click()
    # Lines need no bar, and matrices have one.
    assert board.locator("#graph-box").evaluate("box => box.scrollWidth <= box.clientWidth")
    table = board.locator("#table-evidence")
    table.evaluate("box => { box.scrollLeft = 20; }")
    scrolled = left_at(table)
    summary = board.locator("#disputed-summary")
    summary.click()
    summary.focus()
    stood = summary.bounding_box()["y"]
    product.ask("colleague_votes", queue=run["queue"], number=6)
    expect(board.locator("#board")).to_contain_text("As of 18 votes")
    expect(board.locator("#disputed")).to_have_attribute("open", "")
    expect(summary).to_be_focused()
    assert left_at(table) == scrolled
    # Whatever stands above may have grown.
    assert abs(summary.bounding_box()["y"] - stood) < 60


def test_a_part_is_chosen_with_the_keyboard_and_waited_for(product, window):
    run = product.new_run(**STUDY)
    product.ask("colleague_votes", queue=run["queue"], number=12)
    board = window()
    log_in(board, product)
    board.goto(run["board"])
    choice = board.get_by_label("Show", exact=True)
    expect(choice).to_be_visible()
    choice.focus()
    # It acts at once, and the keyboard stays where it is.
    board.keyboard.type("only votes")
    expect(board.locator(".as-of")).to_contain_text("only votes and verdicts for A or B")
    expect(board).to_have_url(re.compile(r"part=ballot%3Adecided"))
    expect(choice).to_be_focused()
    expect(board.locator(".as-of")).to_contain_text("12 votes")
    expect(figure(board, "judge-often", "elo")).to_have_count(0)
    expect(figure(board, "judge-often", "overall")).to_contain_text("75")
    board.locator("#whole").click()
    expect(figure(board, "judge-often", "elo")).to_have_count(1)


def test_an_unchanged_board_is_left_alone(product, window):
    run = product.new_run(pairs=2)
    product.ask("colleague_votes", queue=run["queue"], number=1)
    board = window()
    log_in(board, product)
    board.goto(run["board"])
    expect(board.locator(".as-of")).to_contain_text("As of 1 vote")
    board.evaluate("document.querySelector('#board').dataset.mine = 'mark'")
    with board.expect_response("**seen=**") as answer:
        pass
    assert answer.value.status == 204
    expect(board.locator("#board[data-mine]")).to_have_count(1)


def test_the_reveal_shows_verdicts_and_then_how_often_each_judge_has_agreed(product, join):
    run = product.new_run(says=[["A", "B", None], ["A", "B", None]])
    page = join(run)
    page.keyboard.press("ArrowLeft")
    judges = page.locator("#reveal .judges li")
    expect(judges).to_have_count(3)
    expect(page.locator("#reveal")).to_contain_text("You chose Left · 1 of 2 baselines agree")
    expect(judges.filter(has_text="✓")).to_contain_text("1 of 1")
    expect(judges.filter(has_text="✗")).to_contain_text("0 of 1")
    expect(judges.filter(has_text="no verdict")).to_contain_text("no answer came")
    expect(page.locator("#reveal")).to_contain_text("generator-")


@pytest.mark.parametrize("reveal", ["never", "at_end"])
def test_without_a_reveal_pairs_follow_each_other(product, join, reveal):
    run = product.new_run(pairs=3, reveal=reveal)
    page = join(run)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    expect(page.get_by_role("button", name="Auto-advance")).to_have_count(0)
    for count in range(1, 4):
        pair = first_pair(page)
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#progress")).to_contain_text(f"{count} of 3")
        expect(page.locator(f'[data-item="{pair}"]')).to_have_count(0)
    assert not [url for url in asked if "/reveal/" in url]
    page.get_by_role("link", name="Look at your votes").click()
    shown = page.get_by_role("link", name="What they said")
    expect(shown).to_have_count(3 if reveal == "at_end" else 0)


def test_nothing_left_is_said_only_when_it_is_true(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    product.ask("set_comparison", item=run["pairs"][0], votes_wanted=2)
    for _ in range(3):
        vote(page)
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    page.get_by_role("button", name="Undo last vote").click()
    expect(page.locator("#pairs > .pair")).to_have_count(1)


def test_pairs_that_others_only_look_at_are_not_waited_for(product, join):
    run = product.new_run(pairs=2)
    product.ask("colleague_opens", queue=run["queue"])
    page = join(run)
    for _ in range(2):
        vote(page)
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert len(product.votes(run)) == 2


def test_a_page_that_is_left_gives_its_pairs_back(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    assert product.ask("leased", queue=run["queue"]) == 3
    page.goto("about:blank")
    eventually(lambda: product.ask("leased", queue=run["queue"]) == 0)


def test_pairs_that_are_being_prepared_are_waited_for(product, join):
    run = product.new_run(pairs=2)
    product.ask("set_comparison", item=run["pairs"][0], opened_at=None)
    page = join(run)
    expect(page.locator("#pairs > .pair")).to_have_count(1)
    vote(page)
    expect(page.get_by_role("heading", name="More pairs are being prepared")).to_be_visible()
    product.ask("set_comparison", item=run["pairs"][0], opened_at="2026-01-01T00:00:00Z")
    expect(page.locator("#pairs > .pair")).to_have_count(1)


def test_a_voter_with_open_pairs_is_kept_from_the_board(product, join):
    run = product.new_run(pairs=2, shared=True)
    page = join(run)
    page.goto(run["board"])
    expect(page.get_by_role("heading", name="Closed to you")).to_be_visible()
    page.get_by_role("link", name="Go on voting").click()
    page.locator("[data-ready]").wait_for()
    vote(page)
    vote(page)
    page.get_by_role("link", name="See the board").click()
    expect(page.get_by_role("heading", name="A run of pairs")).to_be_visible()


def test_nothing_that_comes_before_the_votes_names_models_verdicts_or_voters(product, window):
    run = product.new_run(pairs=12, kind="svg", names=["judge-zebra", "judge-yak"])
    page = window()
    came = []

    def look_into(route):
        answer = route.fetch(max_redirects=0)
        came.append(f"{answer.url}\n{answer.headers}\n".encode() + answer.body())
        route.fulfill(response=answer)

    page.route(re.compile(r"/(?!static/)"), look_into)
    product.ask("colleague_votes", queue=run["queue"], number=1)
    page.goto(run["join"])
    page.get_by_role("button", name="Start voting").click()
    page.locator("[data-ready] .pair").first.wait_for()
    with page.expect_response("**/pairs?**"):
        for _ in range(7):
            page.keyboard.press("s")
    page.unroute_all(behavior="ignoreErrors")
    assert len(came) > 10
    # A signed token may hold any few letters or digits, but not between blanks or tags.
    for word in (
        rb"generator-\d",
        rb"judge-zebra",
        rb"judge-yak",
        rb"has its reasons",
        rb"[\s>]1016[\s<.]",
    ):
        assert not [body for body in came if re.search(word, body)], word
