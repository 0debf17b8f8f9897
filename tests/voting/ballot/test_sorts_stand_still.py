"""Texts of every sort and judges with long names: no vote moves anything, axe finds nothing."""

import json

import pytest
from playwright.sync_api import expect

from tests.product.test_access import BEYOND, violations
from tests.voting.ballot.test_stands_still import (
    CHAT,
    COVERED,
    PAIR,
    SHIFTED,
    SHIFTS,
    WINDOWS,
    vote,
)
from tests.voting.ballot.test_texts import ARABIC, FORMULAS, PROMPT

pytestmark = pytest.mark.browser

CODE = "def sorted_by_length(words):\n    return sorted(words, key=len)  # a long line " + "x" * 90
SORTS = {
    "code": {
        "kind": "code",
        "metadata": {"language": "python"},
        "prompt": "Sort `words`:\n\n```python\nwords = []\n```\n\n- in **one** line",
        "output": f"{CODE}\n\n\n" * 30,
    },
    "formulas": {"prompt": "Solve $x^2 = 9$", "output": FORMULAS * 3},
    "right to left": {"prompt": PROMPT, "output": ARABIC * 3},
    "conversations": {"prompt": json.dumps(CHAT), "output": json.dumps(CHAT[1:])},
    "short": {"prompt": "Is 7 odd?", "output": "Yes."},
}
NAMES = [f"judge-with-a-name-that-goes-on-and-on-{n}" for n in range(11)] + ["قاض حذر ومتأن"]
SAYS = [["A", "B", "tie"] * 4] * len(SORTS)
PLACES = f"""() => [...document.querySelectorAll("{PAIR} :is(.prompt, .sides, .side > h3, .text)")]
  .map((part) => Object.values(part.getBoundingClientRect().toJSON()))"""


@pytest.mark.parametrize("size", ["desk", "low desk", "large desk", "phone"])
def test_a_vote_moves_nothing_whatever_the_sort_of_text(product, join, size):
    run = product.ask("new_mixed_run", outputs=list(SORTS.values()), says=SAYS, names=NAMES)
    page = join(run, **WINDOWS[size])
    page.evaluate(SHIFTS)
    found = []
    for _ in SORTS:
        places = page.evaluate(PLACES)
        found += [*page.evaluate(COVERED), *page.evaluate(BEYOND)]
        page.evaluate("shifts = 0")
        vote(page)
        page.locator("#reveal .judges li").last.wait_for(state="attached")
        assert page.evaluate(PLACES) == places
        assert page.evaluate(SHIFTED) <= 0.01
        assert page.evaluate("scrollY") == 0
        found += [*page.evaluate(COVERED), *page.evaluate(BEYOND)]
        if size in ("desk", "phone"):
            found += violations(page)
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    assert found == []
