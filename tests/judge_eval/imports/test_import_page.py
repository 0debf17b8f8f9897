"""The whole road of a file in a browser: dropped, mapped, imported, on its board, and out again."""

import pytest
from playwright.sync_api import expect

from tests.product.test_access import PHONE, log_in, violations

pytestmark = pytest.mark.browser

ROWS = "\n".join(
    [
        "no,question,one,two,winer,person,gpt",
        *(f"{n},Question {n},Ada {n},Bob {n},{n % 2},ann,{'AB'[n % 2]}" for n in range(12)),
    ]
)
ROLES = {
    "no": "pair",
    "question": "prompt",
    "one": "output_a",
    "two": "output_b",
    "winer": "vote",
    "person": "voter",
    "gpt": "judges",
}
DROP = """text => {
  const files = new DataTransfer();
  files.items.add(new File([text], "sky.csv", {type: "text/csv"}));
  const what = {dataTransfer: files, bubbles: true, cancelable: true};
  document.querySelector("main").dispatchEvent(new DragEvent("dragover", what));
  document.querySelector("main").dispatchEvent(new DragEvent("drop", what));
}"""


def test_a_file_is_dropped_mapped_imported_and_on_its_board(product, window):
    page = window()
    log_in(page, product)
    page.get_by_role("link", name="Import", exact=True).click()
    found = violations(page)
    page.evaluate(DROP, ROWS)
    page.get_by_role("heading", name="What the columns are").wait_for()
    page.get_by_role("button", name="rarer ones").click()
    for column, role in ROLES.items():
        page.get_by_label(column, exact=True).select_option(role)
    page.get_by_role("button", name="Update preview").click()
    values = page.get_by_role("group", name="Its values stand for")
    values.get_by_label("0", exact=True).select_option("A")
    values.get_by_label("1", exact=True).select_option("B")
    page.get_by_role("button", name="Update preview").click()
    expect(page.get_by_role("article", name="Pair 0", exact=True)).to_contain_text("Ada 0")
    expect(page.get_by_role("heading", name="What is wrong in the first rows")).to_have_count(0)
    found += violations(page)
    page.set_viewport_size(PHONE["viewport"])
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    page.get_by_text("Name “sky”").click()
    page.get_by_label("Name of the run").fill("Sky")
    page.get_by_label("Project", exact=True).select_option(label="Demo")
    page.get_by_role("button", name="Import 12 pairs").click()
    # It follows by itself.
    page.get_by_role("heading", name="Imported: sky.csv").wait_for()
    expect(page.get_by_role("status")).to_contain_text("New: 12 pairs, 1 judge, 12 verdicts")
    found += violations(page)
    page.get_by_role("link", name="Board of Sky").click()
    expect(page.get_by_role("row", name="gpt")).to_contain_text("100")
    run_pages = page.get_by_role("navigation", name="This run")
    run_pages.get_by_role("link", name="Data", exact=True).click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    found += violations(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Table (CSV)").click()
    assert download.value.suggested_filename.startswith("sky-")
    assert found == []
