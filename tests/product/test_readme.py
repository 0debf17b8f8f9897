"""What the README says of the demo and of keys is so, and every document leads where it says."""

import inspect
import re
from pathlib import Path

import pytest

from judge_eval import extensions
from judge_eval.demo import content
from judge_eval.judging.config.judge_types import JudgeHelpers
from judge_eval.judging.config.modes import PlanHelpers
from tests.helpers.extension_package import PACKAGE
from voting.items.choices import TABLE

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


def test_it_is_short_and_the_index_lists_every_document():
    assert len(README.split()) <= 750
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    names = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert [name for name in names if f"]({name})" not in index] == []


def test_its_pictures_are_there_and_weigh_little():
    named = [ROOT / name for name in re.findall(r'(?:src|srcset)="([^"]+)"', README)]
    assert set((ROOT / "docs" / "img").iterdir()) == {*named}
    assert [path.name for path in named if path.stat().st_size > 64_000] == ["voting.gif"]
    order = ("voting.gif", "board.png", "workshop.png", "phone.png")
    assert [name for name in order if name in README] == sorted(order, key=README.index)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_links_between_documents_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text("utf-8")

KINDS = {"RunMode", "JudgeType", "Provider", "Scorer", "ImportFormat", "Baseline"}


def test_the_code_of_the_page_is_that_of_the_package():
    modules = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    assert [place for place, code in modules if code != (PACKAGE / place).read_text()] == []
    entry_points = re.findall(r'^\w+ = "humanjudge_consensus\S*:\w+"$', PAGE, re.MULTILINE)
    assert len(entry_points) == len(modules) == 2
    project = (PACKAGE / "pyproject.toml").read_text()
    assert [line for line in entry_points if line not in project.splitlines()] == []


def test_the_page_has_every_hook_and_no_other():
    hooks = re.findall(r"^\| `(\w+)` \| `(\w+)\((.*?)\)` \|", PAGE, re.MULTILINE)
    told = {(kind, hook) for kind, hook, _ in hooks}
    there = {
        (kind, name)
        for kind in KINDS
        for name, member in vars(getattr(extensions, kind)).items()
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__call__")
    }
    assert told == there
    for kind, hook, given in hooks:
        if kind in KINDS:
            wanted = inspect.signature(getattr(getattr(extensions, kind), hook)).parameters
            names = [each.partition(":")[0].strip("* ") for each in given.split(",")]
            assert names == list(wanted)[1:]


def test_the_page_names_every_helper():
    there = {
        name
        for helpers in (PlanHelpers, JudgeHelpers)
        for name in dir(helpers)
        if not name.startswith("_")
    }
    assert [name for name in there if not re.search(rf"`{name}[(`]", PAGE)] == []
