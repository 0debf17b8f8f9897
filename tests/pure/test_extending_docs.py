"""docs/extending.md shows code that is tested, and names every class and hook there is."""

import inspect
import re
from pathlib import Path

from judge_eval import extensions
from judge_eval.config.judge_types import JudgeHelpers
from judge_eval.config.modes import PlanHelpers
from tests.helpers.extension_package import PACKAGE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text("utf-8")
KINDS = {"RunMode", "JudgeType", "Provider", "Scorer", "ImportFormat", "Baseline"}


def test_the_code_of_the_page_is_that_of_the_package():
    [(place, code)] = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    assert code == (PACKAGE / place).read_text()
    assert (
        'consensus = "humanjudge_consensus:Consensus"' in (PACKAGE / "pyproject.toml").read_text()
    )


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
