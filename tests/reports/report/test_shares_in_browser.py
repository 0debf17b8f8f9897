"""A report is shared with a click and read by a stranger: at a desk, on a phone, on paper."""

import pytest
from playwright.sync_api import expect

from tests.judge_eval.board.test_boards import A4, NAMELESS, NARROW, OVERPRINTED, overflow
from tests.product.test_access import BEYOND, log_in, violations

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", ["clear_winner", "flagged_items"])
def test_a_report_is_shared_and_read_by_a_stranger(product, window, name):
    run = product.ask("new_board", name=name)
    owner = window()
    log_in(owner, product)
    owner.goto(f"{run['board']}share/")
    found = violations(owner)
    owner.get_by_label("For whom").fill("Press")
    owner.get_by_label("Frozen as of now").check()
    owner.get_by_role("button", name="Make the link").click()
    link = owner.get_by_label("The new link").input_value()
    found += violations(owner)
    reader = window()
    reader.goto(link)
    expect(reader.get_by_text("Frozen: as of")).to_be_visible()
    expect(reader.locator(".verdict .plot:visible")).to_have_count(1)
    desk = reader.viewport_size
    reader.set_viewport_size(NARROW)
    assert reader.evaluate("document.documentElement.scrollHeight") < 2_500
    reader.set_viewport_size(desk)
    for summary in reader.locator("main details.folded:not(details details) > summary").all():
        summary.click()
    found += violations(reader)
    assert overflow(reader) <= 0
    reader.set_viewport_size(NARROW)
    assert overflow(reader) <= 0
    assert reader.evaluate(OVERPRINTED) == []
    assert reader.evaluate(NAMELESS) == []
    reader.set_viewport_size(A4)
    reader.emulate_media(media="print")
    assert overflow(reader) <= 0
    assert reader.evaluate(OVERPRINTED) == []
    assert found == []
    owner.get_by_role("button", name="Revoke the link Press").click()
    expect(owner.get_by_text("revoked on")).to_be_visible()
    reader.goto(link)
    expect(reader.get_by_text("Error 404")).to_be_visible()


def test_long_names_and_those_from_right_to_left_are_printed_over_nothing(product, window):
    run = product.ask("new_board", name="long_names")
    page = window()
    log_in(page, product)
    page.goto(f"{run['board']}share/")
    page.get_by_role("button", name="Make the link").click()
    page.goto(page.get_by_label("The new link").input_value())
    for summary in page.locator("main details.folded:not(details details) > summary").all():
        summary.click()
    for size, media in ((NARROW, "screen"), (A4, "print")):
        page.set_viewport_size(size)
        page.emulate_media(media=media)
        assert page.evaluate(BEYOND) == []
        assert page.evaluate(OVERPRINTED) == []
