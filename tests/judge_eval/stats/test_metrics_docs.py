"""The examples on the page of metrics are true; and metrics need no Django."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from judge_eval.stats.registry import SCORERS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "metrics.md"


def test_examples_on_the_page_are_true(monkeypatch):
    monkeypatch.setattr("judge_eval.stats.registry.SCORERS", dict(SCORERS))
    outcome = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 50
    assert outcome.failed == 0


def test_every_scorer_is_on_the_page():
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in SCORERS if f"\n## {name}\n" not in page] == []


ALONE = """
import sys
from judge_eval.stats import alt_test, cohen_kappa
slow = {"django", "scipy", "sklearn"} & set(sys.modules)
assert not slow, slow
people = {name: {n: "AB"[n % 2] for n in range(30)} for name in ("ann", "ben", "cem")}
print(alt_test({"j": people["ann"]}, people)["j"].passes)
print(cohen_kappa(people["ann"], people).figure.value)
assert "django" not in sys.modules
"""


@pytest.mark.slow
def test_the_package_works_without_settings_and_imports_nothing_slow():
    plain = {name: value for name, value in os.environ.items() if "DJANGO" not in name}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE],
        cwd=ROOT,
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("True\n1.0\n", "")
