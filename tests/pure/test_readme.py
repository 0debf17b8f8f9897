"""What the README says of the demo and of keys is so, and every document leads where it says."""

import re
from pathlib import Path

import pytest

from judge_eval.demo import content
from voting.choices import TABLE

ROOT = Path(__file__).parents[2]
README = " ".join((ROOT / "README.md").read_text("utf-8").split())
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


def test_the_tour_counts_what_the_demo_holds():
    made = [len(prompt.outputs) for kind in ("svg", "text") for prompt in content.load(kind)]
    pairs = sum(number * (number - 1) // 2 for number in made)
    assert f"{pairs} pairs (drawings and texts)" in README
    assert f"{len(content.jokes())} single items (jokes)" in README


@pytest.mark.parametrize("row", TABLE.values(), ids=list(TABLE))
def test_the_tour_names_the_keys_that_stand_on_the_buttons(row):
    first, second = row.keys
    assert f"`{first}` or `{second}` {row.spoken.lower()}" in README


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_between_documents_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
