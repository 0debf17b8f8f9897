"""What a voter sees when a vote does not get through: nothing is lost, doubled or made up."""

import os
import signal
import sqlite3
from contextlib import closing

import pytest
from playwright.sync_api import expect

from tests.browser.product import Gate
from tests.helpers.waiting import eventually
from tests.voting.ballot.test_voting_keys import auto_advance, first_pair

pytestmark = [pytest.mark.browser, pytest.mark.intercepts]


def problem(status, message):
    body = f'<div class="problem"><h1>No</h1><p data-message>{message}</p></div>'
    return lambda route: route.fulfill(status=status, body=body, content_type="text/html")


@pytest.mark.parametrize("by_itself", [True, False], ids=["by itself", "one by one"])
def test_a_refused_vote_brings_the_pair_back_and_says_why(product, join, by_itself):
    run = product.new_run(pairs=8)
    page = join(run)
    if by_itself:
        auto_advance(page)
    for done, status in enumerate((403, 422, 429, 500)):
        pair = first_pair(page)
        page.route("**/ballot", problem(status, f"This is reason {status}."))
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#notice")).to_contain_text(f"Not counted. This is reason {status}.")
        expect(page.locator("#pairs > .pair").first).to_have_attribute("data-item", pair)
        expect(page.locator("#progress")).to_contain_text(f"{done} of 8")
        page.unroute("**/ballot")
        # Keys rest for a moment, so that a press meant for another pair does not fall on this one.
        # The same presses would go on to the next pair: each is made only while this one is shown.
        eventually(
            lambda pair=pair: (
                first_pair(page) != pair
                or page.locator("[data-state]").count()
                or page.keyboard.press("ArrowRight")
            )
        )
        expect(page.locator("#progress")).to_contain_text(f"{done + 1} of 8")
        assert [row["item"] for row in product.votes(run)][done:] == [pair]
        if not by_itself:
            page.locator("#reveal .reveal").wait_for()
            page.keyboard.press("Enter")
            expect(page.locator(f'.pair[data-item="{pair}"]')).to_have_count(0)


