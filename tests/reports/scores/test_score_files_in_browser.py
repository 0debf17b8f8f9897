"""Score files in a browser: made, read on their page, and the report that needs no server."""

import zipfile

import pytest
from playwright.sync_api import expect

from tests.product.test_access import faults, log_in

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def study(product):
    """Two people have voted alike on eight pairs; there are a judge and a baseline."""
    run = product.new_run(pairs=8, votes_wanted=2, names=["judge-alike", "judge-other"])
    for _ in range(2):
        product.ask("colleague_votes", queue=run["queue"], number=8)
    return run


def open_report(page, folder):
    with page.expect_download() as download:
        page.get_by_role("link", name="zip").first.click()
    download.value.save_as(folder / "scores.zip")
    with zipfile.ZipFile(folder / "scores.zip") as archive:
        [name] = [name for name in archive.namelist() if name.endswith("score_report.html")]
        archive.extract(name, folder)
    page.goto((folder / name).as_uri())


# The colour of a corner of a picture, as it is painted.
DRAWN_ON = """async img => {
  await img.decode();
  const canvas = new OffscreenCanvas(8, 8), context = canvas.getContext("2d");
  context.drawImage(img, 0, 0);
  return `rgb(${[...context.getImageData(2, 2, 1, 1).data].slice(0, 3).join(", ")})`;
}"""


def test_made_read_and_opened_without_a_server(product, window, study, tmp_path):
    page = window()
    log_in(page, product)
    page.goto(f"{study['board']}scores/")
    page.get_by_role("button", name="Make score files", exact=True).click()
    figures = page.get_by_role("region", name="Figures")
    expect(figures.get_by_role("row", name="people among themselves")).to_be_visible()
    expect(figures.get_by_role("columnheader", name="Accuracy, winner")).to_be_visible()
    expect(page.get_by_text("As of 16 votes by 2 people on 8 pairs")).to_be_visible()
    assert faults(page) == []

    open_report(page, tmp_path)
    assert faults(page) == []
    chart = page.get_by_role("img", name="Accuracy: winner").first
    for scheme, paper in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(22, 22, 21)")):
        page.emulate_media(color_scheme=scheme)
        painted = "getComputedStyle(document.documentElement).backgroundColor"
        assert page.evaluate(painted) == paper
        assert chart.evaluate(DRAWN_ON) == paper


def test_the_report_is_sorted_by_a_click_and_people_stay_last(product, window, study, tmp_path):
    page = window()
    log_in(page, product)
    page.goto(f"{study['board']}scores/")
    link = page.get_by_role("link", name="zip").first
    if not link.is_visible():
        page.get_by_role("button", name="Make score files", exact=True).click()
        link.wait_for()
    open_report(page, tmp_path)
    table = page.locator("#summary")
    judges = table.locator("tbody th")
    before = judges.all_inner_texts()
    head = table.get_by_role("columnheader", name="Accuracy, winner")
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert judges.all_inner_texts() == before[::-1]
    expect(table.get_by_role("row").last).to_contain_text("people among themselves")