def test_a_vote_that_stands_otherwise_is_shown_and_can_be_left_or_undone(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    pair = first_pair(page)
    other = page.context.new_page()
    other.goto(run["vote"])
    other.locator("[data-ready]").wait_for()
    assert first_pair(other) == pair
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    other.keyboard.press("ArrowRight")
    expect(other.locator("#notice")).to_contain_text("You chose Left on this pair before")
    assert first_pair(other) == pair
    assert len(product.votes(run)) == 1
    other.keyboard.press("Enter")
    expect(other.locator("#pairs > .pair").first).not_to_have_attribute("data-item", pair)


def test_the_same_vote_from_two_tabs_is_one_vote(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    other = page.context.new_page()
    other.goto(run["vote"])
    other.locator("[data-ready]").wait_for()
    assert first_pair(other) == first_pair(page)
    page.keyboard.press("ArrowLeft")
    other.keyboard.press("ArrowLeft")
    for tab in (page, other):
        tab.locator("#reveal .reveal").wait_for()
    assert len(product.votes(run)) == 1


def test_without_a_connection_votes_wait_visibly_and_are_sent_once(product, join):
    run = product.new_run(pairs=6)
    page = join(run)
    auto_advance(page)
    page.context.set_offline(True)
    voted = []
    for key in ("ArrowLeft", "ArrowRight", "ArrowDown"):
        voted.append(first_pair(page))
        page.keyboard.press(key)
    expect(page.locator("#save")).to_contain_text("Your last 3 answers are not saved yet")
    expect(page.locator("#progress")).to_contain_text("0 of 6")
    assert product.votes(run) == []
    page.context.set_offline(False)
    expect(page.locator("#save")).to_have_text("The connection is back. All saved.")
    expect(page.locator("#progress")).to_contain_text("3 of 6")
    assert [row["item"] for row in product.votes(run)] == voted


def test_a_vote_that_met_a_locked_database_is_sent_again_and_counts_once(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    pair = first_pair(page)
    answers = []
    page.on("response", lambda got: got.url.endswith("/ballot") and answers.append(got.status))
    with closing(sqlite3.connect(product.up.data / "humanjudge.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#save")).to_contain_text("The server is busy")
    page.locator("#reveal .reveal").wait_for()
    expect(page.locator("#save")).to_have_text("All saved")
    expect(page.locator("#progress")).to_contain_text("1 of 3")
    assert (set(answers), answers[-1]) == ({503, 200}, 200)
    assert [row["item"] for row in product.votes(run, standing=False)] == [pair]


def test_an_undo_that_is_lost_on_the_way_back_is_sent_again_and_takes_back_one_vote(product, join):
    run = product.new_run(pairs=4)
    page = join(run)
    auto_advance(page)
    voted = []
    for key in ("ArrowLeft", "ArrowRight"):
        voted.append(first_pair(page))
        page.keyboard.press(key)
    expect(page.locator("#progress")).to_contain_text("2 of 4")
    lost = []

    def lose_the_first_answer(route):
        if lost:
            return route.continue_()
        lost.append(route.fetch())
        return route.abort()

    page.route("**/undo", lose_the_first_answer)
    page.keyboard.press("u")
    expect(page.locator("#pairs > .pair").first).to_have_attribute("data-item", voted[1])
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    assert lost[0].status == 200
    assert [row["item"] for row in product.votes(run)] == voted[:1]


def test_an_undo_that_waited_until_voting_had_closed_takes_nothing_back(product, join):
    run = product.new_run(pairs=4)
    page = join(run)
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    page.context.set_offline(True)
    page.keyboard.press("u")
    expect(page.locator("#save")).to_contain_text("Taking your last vote back, trying again")
    product.ask("set_queue", queue=run["queue"], is_open=False)
    page.context.set_offline(False)
    expect(page.locator("#notice")).to_have_text("Voting has closed; your vote stands.")
    assert len(product.votes(run)) == 1


def test_an_undo_behind_a_vote_that_came_too_late_leaves_the_vote_before_alone(product, join):
    run = product.new_run(pairs=4)
    page = join(run)
    auto_advance(page)
    first = first_pair(page)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    page.context.set_offline(True)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("u")
    product.ask("set_queue", queue=run["queue"], is_open=False)
    page.context.set_offline(False)
    expect(page.locator("#notice")).to_contain_text("Not counted. Voting has closed.")
    expect(page.locator("[form=undo]").first).to_be_disabled()
    assert [row["item"] for row in product.votes(run, standing=False)] == [first]


def test_a_server_that_stays_away_brings_every_pair_back_in_order(product, join):
    run = product.new_run(pairs=4)
    page = join(run, again=False)  # its clock is no real one from here on
    auto_advance(page)
    page.clock.install()
    page.context.set_offline(True)
    voted = []
    for key in ("ArrowLeft", "ArrowRight"):
        voted.append(first_pair(page))
        page.keyboard.press(key)
    eventually(lambda: page.clock.run_for(5000) or page.locator("#notice").inner_text())
    expect(page.locator("#notice")).to_contain_text("Not counted. The server could not be reached")
    shown = page.locator("#pairs > .pair")
    assert [shown.nth(n).get_attribute("data-item") for n in range(2)] == voted
    expect(page.locator("#progress")).to_contain_text("0 of 4")
    page.context.set_offline(False)
    page.clock.run_for(1000)
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#progress")).to_contain_text("1 of 4")
    assert [row["item"] for row in product.votes(run)] == voted[:1]


def test_a_vote_whose_answer_was_lost_is_not_sent_twice(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    answers = []

    def lose_the_first_answer(route):
        answer = route.fetch()
        answers.append(answer.status)
        if len(answers) == 1:
            route.abort("connectionreset")
        else:
            route.fulfill(response=answer)

    page.route("**/ballot", lose_the_first_answer)
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    assert answers == [200, 200]
    assert len(product.votes(run, standing=False)) == 1


def test_an_answer_that_is_not_the_servers_own_does_not_count(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    replies = iter([lambda route: route.fulfill(status=200, body="<h1>Welcome to our Wi-Fi</h1>")])
    page.route("**/ballot", lambda route: next(replies, lambda route: route.continue_())(route))
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    expect(page.locator("body")).not_to_contain_text("Wi-Fi")
    expect(page.locator("#progress")).to_contain_text("1 of 3")
    assert len(product.votes(run)) == 1


def test_leaving_with_unsent_votes_is_asked_about(product, join):
    run = product.new_run(pairs=3)
    page = join(run)
    gate = Gate(page, "**/ballot")
    page.keyboard.press("ArrowLeft")
    asked = []

    def stay(dialog):
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.close(run_before_unload=True)
    eventually(lambda: page.wait_for_timeout(20) or asked)
    assert asked == ["beforeunload"]
    gate.open()
    page.locator("#reveal .reveal").wait_for()
    assert len(product.votes(run)) == 1


def test_a_picture_that_does_not_load_is_not_voted_on(product, join, window):
    run = product.new_run(pairs=2, kind="svg")
    page = window()
    page.route("**/pictures/*.png", lambda route: route.abort())
    page.goto(run["join"])
    page.get_by_role("button", name="Start voting").click()
    expect(page.locator("#notice")).to_contain_text("A picture did not load")
    page.keyboard.press("ArrowLeft")
    assert not page.locator("[data-state]").count()
    page.unroute("**/pictures/*.png")
    eventually(
        lambda: (
            (again := page.get_by_role("button", name="Load it again")).count() == 0
            or again.click()
        )
    )
    page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
    page.keyboard.press("ArrowLeft")
    page.locator("#reveal .reveal").wait_for()
    assert len(product.votes(run)) == 1


def test_a_blocked_voter_is_told_and_nothing_is_recorded(product, join):
    run = product.new_run(pairs=8)
    page = join(run)
    product.ask("block_voters", queue=run["queue"])
    page.keyboard.press("s")
    expect(page.locator("#notice")).to_contain_text("You need an invite link")
    assert product.votes(run, standing=False) == []


@pytest.mark.fault
def test_a_server_killed_in_the_middle_loses_and_doubles_nothing(product, join):
    run = product.new_run(pairs=20)
    page = join(run)
    auto_advance(page)
    voted = []

    def vote(key):
        page.locator("#pairs > .pair:first-child:not([data-waiting])").wait_for()
        voted.append(first_pair(page))
        page.keyboard.press(key)

    for _ in range(4):
        vote("ArrowLeft")
    killed = product.web()
    for process in reversed(killed):
        os.kill(process, signal.SIGKILL)
    for _ in range(4):
        vote("ArrowRight")
    # It is back so soon that the page may not have to say so; other tests see what it says.
    product.eventually_votes(run, 8)
    expect(page.locator("#save")).to_contain_text("All saved")
    assert killed
    assert not {*killed} & {*product.web()}
    assert len(voted) == len(set(voted)) == 8
    rows = product.votes(run, standing=False)
    assert [row["item"] for row in rows] == voted
    assert [row["choice"] == row["left_side"] for row in rows] == [True] * 4 + [False] * 4
    for _ in range(12):
        vote("ArrowLeft")
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert len({row["item"] for row in product.eventually_votes(run, 20)}) == 20
